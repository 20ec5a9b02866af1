"""A search that its budget of work ends, ends at one place by a clock of any speed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import optgap
from optgap.models.clock import CompileTimer
from optgap.models.consolidation.presets import mixed, pai
from optgap.models.limits import Limits
from optgap.models.result import Result, Status

WORKING = CompileTimer.working


def unmoved(monkeypatch: pytest.MonkeyPatch, run: Callable[[], Result]) -> None:
    """Raise unless a fast and a slow clock give the same result but for its times."""

    def at(speed: float) -> str:
        monkeypatch.setattr(CompileTimer, "working", lambda clock: speed * WORKING(clock))
        document = run().to_json()
        del document["seconds"]
        return repr(document)

    assert at(20.0) == at(0.05)


@pytest.mark.parametrize(("gang", "share"), [("server", 0.5), ("free", 0.1), ("free", 0.9)])
def test_a_budget_ends_a_search_at_the_same_place(
    gang: Any, share: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    problem = mixed(seed=1, size=40, gang=gang)
    whole = Limits()
    best = optgap.solve(problem, "exact", limits=whole)
    assert best.status is Status.OPTIMAL

    def cut() -> Result:
        found = optgap.solve(problem, "exact", limits=Limits(work=share * whole.spent))
        assert found.bound <= best.objective * (1 + 1e-9)  # type: ignore[operator]
        return found

    unmoved(monkeypatch, cut)


def test_repacking_ends_its_events_at_the_same_place(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = pai(seed=1, size=16, present=12)
    unmoved(monkeypatch, lambda: optgap.run(problem, "opt_repack", units=1e-3))


def test_the_default_problem_repacked_is_optimal() -> None:
    found = optgap.run(optgap.generate("consolidation"), "opt_repack")
    assert found.objective == pytest.approx(3188.076, abs=1e-3)
