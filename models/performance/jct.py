"""Run time against the core clock: CATS, Eq. 5."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]

PAPER_BETA = 0.91
"""β of Eq. 5 as printed."""


def power_law_time(
    frequency_mhz: ArrayLike, time_at_max_s: float, beta: float, max_mhz: float
) -> Floats:
    """e(f) = e_min·(f_max/f)^β in s (CATS, Eq. 5)."""
    return np.asarray(time_at_max_s * (max_mhz / np.asarray(frequency_mhz, dtype=float)) ** beta)


def sla_frequency(max_mhz: float, tolerance: float, beta: float) -> float:
    """The lowest clock in MHz at which Eq. 5 stays within `tolerance` (κ): f_max·κ^(−1/β).

    1104.896 MHz for f_max = 1350, κ = 1.2 and β = 0.91.
    """
    if beta <= 0:
        return 0.0
    return float(max_mhz * tolerance ** (-1.0 / beta))
