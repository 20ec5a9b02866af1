"""Read-only integer columns: the form in which clusters and tasks hold their numbers."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

from optgap.models.errors import InputError, NoQuote

IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]


def int_column(values: Iterable[int], source: str, name: str, minimum: int = 0) -> IntArray:
    """A read-only int64 array of shape (n,); every value at least `minimum`.

    Raises
    ------
    InputError: naming the first value that is no integer (bools and floats are none) or is
        too small.
    """
    expected = f"an integer of at least {minimum}"
    if isinstance(values, np.ndarray) and np.issubdtype(values.dtype, np.integer):
        column: IntArray = values.astype(np.int64)
    else:
        items = list(values)
        for k, value in enumerate(items):
            if isinstance(value, bool) or not isinstance(value, (int, np.integer)):
                raise InputError(source, f"field {name}[{k}]", value, expected)
            if not -(2**62) < int(value) < 2**62:
                raise InputError(source, f"field {name}[{k}]", value, expected)
        column = np.array(items, dtype=np.int64)
    bad = np.flatnonzero(column < minimum)
    if bad.size:
        k = int(bad[0])
        raise InputError(source, f"field {name}[{k}]", int(column[k]), expected)
    column.flags.writeable = False
    return column


def same_length(source: str, prefix: str, columns: dict[str, Any]) -> int:
    """The common length of the columns.

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
