"""Numbers up to twelve orders of magnitude apart: what a solver's tolerance is nothing beside.

A long run (``HYPOTHESIS_PROFILE=fuzz``) tries hundreds of problems per family.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from trust.agreement import ENUMERATED, FUZZ, enumerated, examples, problems
from trust.clock import arrivals, changed, problem_of

import optgap
from optgap.models.errors import InputError
from optgap.models.result import Result, Status
from optgap.models.times import ROUNDING
from optgap.registry import FAMILIES

SMALL: dict[str, dict[str, Any]] = {
    "placement": {"max_nodes": 3, "max_tasks": 4, "max_gpus": 3},
    "coscheduling": {"max_jobs": 3},
    "consolidation": {"max_tasks": 3},
    "elastic": {"max_jobs": 3, "max_clocks": 2, "free": True},
    "queueing": {"max_jobs": 4},
}
USUAL = {"consolidation": 4, "elastic": 5, "queueing": 8}
"""Problems of a short run where each takes long; 12 elsewhere."""
LIMIT_S = 3.0 if FUZZ else 1.0
"""Of a method: a bound that it is cut off at has to hold as well."""
CLOSE = 1e-9
"""Relative: what may be between a bound and the least of sums of floats."""

NUMBERS = {
    "placement": ("gpu_idle_w", "cpu_idle_w", "cpu_full_w"),
    "coscheduling": ("idle_w", "runtime_s", "avg_power_per_gpu_w", "release_s"),
    "consolidation": ("static_w", "slope_w_per_mhz"),
    "elastic": ("submit_s", "iterations"),
    "queueing": ("arrival_s", "duration_s"),
}
"""Where a problem says how much or how long."""


def stretched(problem: Any, seed: int) -> Any:
    """The same problem with every such number times 10⁻⁶ to 10⁶."""
    rng = np.random.default_rng(seed)
    document = changed(
        problem.to_json(), lambda x: x * 10.0 ** rng.uniform(-6, 6), NUMBERS[problem.family]
    )
    if problem.family == "placement":
        power = document["power"]
        power["cpu_full_w"] += power["cpu_idle_w"]
        for model, idle in power["gpu_idle_w"].items():
            power["gpu_full_w"][model] = idle + float(10.0 ** rng.uniform(-6, 6))
    try:
        return problem_of(document)
    except InputError:  # too much of a good thing
        assume(False)


def answer(problem: Any, method: str) -> Result | None:
    try:
        if method == "exhaustive" and problem.family in ENUMERATED:
            return enumerated(problem)
        return optgap.solve(problem, method, time_limit=LIMIT_S)
    except InputError:
        return None


def optimum(problem: Any) -> float | None:
    """The objective of the best of all solutions, by brute force; None if there is none."""
    found = answer(problem, "exhaustive")
    return None if found is None or found.status is not Status.OPTIMAL else found.objective


def bounds_hold(problem: Any) -> None:
    """Raise unless every method's bound is below the least of all solutions."""
    best = optimum(problem)
    assume(best is not None)
    assert best is not None
    sign = 1.0 if problem.objective.described.sense == "min" else -1.0
    slack = CLOSE * abs(best)
    if problem.family in ("elastic", "queueing"):  # as are times that are late
        slack += 4 * ROUNDING * max(arrivals(problem.to_json()))
    for method in FAMILIES[problem.family].methods:
        found = answer(problem, method)
        if found is None:
            continue
        if found.bound is not None:
            ahead = sign * (found.bound - best)
            assert ahead <= slack, f"{method} ({found.bound_by}): {found.bound} {best}"
        if found.status is Status.OPTIMAL and found.objective is not None:
            behind = sign * (found.objective - best)
            assert behind <= 1e-6 * max(1.0, abs(best)), method


@pytest.mark.parametrize("family", sorted(SMALL))
def test_no_bound_is_above_the_optimum_of_numbers_far_apart(family: str) -> None:
    @examples(USUAL.get(family, 12))
    @given(problem=problems(family, **SMALL[family]), seed=st.integers(0, 2**32 - 1))
    def hold(problem: Any, seed: int) -> None:
        bounds_hold(stretched(problem, seed))

    hold()
