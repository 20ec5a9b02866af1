"""Stopped at once or stopped early: what comes back says so, and still holds."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from functools import cache
from typing import Any

import pytest
from trust.agreement import best_of_policies, holds, small_problems

import optgap
from optgap.models.errors import InputError
from optgap.models.limits import Limits
from optgap.models.result import Result, Status, Termination
from optgap.registry import FAMILIES

METHODS = [(name, method) for name, spec in FAMILIES.items() for method in spec.methods]
POLICIES = [(name, policy) for name, spec in FAMILIES.items() for policy in spec.policies]


@cache
def problems(family: str) -> list[Any]:
    """The family's default problem, and smaller ones for methods that refuse it."""
    return [optgap.generate(family, seed=1), *small_problems(family)]


@cache
def best_known(family: str, which: int) -> float:
    return best_of_policies(problems(family)[which])


def stopped(family: str, method: str, limits: Callable[[], Limits]) -> tuple[int, Result]:
    """The result of a method under these limits, on the largest problem that it takes."""
    refused = ""
    for which, problem in enumerate(problems(family)):
        try:
            return which, optgap.solve(problem, method, limits=limits())
        except InputError as error:
            refused = str(error)
    pytest.fail(f"no problem to try it on: {refused}")


def assert_honest(family: str, which: int, result: Result, why: Termination) -> None:
    """Complete and proven, or labelled as stopped; and the bound holds either way."""
    holds(problems(family)[which], result, best_known(family, which))
    assert (result.objective is not None) == (result.status in (Status.OPTIMAL, Status.FEASIBLE))
    if result.kind == "exact" and result.status is not Status.OPTIMAL:
        assert result.termination is why


@pytest.mark.parametrize(("family", "method"), METHODS)
def test_no_time_at_all(family: str, method: str) -> None:
    which, result = stopped(family, method, lambda: Limits(time_limit=1e-6))
    assert_honest(family, which, result, Termination.TIME_LIMIT)


AT_ONCE = {"bound-area", "relaxation"}
"""Done before anyone could stop them, as is a policy that places tasks."""
STOPPED = METHODS + [c for c in POLICIES if c[0] not in ("placement", "consolidation")]


@pytest.mark.parametrize(("family", "name"), STOPPED)
def test_interrupted_before_it_begins(family: str, name: str) -> None:
    event, spec = threading.Event(), FAMILIES[family]
    event.set()
    if name in spec.policies:
        which, result = 0, optgap.run(problems(family)[0], name, limits=Limits(interrupted=event))
    else:
        which, result = stopped(family, name, lambda: Limits(interrupted=event))
    assert_honest(family, which, result, Termination.INTERRUPTED)
    if result.status is Status.OPTIMAL:  # the first solution met a bound in closed form
        assert result.objective == pytest.approx(result.bound)
    elif name not in AT_ONCE:
        assert result.termination is Termination.INTERRUPTED
    assert result.bound is None or math.isfinite(result.bound)


@pytest.mark.parametrize(("family", "method"), METHODS)
def test_interrupted_on_the_way(family: str, method: str) -> None:
    event = threading.Event()
    alarm = threading.Timer(0.3, event.set)
    alarm.start()
    which, result = stopped(family, method, lambda: Limits(time_limit=60, interrupted=event))
    alarm.cancel()
    assert_honest(family, which, result, Termination.INTERRUPTED)


@pytest.mark.parametrize(("family", "policy"), POLICIES)
def test_a_policy_that_is_stopped_says_so(family: str, policy: str) -> None:
    problem = problems(family)[0]
    result = optgap.run(problem, policy, limits=Limits(time_limit=1e-6))
    whole = result.termination is Termination.COMPLETED
    assert whole or result.termination is Termination.TIME_LIMIT
    assert result.objective is None or problem.check(result.solution) == []
    assert not whole or result.objective is not None
