"""Cost of each start: the saving if the job alone had started as early as possible."""

from __future__ import annotations

import math

import numpy as np

from optgap.models.queueing import QueueingProblem, QueueingSolution
from optgap.models.regret import Regret
from optgap.models.times import shown, slack_s


def regrets(problem: QueueingProblem, solution: QueueingSolution) -> list[Regret]:
    """Return a regret per job that starts, in order of start.

    A job's start is compared with the earliest one after its arrival at which its GPUs were free
    for its whole duration, with every other job as scheduled. The cost is the saving in the
    problem's objective over the whole schedule. Several jobs may compete for the same free GPUs, so
    costs do not add up.
    """
    jobs, started = problem.jobs, solution.started
    order = started[np.argsort(solution.start_s[started], kind="stable")]
    starts = solution.start_s[order]
    longest = float(jobs.duration_s[order].max()) if order.size else 0.0
    last = _last_two(solution, started)
    found = []
    for k in order.tolist():
        start, arrival = float(solution.start_s[k]), float(jobs.arrival_s[k])
        early = start
        if start > arrival + slack_s(start):
            low = int(np.searchsorted(starts, arrival - longest))
            high = int(np.searchsorted(starts, start + float(jobs.duration_s[k])))
            early = _earliest(problem, solution, k, order[low:high].tolist())
        cost = _saved(problem, k, start, early, last=last)
        chosen = f"at {shown(start)} s, after {start - arrival:g} s"
        better = f"at {shown(early)} s, beside all others" if cost > 0 else chosen
        found.append(Regret(start, jobs.names[k], chosen, better, cost))
    return found


def _last_two(solution: QueueingSolution, started: np.ndarray) -> tuple[float, float]:
    """Return the latest end and the one before it, s."""
    ends = np.sort(solution.end_s[started])
    return (float(ends[-1]), float(ends[-2]) if len(ends) > 1 else -math.inf)


def _saved(
    problem: QueueingProblem, k: int, start: float, early: float, *, last: tuple[float, float]
) -> float:
    if problem.objective.goal != "makespan":
        return (start - early) / len(problem)
    duration = float(problem.jobs.duration_s[k])
    if start + duration < last[0]:
        return 0.0
    return last[0] - max(last[1], early + duration)


def _earliest(
    problem: QueueingProblem, solution: QueueingSolution, k: int, near: list[int]
) -> float:
    """Return the earliest start of job k beside those `near` it in time, no later than its own."""
    jobs, (nodes, g) = problem.jobs, problem.shape
    n, duration = int(jobs.gpus[k]), float(jobs.duration_s[k])
    arrival, start = float(jobs.arrival_s[k]), float(solution.start_s[k])
    latest, counted = start - slack_s(start), problem.placement == "count"
    others = [
        (
            float(solution.start_s[j]),
            float(solution.end_s[j]),
            [(0, int(jobs.gpus[j]))] if counted else solution.nodes_of(j),
        )
        for j in near
        if j != k and solution.end_s[j] > arrival
    ]
    for t in sorted({arrival, *(end for _, end, _ in others if arrival < end < latest)}):
        points = [t, *(s for s, _, _ in others if t < s < t + duration)]
        used = np.zeros((len(points), nodes), dtype=np.int64)
        for x, row in zip(points, used, strict=True):
            for s, e, pairs in others:
                for node, gpus in pairs if s <= x < e else ():
                    row[node] += gpus
        spare = g - used.max(axis=0)
        whole, rest = int((spare == g).sum()) - n // g, n % g
        partly = bool(((spare >= rest) & (spare < g)).any())
        if whole >= 0 and (rest == 0 or whole > 0 or partly):
            return t
    return start
