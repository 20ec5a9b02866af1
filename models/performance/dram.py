"""Run time from the DRAM-active fraction summed over a job's GPUs: EcoSched, Phase I."""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]
DramForm = Literal["rate", "power", "traffic"]


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
