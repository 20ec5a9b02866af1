"""Strict CSV reading: every complaint names the file, the row and the column."""

from __future__ import annotations

import csv
import gzip
import math
import os
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import IO, Any, Literal

from optgap.models.errors import InputError, NoQuote

MAX_LINE = 1 << 20
"""Longest line accepted, in characters: a longer one is not a table of ours."""


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


@contextmanager
def _opened(path: str | os.PathLike[str]) -> Iterator[IO[str]]:
    """The text of a file; what is wrong with its bytes is told as an `InputError`."""
    source = str(path)
    try:
        with open_text(path) as file:
            yield file
    except (EOFError, zlib.error) as error:
        raise InputError(source, "", NoQuote(error), "a whole .gz file") from None
    except OSError as error:
        raise InputError(source, "", NoQuote(error.strerror or error), "a readable file") from None
    except UnicodeDecodeError as error:
        found = error.object[error.start : error.start + 4]
        raise InputError(source, "", found, "UTF-8 text") from None


def read_header(path: str | os.PathLike[str]) -> list[str]:
    """The columns of a CSV file, for those that are told apart by them.

    Raises
    ------
    InputError: as `read_table`.
    """
    source = str(path)
    with _opened(path) as file:
        return _header(csv.reader(_lines(file, source), strict=True), source, ())


def read_table(path: str | os.PathLike[str], columns: Sequence[Column]) -> dict[str, list[Any]]:
    """Read the named columns of a CSV file with a header; other columns are passed over.

    A file whose name ends in ``.gz`` is unpacked on the way.

    Returns
    -------
    One list per column, in file order. Optional columns that the file lacks hold their
    `empty` value in every row. The key ``"#"`` holds the line number of each row.

    Raises
    ------
    InputError: for a missing file, one that is no UTF-8 text, a line above `MAX_LINE`
        characters, a missing or repeated column, a row with too few or too many cells, or a
        cell that is not what its column holds.
    """
    with _opened(path) as file:
        return _read(file, str(path), columns)


def open_text(path: str | os.PathLike[str]) -> IO[str]:
    """A text file, unpacked on the way when its name ends in ``.gz``."""
    if str(path).endswith(".gz"):
        return gzip.open(path, "rt", encoding="utf-8-sig", newline="")
    return open(path, encoding="utf-8-sig", newline="")


def _lines(file: IO[str], source: str) -> Iterator[str]:
    number = 0
    while True:
        line = file.readline(MAX_LINE + 1)
        if not line:
            return
        number += 1
        if len(line) > MAX_LINE:
            raise InputError(
                source,
                f"row {number}",
                NoQuote(f"a line of more than {MAX_LINE} characters"),
                "a shorter one",
            )
        if "\0" in line:
            raise InputError(source, f"row {number}", NoQuote("a NUL byte"), "text")
        yield line


def _read(file: IO[str], source: str, columns: Sequence[Column]) -> dict[str, list[Any]]:
    reader = csv.reader(_lines(file, source), strict=True)
    header = _header(reader, source, columns)
    place = {column.name: header.index(column.name) for column in columns if column.name in header}
    table: dict[str, list[Any]] = {column.name: [] for column in columns}
    table["#"] = []
    while True:
        try:
            row = next(reader)
        except StopIteration:
            return table
        except csv.Error as error:
            raise InputError(
                source, f"row {reader.line_num}", NoQuote(error), "comma-separated cells"
            ) from None
        if not row:
            continue
        if len(row) != len(header):
            raise InputError(
                source,
                f"row {reader.line_num}",
                NoQuote(f"{len(row)} cells"),
                f"{len(header)} as in the header",
            )
        for column in columns:
            cell = row[place[column.name]].strip() if column.name in place else ""
            table[column.name].append(_cell(cell, column, source, reader.line_num))
        table["#"].append(reader.line_num)


def _header(reader: Any, source: str, columns: Sequence[Column]) -> list[str]:
    names = ", ".join(column.name for column in columns if column.required)
    try:
        header = [cell.strip() for cell in next(reader)]
    except StopIteration:
        expected = f"a header with the columns {names}" if names else "a header"
        raise InputError(source, "row 1", NoQuote("nothing"), expected) from None
    except csv.Error as error:
        raise InputError(source, "row 1", NoQuote(error), "comma-separated cells") from None
    for column in columns:
        if header.count(column.name) > 1:
            raise InputError(source, f"row 1, column {column.name}", NoQuote("it twice"), "it once")
        if column.required and column.name not in header:
            shown = NoQuote(", ".join(header) or "nothing")
            raise InputError(source, "row 1", shown, f"a column {column.name} (needed: {names})")
    return header


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
