"""optgap-lib holds what it says, and scores are gaps to what is known."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from conftest import Cli, refused

import optgap
from benchmarks import library
from optgap import best_known
from optgap.api import close
from optgap.best_known import records, text_of
from optgap.documents import load_problem, load_solution
from optgap.models.errors import InputError
from optgap.models.reading import Held
from optgap.registry import FAMILIES

QUICK = (
    "placement-small-16",
    "placement-shares-20",
    "consolidation-mixed-12",
    "coscheduling-pool-8",
    "elastic-tiny-4",
    "queueing-small-6",
)


def test_the_library_is_as_large_as_it_should_be(root: Path) -> None:
    table = optgap.library()
    assert 40 <= len(table) <= 50
    assert table.groupby("family").size().between(8, 10).all()
    assert (table["gap"] == 0).sum() >= 20
    assert table["why"].str.len().gt(0).all()
    held = [path for path in (root / "instances").rglob("*") if path.is_file()]
    assert sum(path.stat().st_size for path in held) <= 4e6


@pytest.mark.parametrize("name", records())
def test_the_referee_accepts_the_best_solution_at_its_objective(name: str) -> None:
    known, problem = records()[name], load_problem(f"lib:{name}")  # which compares the hash
    verdict = optgap.check(
        problem, load_solution(Held(name, text_of(f"solutions/{name}.json")), problem)
    )
    assert verdict.serves_all
    assert verdict.objective == pytest.approx(known["best"]["value"], rel=1e-9)
    best, bound = known["best"]["value"], known["bound"]["value"]
    assert bound <= best if known["sense"] == "min" else bound >= best
    for one in (known["best"], known["bound"]):
        assert one["by"]
        assert {"seed", "cpu_s", "commit"} <= set(one)


@pytest.mark.parametrize("name", QUICK)
def test_small_bounds_are_proven_again(name: str) -> None:
    assert close(optgap.solve(f"lib:{name}").bound or 0.0, records()[name]["bound"]["value"])


def test_a_changed_file_and_an_unknown_name_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InputError, match="queueing-small-6"):
        optgap.load("lib:queueing-smal-5")
    text = best_known.text_of("queueing-small-6.json")
    monkeypatch.setattr(best_known, "text_of", lambda name: text.replace("0", "1"))
    with pytest.raises(InputError, match="not that of optgap-lib 1"):
        optgap.load("lib:queueing-small-6")


def test_a_policy_that_fails_on_one_instance_has_its_rows_of_the_others() -> None:
    def mine(state):  # type: ignore[no-untyped-def]
        raise ValueError("no idea")

    names = ["queueing-small-6", "lib:queueing-wait-9"]
    failed = optgap.score(mine, "queueing", instances=names)
    assert [row.failure for row in failed.rows] == ["input", "input"]
    assert failed.mean is None
    assert "no idea" in str(failed)
    assert "no idea" in failed._repr_html_()
    assert len(failed.to_frame()) == 2


def test_the_pages_have_the_stored_numbers_and_these_are_found_again(root: Path) -> None:
    known, scores = dict(records()), json.loads((root / "instances/scores.json").read_text())
    assert (root / "docs/scoreboard.md").read_text() == library.board(scores, known)
    assert (root / "instances/README.md").read_text() == library.table(known)
    for family, spec in FAMILIES.items():
        assert set(scores[family]) == set(spec.policies)
    for policy in ("marble", "sequential_max_gpu", "ecosched"):
        found = optgap.score(policy)
        for row in found.rows:
            stored = scores["coscheduling"][policy][row.instance]["objective"]
            assert row.result.objective == pytest.approx(stored, rel=1e-9)
        row = [policy, str(len(found.gaps)), f"{100 * found.mean:.2f}"]
        lines = (root / "docs/scoreboard.md").read_text().splitlines()
        assert row in [line.split()[:3] for line in lines]


def test_the_command_line_scores_and_compares_with_the_best(cli: Cli, here: Path) -> None:
    refused(cli("score", "fifo"), "fifo is a policy of queueing and elastic")
    refused(cli("score", "marbel"), "marble")
    cli("run", "lib:queueing-small-6", "--policy", "fifo", "-o", "mine.json")
    answer = cli("check", "lib:queueing-small-6", "mine.json", "--json", "c.json")
    told = json.loads(Path("c.json").read_text())["against_best"]
    assert told["best_known"] == told["bound"]
    assert not told["better"]
    assert "proven optimal" in answer.out
