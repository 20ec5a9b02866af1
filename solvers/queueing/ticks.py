"""Times as integers, rounded down where they are none, so that bounds stay bounds."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from optgap.models.queueing import QueueingProblem

FINEST = 6
LONGEST = 2**40
"""Ticks of a schedule at most."""


@dataclass(frozen=True, slots=True)
class Ticks:
    """The problem in ticks, counted from the first arrival.

    With arrivals and durations rounded down, every schedule's starts rounded down are a schedule,
    too: if one job ends by the time another starts, it does so in whole ticks. So an optimum in
    ticks is a bound on the one in seconds.

    Parameters
    ----------
    tick_s: seconds per tick.
    exact: whether every time is a whole number of ticks.
    arrival, duration: ticks.
    horizon: ticks that are enough for all jobs one after another.
    """

    tick_s: float
    exact: bool
    arrival: tuple[int, ...]
    duration: tuple[int, ...]
    horizon: int


def ticks(problem: QueueingProblem) -> Ticks:
    """The coarsest power of ten from 1 s to 1 µs that is exact, else one close to 1 ms."""
    jobs = problem.jobs
    arrival = jobs.arrival_s - jobs.arrival_s[0]
    total = float(arrival.max() + jobs.duration_s.sum())
    per_second, exact = 1000.0, False
    for digits in range(FINEST + 1):
        scaled = np.concatenate([arrival, jobs.duration_s]) * 10**digits
        if (np.abs(scaled - np.round(scaled)) <= 1e-9 * np.maximum(scaled, 1.0)).all():
            per_second, exact = 10.0**digits, True
            break
    if per_second * total > LONGEST:
        per_second, exact = LONGEST / total, False

    def down(values: np.ndarray) -> tuple[int, ...]:
        return tuple(round(x) if exact else math.floor(x * (1 - 1e-12)) for x in values)

    starts, lengths = down(arrival * per_second), down(jobs.duration_s * per_second)
    return Ticks(1 / per_second, exact, starts, lengths, max(starts) + sum(lengths) + 1)
