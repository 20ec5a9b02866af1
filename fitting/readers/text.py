"""Reader of plain comma-separated UTF-8 into columns of cells; other text is refused."""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from optgap.models.errors import InputError, NoQuote, Said
from optgap.models.tables import require_commas
from optgap.models.units import parsed, spelt, units_of

Floats = NDArray[np.float64]
Texts = NDArray[Any]
SMALLEST, LARGEST = 1e-30, 1e16
"""Range of a measurement's size, in which products of a few numbers stay finite."""
MISSING = {"", "nan", "na", "n/a", "none", "null", "-", "err!"}
_BRACKETED = re.compile(r"\[[^\]]*\]")
"""Pattern of a tool's reason for a missing number: ``[N/A]``, ``[GPU is lost]``."""
_PLAIN_LETTERS = frozenset("0123456789.+-eE")
_PLAIN = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
_LOCALE = re.compile(
    r"[+-]?\d{1,3}([.,' \u00a0\u202f]\d{3})*[.,]\d+|[+-]?\d{1,3}([,' \u00a0]\d{3})+"
)
_UNIT = re.compile(r"(.*[\d.])\s*([^\W\d]+|%)")
_DATA = re.compile(r"[-+]?[\d.]+([-:/T .\d]*\d)?(e[-+]?\d+)? ?(%|[mkMG]?[WJ]|[MG]?Hz|Z)?|\[.*\]")
"""Pattern of a cell that is a number or a date rather than a name."""


@dataclass(frozen=True)
class RawTable:
    """Columns of cells as text.

    Parameters
    ----------
    lines: line number of each row.
    odd: line number and number of cells of each row that does not fit the header.
    again: number of repeated headers, as in a log with appended parts.
    top: line of the header.
    notes: remarks about omissions and changes.
    """

    source: str
    cells: Mapping[str, Texts]
    lines: NDArray[np.int64]
    odd: tuple[tuple[int, int], ...] = ()
    again: int = 0
    top: int = 1
    notes: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.lines)

    def take(self, rows: Any) -> RawTable:
        """Return the table with these rows alone."""
        cells = {name: column[rows] for name, column in self.cells.items()}
        return replace(self, cells=cells, lines=self.lines[rows])

    def having(self, **columns: Any) -> RawTable:
        """Return the table with further or replaced columns."""
        kept = {name: cells for name, cells in self.cells.items() if name not in columns}
        filled = {name: np.broadcast_to(values, len(self)) for name, values in columns.items()}
        more = {n: np.array(list(map(str, v.tolist())), object) for n, v in filled.items()}
        return replace(self, cells={**kept, **more})

    def noting(self, count: int, what: str) -> RawTable:
        """Return the table with a note of the number of omissions, if there are any."""
        return replace(self, notes=(*self.notes, f"{count} {what}")) if count else self

    def require_regular(self) -> None:
        """Refuse a table with rows that do not fit its header.

        Raises
        ------
        InputError: naming the first such row.
        """
        for line, cells in self.odd[:1]:
            expected = f"{len(self.cells)} as in the header"
            if self.top > 1 or cells > len(self.cells):
                expected += f" (row {self.top}: {', '.join(self.cells)})"
            raise InputError(self.source, f"row {line}", NoQuote(f"{cells} cells"), expected)

    def text(self, name: str) -> Texts:
        """Return the texts of a column, on one line and with single spaces."""
        return np.array([" ".join(cell.split()) for cell in self.cells[name]], dtype=object)

    def joined(self, names: Sequence[str]) -> list[str]:
        """Return the texts of the columns that there are, joined by slashes row by row."""
        parts = [self.text(name) for name in names if name in self.cells]
        return ["/".join(filter(None, row)) for row in zip(*parts, strict=True)]

    def numbers(self, name: str, unit: str = "", ours: str = "") -> Floats:
        """Return a numeric column; cells may end in `unit`, and missing ones are NaN.

        Messages also give our name for the column, if that differs.

        Raises
        ------
        InputError: for a cell that is no number, is infinite, or carries another unit.
        """
        cells = self.cells[name]
        if _PLAIN_LETTERS.issuperset("".join(cells.tolist())):  # mostly plain: all at once
            try:
                values = cells.astype(float)
            except ValueError:
                values = np.full(1, np.nan)
            size = np.abs(values[values != 0])
            if np.all((size >= SMALLEST) & (size < LARGEST)):
                return values
        known: dict[str, float] = {}
        for cell, line in zip(cells, self.lines, strict=True):
            if cell not in known:  # samples repeat
                where = f"row {line}, column {name if ours in ('', name) else f'{name} ({ours})'}"
                known[cell] = number(cell, self.source, where, unit)
        return np.array([known[cell] for cell in cells])


