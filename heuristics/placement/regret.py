"""Cost of each placement, compared with the best placement that was possible at that moment."""

from __future__ import annotations

import numpy as np

from optgap.heuristics.placement.engine import set_up
from optgap.heuristics.placement.greedy_exact import rule_of
from optgap.heuristics.placement.loop import choose_gpus, choose_node, hold
from optgap.heuristics.placement.rule import EXACT
from optgap.heuristics.placement.scores import best_move, move_value
from optgap.heuristics.placement.tables import PlacementRun
from optgap.models.compiled import compiled
from optgap.models.placement import PlacementProblem, PlacementSolution
from optgap.models.placement.arrays import FloatArray, IntArray
from optgap.models.placement.kernels import gpu_profile
from optgap.models.regret import Regret
from optgap.models.times import freed_s

ROUNDING = 1e-9
"""Largest relative difference that rounding makes between two equal increases."""


def regrets(problem: PlacementProblem, solution: PlacementSolution) -> list[Regret]:
    """Return a `Regret` per arrival that had a better choice; `time` counts arrivals from 0.

    The cost is how much more the objective (power, fragmentation or their sum) rose with the
    chosen node and GPUs than with the best feasible ones. Over time, `time` is the start of the
    task, s, and the cost is that difference times the duration of the task.

    An arrival that was not placed has no regret, because doing less costs less. Under
    ``accepted_gpu`` there are no regrets.
    """
    if problem.objective.at_a_moment.goal == "accepted_gpu":
        return []
    order = np.argsort(problem.ranks)
    place = np.empty(len(order), dtype=np.int64)
    place[order] = np.arange(len(order))
    run = set_up(problem, rule_of(problem), order, seed=0)
    size = len(problem.tasks)
    rank = np.where(solution.node >= 0, place[solution.node], -1)
    best_rank, best_mask = np.full(size, -1), np.zeros(size, dtype=np.int64)
    rises = np.zeros((size, 2))
    events, when, lasts = _events(problem, solution)
    _judge(run, events, rank, np.array(solution.gpu_mask), best_rank, best_mask, rises)
    rises *= lasts[:, None]
    cost = rises[:, 0] - rises[:, 1]
    found = np.flatnonzero((rank >= 0) & (cost > ROUNDING * np.abs(rises).sum(axis=1)))
    unit = problem.objective.described.unit
    best = PlacementSolution.of_arrays(np.where(best_rank >= 0, order[best_rank], -1), best_mask)
    return [
        Regret(
            float(when[k]),
            problem.tasks.names[k],
            f"{_where(problem, solution, k)}: {rises[k, 0]:+,.6g} {unit}",
            f"{_where(problem, best, k)}: {rises[k, 1]:+,.6g} {unit}",
            float(cost[k]),
        )
        for k in found.tolist()
    ]


def _events(
    problem: PlacementProblem, solution: PlacementSolution
) -> tuple[IntArray, FloatArray, FloatArray]:
    """Return the events in order, the time of each task, and the factor of its cost.

    An event is the arrival or start of task k, or its end, -k - 1.
    """
    every = np.arange(len(problem.tasks))
    if problem.over_time is None or solution.start_s is None:
        return every, every.astype(float), np.ones(len(every))
    placed = np.flatnonzero(solution.node >= 0)
    start = np.where(solution.node >= 0, solution.start_s, problem.tasks.submit_s)
    begun = solution.start_s[placed]
    freed = freed_s(begun, begun + problem.lasting_s[placed])
    moments = np.concatenate([freed, start])
    kinds = np.repeat([0, 1], [len(placed), len(every)])
    order = np.lexsort((np.concatenate([placed, every]), kinds, moments))
    events = np.concatenate([-placed - 1, every])[order]
    return events, start, problem.lasting_s * problem.per_second


def _where(problem: PlacementProblem, solution: PlacementSolution, k: int) -> str:
    gpus = solution.gpus(k)
    node = problem.cluster.names[int(solution.node[k])]
    if not gpus:
        return node
    return f"{node} GPU{'s' if len(gpus) > 1 else ''} {', '.join(map(str, gpus))}"


@compiled
def _judge(
    run: PlacementRun,
    events: IntArray,
    rank: IntArray,
    gpu_mask: IntArray,
    best_rank: IntArray,
    best_mask: IntArray,
    rises: FloatArray,
) -> None:
    """Follow a solution; note each arrival's best placement, and rises of chosen and best."""
    for at in range(len(events)):
        k = events[at]
        if k < 0:
            hold(run, -k - 1, rank[-k - 1], gpu_mask[-k - 1], -1)
            continue
        n, r = choose_node(run, k), run.arrivals[k]["request"]
        best_rank[k] = n
        if n >= 0:
            best_mask[k] = choose_gpus(run, k, n)
            rises[k, 1] = -best_move(run, EXACT, r, n)[0]
        n = rank[k]
        if n >= 0:
            node, gpu_free, moved, old = run.nodes[n], run.gpu_free[n], 0, 0
            free = gpu_profile(run.workload[node["model"]], gpu_free, node["gpus"], run.profile)
            for g in range(node["gpus"]):
                if gpu_mask[k] >> g & 1:
                    moved += 1
                    old = gpu_free[g]
            new = old - run.requests[r]["gpu_milli"] if moved > 0 else 0
            rises[k, 0] = -move_value(run, EXACT, r, n, free, moved, old, new)
            hold(run, k, n, gpu_mask[k], 1)
