"""Tables of a report: cells with what is read and what is sorted by."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from optgap.render import number, percent

LONGEST = 200
"""Characters of one cell; what is longer is cut with an ellipsis."""
DIGITS = 9
"""Significant digits of the numbers that columns are sorted by."""


@dataclass(frozen=True, slots=True)
class Cell:
    """What is read, and the number that it is sorted by (None: as text)."""

    text: str
    key: str | None = None


@dataclass(frozen=True)
class Grid:
    """A table.

    Parameters
    ----------
    caption: what it shows.
    columns: header texts.
    numeric: which of them hold numbers.
    rows: cells; the first of each row is its name.
    """

    caption: str
    columns: tuple[str, ...]
    numeric: tuple[bool, ...]
    rows: tuple[tuple[Cell, ...], ...]


def grid(caption: str, records: Sequence[Mapping[str, Any]], columns: Sequence[str] = ()) -> Grid:
    """A table of records; every key in order of first appearance unless `columns` are named."""
    names = list(columns) or list(dict.fromkeys(key for record in records for key in record))
    values = [[record.get(name) for name in names] for record in records]
    numeric = tuple(_numeric([row[k] for row in values]) for k in range(len(names)))
    return Grid(
        caption,
        tuple(names),
        numeric,
        tuple(
            tuple(cell(value, name) for value, name in zip(row, names, strict=True))
            for row in values
        ),
    )


def worded(caption: str, header: Sequence[str], rows: Sequence[Sequence[str]]) -> Grid:
    """A table of words, as they stand."""
    cells = tuple(tuple(Cell(text) for text in row) for row in rows)
    return Grid(caption, tuple(header), (False,) * len(header), cells)


def cell(value: Any, column: str = "") -> Cell:
    """How a value is read and sorted; shares as percentages, by the name of their column."""
    if value is None or value == "":
        return Cell("")
    if isinstance(value, bool):
        return Cell("yes" if value else "no")
    if isinstance(value, (int, float)):
        key = f"{value:.{DIGITS}g}"
        if is_share(column):
            return Cell(percent(float(value)), key)
        text = number(value)
        return Cell(text, None if text == key else key)
    if isinstance(value, (list, tuple, Mapping)):
        value = json.dumps(value, ensure_ascii=False)
    text = " ".join(str(value).split())
    return Cell(text if len(text) <= LONGEST else text[: LONGEST - 1] + "…")


def is_share(column: str) -> bool:
    """Whether a column holds shares that read better as percentages."""
    return column.startswith("gap") or column in ("mape", "cv_mape")


def _numeric(values: Sequence[Any]) -> bool:
    found = [value for value in values if value is not None and value != ""]
    return bool(found) and all(
        isinstance(value, (int, float)) and not isinstance(value, bool) for value in found
    )


def constants(
    records: Sequence[Mapping[str, Any]], keep: Sequence[str] = ()
) -> tuple[list[str], dict[str, Any]]:
    """Columns worth a column, and those with the same value in every row, with it.

    Columns without any value are left out of both.
    """
    names = list(dict.fromkeys(key for record in records for key in record))
    varying, same = [], {}
    for name in names:
        first = records[0].get(name)
        if name not in keep and all(record.get(name) == first for record in records):
            if first is not None and first != "":
                same[name] = first
        else:
            varying.append(name)
    return varying, same
