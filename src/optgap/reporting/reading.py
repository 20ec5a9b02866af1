"""What a report is made of: files by their schema, tables of runs, or objects of the API."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from optgap.contract import Problem
from optgap.documents import load_problem
from optgap.extras import require
from optgap.models.errors import InputError, NoQuote
from optgap.models.jsonio import finite, load_any
from optgap.models.reading import require_regular
from optgap.models.tables import Column, read_header, read_table
from optgap.registry import FAMILIES
from optgap.sweeping.formats import SCHEMA as SWEEP
from optgap.sweeping.formats import value_of
from optgap.sweeping.table import COLUMNS

MOST_ROWS = 200_000
"""Rows of one table; a page with more would be of no use to anybody."""

ROWS = "rows"
"""The schema of a table without one."""


@dataclass(frozen=True)
class Item:
    """One input.

    Parameters
    ----------
    source: the file's name, or what stands for it.
    schema: what it says it is; `ROWS` for a table of runs.
    document: its JSON form.
    problem: the problem that a result belongs to, where it came along.
    """

    source: str
    schema: str
    document: Mapping[str, Any] = field(default_factory=dict)
    problem: Problem | None = None


@dataclass(frozen=True)
class Given:
    """What sections are made with, beside the fields of a document.

    Parameters
    ----------
    item: the input that the document is, or a part of.
    problems: to draw solutions with.
    prefix: a name for what is drawn, different for every input.
    """

    item: Item
    problems: Sequence[Problem]
    prefix: str


@dataclass(frozen=True)
class Inputs:
    """Everything that a page is about; problems are there to draw results."""

    items: tuple[Item, ...]
    problems: tuple[Problem, ...]


def read(inputs: Iterable[Any]) -> Inputs:
    """Read files and objects, problems apart.

    Raises
    ------
    InputError: for a file that cannot be read or is nothing of ours, and for no files at all.
    """
    items: list[Item] = []
    problems: list[Problem] = []
    for given in inputs:
        found = _file(given) if isinstance(given, (str, os.PathLike)) else _object(given)
        if isinstance(found, Item):
            items.append(found)
        else:
            problems.append(found)
    if not items:
        found_text = NoQuote("problems only" if problems else "nothing")
        raise InputError("report", "", found_text, "a file with results")
    return Inputs(tuple(items), tuple(problems))


def _object(given: Any) -> Item | Problem:
    if not hasattr(given, "to_json"):
        raise InputError("report", "", given, "a file, or a result, comparison, fit, …")
    if hasattr(given, "serves_all"):
        problem: Problem = given
        return problem
    document = finite(given.to_json())
    source = str(getattr(given, "method", "") or getattr(given, "problem_name", "") or "")
    return Item(source, str(document.get("schema", "")), document, getattr(given, "problem", None))


def _file(path: str | os.PathLike[str]) -> Item | Problem:
    name = Path(path).name
    if name.endswith((".parquet", ".pq")):
        return Item(name, ROWS, {"rows": _parquet(path)})
    if name.endswith((".csv", ".csv.gz")):
        return Item(name, ROWS, {"rows": _csv(path)})
    document = _json(path)
    schema = document.get("schema")
    if schema in (None, SWEEP) and isinstance(document.get("rows"), list):
        return _rows(name, str(path), document)
    if not isinstance(schema, str) or not schema.startswith("optgap."):
        found = NoQuote("no schema") if schema is None else schema
        raise InputError(str(path), "field schema", found, "results of optgap, or rows")
    if any(schema.startswith(f"optgap.{family}.problem/") for family in FAMILIES):
        return load_problem(path)
    return Item(name, schema, document)


def _json(path: str | os.PathLike[str]) -> dict[str, Any]:
    """A JSON object; a list of rows stands for one with ``rows``."""
    document = load_any(path, lenient=True)
    if isinstance(document, list):
        return {"rows": document}
    if not isinstance(document, dict):
        raise InputError(str(path), "", document, "a JSON object, or a list of rows")
    return document


def _rows(name: str, source: str, document: Mapping[str, Any]) -> Item:
    rows = document["rows"]
    for k, row in enumerate(rows):
        if not isinstance(row, Mapping):
            raise InputError(source, f"field rows[{k}]", row, "an object")
    return Item(name, ROWS, {"rows": _counted(rows, source)})


def _parquet(path: str | os.PathLike[str]) -> list[dict[str, Any]]:
    pa, pq = require("pyarrow", "sweep"), require("pyarrow.parquet", "sweep")
    require_regular(path)
    try:
        _counted(range(pq.read_metadata(Path(path)).num_rows), str(path))
        table = pq.read_table(Path(path))
    except InputError:
        raise
    except (OSError, ValueError, pa.ArrowException):
        raise InputError(
            str(path), "", NoQuote("no Parquet file"), "rows in a Parquet file"
        ) from None
    rows: list[dict[str, Any]] = finite(_plain(table.to_pylist()))
    return rows


def _csv(path: str | os.PathLike[str]) -> list[dict[str, Any]]:
    """Rows of a CSV file: of a sweep by its columns, of anybody else with numbers as numbers."""
    header = read_header(path)
    table = read_table(path, [Column(name, empty="") for name in header])
    kinds = COLUMNS if set(COLUMNS) <= set(header) else {}
    columns = {name: [_value(cell, kinds.get(name)) for cell in table[name]] for name in header}
    _counted(table["#"], str(path))
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def _value(cell: str, kind: str | None) -> Any:
    for wanted in (kind,) if kind else ("int64", "float64"):
        try:
            value = value_of(cell, wanted)
        except ValueError:
            continue
        return None if isinstance(value, float) and not math.isfinite(value) else value
    return cell


def _plain(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Dates, bytes and the like as text."""
    kept = (str, int, float, bool, list, dict, type(None))
    return [
        {key: value if isinstance(value, kept) else str(value) for key, value in row.items()}
        for row in rows
    ]


def _counted(rows: Any, source: str) -> Any:
    if not 0 < len(rows) <= MOST_ROWS:
        found = NoQuote(f"{len(rows) or 'no'} rows")
        raise InputError(source, "", found, f"1 to {MOST_ROWS} rows")
    return rows
