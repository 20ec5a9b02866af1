"""The most probable parameters after a few measurements: Gauss-Newton from a log-normal prior."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Curve = Callable[[Floats], tuple[Floats, Floats]]
"""``curve(z) -> (rows,) logarithms, (rows, parameters) Jacobian`` in z, the parameters' logs."""


@dataclass(frozen=True, slots=True)
class Search:
    """When `most_probable` stops.

    Parameters
    ----------
    steps: Gauss-Newton steps at most.
    dampings: what is tried in turn where a step does not help, as in Levenberg-Marquardt.
    longest: of a step in any logarithm: the curve is not linear further than that.
    settled: least fall of the cost, in units of a squared standard deviation, worth another step.
    """

    steps: int = 8
    dampings: tuple[float, ...] = (0.0, 0.03, 1.0, 30.0)
    longest: float = 2.0
    settled: float = 0.05


def most_probable(
    curve: Curve,
    target: Floats,
    noise: float,
    mean: Floats,
    spread: Floats,
    start: Floats,
    search: Search = Search(),
) -> Floats:
    """z at the least of Σ((curve(z) − target)/noise)² + Σ((z − mean)/spread)².

    Parameters
    ----------
    target: (rows,) logarithms that were measured.
    noise: standard deviation of each.
    mean, spread: (parameters,) of the prior.
    start: (parameters,) where to begin.
    """
    precise, tight = 1.0 / noise**2, 1.0 / spread**2
    z = start
    log, slope = curve(z)
    miss, off = log - target, z - mean
    cost = precise * float(miss @ miss) + float(off @ (tight * off))
    for _ in range(search.steps):
        normal = precise * (slope.T @ slope)
        diagonal = normal.reshape(-1)[:: len(z) + 1]  # a view
        diagonal += tight
        pull, size = precise * (slope.T @ miss) + tight * off, diagonal.copy()
        for damping in search.dampings:
            diagonal[:] = size * (1.0 + damping)
            move = -np.linalg.solve(normal, pull)
            there = z + move * min(1.0, search.longest / max(float(np.abs(move).max()), 1e-300))
            log, ahead = curve(there)
            missed, away = log - target, there - mean
            lower = precise * float(missed @ missed) + float(away @ (tight * away))
            if lower < cost:
                break
        else:
            return z
        fall = cost - lower
        z, slope, miss, off, cost = there, ahead, missed, away, lower
        if fall < search.settled:
            break
    return z
