"""Two tellings of one problem, held side by side."""

from __future__ import annotations

import os
from importlib import import_module
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st

import optgap
from optgap.api import execute
from optgap.models.limits import Limits
from optgap.models.result import Result, Status
from optgap.models.spec import Entry
from optgap.registry.runnable import Runnable

CLOSE = 1e-5
ENUMERATED = {
    "coscheduling": "exhaustive_coscheduling",
    "placement": "slow_placement",
    "queueing": "exhaustive_queueing",
}
"""Families whose brute force is no method of the package."""
FUZZ = os.environ.get("HYPOTHESIS_PROFILE") == "fuzz"
"""Whether this is a long run."""


def problems(family: str, **options: Any) -> st.SearchStrategy[Any]:
    """Small problems of a family, drawn at random."""
    module = import_module("strategies" if family == "placement" else f"strategies_{family}")
    found: st.SearchStrategy[Any] = getattr(module, f"{family}_problems")(**options)
    return found


def solved(problem: Any, method: str) -> Result:
    if method == "exhaustive" and problem.family in ENUMERATED:
        return enumerated(problem)
    return optgap.solve(problem, method, time_limit=60)


def enumerated(problem: Any) -> Result:
    """The result of the brute force that stands among the tests."""
    room = import_module(ENUMERATED[problem.family])
    entry = Entry("exhaustive", "brute force", kind="exact", functions=lambda: vars(room))
    return execute(problem, Runnable(entry, "exhaustive"), Limits(), 0)


def optimum(problem: Any, method: str) -> float | None:
    """The least objective; None where there is no solution."""
    result = solved(problem, method)
    assert result.status in (Status.OPTIMAL, Status.INFEASIBLE), result.message
    return result.objective


def agree(one: Result, two: Result, factor: float = 1.0) -> None:
    """Equal optima, up to a factor of units."""
    assert one.status is two.status
    if one.status is Status.OPTIMAL:
        assert two.objective == pytest.approx(factor * one.objective, rel=CLOSE, abs=CLOSE)


def no_worse(after: float | None, before: float | None) -> None:
    """What was possible still is, at no more."""
    if before is not None:
        assert after <= before + CLOSE * max(1.0, abs(before))


def holds(problem: Any, result: Result, known: float) -> None:
    """Raise unless bound, solution and optimum are what they say, beside a known solution."""
    assert result.bound is None or result.bound <= known * (1 + 1e-6)
    assert result.objective is None or problem.check(result.solution) == []
    if result.status is Status.OPTIMAL:
        assert result.objective <= known * (1 + 1e-6)
        assert result.objective == pytest.approx(result.bound, rel=1e-4)


def many(usual: int, long: int = 0) -> int:
    """So many problems; in a long run twenty times as many, or `long`."""
    return (long or 20 * usual) if FUZZ else usual


def examples(usual: int, long: int = 0) -> settings:
    """So many problems that hypothesis draws."""
    return settings(max_examples=many(usual, long))
