"""Power of one busy GPU, run time and slowdown, by clock, batch, DRAM activity or utilisation."""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]
DramForm = Literal["rate", "power", "traffic"]

V100_STATIC_W = 23.3
"""P_gs in W: CATS, Eq. 3, V100."""

V100_SLOPE_W_PER_MHZ = 0.09
"""α in W/MHz: CATS, Eq. 3, V100."""


def linear_power(frequency_mhz: ArrayLike, static_w: float, slope_w_per_mhz: float) -> Floats:
    """P(f) = P_gs + α·f in W (CATS, Eq. 1)."""
    return static_w + slope_w_per_mhz * np.asarray(frequency_mhz, dtype=float)


def power_law_power(
    frequency_mhz: ArrayLike, static_w: float, gain_w: float, exponent: float, reference_mhz: float
) -> Floats:
    """P(f) = P_s + c·(f/f_ref)^k in W; k = 1 is the linear form, k near 3 is V scaling with f."""
    ratio = np.asarray(frequency_mhz, dtype=float) / reference_mhz
    return np.asarray(static_w + gain_w * ratio**exponent)


def batch_power(
    local_batch: ArrayLike,
    alpha_w: float,
    theta: float,
    beta_w: float,
    low: float = 0.0,
    high: float = np.inf,
) -> Floats:
    """P(bs) = α·ln(bs + θ) + β in W (PowerFlow, Eq. 12, with the grouping it must mean).

    `low` and `high` are the batches outside which power no longer moves: a GPU waits for its
    host below the one and runs into its power limit or full occupancy above the other.
    """
    bounded = np.clip(np.asarray(local_batch, dtype=float), low, high)
    return np.asarray(alpha_w * np.log(bounded + theta) + beta_w)


PAPER_BETA = 0.91
"""β of Eq. 5 as printed."""


def power_law_time(
    frequency_mhz: ArrayLike, time_at_max_s: float, beta: float, max_mhz: float
) -> Floats:
    """Return e(f) = e_min·(f_max/f)^β in s (CATS, Eq. 5)."""
    return np.asarray(time_at_max_s * (max_mhz / np.asarray(frequency_mhz, dtype=float)) ** beta)


def sla_frequency(max_mhz: float, tolerance: float, beta: float) -> float:
    """Return the lowest clock in MHz at which Eq. 5 stays within `tolerance` (κ): f_max·κ^(−1/β).

    1104.896 MHz for f_max = 1350, κ = 1.2 and β = 0.91.
    """
    if beta <= 0:
        return 0.0
    return float(max_mhz * tolerance ** (-1.0 / beta))


def runtime_from_dram(
    dram_sum: ArrayLike, form: DramForm, first: float, second: float = 0.0
) -> Floats:
    """Run time in s at a summed DRAM-active fraction x.

    ``rate``: 1/T = a + b·x with a = `first` (1/s) and b = `second` (1/s);
    ``power``: T = c·x^−k with c = `first` (s) and k = `second`;
    ``traffic``: T = c/x, the traffic of a job being the same on any number of GPUs.
    """
    x = np.asarray(dram_sum, dtype=float)
    if form == "rate":
        return np.asarray(1.0 / (first + second * x))
    return np.asarray(first * x ** -(second if form == "power" else 1.0))


def blended_runtime(dram_sum: ArrayLike, a: float, b: float, c: float, k: float) -> Floats:
    """Geometric mean of 1/(a + b·x) and c·x^−k in s."""
    rate = runtime_from_dram(dram_sum, "rate", a, b)
    return np.asarray(np.sqrt(rate * runtime_from_dram(dram_sum, "power", c, k)))
