"""How much co-located jobs slow one another: the fluid model on summed utilisation."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]


def contention_factor(
    utilisation_percent: ArrayLike, exponent: float = 1.0, knee_percent: float = 100.0
) -> Floats:
    """s(U) = max(1, (U/U_0)^q): the slowdown of every resident at summed utilisation U.

    q = 1 conserves capacity: what is asked above the knee is waited for.
    """
    ratio = np.asarray(utilisation_percent, dtype=float) / knee_percent
    return np.asarray(np.maximum(1.0, ratio) ** exponent)