def number(cell: str, source: str, where: str, unit: str = "") -> float:
    """Return the number in a cell, NaN if it is empty."""
    text = cell.strip()
    if text.lower() in MISSING or _BRACKETED.fullmatch(text):
        return math.nan
    if unit and (match := _UNIT.fullmatch(text)) and unit in spelt(match[2]):
        text = match[1]
    if _PLAIN.fullmatch(text):
        value = float(text)
        if value == 0 or SMALLEST <= abs(value) < LARGEST:
            return value
        raise InputError(source, where, cell, f"0, or between {SMALLEST:g} and {LARGEST:g}")
    expected = f"a number{f' in {unit}' if unit else ''}"
    if text.lower().lstrip("+-") in ("inf", "infinity"):
        expected = "a finite number"
    elif _LOCALE.fullmatch(text):
        expected = "a number with a decimal point and no thousands separator"
    raise InputError(source, where, cell, expected)


def measured(raw: RawTable, name: str, ours: str, unit: str) -> tuple[Floats, Floats]:
    """Return a column as written and in the canonical unit; cells may carry a unit of their own.

    Raises
    ------
    InputError: for a cell that is no number, or is in another unit than the first.
    """
    units = units_of(ours)
    first = next((cell for cell in raw.cells[name] if re.search(r"\d", cell)), "")
    own = None if unit else re.fullmatch(r"[-+.\deE]*\d\s*([^\W\d]+|%)", first)
    if own is not None:
        unit = next((symbol for symbol in spelt(own[1]) if symbol in units), "")
    values = raw.numbers(name, unit, ours)
    return values, values * units[unit] if units.get(unit, 1.0) != 1 else values


def parse_csv(text: str, source: str, fields: Sequence[str] = ()) -> RawTable:
    """Read header and columns of a comma-separated text; `fields` replaces a missing header.

    Comments above the header are skipped, and so are repeated headers. A row of
    units below the header becomes part of it. Rows of another length are kept apart.

    Raises
    ------
    InputError: for an empty file, a repeated or unnamed column, another separator, the output of
        another tool, or no row at all.
    """
    refuse_foreign(text, source)
    reader = csv.reader(io.StringIO(text, newline=""), strict=True, skipinitialspace=True)
    header = _header([*fields], "fields", 1) if fields else []
    top, again, lines = 0, 0, list[int]()
    odd, flat = list[tuple[int, int]](), list[str]()  # no list of lists, which collection slows
    try:
        for row in reader:
            if header and len(row) == len(header):
                again += row[0] == header[0]
                if row[0] != header[0]:
                    flat += row
                    lines.append(reader.line_num)
            elif any(cell.strip() for cell in row):
                if header:
                    odd.append((reader.line_num, len(row)))
                elif not row[0].lstrip().startswith(("#", "==")):
                    top = reader.line_num
                    header = _header(row, source, top)
    except csv.Error as error:
        where = f"row {reader.line_num}"
        raise InputError(source, where, NoQuote(error), "comma-separated cells") from None
    if not header:
        raise InputError(source, "row 1", NoQuote("nothing"), "a header")
    cells = np.array([cell.strip() for cell in flat], dtype=object).reshape(-1, len(header))
    columns = dict(zip(header, cells.T, strict=True))
    table = RawTable(source, columns, np.array(lines, dtype=np.int64), tuple(odd), again, top)
    if not lines:
        table.require_regular()
        where = f"row {top + 1}"
        raise InputError(source, where, NoQuote("nothing"), "at least one row below the header")
    units = [cell.strip("[]()") for cell in cells[0]]
    if not any(units) or not all(spelt(unit) for unit in units if unit):
        return table
    columns = {  # a row of units, MHz,W
        f"{name} [{unit}]" if unit and parsed(name).unit not in spelt(unit) else name: column[1:]
        for (name, column), unit in zip(columns.items(), units, strict=True)
    }
    return replace(table, cells=columns, lines=table.lines[1:])


