"""Good schedules for bounds to start from, and schedules from the start times of a relaxation."""

from __future__ import annotations

import heapq
from bisect import insort

import numpy as np

from optgap.models.limits import Limits
from optgap.models.queueing import QueueingProblem, QueueingSolution
from optgap.models.queueing.arrays import FloatArray
from optgap.models.queueing.packing import Cluster
from optgap.models.times import slack_s
from optgap.solvers.queueing.offline import offline


def known_schedule(
    problem: QueueingProblem, limits: Limits, seed: int, moves: int = 0
) -> QueueingSolution | None:
    """The best schedule found within the limits; None where some job would have left before."""
    outcome = offline(problem, limits=limits, seed=seed, moves=moves)
    solution: QueueingSolution | None = outcome.solution
    return solution


def kept_patience(problem: QueueingProblem, solution: QueueingSolution) -> bool:
    """Whether every job starts before it leaves."""
    jobs, start = problem.jobs, solution.start_s
    return bool((start <= jobs.arrival_s + jobs.patience_s + slack_s(start)).all())


def list_schedule(problem: QueueingProblem, key: FloatArray) -> QueueingSolution:
    """Whenever GPUs are free, the waiting job with the least `key` that fits starts, by best fit.

    Parameters
    ----------
    key: one number per job, such as when it starts in a relaxation.
    """
    jobs, cluster, count = problem.jobs, Cluster(problem), len(problem)
    arrival, duration = jobs.arrival_s.tolist(), jobs.duration_s.tolist()
    gpus, keys = jobs.gpus.tolist(), key.tolist()
    ends: list[tuple[float, int]] = []
    waiting: list[tuple[float, int]] = []
    held: list[list[tuple[int, int]]] = [[] for _ in range(count)]
    start = np.full(count, np.nan)
    arrived = 0
    while arrived < count or waiting:
        now = min(arrival[arrived] if arrived < count else np.inf, ends[0][0] if ends else np.inf)
        until = now + slack_s(now)
        while ends and ends[0][0] <= until:
            cluster.end(heapq.heappop(ends)[1])
        while arrived < count and arrival[arrived] <= until:
            now = max(now, arrival[arrived])
            insort(waiting, (keys[arrived], arrived))
            arrived += 1
        left, refused = [], np.inf
        for item in waiting:
            job = item[1]
            if gpus[job] < refused and cluster.fits(gpus[job]):
                held[job] = cluster.start(job, gpus[job])
                start[job] = now
                heapq.heappush(ends, (now + duration[job], job))
            else:  # nothing as large fits now, either
                refused = min(refused, gpus[job])
                left.append(item)
        waiting = left
    return QueueingSolution.on_nodes(problem, start, held)
