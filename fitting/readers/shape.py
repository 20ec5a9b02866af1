"""Small helpers that the readers share."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from optgap.fitting.profile import Profile, as_column
from optgap.fitting.readers.text import RawTable
from optgap.models.units import spelt, units_of

Floats = NDArray[np.float64]


def profile_from(raw: RawTable, columns: dict[str, Any], *notes: str) -> Profile:
    """A profile with the lines of `raw`, and its columns under their own names beside ours."""
    lines = np.array(raw.lines, dtype=np.int64)
    named = [name for name in raw.header if name and name not in columns]
    published = {name: as_column(raw.text(name)) for name in named}
    return Profile(columns, raw.source, "tidy", lines, notes, published, raw.called)


def measured(raw: RawTable, name: str, ours: str, unit: str) -> tuple[Floats, Floats]:
    """A column as it stands and in our unit; without a `unit` its cells may carry one.

    Raises
    ------
    InputError: for a cell that is no number, or is in another unit than the first.
    """
    k, units = raw.index(name), units_of(ours)
    cells = (row[k].strip() for row in raw.rows)
    first = next((cell for cell in cells if re.search(r"\d", cell)), "")
    if first.startswith("("):  # (800Mhz)
        raw = replace(raw, rows=[[cell.strip().strip("()") for cell in row] for row in raw.rows])
    own = None if unit else re.fullmatch(r"[-+.\deE]*\d\s*([^\W\d]+|%)", first.strip("()"))
    if own is not None:
        unit = next((symbol for symbol in spelt(own[1]) if symbol in units), "")
    values = raw.numbers(name, unit)
    return values, values * units[unit] if units.get(unit, 1.0) != 1 else values


def constant(raw: RawTable, value: str) -> Any:
    """A text column holding `value` in every row."""
    return np.full(len(raw.rows), value, dtype=object)


def joined(*columns: Any) -> Any:
    """Text columns joined by a slash, row by row; empty parts are left out."""
    rows = zip(*columns, strict=True)
    return np.array(
        ["/".join(part for part in (str(cell) for cell in row) if part) for row in rows],
        dtype=object,
    )


def others(raw: RawTable, used: set[str]) -> dict[str, Any]:
    """The remaining columns: numeric where every cell is a number, else text."""
    return {name: as_column(raw.text(name)) for name in raw.header if name and name not in used}
