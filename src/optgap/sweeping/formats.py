"""The table of a sweep as a file: Parquet, CSV or JSON, as its name ends."""

from __future__ import annotations

import csv
import io
import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from optgap.extras import require
from optgap.models.errors import InputError, NoQuote
from optgap.models.jsonio import load_json, write_bytes
from optgap.models.reading import read_text, require_regular
from optgap.sweeping.table import COLUMNS, Row

SCHEMA = "optgap.sweep-table/1"
ENDINGS = (".parquet", ".csv", ".json")
TRUE, FALSE = "true", "false"
EXPECTED = "the results of a sweep"


def require_format(path: str | os.PathLike[str]) -> None:
    """Refuse a table that cannot be written, before any work goes into it.

    Raises
    ------
    InputError: for another ending than `ENDINGS`, and for Parquet without the package for it.
    """
    if _ending(path) == ".parquet":
        require("pyarrow", "sweep")


def write_rows(rows: Iterable[Row], path: str | os.PathLike[str]) -> None:
    """Write rows in one step; what stands there is replaced, or stays.

    Raises
    ------
    InputError: for another ending than `ENDINGS`, or a place that cannot be written to.
    """
    lines = [{name: row.get(name) for name in COLUMNS} for row in rows]
    write_bytes(path, _WRITERS[_ending(path)](lines))


def read_rows(path: str | os.PathLike[str], columns: Sequence[str] | None = None) -> list[Row]:
    """Read the rows of a file that `write_rows` wrote, all columns or these.

    Raises
    ------
    InputError: for what is no such file.
    """
    require_regular(path)
    rows = _READERS[_ending(path)](path)
    return rows if columns is None else [{name: row[name] for name in columns} for row in rows]


def _ending(path: str | os.PathLike[str]) -> str:
    ending = Path(path).suffix.lower()
    if ending not in ENDINGS:
        expected = "a file that ends in " + ", ".join(ENDINGS[:-1]) + f" or {ENDINGS[-1]}"
        raise InputError(str(path), "", NoQuote(ending or "no ending"), expected)
    return ending


# -- Parquet ------------------------------------------------------------------------------


def _to_parquet(rows: list[Row]) -> bytes:
    pa, pq = require("pyarrow", "sweep"), require("pyarrow.parquet", "sweep")
    kinds = {"string": pa.string(), "int64": pa.int64(), "bool": pa.bool_()}
    fields = [(name, kinds.get(kind, pa.float64())) for name, kind in COLUMNS.items()]
    schema = pa.schema(fields).with_metadata({"schema": SCHEMA.encode()})
    buffer = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(rows, schema=schema), buffer)
    return buffer.getvalue()


def _from_parquet(path: str | os.PathLike[str]) -> list[Row]:
    pa, pq = require("pyarrow", "sweep"), require("pyarrow.parquet", "sweep")
    try:
        table = pq.read_table(Path(path))
    except (OSError, ValueError, pa.ArrowException):
        raise InputError(str(path), "", NoQuote("no Parquet file"), EXPECTED) from None
    if (table.schema.metadata or {}).get(b"schema") != SCHEMA.encode():
        raise InputError(str(path), "", NoQuote("another table"), EXPECTED)
    rows: list[Row] = table.to_pylist()
    return rows


# -- CSV ----------------------------------------------------------------------------------


def _to_csv(rows: list[Row]) -> bytes:
    buffer = io.StringIO()
    writer = csv.writer(buffer)
    writer.writerow(COLUMNS)
    for row in rows:
        writer.writerow([_text(value) for value in row.values()])
    return buffer.getvalue().encode()


def _text(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return TRUE if value else FALSE
    return repr(value) if isinstance(value, float) else str(value)


def _from_csv(path: str | os.PathLike[str]) -> list[Row]:
    reader = csv.reader(io.StringIO(read_text(path), newline=""), strict=True)
    try:
        if next(reader, None) != list(COLUMNS):
            raise InputError(str(path), "row 1", NoQuote("another table"), EXPECTED)
        return [_typed(cells, str(path), reader.line_num) for cells in reader]
    except csv.Error as error:
        where = f"row {reader.line_num}"
        raise InputError(str(path), where, NoQuote(error), "comma-separated cells") from None


def _typed(cells: list[str], source: str, line: int) -> Row:
    if len(cells) != len(COLUMNS):
        found, expected = NoQuote(f"{len(cells)} cells"), f"{len(COLUMNS)} as in the header"
        raise InputError(source, f"row {line}", found, expected)
    row: Row = {}
    for (name, kind), cell in zip(COLUMNS.items(), cells, strict=True):
        try:
            row[name] = value_of(cell, kind)
        except ValueError:
            where = f"row {line}, column {name}"
            raise InputError(source, where, cell, f"nothing, or {kind}") from None
    return row


def value_of(cell: str, kind: str) -> Any:
    """What a cell of a column of this kind holds, None for nothing; raises ValueError."""
    if kind == "string":
        return cell
    if not cell:
        return None
    if kind == "bool":
        if cell not in (TRUE, FALSE):
            raise ValueError
        return cell == TRUE
    return int(cell) if kind == "int64" else float(cell)


# -- JSON ---------------------------------------------------------------------------------


def _to_json(rows: list[Row]) -> bytes:
    document = {"schema": SCHEMA, "rows": rows}
    return (json.dumps(document, indent=1, allow_nan=False) + "\n").encode()


def _from_json(path: str | os.PathLike[str]) -> list[Row]:
    document = load_json(path)
    rows = document.get("rows")
    known = isinstance(rows, list) and all(
        isinstance(row, dict) and set(row) == set(COLUMNS) for row in rows
    )
    if document.get("schema") != SCHEMA or not known or rows is None:
        raise InputError(str(path), "", NoQuote("another document"), EXPECTED)
    return [dict(row) for row in rows]


_WRITERS: Mapping[str, Callable[[list[Row]], bytes]] = {
    ".parquet": _to_parquet,
    ".csv": _to_csv,
    ".json": _to_json,
}
_READERS: Mapping[str, Callable[[str | os.PathLike[str]], list[Row]]] = {
    ".parquet": _from_parquet,
    ".csv": _from_csv,
    ".json": _from_json,
}
