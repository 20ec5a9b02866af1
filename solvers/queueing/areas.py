"""Bounds in closed form: the cluster as one fast machine that may interrupt jobs."""

from __future__ import annotations

import heapq
import math

import numpy as np

from optgap.models.compiled import compiled
from optgap.models.limits import Limits
from optgap.models.queueing import QueueingProblem
from optgap.models.queueing.arrays import FloatArray
from optgap.models.result import Outcome, Status, Termination
from optgap.solvers.queueing.widths import widths

SAFE = 1e-9
"""Relative allowance for rounding."""


def bound_area(problem: QueueingProblem, *, limits: Limits, seed: int) -> Outcome:
    """Return the better of two bounds on one machine of speed M, over all demand functions.

    For wait and JCT: mean busy times (smallest area first) and shortest remaining area first.
    For the makespan: area after every arrival, and the job that would end last on its own.
    """
    if problem.objective.goal == "makespan":
        return outcome(problem, *makespan(problem))
    return outcome(problem, *sum_of_waits(problem))


def outcome(
    problem: QueueingProblem,
    value: float,
    by: str,
    termination: Termination = Termination.COMPLETED,
) -> Outcome:
    """Return a bound-only outcome from a bound on Σ wait or on the makespan, s."""
    return Outcome(
        None,
        Status.BOUND_ONLY,
        termination,
        bound=in_unit(problem, value),
        bound_by=by,
    )


def in_unit(problem: QueueingProblem, value: float) -> float:
    """Return a bound on the objective from one on Σ wait or the makespan, rounded safely."""
    goal, jobs = problem.objective.goal, problem.jobs
    if goal == "makespan":
        return value * (1 - SAFE)
    mean = max(0.0, value) / len(problem)
    if goal == "mean_jct":
        mean += math.fsum(jobs.duration_s.tolist()) / len(problem)
    return mean * (1 - SAFE)


def makespan(problem: QueueingProblem) -> tuple[float, str]:
    """Return max over r of r + (area of the jobs that arrive at r or later)/M, and of r_j + d_j."""
    jobs = problem.jobs
    origin = float(jobs.arrival_s[0])
    best, by = float((jobs.arrival_s + jobs.duration_s).max()) - origin, "longest job"
    for demand, capacity in widths(problem):
        later = np.cumsum((demand * jobs.duration_s)[::-1])[::-1] / capacity
        value = float((jobs.arrival_s + later).max()) - origin
        if value > best * (1 + SAFE):
            best, by = value, "area after an arrival"
    return best, by


def sum_of_waits(problem: QueueingProblem) -> tuple[float, str]:
    """Return a bound on Σ (s_j − r_j), s, and who proved it."""
    jobs = problem.jobs
    ends = jobs.arrival_s + jobs.duration_s
    best, by = 0.0, "no job starts before it arrives"
    for demand, capacity in widths(problem):
        area = demand * jobs.duration_s / capacity
        some = area > 0
        if not some.any():
            continue
        arrival, work = jobs.arrival_s[some], area[some]
        busy = fluid(arrival, work, work, False)[0]
        value = float((busy + jobs.duration_s[some] / 2 - ends[some]).sum())
        slack = SAFE * float(ends[some].sum())
        if value - slack > best:
            best, by = value - slack, "mean busy times"
        done = fluid(arrival, work, work, True)[1]
        value = float((done - ends[some]).sum())
        if value - slack > best:
            best, by = value - slack, "shortest remaining area first"
    return best, by


@compiled
def fluid(
    arrival: FloatArray, work: FloatArray, key: FloatArray, remaining: bool
) -> tuple[FloatArray, FloatArray]:
    """Mean busy times and ends, s, of jobs on one machine that may interrupt them.

    At any time the job that has arrived with the least `key` runs; with `remaining`, the one with
    the least work left.

    Parameters
    ----------
    arrival: s, ascending.
    work: s on this machine.
    """
    count = len(arrival)
    busy, done = np.zeros(count), np.zeros(count)
    left = work.copy()
    queue = [(key[0], 0)]
    queue.pop()
    now, k = 0.0, 0
    while k < count or len(queue) > 0:
        if len(queue) == 0 and arrival[k] > now:
            now = arrival[k]
        while k < count and arrival[k] <= now:
            heapq.heappush(queue, (key[k], k))
            k += 1
        _, j = heapq.heappop(queue)
        until = arrival[k] if k < count else np.inf
        span = min(left[j], until - now)
        busy[j] += span * (now + span / 2)
        now += span
        left[j] -= span
        if now < until or left[j] <= 0:
            done[j] = now
            busy[j] /= work[j]
        else:
            heapq.heappush(queue, (left[j] if remaining else key[j], j))
    return busy, done
