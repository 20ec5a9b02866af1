"""A day of jobs from published statistics: when they come, how long they take, how large.

Durations are log-normal with the median (23 min) and 90th percentile (4.5 h) that Weng et al.
("MLaaS in the wild", NSDI 2022) give for Alibaba's PAI cluster, cut at a day; arrivals follow a
day's rhythm. Everything drawn from them is synthetic.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from optgap.models.elastic.jobs import JobClass, Jobs

MEDIAN_S = 23 * 60.0
P90_S = 4.5 * 3600.0
SIGMA = math.log(P90_S / MEDIAN_S) / 1.2815515655446004
LONGEST_S = 86_400.0
SHORTEST_S = 60.0
DAY_S = 86_400.0
SWING = 0.5
"""Arrivals per hour swing by this share around their mean over a day."""
REQUESTS = {1: 0.70, 2: 0.12, 4: 0.10, 8: 0.07, 16: 0.01}
"""Shares of jobs by GPUs requested: most ask for one, as in PAI and Philly."""


def arrivals(rng: np.random.Generator, size: int, span_s: float) -> np.ndarray:
    """Return (size,) ascending times in [0, span) with a day's rhythm; the first is at 0."""
    grid = np.linspace(0.0, span_s, 2049)
    density = 1 + SWING * np.sin(2 * np.pi * (grid / DAY_S - 0.25))
    mass = np.concatenate([[0.0], np.cumsum((density[1:] + density[:-1]) / 2)])
    times = np.sort(np.interp(rng.uniform(0, mass[-1], size), mass, grid))
    times -= times[0]
    return np.asarray(np.round(times, 3))


def jobs(
    classes: Sequence[JobClass],
    rng: np.random.Generator,
    size: int,
    span_s: float,
    *,
    duration_scale: float = 1.0,
    requests: dict[int, float] | None = None,
) -> Jobs:
    """Return `size` jobs over `span_s` seconds.

    A job's iterations are its duration over T_iter on the GPUs it requests at the highest
    clock, as in the paper.
    """
    shares = REQUESTS if requests is None else requests
    counts = np.array(list(shares))
    weights = np.array(list(shares.values()))
    submit = arrivals(rng, size, span_s)
    duration = np.exp(rng.normal(math.log(MEDIAN_S), SIGMA, size)) * duration_scale
    duration = np.clip(duration, SHORTEST_S, LONGEST_S)
    of_class = np.zeros(size, dtype=np.int64)
    asked = np.zeros(size, dtype=np.int64)
    iterations = np.zeros(size)
    for k in range(size):
        wanted = int(rng.choice(counts, p=weights / weights.sum()))
        able = [c for c, item in enumerate(classes) if wanted in item.counts]
        while not able:
            wanted //= 2
            able = [c for c, item in enumerate(classes) if wanted in item.counts]
        c = able[int(rng.integers(len(able)))]
        of_class[k], asked[k] = c, wanted
        iterations[k] = classes[c].iterations_in(duration[k], wanted)
    names = tuple(f"job-{k:05d}" for k in range(size))
    return Jobs(names, submit, of_class, iterations, asked)
