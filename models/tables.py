"""Strict CSV reading: every complaint names the file, the row and the column."""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from optgap.models.errors import InputError, NoQuote
from optgap.models.reading import Held, Path, read_text

MAX_LINE = 1 << 20
"""Longest line accepted, in characters: a longer one is not a table of ours."""
_LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+")


@dataclass(frozen=True, slots=True)
class Column:
    """One column of a table.

    `kind` is what a cell holds; `minimum` is the smallest number accepted. An optional column
    may be missing altogether; an `empty` value stands for cells with nothing in them (None:
    such cells are an error).
    """

    name: str
    kind: Literal["integer", "number", "text"] = "text"
    minimum: float = 0
    required: bool = True
    empty: Any = None

    @property
    def expected(self) -> str:
        if self.kind == "text":
            return "text"
        article = "an integer" if self.kind == "integer" else "a number"
        return f"{article} of at least {self.minimum:g}"


def read_header(path: Path) -> list[str]:
    """The columns of a CSV file, for those that are told apart by them.

    Raises
    ------
    InputError: as `read_table`.
    """
    return _Rows(path).header(())


def read_table(path: Path, columns: Sequence[Column]) -> dict[str, list[Any]]:
    """Read the named columns of a CSV file with a header; other columns are passed over.

    A gzip file is unpacked on the way.

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
    return table


def lines(path: Path) -> Iterator[str]:
    """The lines of a text file with their ends, none above `MAX_LINE` characters.

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
        """The first row; `columns` are those that must be there, or may be once."""
        names = ", ".join(column.name for column in columns if column.required)
        try:
            header = [cell.strip() for cell in next(self.reader)]
        except StopIteration:
            expected = f"a header with the columns {names}" if names else "a header"
            raise InputError(self.source, self.top, NoQuote("nothing"), expected) from None
        except csv.Error as error:
            raise self._broken(error) from None
        for column in columns:
            if header.count(column.name) > 1:
                where = f"{self.top}, column {column.name}"
                raise InputError(self.source, where, NoQuote("it twice"), "it once")
            if column.required and column.name not in header:
                shown = NoQuote(", ".join(header) or "nothing")
                expected = f"a column {column.name} (needed: {names})"
                raise InputError(self.source, self.top, shown, expected)
        return header

    def below(self, cells: int) -> Iterator[tuple[int, list[str]]]:
        """The number and the cells of every row below the header."""
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
    if not text:
        if column.empty is None:
            raise InputError(source, where, NoQuote("nothing"), column.expected)
        return column.empty
    if column.kind == "text":
        return text
    try:
        value: float | int
        if column.kind == "integer":
            # "1000.0" and "1e3" are not integers here: milli-GPU carry no rounding
            value = int(text) if text.lstrip("+-").isdecimal() and text.isascii() else _bad()
        else:
            value = float(text) if text.isascii() and "_" not in text else _bad()
    except ValueError:
        raise InputError(source, where, text, column.expected) from None
    # 2**53 first: a larger integer need not be a float at all
    if not (abs(value) < 2**53 and math.isfinite(value) and value >= column.minimum):
        raise InputError(source, where, text, column.expected)
    return value


def _bad() -> int:
    raise ValueError
