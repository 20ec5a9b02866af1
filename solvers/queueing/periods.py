"""A stream split in time: the wait of a schedule is the sum of what is waited in each period.

Wait before and after a moment add up, so that Σ_j (s_j − r_j) is the sum over periods [a, b) of
Σ_j |[r_j, s_j) ∩ [a, b)|. In a period there are the jobs that arrive in it, and those that arrived
before and could still hold GPUs then: the least each holds from a on, if it starts before a, is
until r_j + d_j. A job that starts after b has waited until b and holds nothing in the period.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np

from optgap.models.queueing import QueueingProblem
from optgap.models.queueing.arrays import FloatArray, IntArray

SAME_S = 1e-9
"""Moments this close count as one, s: what rounding makes of sums of times."""


@dataclass
class Period:
    """What may be waited from `begin` to `end`, s, and what is proven of it so far.

    Parameters
    ----------
    jobs: places of the jobs that can hold GPUs or wait in it.
    times: where its cells begin, s, ascending from `begin`.
    parted: (job, time) where a job's coarse start is split, s.
    bound: proven for what is waited in it (or for the makespan), s.
    exact: whether every start of some optimum is when a cell begins.
    finest: whether no cell was too coarse for the last point, so that it pays to prove it.
    rounds: programs solved.
    settled: nothing more can be proven here.
    """

    begin: float
    end: float
    jobs: IntArray
    times: FloatArray
    parted: set[tuple[int, float]] = field(default_factory=set)
    bound: float = 0.0
    exact: bool = False
    finest: bool = False
    rounds: int = 0
    settled: bool = False

    def waited(self, arrival: FloatArray, start: FloatArray) -> float:
        """Σ wait within the period of a schedule, s."""
        spent = np.minimum(start, self.end) - np.maximum(arrival, self.begin)
        return float(np.maximum(spent, 0.0).sum())

    def cut(self, *moments: FloatArray) -> bool:
        """Begin cells at these moments, where none does; whether there are any."""
        wanted = np.unique(np.concatenate(moments))
        wanted = wanted[(wanted > self.begin) & (wanted < self.end)]
        at = np.searchsorted(self.times, wanted + SAME_S, side="right") - 1
        wanted = wanted[wanted - self.times[at] > 2 * SAME_S]
        self.times = np.union1d(self.times, wanted)
        return len(wanted) > 0


def periods(
    problem: QueueingProblem, start: FloatArray, size: int, width_s: float, whole: bool
) -> list[Period]:
    """Periods of at most `size` arrivals, apart where a schedule is at its quietest.

    Parameters
    ----------
    start: of the schedule, s.
    width_s: of a cell at most, s.
    whole: one period for all.
    """
    jobs = problem.jobs
    arrival, duration = jobs.arrival_s, jobs.duration_s
    end = float((start + duration).max())
    edges = [float(arrival[0]), *([] if whole else _quiet(problem, start, size)), end]
    found = []
    for a, b in pairwise(edges):
        some = np.flatnonzero((arrival < b) & ((arrival >= a) | (arrival + duration > a)))
        r, d, s = arrival[some], duration[some], start[some]
        times = cells(np.concatenate([r, r + d, s, s + d]), a, b, width_s)
        found.append(Period(a, b, some, times))
    return found


def _quiet(problem: QueueingProblem, start: FloatArray, size: int) -> list[float]:
    """Arrivals at which as few jobs as possible wait, and then as few GPUs as possible are busy."""
    jobs, count = problem.jobs, len(problem)
    arrival, number = jobs.arrival_s, np.arange(count)
    begun, done = np.sort(start), start + jobs.duration_s
    waiting = number - np.searchsorted(begun, arrival, side="left")
    taken = np.append(0, np.cumsum(jobs.gpus[np.argsort(start)]))
    freed = np.append(0, np.cumsum(jobs.gpus[np.argsort(done)]))
    busy = taken[np.searchsorted(begun, arrival, side="left")]
    busy = busy - freed[np.searchsorted(np.sort(done), arrival, side="right")]
    order = np.lexsort((number, busy, waiting))
    quietness = np.empty(count)
    quietness[order] = number
    quietness[1:][np.diff(arrival) == 0] = np.inf  # jobs that arrive together stay together
    chosen: list[float] = []
    first = 0
    while count - first > size:
        low = first + max(1, size // 2)
        best = low + int(np.argmin(quietness[low : first + size + 1]))
        if quietness[best] == np.inf:  # more than that at once
            later = np.flatnonzero(np.isfinite(quietness[best:]))
            if not len(later):
                break
            best += int(later[0])
        first = best
        chosen.append(float(arrival[first]))
    return chosen


def cells(moments: FloatArray, begin: float, end: float, width_s: float) -> FloatArray:
    """Where cells begin, s: at `begin` and the moments before `end`, wider gaps in equal parts."""
    inside = moments[(moments > begin) & (moments < end)]
    marks = np.unique(np.concatenate([[begin], inside]))
    gaps = np.diff(np.append(marks, end))
    parts = np.maximum(1, np.ceil(gaps / width_s)).astype(np.int64)
    at = np.arange(int(parts.sum())) - np.repeat(np.cumsum(parts) - parts, parts)
    times: FloatArray = np.repeat(marks, parts) + np.repeat(gaps / parts, parts) * at
    return times


def reachable(arrival: FloatArray, duration: FloatArray, most: int) -> FloatArray:
    """Moments at which some job may start in a schedule that delays none without need, s.

    These are an arrival and the run times of some jobs after it. Empty where there are more than
    `most`.
    """
    sums = np.zeros(1)
    for length in duration.tolist():
        sums = np.union1d(sums, sums + length)
        sums = sums[np.append(True, np.diff(sums) > SAME_S)]
        if len(sums) > most:
            return np.zeros(0)
    found = np.unique((arrival[:, None] + sums).ravel())
    return found if len(found) <= most else np.zeros(0)
