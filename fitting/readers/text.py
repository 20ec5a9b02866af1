"""From a file to header and cells, refusing whatever is not plain comma-separated UTF-8."""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from optgap.fitting.profile import theirs
from optgap.models.errors import InputError, NoQuote
from optgap.models.tables import require_commas
from optgap.models.units import spelt

SMALLEST, LARGEST = 1e-30, 1e16
"""Sizes that a measurement can have; products of a few of them are still numbers."""

MISSING = {"", "nan", "na", "n/a", "[n/a]", "none", "null", "[not supported]", "-"}
_PLAIN = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
_LOCALE = re.compile(
    r"[+-]?\d{1,3}([.,' \u00a0\u202f]\d{3})*[.,]\d+|[+-]?\d{1,3}([,' \u00a0]\d{3})+"
)
_UNIT = re.compile(r"(.*[\d.])\s*([^\W\d]+|%)")
_INFINITE = {"inf", "-inf", "+inf", "infinity", "-infinity"}


@dataclass(frozen=True)
class RawTable:
    """Cells as text: the header, the rows, each row's line number, and what the table calls
    columns that have been given our names.
    """

    source: str
    header: list[str]
    rows: list[list[str]]
    lines: list[int]
    called: Mapping[str, str] = field(default_factory=dict)

    def index(self, name: str) -> int:
        if name not in self.header:
            shown = NoQuote(", ".join(self.header) or "nothing")
            raise InputError(self.source, "row 1", shown, f"a column {name}")
        return self.header.index(name)

    def text(self, name: str) -> NDArray[np.object_]:
        """A column as it stands, on one line and with single spaces."""
        k = self.index(name)
        return np.array([" ".join(row[k].split()) for row in self.rows], dtype=object)

    def numbers(self, name: str, unit: str = "") -> NDArray[np.float64]:
        """A numeric column; cells may end in `unit`; what is missing is NaN.

        Raises
        ------
        InputError: for a cell that is no number, is infinite, or carries another unit.
        """
        k = self.index(name)
        return np.array(
            [
                number(row[k], self.source, f"row {line}, column {theirs(name, self.called)}", unit)
                for row, line in zip(self.rows, self.lines, strict=True)
            ]
        )


def positive(raw: RawTable, name: str) -> NDArray[np.float64]:
    """A numeric column without a zero or a negative number; what is missing is NaN.

    Raises
    ------
    InputError: as `RawTable.numbers`, and for a number that is not above 0.
    """
    values = raw.numbers(name)
    bad = np.flatnonzero(values <= 0)
    if len(bad):
        where = f"row {raw.lines[bad[0]]}, column {name}"
        raise InputError(raw.source, where, float(values[bad[0]]), "a number above 0")
    return values


def number(cell: str, source: str, where: str, unit: str = "") -> float:
    """The number in a cell, NaN when nothing is there."""
    text = cell.strip()
    if text.lower() in MISSING:
        return math.nan
    if unit and (match := _UNIT.fullmatch(text)) and unit in spelt(match[2]):
        text = match[1]
    if _PLAIN.fullmatch(text):
        value = float(text)
        if value == 0 or SMALLEST <= abs(value) < LARGEST:
            return value
        raise InputError(source, where, cell, f"0, or between {SMALLEST:g} and {LARGEST:g}")
    if text.lower() in _INFINITE:
        raise InputError(source, where, cell, "a finite number")
    if _LOCALE.fullmatch(text):
        expected = "a number with a decimal point and no thousands separator"
        raise InputError(source, where, cell, expected)
    raise InputError(source, where, cell, f"a number{f' in {unit}' if unit else ''}")


def parse_csv(text: str, source: str) -> RawTable:
    """Header and rows of a comma-separated text.

    Raises
    ------
    InputError: for an empty file, a repeated or unnamed column, another separator, a row
        with too few or too many cells, or no row at all.
    """
    reader = csv.reader(io.StringIO(text, newline=""), strict=True, skipinitialspace=True)
    header: list[str] = []
    rows: list[list[str]] = []
    lines: list[int] = []
    try:
        for row in reader:
            if not row or (len(row) == 1 and not row[0].strip()):
                continue
            if not header:
                header = _header(row, source, reader.line_num)
                continue
            if len(row) != len(header):
                found = NoQuote(f"{len(row)} cells")
                expected = f"{len(header)} as in the header"
                raise InputError(source, f"row {reader.line_num}", found, expected)
            rows.append(row)
            lines.append(reader.line_num)
    except csv.Error as error:
        where = f"row {reader.line_num}"
        raise InputError(source, where, NoQuote(error), "comma-separated cells") from None
    if not header:
        raise InputError(source, "row 1", NoQuote("nothing"), "a header")
    if not rows:
        raise InputError(source, "row 2", NoQuote("nothing"), "at least one row below the header")
    return RawTable(source, header, rows, lines)


def _header(row: list[str], source: str, line: int) -> list[str]:
    header = [cell.strip() for cell in row]
    require_commas(header, source, f"row {line}")
    for name in header:
        if header.count(name) > 1:
            where = f"row {line}, column {name or '(unnamed)'}"
            raise InputError(source, where, NoQuote("it twice"), "it once")
    return header


def stem(source: str) -> str:
    """The file's name without its endings, to name an application by."""
    return Path(source).name.split(".")[0]
