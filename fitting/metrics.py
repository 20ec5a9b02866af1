"""How far predictions are from measurements."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def mape(measured: Floats, predicted: Floats) -> float:
    """Mean of |predicted − measured| / measured."""
    return float(np.mean(np.abs(predicted - measured) / np.abs(measured)))


def r2(measured: Floats, predicted: Floats) -> float:
    """1 − residual / total sum of squares; NaN when nothing varies."""
    total = float(np.sum((measured - measured.mean()) ** 2))
    if total == 0:
        return float("nan")
    return 1.0 - float(np.sum((predicted - measured) ** 2)) / total


def aicc(residuals: Floats, parameters: int) -> float:
    """Akaike's criterion with its small-sample term; infinite when too few rows are left."""
    rows = len(residuals)
    count = parameters + 1  # and the variance
    if rows - count - 1 <= 0:
        return float("inf")
    square = max(float(np.mean(residuals**2)), 1e-300)
    return rows * float(np.log(square)) + 2 * count + 2 * count * (count + 1) / (rows - count - 1)
