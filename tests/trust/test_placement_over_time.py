"""Placement over time: bound ≤ optimum ≤ every policy; the optimum is that of trying all."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from hypothesis import given
from slow_placement import optimum
from strategies import timed_placement_problems

import optgap
from optgap.heuristics.placement import POLICIES
from optgap.models.placement import PlacementProblem

PROBLEMS = timed_placement_problems(
    goals=("energy", "mean_accepted_gpu"), queues=("reject",), max_tasks=5, max_gpus=3
) | timed_placement_problems(
    goals=("energy", "mean_accepted_gpu"), queues=("reject",), max_tasks=3, max_gpus=2, gangs=True
)


@given(problem=PROBLEMS)
def test_the_optimum_lies_between_the_bound_and_every_policy(problem: PlacementProblem) -> None:
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
    best = optimum(problem)
    bound = optgap.solve(problem, "bound-over-time").bound
    assert best is not None
    assert bound is not None
    close = 1e-6 * max(1.0, abs(best))
    assert sign * bound <= sign * best + close
    assert sign * best <= min(sign * objective for objective in reached) + close
