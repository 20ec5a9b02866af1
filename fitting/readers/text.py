"""From a file to header and cells, refusing whatever is not plain comma-separated UTF-8."""

from __future__ import annotations

import csv
import gc
import io
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from optgap.fitting.profile import theirs
from optgap.models.errors import InputError, NoQuote, Said
from optgap.models.tables import require_commas
from optgap.models.units import parsed, spelt, units_of

SMALLEST, LARGEST = 1e-30, 1e16
"""Sizes that a measurement can have; products of a few of them are still numbers."""

MISSING = {"", "nan", "na", "n/a", "none", "null", "-", "err!"}
_BRACKETED = re.compile(r"\[[^\]]*\]")
"""A tool's word for why there is no number: ``[N/A]``, ``[GPU is lost]``."""
_PLAIN_LETTERS = frozenset("0123456789.+-eE")
_PLAIN = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
_LOCALE = re.compile(
    r"[+-]?\d{1,3}([.,' \u00a0\u202f]\d{3})*[.,]\d+|[+-]?\d{1,3}([,' \u00a0]\d{3})+"
)
_UNIT = re.compile(r"(.*[\d.])\s*([^\W\d]+|%)")
_DATA = re.compile(r"[-+]?[\d.]+([-:/T .\d]*\d)?(e[-+]?\d+)? ?(%|[mkMG]?[WJ]|[MG]?Hz|Z)?|\[.*\]")
"""A cell that is a number or a date rather than a name."""
_INFINITE = {"inf", "-inf", "+inf", "infinity", "-infinity"}


@dataclass(frozen=True)
class RawTable:
    """Cells as text.

    Parameters
    ----------
    lines: the line number of each row.
    called: what the table calls columns that have been given our names.
    odd: line number and number of cells of each row that does not fit the header.
    again: how often the header stands below itself, as in a log that was appended to.
    top: the line of the header.
    notes: what was left out or changed.
    """

    source: str
    header: list[str]
    rows: list[list[str]]
    lines: list[int]
    called: Mapping[str, str] = field(default_factory=dict)
    odd: tuple[tuple[int, int], ...] = ()
    again: int = 0
    top: int = 1
    notes: tuple[str, ...] = ()

    def take(self, kept: Iterable[int]) -> RawTable:
        """Return the table with these rows alone."""
        index = list(kept)
        rows, lines = [self.rows[k] for k in index], [self.lines[k] for k in index]
        return replace(self, rows=rows, lines=lines)

    def noting(self, count: int, what: str) -> RawTable:
        """Return the table with a note of how many things were left out, if any were."""
        return replace(self, notes=(*self.notes, f"{count} {what}")) if count else self

    def require_regular(self) -> None:
        """Refuse a table with rows that do not fit its header.

        Raises
        ------
        InputError: naming the first such row.
        """
        for line, cells in self.odd[:1]:
            expected = f"{len(self.header)} as in the header"
            if self.top > 1 or cells > len(self.header):
                expected += f" (row {self.top}: {', '.join(self.header)})"
            raise InputError(self.source, f"row {line}", NoQuote(f"{cells} cells"), expected)

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
        cells = [row[k].strip() for row in self.rows]
        known: dict[str, float] = {}
        if _PLAIN_LETTERS.issuperset("".join(cells[:1000])):  # mostly plain: all at once
            try:
                values = np.array(list(map(float, cells)))
            except ValueError:
                values = np.full(1, np.nan)
            size = np.abs(values[values != 0])
            if _PLAIN_LETTERS.issuperset("".join(cells)) and np.all(
                (size >= SMALLEST) & (size < LARGEST)
            ):
                return values
        for cell, line in zip(cells, self.lines, strict=True):
            if cell not in known:  # samples repeat
                where = f"row {line}, column {theirs(name, self.called)}"
                known[cell] = number(cell, self.source, where, unit)
        return np.array([known[cell] for cell in cells])


def number(cell: str, source: str, where: str, unit: str = "") -> float:
    """The number in a cell, NaN when nothing is there."""
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
    if text.lower() in _INFINITE:
        raise InputError(source, where, cell, "a finite number")
    if _LOCALE.fullmatch(text):
        expected = "a number with a decimal point and no thousands separator"
        raise InputError(source, where, cell, expected)
    raise InputError(source, where, cell, f"a number{f' in {unit}' if unit else ''}")


