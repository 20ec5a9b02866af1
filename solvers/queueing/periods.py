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
from numpy.typing import NDArray

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


def present(problem: QueueingProblem, begin: float, end: float) -> IntArray:
    """Jobs that can hold GPUs or wait between two moments, s."""
    arrival, duration = problem.jobs.arrival_s, problem.jobs.duration_s
    found: IntArray = np.flatnonzero(
        (arrival < end) & ((arrival >= begin) | (arrival + duration > begin))
    )
    return found


@dataclass(frozen=True, slots=True)
class Splitting:
    """Into what periods a stream is split.

    Parameters
    ----------
    least: arrivals of a period.
    usual: arrivals of a period at most, if it can end where little is lost.
    most: arrivals of a period.
    little: what counts as lost little: GPU time of so many mean jobs.
    """

    least: int = 20
    usual: int = 70
    most: int = 200
    little: float = 0.3


def periods(
    problem: QueueingProblem,
    start: FloatArray,
    splitting: Splitting,
    width_s: float,
) -> list[Period]:
    """Periods apart where a schedule has little of the work that came before still to do.

    Parameters
    ----------
    start: of the schedule, s.
    width_s: of a cell at most, s.
    """
    jobs = problem.jobs
    arrival, duration = jobs.arrival_s, jobs.duration_s
    end = float((start + duration).max())
    edges = [float(arrival[0]), *_cuts(problem, start, splitting), end]
    found = []
    for a, b in pairwise(edges):
        some = present(problem, a, b)
        r, d, s = arrival[some], duration[some], start[some]
        times = cells(np.concatenate([r, r + d, s, s + d]), a, b, width_s)
        found.append(Period(a, b, some, times))
    return found


def _cuts(problem: QueueingProblem, start: FloatArray, splitting: Splitting) -> list[float]:
    """Arrivals at which little is lost, or as little as possible where periods get too long."""
    arrival, count = problem.jobs.arrival_s, len(problem)
    lost = _lost(problem, start)
    lost[1:][np.diff(arrival) == 0] = np.inf  # jobs that arrive together stay together
    little = splitting.little * float(problem.jobs.gpu_seconds.mean())
    least = min(splitting.least, splitting.most)
    chosen: list[float] = []
    first = 0
    while count - first > min(2 * least, splitting.most):
        low = first + least
        best = low + int(np.argmin(lost[low : first + splitting.usual + 1]))
        best = _first_from(best, lost <= little)
        if best - first > splitting.most:  # too long
            low = first + max(1, splitting.most // 2)
            best = low + int(np.argmin(lost[low : first + splitting.most + 1]))
            best = _first_from(best, lost < np.inf)  # later if more than that come at once
        if best >= count:
            break
        first = best
        chosen.append(float(arrival[first]))
    return chosen


def _first_from(place: int, good: NDArray[np.bool_]) -> int:
    """The first good place from one on; their number where there is none."""
    found = np.flatnonzero(good[place:])
    return place + int(found[0]) if len(found) else len(good)


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
    """Where cells begin, s: at `begin` and the moments before `end`, wider gaps in equal parts."""
    inside = moments[(moments > begin) & (moments < end)]
    marks = np.unique(np.concatenate([[begin], inside]))
    gaps = np.diff(np.append(marks, end))
    parts = np.maximum(1, np.ceil(gaps / width_s)).astype(np.int64)
    at = np.arange(int(parts.sum())) - np.repeat(np.cumsum(parts) - parts, parts)
    times: FloatArray = np.repeat(marks, parts) + np.repeat(gaps / parts, parts) * at
    return times
