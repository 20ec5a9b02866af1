"""What tests of trust share: problems, how many of them, and what has to hold of answers."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from conftest import two_nodes_problem
from hypothesis import settings
from hypothesis import strategies as st
from small_time import small_time
from trust.answers import SMALL

import optgap
from optgap.api import execute
from optgap.models.limits import Limits
from optgap.models.result import Outcome, Result, Status
from optgap.models.spec import Entry
from optgap.registry import FAMILIES
from optgap.registry.runnable import Runnable

CLOSE = 1e-5
ENUMERATED = {
    "consolidation": "exhaustive_consolidation",
    "coscheduling": "exhaustive_coscheduling",
    "placement": "slow_placement",
    "queueing": "exhaustive_queueing",
}
"""Families whose brute force is no method of the package."""
FUZZ = os.environ.get("HYPOTHESIS_PROFILE") == "fuzz"
"""Whether this is a long run."""


def over_time() -> Any:
    """A few tasks that come and go, stay where they are and run at the highest clock."""
    problem = optgap.generate("consolidation", "pai", size=6, migration=False)
    return replace(problem, tasks=tuple(replace(task, kappa=1.0) for task in problem.tasks))


OTHER: dict[str, tuple[Callable[[], Any], ...]] = {
    "placement": (two_nodes_problem, lambda: small_time(seed=0, size=6)),
    "consolidation": (over_time,),
}
"""For methods that take less than such a problem, or another objective."""


def small_problems(family: str) -> list[Any]:
    """Problems of which every method takes one."""
    small = optgap.generate(family, seed=1, **SMALL[family])
    return [small, *(make() for make in OTHER.get(family, ()))]


def best_of_policies(problem: Any) -> float:
    """The best objective of a few policies that serve everything; all are minimisations."""
    found = [optgap.run(problem, name) for name in list(FAMILIES[problem.family].policies)[:4]]
    return min(
        r.objective for r in found if r.objective is not None and problem.serves_all(r.solution)
    )


def elsewhere(module: str, *arguments: str, cwd: Path | None = None, **env: str) -> Any:
    """The JSON that a module of the tests prints in a process of its own."""
    path = filter(None, [str(Path(__file__).parents[1]), os.environ.get("PYTHONPATH")])
    program = subprocess.run(
        [sys.executable, "-m", module, *arguments],
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(path), **env},
        capture_output=True,
        text=True,
        check=False,
    )
    assert program.returncode == 0, program.stderr[-2000:]
    return json.loads(program.stdout)


def problems(family: str, **options: Any) -> st.SearchStrategy[Any]:
    """Small problems of a family, drawn at random."""
    module = import_module("strategies" if family == "placement" else f"strategies_{family}")
    found: st.SearchStrategy[Any] = getattr(module, f"{family}_problems")(**options)
    return found


def solved(problem: Any, method: str, limit_s: float = 60) -> Result:
    if method == "exhaustive" and problem.family in ENUMERATED:
        return enumerated(problem)
    return optgap.solve(problem, method, time_limit=limit_s)


def enumerated(problem: Any) -> Result:
    """The result of the brute force that stands among the tests."""
    room = import_module(ENUMERATED[problem.family])
    entry = Entry("exhaustive", "brute force", kind="exact", functions=lambda: vars(room))
    return execute(problem, Runnable(entry, "exhaustive"), Limits(), 0)


def agree(one: Result, two: Result) -> None:
    """Equal optima; where times were rounded, no bound above the other's objective."""
    told = one.message + two.message
    assert one.status is two.status or "proven" in told, told  # for times rounded down
    if Status.FEASIBLE in (one.status, two.status):
        for bounded, found in ((two, one), (one, two)):
            assert bounded.bound <= found.objective * (1 + CLOSE)
    elif one.status is Status.OPTIMAL:
        assert two.objective == pytest.approx(one.objective, rel=CLOSE, abs=CLOSE)


def holds(problem: Any, result: Result, known: float) -> None:
    """Raise unless bound, solution and optimum are what they say, beside a known solution."""
    assert result.bound is None or result.bound <= known * (1 + 1e-6)
    assert result.objective is None or problem.check(result.solution) == []
    if result.status is Status.OPTIMAL:
        assert result.objective <= known * (1 + 1e-6)
        assert result.objective == pytest.approx(result.bound, rel=1e-4)


def outcome_of(problem: Any, name: str, seed: int = 0, **params: Any) -> Outcome:
    """What a method or policy makes of a problem, before the referee has looked at it."""
    if name == "exhaustive" and problem.family in ENUMERATED:
        function = import_module(ENUMERATED[problem.family]).exhaustive
    else:
        spec = FAMILIES[problem.family]
        function = {**spec.methods, **spec.policies}[name].load()
    outcome: Outcome = function(problem, limits=Limits(), seed=seed, **params)
    return outcome


def value_of(problem: Any, outcome: Outcome) -> float:
    """The objective of a solution that keeps every rule and serves everything, as claimed."""
    assert problem.check(outcome.solution) == []
    assert problem.serves_all(outcome.solution)
    objective: float = problem.evaluate(outcome.solution).objective
    assert outcome.claimed in (None, pytest.approx(objective, rel=1e-9, abs=1e-9))
    return objective


def many(usual: int, long: int = 0) -> int:
    """So many problems; in a long run twenty times as many, or `long`."""
    return (long or 20 * usual) if FUZZ else usual


def examples(usual: int, long: int = 0) -> settings:
    """So many problems that hypothesis draws."""
    return settings(max_examples=many(usual, long))
