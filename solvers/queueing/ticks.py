"""Times as integers, rounded down where they are none, so that bounds stay bounds."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from optgap.models.queueing import QueueingProblem
from optgap.models.times import ROUNDING, TOLERANCE_S

FINEST = 6
LONGEST = 2**40
"""Ticks of a schedule at most."""
WHOLE = 0.05
"""Ticks that an arrival may be off, within the tolerance of times, and count as a whole number."""


@dataclass(frozen=True, slots=True)
class Ticks:
    """The problem in ticks, counted from the first arrival.

    With arrivals and durations rounded down, every schedule's starts rounded down are a schedule,
    too: if one job ends by the time another starts, it does so in whole ticks. So an optimum in
    ticks is a bound on the one in seconds.

    Parameters
    ----------
    tick_s: seconds per tick.
    exact: whether every time is a whole number of ticks, arrivals but for a tolerance: a clock that
        counts from 1970 rounds them.
    rounded_s: by how much some arrival is off because of that.
    arrival, duration: ticks.
    horizon: ticks that are enough for all jobs one after another.
    """

    tick_s: float
    exact: bool
    rounded_s: float
    arrival: tuple[int, ...]
    duration: tuple[int, ...]
    horizon: int

    def allowance_s(self, goal: str) -> float:
        """Return the error of the optimum in ticks from this, in Σ wait or in makespan, s."""
        return self.rounded_s * (1 if goal == "makespan" else 2 * len(self.arrival))


def ticks(problem: QueueingProblem) -> Ticks:
    """Return the coarsest power of ten from 1 s to 1 µs that is exact, else one close to 1 ms."""
    jobs = problem.jobs
    arrival = jobs.arrival_s - jobs.arrival_s[0]
    total = float(arrival.max() + jobs.duration_s.sum())
    per_second, exact, rounded_s = 1000.0, False, 0.0
    for digits in range(FINEST + 1):
        scaled = 10.0**digits
        off = np.abs(arrival - np.round(arrival * scaled) / scaled)
        near = ROUNDING * arrival + min(TOLERANCE_S, WHOLE / scaled)
        if (off <= near).all() and _whole(jobs.duration_s * scaled):
            per_second, exact, rounded_s = scaled, True, float(off.max())
            break
    if per_second * total > LONGEST:
        per_second, exact, rounded_s = LONGEST / total, False, 0.0

    def down(values: np.ndarray) -> tuple[int, ...]:
        return tuple(round(x) if exact else math.floor(x * (1 - 1e-12)) for x in values)

    starts, lengths = down(arrival * per_second), down(jobs.duration_s * per_second)
    horizon = max(starts) + sum(lengths) + 1
    return Ticks(1 / per_second, exact, rounded_s, starts, lengths, horizon)


def _whole(values: np.ndarray) -> bool:
    """Tell whether all are integers but for the last digits of a float."""
    return bool((np.abs(values - np.round(values)) <= ROUNDING * values).all())
