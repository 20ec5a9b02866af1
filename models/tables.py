"""Strict CSV reading: every complaint names the file, the row and the column."""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal

from optgap.models.errors import InputError, NoQuote, Said
from optgap.models.quantities import GIVEN, Doubt, doubts, judge, warn
from optgap.models.reading import Held, Path, read_text

MAX_LINE = 1 << 20
"""Longest line accepted, in characters: a longer one is not a table of ours."""
DATE = "2026-03-01T12:00:00Z"
MILLISECONDS = 1e11
"""Least time that counts as Unix milliseconds; in seconds it would be after the year 5000."""
UNKNOWN = frozenset({"", "-1", "-1.0", "nan", "none", "null"})
"""Cells that tell nothing, in small letters."""
_COMPUTED = re.compile(r"'*[=+\-@\t\r]")
"""Beginning of text that a spreadsheet would compute, or that `guarded` has changed."""
_LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+")


@dataclass(frozen=True, slots=True)
class Column:
    """One column of a table.

    `kind` is what a cell holds: a ``time`` is a number of seconds, or a date and time as ISO 8601
    has it, which becomes Unix seconds. `minimum` is the smallest number accepted. An optional
    column may be missing altogether; an `empty` value stands for cells with nothing in them
    (None: such cells are an error), and an `unknown` one for all cells that tell nothing
    (`UNKNOWN`). `quantity` is the key of `quantities.GIVEN` that says which values are believed,
    by default the column's name.
    """

    name: str
    kind: Literal["integer", "number", "text", "time"] = "text"
    minimum: float = 0
    required: bool = True
    empty: Any = None
    quantity: str = ""
    unknown: Any = None

    @property
    def expected(self) -> str:
        if self.kind == "text":
            return "text"
        article = "an integer" if self.kind == "integer" else "a number"
        least = f"{article} of at least {self.minimum:g}"
        return f"{least}, or a date such as {DATE}" if self.kind == "time" else least


def guarded(text: str) -> str:
    """Return CSV text whose names no spreadsheet computes: ``=1+1`` becomes ``'=1+1``.

    Numbers stay. `read_table` takes the apostrophe away again.
    """
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    for row in csv.reader(io.StringIO(text, newline="")):
        writer.writerow([f"'{cell}" if _is_computed(cell) else cell for cell in row])
    return out.getvalue()


def _is_computed(cell: str) -> bool:
    if not _COMPUTED.match(cell):
        return False
    try:
        float(cell)
    except ValueError:
        return True
    return False


def require_commas(header: Sequence[str], source: str, where: str) -> None:
    """Refuse a header whose cells are separated by something else.

    Raises
    ------
    InputError: naming what stands between the cells.
    """
    for separator, name in ((";", "semicolons"), ("\t", "tabs")):
        if len(header) == 1 and separator in header[0]:
            expected = "commas between cells and a decimal point in numbers"
            raise InputError(source, where, NoQuote(f"{name} between cells"), expected)


def read_header(path: Path) -> list[str]:
    """Return the columns of a CSV file.

    Raises
    ------
    InputError: as `read_table`.
    """
    return _Rows(path).header(())


def read_table(
    path: Path, columns: Sequence[Column], *, strict: bool = False
) -> dict[str, list[Any]]:
    """Read the named columns of a CSV file with a header; other columns are passed over.

    A gzip file is unpacked on the way.

    Parameters
    ----------
    strict: refuse values that are not believed, see `quantities`.

    Returns
    -------
    One list per column, in file order. Optional columns that the file lacks hold their
    `empty` value in every row. The key ``"#"`` holds the line number of each row.

    Raises
    ------
    InputError: as `reading.read_text`; for a line above `MAX_LINE` characters, a missing or
        repeated column, a row with too few or too many cells, or a cell that is not what its
        column holds.
    """
    rows = _Rows(path)
    header = rows.header(columns)
    place = {column.name: header.index(column.name) for column in columns if column.name in header}
    table: dict[str, list[Any]] = {column.name: [] for column in columns}
    table["#"] = []
    for number, row in rows.below(len(header)):
        for column in columns:
            cell = row[place[column.name]].strip() if column.name in place else ""
            table[column.name].append(_cell(cell, column, rows.source, number))
        table["#"].append(number)
    for column in columns:
        if column.kind == "time" and column.name in place:
            table[column.name] = _clock(table[column.name], column, rows.source, table["#"])
        if strict and column.kind in ("integer", "number"):
            judge(_doubts(table, column), rows.source, strict)
    return table


def _doubts(table: dict[str, list[Any]], column: Column) -> list[Doubt]:
    """Return the implausible values of a column; values for empty cells do not count."""
    name = column.quantity or column.name
    if name not in GIVEN:
        return []
    values = [math.nan if value == column.empty else value for value in table[column.name]]
    return doubts(name, values, lambda k: f"row {table['#'][k]}, column {column.name}")


