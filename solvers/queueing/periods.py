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
    """Waiting from `begin` to `end`, s, with the bound that is proven so far.

    Parameters
    ----------
    jobs: places of the jobs that can hold GPUs or wait in it.
    times: where its cells begin, s, ascending from `begin`.
    parted: (job, time) where a job's coarse start is split, s.
    bound: proven for what is waited in it, s.
    settled: nothing more can be proven here.
    """

    begin: float
    end: float
    jobs: IntArray
    times: FloatArray
    parted: set[tuple[int, float]] = field(default_factory=set)
    bound: float = 0.0
    settled: bool = False

    def waited(self, arrival: FloatArray, start: FloatArray) -> float:
        """Return Σ wait within the period of a schedule, s."""
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


def present(problem: QueueingProblem, begin: float, end: float) -> IntArray:
    """Jobs that can hold GPUs or wait between two moments, s."""
    arrival, duration = problem.jobs.arrival_s, problem.jobs.duration_s
    found: IntArray = np.flatnonzero(
        (arrival < end) & ((arrival >= begin) | (arrival + duration > begin))
    )
    return found


def periods(
    problem: QueueingProblem, start: FloatArray, least: int, most: int, *, width_s: float
) -> list[Period]:
    """Periods apart where a schedule has little of the work that came before still to do.

    Parameters
    ----------
    start: of the schedule, s.
    least, most: arrivals of a period; more only if more come at once.
    width_s: of a cell at most, s.
    """
    jobs = problem.jobs
    arrival, duration = jobs.arrival_s, jobs.duration_s
    end = float((start + duration).max())
    found = []
    for a, b in pairwise([float(arrival[0]), *_cuts(problem, start, least, most), end]):
        some = present(problem, a, b)
        r, d, s = arrival[some], duration[some], start[some]
        times = cells(np.concatenate([r, r + d, s, s + d]), a, b, width_s)
        found.append(Period(a, b, some, times))
    return found


def _cuts(problem: QueueingProblem, start: FloatArray, least: int, most: int) -> list[float]:
    """Arrivals at which least is lost, one after another."""
    arrival, lost = problem.jobs.arrival_s, _lost(problem, start)
    lost[1:][np.diff(arrival) == 0] = np.inf  # jobs that arrive together stay together
    chosen: list[float] = []
    first = 0
    while len(arrival) - first > most:
        low = first + min(least, most)
        first = low + int(np.argmin(lost[low : first + most + 1]))
        later = np.flatnonzero(lost[first:] < np.inf)  # where more than that come at once
        if not len(later):
            break
        first += int(later[0])
        chosen.append(float(arrival[first]))
    return chosen


def _lost(problem: QueueingProblem, start: FloatArray) -> FloatArray:
    """At each arrival the GPU time that a schedule serves later than if nobody had waited, s.

    A period that begins then sees the jobs that came before as if they had started on arrival.
    """
    jobs = problem.jobs
    arrival, gpus = jobs.arrival_s, jobs.gpus.astype(np.float64)
    came = np.searchsorted(arrival, arrival, side="left")

    def left(end: FloatArray) -> FloatArray:
        """GPU time after each arrival of the jobs that came before, s."""
        order = np.argsort(end)
        ended = np.searchsorted(end[order], arrival, side="right")
        many = np.append(0.0, np.cumsum(gpus))[came]
        many -= np.append(0.0, np.cumsum(gpus[order]))[ended]
        sums = np.append(0.0, np.cumsum(gpus * end))[came]
        sums -= np.append(0.0, np.cumsum((gpus * end)[order]))[ended]
        return np.asarray(sums - arrival * many)

    return left(start + jobs.duration_s) - left(arrival + jobs.duration_s)


def cells(moments: FloatArray, begin: float, end: float, width_s: float) -> FloatArray:
    """Return the starts of cells, s: `begin` and times before `end`, wide gaps in equal parts."""
    inside = moments[(moments > begin) & (moments < end)]
    marks = np.unique(np.concatenate([[begin], inside]))
    gaps = np.diff(np.append(marks, end))
    parts = np.maximum(1, np.ceil(gaps / width_s)).astype(np.int64)
    at = np.arange(int(parts.sum())) - np.repeat(np.cumsum(parts) - parts, parts)
    times: FloatArray = np.repeat(marks, parts) + np.repeat(gaps / parts, parts) * at
    return times
