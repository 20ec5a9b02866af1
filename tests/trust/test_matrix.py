"""Every exact method with every back end on the same problems: one optimum, bounds below it.

A long run (``HYPOTHESIS_PROFILE=fuzz``) tries thousands of problems per family.
"""

from __future__ import annotations

import os
from importlib import import_module
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import optgap
from optgap.models.errors import InputError
from optgap.models.result import Result, Status
from optgap.registry import FAMILIES
from optgap.solvers.backends import BACKENDS, unusable

STRATEGIES = {
    "placement": ("strategies", {"max_nodes": 3, "max_tasks": 5, "max_gpus": 3}),
    "coscheduling": ("strategies_coscheduling", {"max_jobs": 4}),
    "consolidation": ("strategies_consolidation", {"max_tasks": 4}),
    "elastic": ("strategies_elastic", {"max_jobs": 3, "free": True}),
    "queueing": ("strategies_queueing", {"max_jobs": 4}),
}
"""Where the problems come from, and how small they are kept."""

EXAMPLES = 600 if os.environ.get("HYPOTHESIS_PROFILE") == "fuzz" else 20
CLOSE = 1e-5
"""Relative; the methods stop at gaps of 1e-6."""


def variants(family: str) -> list[tuple[str, dict[str, str]]]:
    """Every exact method, once per back end where it has the choice."""
    found: list[tuple[str, dict[str, str]]] = []
    for name, entry in FAMILIES[family].methods.items():
        if entry.kind != "exact":
            continue
        if "backend" in entry.params:
            usable = [b for b in BACKENDS if not unusable(b)]
            found += [(name, {"backend": b}) for b in usable]
        else:
            found.append((name, {}))
    return found


def bounds(family: str) -> list[str]:
    """Every method that gives a bound and no proof of more."""
    return [n for n, e in FAMILIES[family].methods.items() if e.kind != "exact"]


def tried(problem: Any, method: str, **params: str) -> Result | None:
    """What a method says; None where it refuses the problem."""
    try:
        return optgap.solve(problem, method, time_limit=60, **params)
    except InputError:
        return None


def problems(family: str) -> st.SearchStrategy[Any]:
    module, small = STRATEGIES[family]
    strategy: st.SearchStrategy[Any] = getattr(import_module(module), f"{family}_problems")(**small)
    return strategy


def close(a: float, b: float) -> bool:
    return abs(a - b) <= CLOSE * max(1.0, abs(a), abs(b))


def compared(family: str, problem: Any) -> None:
    """Raise unless all methods agree on one problem."""
    results = {
        f"{method}{params or ''}": found
        for method, params in variants(family)
        if (found := tried(problem, method, **params)) is not None
    }
    finished = {
        name: r for name, r in results.items() if r.status in (Status.OPTIMAL, Status.INFEASIBLE)
    }
    optima = {n: r.objective for n, r in finished.items() if r.objective is not None}
    assert len(optima) in (0, len(finished)), f"feasible for some only: {optima}"
    if not optima:
        return
    sign = -1.0 if next(iter(finished.values())).sense == "max" else 1.0
    best = next(iter(optima.values()))
    assert {n: v for n, v in optima.items() if not close(v, best)} == {}, optima
    for name, result in results.items():
        assert result.bound is None or sign * (result.bound - best) <= CLOSE * max(1, abs(best)), (
            name
        )
    for name in bounds(family):
        found = tried(problem, name)
        if found is not None and found.bound is not None:
            assert sign * (found.bound - best) <= CLOSE * max(1.0, abs(best)), name
    for policy in FAMILIES[family].policies:
        try:
            run = optgap.run(problem, policy, seed=1)
        except InputError:  # another objective than it treats
            continue
        if run.objective is not None and problem.serves_all(run.solution):
            assert sign * (run.objective - best) >= -CLOSE * max(1.0, abs(best)), policy


@pytest.mark.parametrize("family", sorted(set(STRATEGIES) & set(FAMILIES)))
@settings(max_examples=EXAMPLES)
@given(data=st.data())
def test_all_methods_agree(family: str, data: st.DataObject) -> None:
    compared(family, data.draw(problems(family)))
