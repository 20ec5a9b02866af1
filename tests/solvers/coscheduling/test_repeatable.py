"""Work decides what comes out, never the clock: the same on a machine of any speed."""

from __future__ import annotations

from typing import Any

import pytest

from optgap.models.clock import CompileTimer
from optgap.models.coscheduling.presets import measured, stream, synthetic
from optgap.models.limits import Limits
from optgap.registry import FAMILIES

SPEC = FAMILIES["coscheduling"]
PROBLEMS = {
    "synthetic": synthetic(seed=0, size=12),
    "measured": measured(seed=0, size=8),
    "stream": stream(seed=0, size=5),
}


def answers(problem: Any, limits: Any) -> dict[str, str]:
    """The whole answer of every default method and policy, as text."""
    found = {}
    for name, entry in {**SPEC.methods, **SPEC.policies}.items():
        outcome = entry.load()(problem, limits=limits(), seed=0)
        shown = None if outcome.solution is None else outcome.solution.to_json(problem)
        found[name] = repr((outcome, shown))
    return found


@pytest.mark.parametrize("preset", PROBLEMS)
def test_the_speed_of_the_clock_changes_nothing(
    preset: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    working = CompileTimer.working
    both = []
    for speed in (20.0, 0.05):
        monkeypatch.setattr(CompileTimer, "working", lambda self, k=speed: k * working(self))
        both.append(answers(PROBLEMS[preset], Limits))
    assert both[0] == both[1]


@pytest.mark.parametrize("work", [0.01, 0.1])
def test_a_budget_ends_a_run_at_one_place(work: float) -> None:
    problem = next(iter(PROBLEMS.values()))
    one, other = (answers(problem, lambda: Limits(work=work)) for _ in range(2))
    assert one == other
