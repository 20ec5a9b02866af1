"""Results are decided by work: the same on a machine that is 20 times as slow, or as fast."""

from __future__ import annotations

from typing import Any

import pytest

import optgap
from optgap.models.clock import CompileTimer
from optgap.models.elastic import ElasticProblem, presets
from optgap.models.limits import Limits
from optgap.models.result import Result, Termination
from optgap.registry import FAMILIES
from optgap.solvers.elastic import METHODS

FAMILY = FAMILIES["elastic"]
BUDGET = 0.3
"""Units: less than `offline` and `exhaustive` take for the problem with starts."""


@pytest.fixture(params=[20.0, 0.05])
def factor(request: pytest.FixtureRequest) -> float:
    return float(request.param)


def seen(problem: ElasticProblem, result: Result) -> str:
    """All that a result says, but for how long it took."""
    schedule = None if result.solution is None else result.solution.to_json(problem)
    proof = (result.status, result.termination, result.bound, result.bound_by, result.message)
    return repr((*proof, result.objective, dict(result.metrics), schedule))


def ran() -> dict[str, str]:
    problem = presets.tiny(seed=0, size=4)
    methods = {name: seen(problem, optgap.solve(problem, name)) for name in METHODS}
    policies = {name: seen(problem, optgap.run(problem, name)) for name in FAMILY.policies}
    return methods | policies


@pytest.fixture(scope="module")
def before() -> dict[str, str]:
    return ran()


def test_no_method_or_policy_goes_by_the_clock(
    before: dict[str, str], factor: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    right = CompileTimer.working
    monkeypatch.setattr(CompileTimer, "working", lambda timer: factor * right(timer))
    assert ran() == before


@pytest.mark.parametrize("method", ["offline", "exhaustive", "bound-prices"])
def test_a_budget_ends_at_one_place(
    method: str, factor: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    problem = presets.small(seed=1, size=6, gpus=16, hours=0.2)

    def cut() -> tuple[Any, ...]:
        limits = Limits(work=BUDGET)
        found = METHODS[method].load()(problem, limits=limits, seed=0)
        assert limits.cut is Termination.WORK_LIMIT
        schedule = None if found.solution is None else found.solution.to_json(problem)
        return found.bound, found.bound_by, found.claimed, repr(schedule), limits.spent

    before = cut()
    right = CompileTimer.working
    monkeypatch.setattr(CompileTimer, "working", lambda timer: factor * right(timer))
    assert cut() == before
    assert before[0] > 0
