"""Placement over time: bound ≤ optimum ≤ every policy; the optimum is that of trying all."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from slow_placement_schedules import optimum
from strategies import timed_placement_problems

import optgap
from optgap.heuristics.placement import POLICIES
from optgap.models.placement import PlacementProblem
from optgap.models.result import Status

PROBLEMS = timed_placement_problems(
    goals=("energy", "mean_accepted_gpu"), queues=("reject",), max_tasks=5, max_gpus=3
) | timed_placement_problems(
    goals=("energy", "mean_accepted_gpu"), queues=("reject",), max_tasks=3, max_gpus=2, gangs=True
)


SLEEPING = timed_placement_problems(
    goals=("energy", "mean_accepted_gpu"),
    queues=("reject",),
    sleeping=True,
    max_tasks=4,
    max_gpus=2,
)


@given(problem=PROBLEMS)
def test_the_optimum_lies_between_the_bound_and_every_policy(problem: PlacementProblem) -> None:
    want, found = optimum(problem), optgap.solve(problem, "exact-over-time")
    if want is None:
        assert found.status is Status.INFEASIBLE
    else:
        assert found.objective == pytest.approx(want, abs=1e-6 * max(1.0, abs(want)))
    # of policies that turn tasks away, those count that they run
    reached: dict[tuple[int, ...], list[float]] = {}
    for policy in POLICIES:
        ran = optgap.run(problem, policy)
        tasks = np.unique(problem.tasks.gang[ran.solution.node >= 0]).tolist()
        if problem.objective.goal == "mean_accepted_gpu":
            tasks = list(range(problem.tasks.count))
        assert ran.objective is not None
        reached.setdefault(tuple(tasks), []).append(ran.objective)
    for served, objectives in reached.items():
        if served:
            check_order(problem.subset(served), objectives)


def check_order(problem: PlacementProblem, reached: Sequence[float]) -> None:
    """Bound ≤ optimum ≤ each of these objectives, or ≥ where the goal is to be maximised."""
    sign = 1.0 if problem.objective.described.sense == "min" else -1.0
    best = optgap.solve(problem, "exact-over-time")
    bound = optgap.solve(problem, "bound-over-time").bound
    assert best.status is Status.OPTIMAL
    assert best.objective is not None
    assert bound is not None
    close = 1e-6 * max(1.0, abs(best.objective))
    assert sign * bound <= sign * best.objective + close
    assert sign * best.objective <= min(sign * objective for objective in reached) + close


@given(problem=SLEEPING)
def test_so_it_does_where_nodes_are_switched_off(problem: PlacementProblem) -> None:
    best, bound = optimum(problem), optgap.solve(problem, "bound-over-time").bound
    sign = 1.0 if problem.objective.described.sense == "min" else -1.0
    for policy in POLICIES:
        ran = optgap.run(problem, policy)
        assert ran.objective is not None
        solution = ran.solution
        places = [
            (n, solution.gpus(k)) if n >= 0 else None for k, n in enumerate(solution.node.tolist())
        ]
        if sign < 0 or problem.serves_all(solution):
            again = optimum(problem, places)
            assert again == pytest.approx(ran.objective, rel=1e-9, abs=1e-6)
        if best is not None and (sign < 0 or problem.serves_all(ran.solution)):
            assert sign * best <= sign * ran.objective + 1e-6 * max(1.0, abs(best))
    found = optgap.solve(problem, "exact-over-time")
    assert (best is None) == (found.status is Status.INFEASIBLE)
    if best is not None:
        assert found.objective == pytest.approx(best, abs=1e-6 * max(1.0, abs(best)))
    if best is not None:
        assert bound is not None
        assert sign * bound <= sign * best + 1e-9 * max(1.0, abs(best))
