"""Bounds in closed form, or nearly: one fast machine, and each job alone."""

from __future__ import annotations

import heapq
import math

import numpy as np

from optgap.models.elastic import ElasticProblem
from optgap.models.elastic.arrays import Floats
from optgap.solvers.backends.safe import EPS, outwards

WEIGHTS = 17
"""Number of mixtures of GPUs and power that are tried as the one resource."""
SAFE = 1e-9
"""Relative: taken off every bound against rounding in long sums."""


def least_shares(problem: ElasticProblem, weight: float) -> Floats:
    """Return (C,) least s per iteration on one machine that is all GPUs and all power mixed.

    A configuration takes the share a·n/G + (1−a)·P/limit of the mixture, with a = `weight`.
    At any time these shares add up to at most 1.
    """
    share = weight * problem.counts[None, :, None] / problem.gpus
    if weight < 1:
        share = share + (1 - weight) * problem.power_w / problem.power_limit_w
    with np.errstate(invalid="ignore"):
        area = np.where(np.isfinite(problem.time_s), problem.time_s * share, np.inf)
    return np.asarray(area.min(axis=(1, 2)))


def shortest_first(release_s: Floats, work_s: Floats) -> Floats:
    """Return (J,) completion times under shortest remaining work first on one machine.

    No other schedule of one machine has a smaller sum of completion times.
    """
    order = np.argsort(release_s, kind="stable").tolist()
    ends = np.zeros(len(order))
    waiting: list[tuple[float, int]] = []
    now, k = 0.0, 0
    while k < len(order) or waiting:
        if not waiting:
            now = max(now, float(release_s[order[k]]))
        while k < len(order) and release_s[order[k]] <= now:
            heapq.heappush(waiting, (float(work_s[order[k]]), order[k]))
            k += 1
        left, job = heapq.heappop(waiting)
        coming = float(release_s[order[k]]) if k < len(order) else math.inf
        if now + left <= coming:
            now += left
            ends[job] = now
        else:
            heapq.heappush(waiting, (left - (coming - now), job))
            now = coming
    return ends


def best_mixture(problem: ElasticProblem) -> tuple[float, float, Floats]:
    """Return the best one-machine bound's weight, the bound (mean JCT, s) and its completions."""
    jobs = problem.jobs
    limited = math.isfinite(problem.power_limit_w) and problem.power_limit_w > 0
    weights = np.linspace(0.0, 1.0, WEIGHTS) if limited else np.ones(1)
    best: tuple[float, float, Floats] | None = None
    for weight in weights.tolist():
        work = jobs.iterations * least_shares(problem, weight)[jobs.of_class]
        ends = shortest_first(jobs.submit_s, work)
        # an end is a sum of at most 2 J terms, none larger
        off = 2 * len(jobs) * EPS * math.fsum(ends.tolist())
        value = outwards([*ends.tolist(), *(-jobs.submit_s).tolist(), -off]) / len(jobs)
        if best is None or value > best[1]:
            best = (weight, value, ends)
    if best is None:
        raise AssertionError("there is at least one weight")
    return best


def closed_form(problem: ElasticProblem) -> tuple[float, str]:
    """Return the larger of the one-machine bound and of every job alone, s, and its name."""
    return max(
        (best_mixture(problem)[1], "one machine, shortest first"),
        (alone(problem), "every job alone"),
    )


def alone(problem: ElasticProblem) -> float:
    """Mean of iterations × min T_iter, s."""
    return math.fsum(problem.least_jct_s.tolist()) / len(problem)