@contextmanager
def uncollected() -> Iterator[None]:
    """Read without the collector of garbage, which doubles the time of 1e6 rows."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def parse_csv(text: str, source: str, fields: Sequence[str] = ()) -> RawTable:
    """Header and rows of a comma-separated text; `fields` is the header of one without.

    Comments above the header are skipped, and so is the header where it stands again. A row of
    units below the header becomes part of it. Rows of another length are kept apart.

    Raises
    ------
    InputError: for an empty file, a repeated or unnamed column, another separator, what another
        tool wrote, or no row at all.
    """
    refuse_foreign(text, source)
    reader = csv.reader(io.StringIO(text, newline=""), strict=True, skipinitialspace=True)
    header = _header([*fields], "fields", 1) if fields else []
    top = 0
    try:
        for row in reader if not header else ():
            if any(cell.strip() for cell in row) and not row[0].lstrip().startswith(("#", "==")):
                top = reader.line_num
                header = _header(row, source, top)
                break
        below = [(reader.line_num, row) for row in reader]
    except csv.Error as error:
        where = f"row {reader.line_num}"
        raise InputError(source, where, NoQuote(error), "comma-separated cells") from None
    if not header:
        raise InputError(source, "row 1", NoQuote("nothing"), "a header")
    count, first = len(header), header[0]
    fitting = [(line, row) for line, row in below if len(row) == count and row[0] != first]
    odd = [(line, len(row)) for line, row in below if len(row) != count and "".join(row).strip()]
    again = len(below) - len(fitting) - sum(len(row) != count for _, row in below)
    rows, lines = [row for _, row in fitting], [line for line, _ in fitting]
    raw = RawTable(source, header, rows, lines, {}, tuple(odd), again, top)
    if not rows:
        raw.require_regular()
        where = f"row {top + 1}"
        raise InputError(source, where, NoQuote("nothing"), "at least one row below the header")
    return _with_units(raw)


def _require_names(header: list[str], source: str, line: int) -> None:
    """Refuse data in the header's place, as ``--format=csv,noheader`` writes."""
    data = [_DATA.fullmatch(cell) is not None for cell in header]
    if data[0] and 2 * sum(data) > len(data):
        expected = "a header; fields= (--set fields=timestamp,power.draw,…) names the columns"
        raise InputError(source, f"row {line}", NoQuote(f"data, {', '.join(header)}"), expected)


def _with_units(raw: RawTable) -> RawTable:
    """Take a first row of units, ``MHz,W``, into the header."""
    units = [cell.strip().strip("[]()") for cell in raw.rows[0]]
    named = [bool(spelt(unit)) for unit in units]
    if not any(named) or any(unit and not n for unit, n in zip(units, named, strict=True)):
        return raw
    header = [
        f"{name} [{unit}]" if unit and parsed(name).unit not in spelt(unit) else name
        for name, unit in zip(raw.header, units, strict=True)
    ]
    return replace(raw, header=header, rows=raw.rows[1:], lines=raw.lines[1:])


WRITES = (
    "nvidia-smi --query-gpu=timestamp,index,power.draw,clocks.sm,utilization.gpu --format=csv "
    "-lms 500 > log.csv"
)
"""The command whose output is read best."""
_FOREIGN = (
    (r".*Kernel Name.*Metric (Name|Value).*", "Nsight Compute's, without power"),
    (r"==PROF==.*", "Nsight Compute's, without power"),
    (r"==\d+== (NVPROF|Profiling).*|.*Type.*Time\(%\).*Calls.*", "nvprof's, without power"),
    (r".*Time \(%\).*Total Time \(ns\).*", "Nsight Systems', without power"),
    (r"# (HELP|TYPE) .*|[a-zA-Z_]\w*\{.*\} \S+.*", "Prometheus' exposition of one moment"),
    (r".*\| NVIDIA-SMI .*|.*NVSMI LOG.*", "nvidia-smi's screen"),
    (r"#\s*(Date\s+Time\s+)?gpu\s+(pwr|pid|sm)\b.*", "nvidia-smi dmon's or pmon's"),
    (r"\[\s*[{\[\"].*|\[|\{.*", "JSON"),
    (r".*\bepoch\b[^,]*\bloss\b.*", "a training log"),
)  # fmt: skip
"""A line that gives another tool's output away, and whose it is."""


def refuse_foreign(text: str, source: str) -> None:
    """Refuse what a tool wrote that is not read.

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


def _header(row: list[str], source: str, line: int) -> list[str]:
    header = [cell.strip() for cell in row]
    require_commas(header, source, f"row {line}")
    _require_names(header, source, line)
    for name in header:
        if header.count(name) > 1:
            where = f"row {line}, column {name or '(unnamed)'}"
            raise InputError(source, where, Said("stands twice"), "leave one out")
    return header


def stem(source: str) -> str:
    """The file's name without its endings, to name an application by."""
    return Path(source).name.split(".")[0]


def measured(
    raw: RawTable, name: str, ours: str, unit: str
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
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
