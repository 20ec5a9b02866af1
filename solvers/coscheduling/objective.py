"""The objective in integers, the same for both CP-SAT models."""

from __future__ import annotations

from typing import Any

from optgap.models.coscheduling import CoschedulingProblem
from optgap.solvers.coscheduling.integers import Integers, floor_of_bound


def minimise(
    model: Any,
    problem: CoschedulingProblem,
    data: Integers,
    cost: Any,
    makespan: Any,
    known: float,
) -> None:
    """Have `model` minimise energy or makespan, at least what is `known` of it.

    Energy times makespan is not left to CP-SAT: 9.15 calls products optimal that are not.

    Parameters
    ----------
    cost: Σ (P − g·P_idle)·T of the chosen modes, in quanta.
    makespan: C, in ticks.
    """
    goal = problem.objective.goal
    target = makespan
    if goal != "makespan":
        target = cost + data.idle * makespan
    model.add(target >= floor_of_bound(problem, data, known))
    model.minimize(target)