def _clock(values: list[Any], column: Column, source: str, rows: Sequence[int]) -> list[float]:
    """Seconds of a column of times: all of them numbers, or all of them dates."""
    dated = [isinstance(value, Date) if value == value else None for value in values]  # not NaN
    if True in dated and False in dated:
        first, other = dated.index(True), dated.index(False)
        where = f"row {rows[other]}, column {column.name}"
        raise InputError(source, where, values[other], f"a date, as in row {rows[first]}")
    if any(date.naive for date in values if isinstance(date, Date)):
        warn(f"{source}: column {column.name}: dates without a time zone are taken as UTC")
    return [value.unix_s if isinstance(value, Date) else value for value in values]


@dataclass(frozen=True, slots=True)
class Date:
    """A date and time: Unix seconds, and whether it came without a time zone (UTC, then)."""

    unix_s: float
    naive: bool

    @classmethod
    def parse(cls, text: str) -> Date:
        """Read ISO 8601, a time zone respected; raises ValueError for anything else."""
        stamp = datetime.fromisoformat(text)
        naive = stamp.tzinfo is None
        return cls((stamp.replace(tzinfo=UTC) if naive else stamp).timestamp(), naive)


def lines(path: Path) -> Iterator[str]:
    """Yield the lines of a text file with their ends, none above `MAX_LINE` characters.

    Raises
    ------
    InputError: as `read_table`.
    """
    for number, match in enumerate(_LINE.finditer(read_text(path)), 1):
        if match.end() - match.start() > MAX_LINE:
            found = NoQuote(f"a line of more than {MAX_LINE} characters")
            raise InputError(str(path), f"row {number}", found, "a shorter one")
        yield match[0]


class _Rows:
    """The cells of a CSV file, row by row."""

    def __init__(self, path: Path) -> None:
        self.source = str(path)
        self.reader = csv.reader(lines(path), strict=True)
        # rows of a table in memory are counted without its header
        self.shift = path.first_row - 2 if isinstance(path, Held) else 0
        self.top = "columns" if isinstance(path, Held) else "row 1"

    def header(self, columns: Sequence[Column]) -> list[str]:
        """Return the first row; `columns` are those that must be there, or may be once."""
        names = ", ".join(column.name for column in columns if column.required)
        try:
            header = [cell.strip() for cell in next(self.reader)]
        except StopIteration:
            expected = f"a header with the columns {names}" if names else "a header"
            raise InputError(self.source, self.top, NoQuote("nothing"), expected) from None
        except csv.Error as error:
            raise self._broken(error) from None
        require_commas(header, self.source, self.top)
        for column in columns:
            if header.count(column.name) > 1:
                where = f"{self.top}, column {column.name}"
                raise InputError(self.source, where, Said("stands twice"), "leave one out")
            if column.required and column.name not in header:
                shown = NoQuote(", ".join(header) or "nothing")
                expected = f"a column {column.name} (needed: {names})"
                raise InputError(self.source, self.top, shown, expected)
        return header

    def below(self, cells: int) -> Iterator[tuple[int, list[str]]]:
        """Yield the number and the cells of every row below the header."""
        while True:
            try:
                row = next(self.reader)
            except StopIteration:
                return
            except csv.Error as error:
                raise self._broken(error) from None
            number = self.reader.line_num + self.shift
            if len(row) not in (0, cells):
                found, expected = NoQuote(f"{len(row)} cells"), f"{cells} as in the header"
                raise InputError(self.source, f"row {number}", found, expected)
            if row:
                yield number, row

    def _broken(self, error: csv.Error) -> InputError:
        where = f"row {self.reader.line_num + self.shift}"
        return InputError(self.source, where, NoQuote(error), "comma-separated cells")


def _cell(text: str, column: Column, source: str, row: int) -> Any:
    where = f"row {row}, column {column.name}"
    if column.unknown is not None and text.lower() in UNKNOWN:
        return column.unknown
    if not text:
        if column.empty is None:
            raise InputError(source, where, NoQuote("nothing"), column.expected)
        return column.empty
    if column.kind == "text":
        return text[1:] if text.startswith("'") and _COMPUTED.match(text) else text
    try:
        value: float | int
        if column.kind == "integer":
            # "1000.0" and "1e3" are not integers here: milli-GPU carry no rounding
            value = int(text) if text.lstrip("+-").isdecimal() and text.isascii() else _bad()
        else:
            value = float(text) if text.isascii() and "_" not in text else _bad()
    except ValueError:
        date = _dated(text) if column.kind == "time" else None
        if date is None or date.unix_s < column.minimum:
            raise InputError(source, where, text, column.expected) from None
        return date
    # 2**53 first: a larger integer need not be a float at all
    if not (abs(value) < 2**53 and math.isfinite(value) and value >= column.minimum):
        raise InputError(source, where, text, column.expected)
    if column.kind == "time" and value >= MILLISECONDS:
        expected = f"seconds, or a date such as {DATE} ({text} ms would be {value / 1000:.13g} s)"
        raise InputError(source, where, text, expected)
    return value


def _dated(text: str) -> Date | None:
    try:
        return Date.parse(text)
    except (ValueError, OverflowError):
        return None


def _bad() -> int:
    raise ValueError
