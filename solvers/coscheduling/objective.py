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
    """Have `model` minimise the problem's objective, at least what is `known` of it.

    Parameters
    ----------
    cost: Σ (P − g·P_idle)·T of the chosen modes, in quanta.
    makespan: C, in ticks.
    """
    goal = problem.objective.goal
    target = makespan
    if goal != "makespan":
        target = cost + data.idle * makespan
    if goal == "edp":
        low, high = data.least_cost, data.most_cost + data.idle * data.horizon
        energy = model.new_int_var(low, high, "energy")
        model.add(energy == target)
        ends = (low * data.horizon, high * data.horizon)
        target = model.new_int_var(min(0, *ends), max(0, *ends), "energy times makespan")
        model.add_multiplication_equality(target, [energy, makespan])
    model.add(target >= floor_of_bound(problem, data, known))
    model.minimize(target)
