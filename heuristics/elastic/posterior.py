"""The most probable parameters after a few measurements: Gauss-Newton from a log-normal prior."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Curve = Callable[[Floats], tuple[Floats, Floats]]
"""``curve(z) -> (rows,) logarithms, (rows, parameters) Jacobian`` in z, the parameters' logs."""


STEPS = 8
"""Gauss-Newton steps at most."""
DAMPINGS = (0.0, 0.03, 1.0, 30.0)
"""What is tried in turn where a step does not help, as in Levenberg-Marquardt."""
LONGEST = 2.0
"""Of a step in any logarithm: the curve is not linear further than that."""
SETTLED = 0.05
"""Least fall of the cost, in units of a squared standard deviation, worth another step."""


def most_probable(
    curve: Curve,
    target: Floats,
    noise: float,
    mean: Floats,
    spread: Floats,
    start: Floats,
    longest: float = LONGEST,
) -> Floats:
    """z at the least of Σ((curve(z) − target)/noise)² + Σ((z − mean)/spread)².

    Parameters
    ----------
    target: (rows,) logarithms that were measured.
    noise: standard deviation of each.
    mean, spread: (parameters,) of the prior.
    start: (parameters,) where to begin. longest: see `LONGEST`.
    """
    precise, tight = 1.0 / noise**2, 1.0 / spread**2
    z = start
    log, slope = curve(z)
    miss, off = log - target, z - mean
    cost = precise * float(miss @ miss) + float(off @ (tight * off))
    for _ in range(STEPS):
        normal = precise * (slope.T @ slope)
        diagonal = normal.reshape(-1)[:: len(z) + 1]  # a view
        diagonal += tight
        pull, size = precise * (slope.T @ miss) + tight * off, diagonal.copy()
        for damping in DAMPINGS:
            diagonal[:] = size * (1.0 + damping)
            move = -np.linalg.solve(normal, pull)
            there = z + move * min(1.0, longest / max(float(np.abs(move).max()), 1e-300))
            log, ahead = curve(there)
            missed, away = log - target, there - mean
            lower = precise * float(missed @ missed) + float(away @ (tight * away))
            if lower < cost:
                break
        else:
            return z
        fall = cost - lower
        z, slope, miss, off, cost = there, ahead, missed, away, lower
        if fall < SETTLED:
            break
    return z
