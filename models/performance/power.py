"""Power of one busy GPU against its clock or its batch; idle and full power by device."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]

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
