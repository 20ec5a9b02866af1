"""Results are decided by work: the same by a clock that is 20 times as fast."""

from __future__ import annotations

from typing import Any

import pytest

from optgap.models.clock import CompileTimer
from optgap.models.elastic import presets
from optgap.models.limits import Limits
from optgap.models.result import Termination
from optgap.solvers.elastic import METHODS

BUDGET = 0.3
"""Units: less than `offline` and `exhaustive` take for the problem with starts."""


@pytest.mark.parametrize("method", ["offline", "exhaustive", "bound-prices"])
def test_a_budget_ends_at_one_place(method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    problem = presets.small(seed=1, size=6, gpus=16, hours=0.2)

    def cut() -> tuple[Any, ...]:
        limits = Limits(work=BUDGET)
        found = METHODS[method].load()(problem, limits=limits, seed=0)
        assert limits.cut is Termination.WORK_LIMIT
        schedule = None if found.solution is None else found.solution.to_json(problem)
        return found.bound, found.bound_by, found.claimed, repr(schedule), limits.spent

    before = cut()
    right = CompileTimer.working
    monkeypatch.setattr(CompileTimer, "working", lambda timer: 20 * right(timer))
    assert cut() == before
    assert before[0] > 0
