"""Array types of the queueing family."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]


def floats(values: Iterable[Any]) -> FloatArray:
    """Return a read-only float array of its own."""
    return _frozen(np.array(list(values) if not hasattr(values, "dtype") else values, np.float64))


def integers(values: Iterable[Any]) -> IntArray:
    """Return a read-only integer array of its own."""
    return _frozen(np.array(list(values) if not hasattr(values, "dtype") else values, np.int64))


def _frozen(array: NDArray[Any]) -> NDArray[Any]:
    array.setflags(write=False)
    return array
