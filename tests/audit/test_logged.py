"""A log of any family is judged: violations are listed, rows that do not belong are counted."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from conftest import Cli, two_nodes_problem

import optgap
from optgap.auditing.tables import UNTOLD, read_log
from optgap.models.errors import InputError
from optgap.registry import FAMILIES

DATA = Path(__file__).parent / "data"
LOGS = {"placement": ("firstfit", "--placements"), "queueing": ("fifo", "--schedule")}
POLICIES = {"consolidation": "first", "coscheduling": "marble", "elastic": "fifo"}


@pytest.mark.parametrize("family", FAMILIES)
def test_a_log_of_every_family_is_audited(
    family: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cli: Cli
) -> None:
    monkeypatch.chdir(tmp_path)
    problem = optgap.generate(family, seed=3, **FAMILIES[family].tiny)
    optgap.save(problem, "p.json")
    policy, *option = LOGS.get(family, (POLICIES.get(family),))
    table = (*option, "log.csv") if option else ()
    assert cli("run", "p.json", "--policy", str(policy), *table, "-o", "s.json").code == 0
    solutions = [read_log(log, problem) for log in ("s.json", *table[1:])]
    for found in solutions:
        assert not found.reasons
        assert not problem.check(found.solution)
        theirs = problem.evaluate(solutions[0].solution).objective
        assert problem.evaluate(found.solution).objective == pytest.approx(theirs, rel=1e-4)
    log = table[-1] if table else "s.json"
    answer = cli("audit", family, "p.json", log, "--policies", str(policy))
    assert answer.code == 0, answer.err
    assert "\nthe logged schedule comes to " in answer.out


def test_what_does_not_belong_is_counted_and_violations_are_listed(
    tmp_path: Path, cli: Cli
) -> None:
    optgap.save(two_nodes_problem(), tmp_path / "p.json")
    log = tmp_path / "log.csv"
    log.write_text(
        "task,node,gpu_index\nt0,a,0\nt1,a,0\nt2,a,\nt3,b,\nt3,b,\nstranger,a,0\nt2,c,1\n"
    )
    answer = cli("audit", "placement", str(tmp_path / "p.json"), str(log), "--policies", "fgd",
                 "--json", "-")  # fmt: skip
    assert answer.code == 0, answer.err
    document = json.loads(answer.out)
    (violation,) = document["now"]["violations"]
    assert (violation["found"], violation["limit"]) == (1500, 1000)
    reasons = document["covered"]["reasons"]
    assert reasons["stands twice"] == 1
    assert reasons["a task that the problem does not have"] == 1
    assert reasons["on a node that the problem does not have"] == 1
    rows = {row["method"]: row for row in document["comparison"]["rows"]}
    assert "breaks 1 constraint" in rows["logged"]["message"]
    assert document["known_by"] != "logged"


@pytest.mark.parametrize(
    ("rows", "masks", "untold"),
    [
        ("t0,a,\nt1,a,0\nt2,b,\nt4,b,\n", [2, 1, 0, 0, 3], 1),  # t2, a half, was on b
        ("t0,a,\nt1,a,0\nt2,a,1\nt4,b,0\n", [0, 1, 2, 0, 1], 1),  # no card of a is left for t0
    ],
)
def test_whole_cards_that_a_log_does_not_tell_are_the_lowest_free_ones(
    rows: str, masks: list[int], untold: int, tmp_path: Path
) -> None:
    (tmp_path / "log.csv").write_text(f"task,node,gpu_index\n{rows}")
    found = read_log(tmp_path / "log.csv", two_nodes_problem(extra=1))
    assert found.solution.gpu_mask.tolist() == masks
    assert found.reasons == {UNTOLD: untold}


def test_tasks_that_the_log_did_not_place_are_taken_out(tmp_path: Path) -> None:
    problem = two_nodes_problem()
    log = tmp_path / "log.csv"
    log.write_text("seq,node,gpu_index\n0,a,0\n1,b,0\n2,,\n")  # and nothing of task 3
    audit = optgap.audit("placement", problem, log, policies="fgd", moves=1)
    assert len(audit.problem.tasks) == 2
    assert audit.covered.used == 2
    assert audit.covered.reasons == {"not in the log, or not placed": 2}
    assert len(audit.moves(1)) == 1  # the half card joins the whole one's node, or the reverse
    assert audit.moves(0).to_frame().empty


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("task,place\nt0,a\n", "node"),
        ("task,node,gpu_index\nt0,a,x\n", "0-2"),
        ("seq,node\n99,a\n", "a log of this problem"),
    ],
)
def test_tables_that_are_no_logs_are_refused(text: str, expected: str, tmp_path: Path) -> None:
    (tmp_path / "log.csv").write_text(text)
    with pytest.raises(InputError, match=expected):
        optgap.audit("placement", two_nodes_problem(), tmp_path / "log.csv", policies="fgd")


def test_an_audit_in_python_has_a_table_a_picture_and_moves() -> None:
    audit = optgap.audit("kubernetes", DATA / "kubernetes.json.gz")
    assert "<table>" in audit._repr_html_()
    assert len(repr(audit)) < 3000
    frame = audit.to_frame()
    assert list(frame.columns) == ["moves", "power_w", "bound_w"]
    assert (np.diff(frame["power_w"]) <= 0).all()
    ax = audit.plot().axes[0]
    assert ax.get_xlabel() == "migrations, at most"
    assert [*ax.get_xticks()] == [0, 1]  # whole moves, and nothing to save is not blown up
    assert ax.get_ylim() == (0, 1)
    assert list(audit.moves(5).to_frame().columns)[:3] == ["task", "from_node", "to_node"]
    assert audit.gap == pytest.approx(0, abs=1e-9)


def test_columns_may_have_other_names_and_units(tmp_path: Path, cli: Cli) -> None:
    problem = optgap.generate("queueing", size=6, seed=1)
    result = optgap.run(problem, "fifo")
    optgap.save(problem, tmp_path / "p.json")
    begin = [f"{name},{start / 60!r}" for name, start in zip(
        problem.jobs.names, result.solution.start_s.tolist(), strict=True)]  # fmt: skip
    (tmp_path / "log.csv").write_text("id,begin\n" + "\n".join(begin) + "\n")
    answer = cli(
        "audit", "queueing", str(tmp_path / "p.json"), str(tmp_path / "log.csv"), "--policies",
        "fifo", "--column", "id=job", "--column", "begin=start_s:min", "--json", "-",
    )  # fmt: skip
    assert answer.code == 0, answer.err
    now = json.loads(answer.out)["now"]
    assert now["objective"] == pytest.approx(result.objective)
    assert not now["violations"]
