"""Read-only columns of numbers: the form in which clusters and tasks hold their numbers."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

from optgap.models.errors import InputError, NoQuote
from optgap.models.times import LATEST_S

IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]


def int_column(values: Iterable[int], source: str, name: str) -> IntArray:
    """Return a read-only int64 array of shape (n,); no value is negative.

    Raises
    ------
    InputError: naming the first value that is no integer (bools and floats are none) or is
        negative.
    """
    expected = "an integer of at least 0"
    if isinstance(values, np.ndarray) and np.issubdtype(values.dtype, np.integer):
        column: IntArray = values.astype(np.int64)
    else:
        items = list(values)
        for k, value in enumerate(items):
            whole = type(value) is int or (  # the first is quick, and nearly all are
                isinstance(value, (int, np.integer)) and not isinstance(value, bool)
            )
            if not (whole and -(2**62) < value < 2**62):
                raise InputError(source, f"field {name}[{k}]", value, expected)
        column = np.array(items, dtype=np.int64)
    bad = np.flatnonzero(column < 0)
    if bad.size:
        k = int(bad[0])
        raise InputError(source, f"field {name}[{k}]", int(column[k]), expected)
    column.flags.writeable = False
    return column


def time_column(
    values: Iterable[float],
    source: str,
    name: str,
    least: float = -math.inf,
    *,
    endless: bool = False,
) -> FloatArray:
    """Return a read-only float64 array of shape (n,) of times in s, finite unless `endless`.

    Raises
    ------
    InputError: naming the first value that is no such time.
    """
    expected = "a time in s" if least == -math.inf else f"a time of at least {least:g} s"
    if isinstance(values, np.ndarray) and np.issubdtype(values.dtype, np.number):
        column: FloatArray = values.astype(np.float64)
    else:
        items = list(values)
        for k, value in enumerate(items):
            known = isinstance(value, (int, float, np.number)) and not isinstance(value, bool)
            if not known or (isinstance(value, int) and abs(value) > LATEST_S):
                raise InputError(source, f"field {name}[{k}]", value, expected)
        column = np.array(items, dtype=np.float64)
    fine = (column >= least) & ((np.abs(column) <= LATEST_S) | (endless & (column == math.inf)))
    bad = np.flatnonzero(~fine)
    if bad.size:
        k = int(bad[0])
        raise InputError(source, f"field {name}[{k}]", float(column[k]), expected)
    column.flags.writeable = False
    return column


def same_length(source: str, prefix: str, columns: dict[str, Any]) -> int:
    """Return the common length of the columns.

    Raises
    ------
    InputError: naming the first column whose length differs from the first one's.
    """
    names = list(columns)
    length = len(columns[names[0]])
    for name in names[1:]:
        if len(columns[name]) != length:
            raise InputError(
                source,
                f"field {prefix}.{name}",
                NoQuote(f"{len(columns[name])} entries"),
                f"{length} as in {prefix}.{names[0]}",
            )
    return length