def _header(row: list[str], source: str, line: int) -> list[str]:
    """Return the names of the columns.

    Raises
    ------
    InputError: for another separator, a repeated name, or data in place of the header, as
        ``--format=csv,noheader`` writes.
    """
    header = [cell.strip() for cell in row]
    require_commas(header, source, f"row {line}")
    data = [_DATA.fullmatch(cell) is not None for cell in header]
    if data[0] and 2 * sum(data) > len(data):
        expected = "a header; fields= (--set fields=timestamp,power.draw,…) names the columns"
        raise InputError(source, f"row {line}", NoQuote(f"data, {', '.join(header)}"), expected)
    for name in header:
        if header.count(name) > 1:
            where = f"row {line}, column {name or '(unnamed)'}"
            raise InputError(source, where, Said("stands twice"), "leave one out")
    return header


WRITES = (
    "nvidia-smi --query-gpu=timestamp,index,power.draw,clocks.sm,utilization.gpu --format=csv "
    "-lms 500 > log.csv"
)
"""Command whose output is read best."""
_FOREIGN = (
    (r".*Kernel Name.*Metric (Name|Value).*", "Nsight Compute's, without power"),
    (r"==PROF==.*", "Nsight Compute's, without power"),
    (r"==\d+== (NVPROF|Profiling).*|.*Type.*Time\(%\).*Calls.*", "nvprof's, without power"),
    (r".*Time \(%\).*Total Time \(ns\).*", "Nsight Systems', without power"),
    (r".*\"(resultType|errorType)\":.*", "an answer of Prometheus"),
    (r"# (HELP|TYPE) .*|[a-zA-Z_]\w*\{.*\} \S+.*", "Prometheus' exposition of one moment"),
    (r".*\| NVIDIA-SMI .*|.*NVSMI LOG.*", "nvidia-smi's screen"),
    (r"#\s*(Date\s+Time\s+)?gpu\s+(pwr|pid|sm)\b.*", "nvidia-smi dmon's or pmon's"),
    (r"#\s*Entity\b.*", "dcgmi dmon's, without times"),
    (r"device,.*(clock speed:|power).*", "rocm-smi's, without times"),
    (r".*\bGR3D_FREQ \d+%.*", "tegrastats'; or write its rail as timestamp,power_w,frequency_mhz"),
    (r"\[\s*[{\[\"].*|\[|\{.*", "JSON"),
    (r".*\bepoch\b[^,]*\bloss\b.*", "a training log"),
    (r"(?=.*\brun_id\b).*\bgpu_energy\b.*", "codecarbon's, a total of each run without clocks"),
)  # fmt: skip
"""Patterns of lines that identify another tool's output, and the tools."""


def refuse_foreign(text: str, source: str) -> None:
    """Refuse the output of tools that are not supported.

    Raises
    ------
    InputError: quoting the line, and naming the tool and the command whose output is read.
    """
    top = text[:4000].split("\n")[:20]
    for pattern, whose in _FOREIGN:
        for number_, line in enumerate(top, start=1):
            if re.fullmatch(pattern, line.strip(), re.IGNORECASE):
                expected = f"samples of power: this is {whose}; {WRITES} writes what is read"
                raise InputError(source, f"row {number_}", line.strip(), expected)


def stem(source: str) -> str:
    """Return the file's name without its endings, as the name of an application."""
    return Path(source).name.split(".")[0]
