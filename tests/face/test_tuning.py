"""Choosing parameters against the bound: on some instances, judged on others."""

from __future__ import annotations

import json
import math
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from conftest import Cli
from hypothesis import given
from hypothesis import strategies as st

import optgap
from optgap import tuning
from optgap.models.errors import InputError
from optgap.models.limits import Limits
from optgap.models.result import Termination
from optgap.tuning import Range, read_range

TAU = {"tau": "0..0.5"}


def tuned(space: dict[str, str] = TAU, **options: Any) -> tuning.Tuned:
    given = {"train": 3, "test": 3, "trials": 8, "size": 6, **options}
    return tuning.tune("coscheduling", given.pop("policy", "ecosched"), space, **given)


@pytest.mark.parametrize("search", tuning.SEARCHES)
def test_the_chosen_setting_is_the_best_that_was_tried(search: str) -> None:
    if search == "optuna":
        pytest.importorskip("optuna")
    found = tuned(search=search)
    best = min(trial.gap for trial in found.trials)
    assert found.train[1].mean == best
    assert found.train[1].mean <= found.train[0].mean
    assert found.trials[0].setting == found.before == {"tau": 0.14}
    if search != "grid":
        assert len(found.trials) == 8
    assert len({str(trial.setting) for trial in found.trials}) == len(found.trials)


def test_gaps_are_those_of_compare() -> None:
    found = tuned(search="grid")
    problem = optgap.generate("coscheduling", size=6, seed=3)
    comparison = optgap.compare(problem, f"ecosched,{found.call}", "bound-patterns")
    for row, scores in zip(comparison.rows[1:], found.test, strict=True):
        assert scores.gaps[0] == pytest.approx(row.gap_to_bound)


def test_the_same_seed_finds_the_same() -> None:
    assert tuned(seed=4) == tuned(seed=4)


def test_what_stays_fixed_stays_fixed() -> None:
    found = tuned(policy="ecosched(idle_weight=0.1)")
    assert found.fixed == {"idle_weight": 0.1}
    assert found.call.startswith("ecosched(idle_weight=0.1,tau=")
    problem = optgap.generate("coscheduling", size=6, seed=0)
    assert optgap.run(problem, found.call).objective > 0


def test_a_choice_that_does_not_hold_elsewhere_is_called_that() -> None:
    found = tuned(search="grid")
    worse = (found.test[0], tuning.Scores(tuple(1 + (g or 0) for g in found.test[0].gaps)))
    said = replace(found, after={"tau": 0.5}, test=worse).verdict()
    assert "keep the defaults" in said


def test_ones_own_policy_is_tuned_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("own.py").write_text(
        "def mine(task, state, pick=0):\n"
        "    nodes = state.feasible(task)\n"
        "    return nodes[min(pick, nodes.size - 1)] if nodes.size else None\n"
    )
    found = tuning.tune(
        "placement",
        "own.py:mine",
        {"pick": "0..3"},
        preset="small",
        size=6,
        train=2,
        test=2,
        search="grid",
    )
    assert [trial.setting for trial in found.trials] == [{"pick": k} for k in range(4)]


def test_an_interrupt_keeps_the_best_so_far() -> None:
    limits = Limits()

    def tell(phase: str, incumbent: float | None, bound: float | None) -> None:
        if phase.startswith("setting 3"):
            limits.interrupted.set()

    limits = Limits(interrupted=limits.interrupted, progress=tell)
    found = tuned(limits=limits)
    assert found.termination is Termination.INTERRUPTED
    assert len(found.trials) == 3
    problem = optgap.generate("coscheduling", size=6, seed=3)
    gap = optgap.compare(problem, found.call, "bound-patterns").rows[1].gap_to_bound
    assert found.test[1].gaps[0] == pytest.approx(gap)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"space": {}}, "NAME=RANGE"),
        ({"space": {"tao": "0..1"}}, "tao"),
        ({"space": {"tau": "1..0"}}, "LOW < HIGH"),
        ({"space": {"tau": "0..1 log"}}, "0 < LOW"),
        ({"space": {"tau": "a..b"}}, "LOW..HIGH"),
        ({"space": {"tau": "0.1"}}, "two values"),
        ({"space": {"window": "0..1.5"}}, "integers"),
        ({"space": {"signal": "0..1"}}, "no number"),
        ({"search": "luck"}, "scipy"),
        ({"trials": 0}, "at least 1"),
        ({"train": 0}, "at least one"),
        ({"train": [1, 2], "test": [2]}, "not in the training set"),
        ({"policy": "nobody"}, "nobody"),
        ({"bound": "nothing"}, "nothing"),
        ({"sice": 3}, "sice"),
    ],
)
def test_what_makes_no_sense_is_refused(options: dict[str, Any], expected: str) -> None:
    with pytest.raises(InputError, match=expected):
        tuned(**options)


@given(
    low=st.floats(1e-3, 10),
    span=st.floats(1e-3, 10),
    share=st.floats(0, 1),
    log=st.booleans(),
    whole=st.booleans(),
)
def test_a_value_of_a_range_lies_in_it(
    low: float, span: float, share: float, log: bool, whole: bool
) -> None:
    if whole:
        low, span, log = float(math.ceil(low)), float(math.ceil(span)), False
    item = Range("x", low, low + span, whole, log)
    value = item.at(share)
    assert low - 1e-5 * low <= value <= (low + span) * (1 + 1e-5)
    assert isinstance(value, int) == whole
    assert len(item.steps) == len(set(item.steps)) > 1


def test_a_range_reads_back_what_it_shows() -> None:
    for text, default in (("0..1", 0.5), ("0.01..10 log", 1.0), ("a|b", "a"), ("1..8", 2)):
        assert str(read_range("x", text, default)) == text
    assert read_range("x", "1..8", 2).at(1.0) == 8
    assert read_range("x", "true|false", False).values == (True, False)


def test_the_command_prints_before_and_after(cli: Cli, tmp_path: Path) -> None:
    arguments = ["tune", "coscheduling", "--policy", "ecosched", "--param", "tau=0..0.5"]
    arguments += ["--train", "2", "--test", "2", "--trials", "5", "--set", "size=6"]
    answer = cli(*arguments, "--json", str(tmp_path / "t.json"))
    assert answer.code == 0, answer.err
    assert "held out" in answer.out
    assert "5 settings tried" in answer.out
    document = json.loads((tmp_path / "t.json").read_text())
    assert document["schema"] == "optgap.tune/1"
    assert (document["train"]["seeds"], document["test"]["seeds"]) == ([0, 1], [2, 3])
    assert cli("tune", "coscheduling", "--policy", "ecosched", "--param", "tau").code == 2


def test_a_missing_optuna_is_one_line(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "optuna", None)
    arguments = ["tune", "coscheduling", "--policy", "ecosched", "--param", "tau=0..0.5"]
    answer = cli(*arguments, "--train", "1", "--test", "1", "--search", "optuna", "--set", "size=4")
    assert answer.code == 2
    assert "pip install 'optgap[optuna]'" in answer.err
