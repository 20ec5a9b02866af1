from __future__ import annotations

import json
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import enumeration
import pytest
from conftest import Cli, two_nodes_problem

import optgap.comparing.overview as room
from optgap import processes
from optgap.models.errors import InputError
from optgap.models.limits import Limits
from optgap.models.result import Outcome, Status, Termination
from optgap.models.spec import Entry, entries
from optgap.plotting.gaps import overview_figure
from optgap.registry import FAMILIES

compare_all = partial(room.compare_all, processes=1)  # where what is patched here holds


def slow(problem: Any, *, limits: Limits, seed: int) -> Outcome:
    """A bound that takes a unit, and says by its bound what it was given."""
    limits.spend(1.0)
    return Outcome(None, Status.BOUND_ONLY, bound=1.0, bound_by=f"{limits.effort:g}")


@pytest.fixture(autouse=True)
def tiny(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two families: placement on a tiny problem, with methods whose answers are known."""
    import optgap.solvers.placement as solvers

    table = entries(lambda: {"slow": slow}, Entry("slow", "", kind="bound"))
    monkeypatch.setattr(solvers, "METHODS", {**enumeration.METHODS, **table})
    monkeypatch.setattr(solvers, "auto", lambda problem: "enumerate")
    monkeypatch.setattr(solvers, "auto_bound", lambda problem: "loose")
    monkeypatch.setattr(room, "generate", lambda name, seed: two_nodes_problem())
    monkeypatch.setattr(room, "families", lambda: ("placement",))
    known = replace(FAMILIES["placement"], overview="auto")
    monkeypatch.setitem(FAMILIES, "placement", known)


def test_every_family_has_a_table_with_gaps_to_bound_and_best() -> None:
    seen: list[str] = []
    answer = compare_all(limits=Limits(progress=lambda phase, *_: seen.append(phase)))
    assert seen
    assert all(phase.startswith("placement 1/1: ") for phase in seen)
    (comparison,) = answer.comparisons
    assert comparison.best_bound == comparison.best_known == 495.0
    frame = answer.to_frame()
    assert frame.index.names == ["family", "name"]
    assert len(frame) == len(FAMILIES["placement"].policies) + 1
    assert "placement\ntwo nodes" in str(answer)
    assert answer.termination is Termination.COMPLETED
    assert answer.comparison("placement") is comparison
    with pytest.raises(KeyError):
        answer.comparison("queueing")
    document = answer.to_json()
    assert document["schema"] == "optgap.overview/1"
    (family,) = document["families"]
    assert (family["schema"], family["family"]) == ("optgap.compare/1", "placement")
    for count in (1, 2, 5):
        figure = overview_figure([comparison] * count)
        assert sum(bool(ax.get_title(loc="left")) for ax in figure.axes) == count
        (legend,) = figure.legends
        meanings = [text.get_text() for text in legend.get_texts()]
        assert len(set(meanings)) == len(meanings) > 0
    assert overview_figure([]).axes == []


def test_a_limit_or_effort_is_handed_on_and_nothing_is_cut_without_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    import optgap.solvers.placement as solvers

    monkeypatch.setattr(solvers, "auto", lambda problem: "slow")
    answer = compare_all(effort=3)
    assert answer.comparisons[0].bound_by == "3"
    assert not answer.comparisons[0].unfinished
    assert answer.termination is Termination.COMPLETED
    with pytest.raises(InputError, match="effort"):
        compare_all(effort=0)


def test_a_family_that_fails_does_not_stop_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    def problem(name: str, seed: int) -> Any:
        if name == "queueing":
            raise ZeroDivisionError("on purpose")
        return two_nodes_problem()

    monkeypatch.setattr(room, "generate", problem)
    answer = compare_all(["queueing", "placement"])
    assert len(answer.comparisons) == 1
    assert answer.failures == {"queueing": "ZeroDivisionError: on purpose"}
    assert "on purpose" in str(answer)


def test_an_interrupt_keeps_what_is_done() -> None:
    limits = Limits()
    limits.interrupted.set()
    answer = compare_all(limits=limits)
    assert answer.comparisons == ()
    assert answer.termination is Termination.INTERRUPTED


def test_an_unknown_family_is_refused() -> None:
    with pytest.raises(InputError, match="no-such"):
        compare_all(["no-such"])


def test_compare_without_arguments_shows_all_families(
    cli: Cli, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(processes, "cores", lambda: 1)
    answer = cli("compare", "--plot", "x.png", "--json", "x.json")
    assert answer.code == 0, answer.err
    assert "gap to best known (%)" in answer.out
    assert answer.out.splitlines()[-1].startswith("optgap explain placement --policy ")
    assert "wrote x.png, x.json" in answer.out
    assert json.loads(Path("x.json").read_text())["schema"] == "optgap.overview/1"
    assert Path("x.png").read_bytes().startswith(b"\x89PNG")
