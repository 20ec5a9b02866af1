"""The results of a sweep as a Parquet file: one row per run, gaps beside it."""

from __future__ import annotations

import io
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from optgap.api import close
from optgap.extras import require
from optgap.models.errors import InputError, NoQuote
from optgap.models.jsonio import write_bytes
from optgap.models.result import relative_gap

Row = dict[str, Any]

COLUMNS: Mapping[str, str] = {
    "key": "string",
    "family": "string",
    "instance": "string",
    "instance_params": "string",
    "instance_seed": "int64",
    "problem": "string",
    "method": "string",
    "kind": "string",
    "params": "string",
    "seed": "int64",
    "time_limit": "float64",
    "status": "string",
    "termination": "string",
    "objective": "float64",
    "unit": "string",
    "sense": "string",
    "serves_all": "bool",
    "bound": "float64",
    "bound_by": "string",
    "bound_scope": "string",
    "best_bound": "float64",
    "best_known": "float64",
    "gap_to_bound": "float64",
    "gap_to_best": "float64",
    "metrics": "string",
    "solution": "string",
    "message": "string",
    "error": "string",
    "failure": "string",
    "info": "string",
    "optgap": "string",
    "code": "string",
    "seconds": "float64",
    "started": "string",
    "worker": "string",
}
"""Every column and its type. ``instance_params``, ``params``, ``metrics`` and ``info`` are JSON."""

WALL = ("seconds", "started", "worker", "info")
"""Columns that say when, where and how it went: all others are the same for every engine."""

DERIVED = ("best_bound", "best_known", "gap_to_bound", "gap_to_best")
SCHEMA = b"optgap.sweep-table/1"


def write_rows(rows: Iterable[Row], path: str | os.PathLike[str]) -> None:
    """Write rows in one step; what stands there is replaced, or stays.

    Raises
    ------
    InputError: when the place cannot be written to.
    """
    pa, pq = require("pyarrow", "sweep"), require("pyarrow.parquet", "sweep")
    schema = pa.schema([(name, _type(pa, kind)) for name, kind in COLUMNS.items()])
    schema = schema.with_metadata({"schema": SCHEMA})
    lines = [{name: row.get(name) for name in COLUMNS} for row in rows]
    buffer = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(lines, schema=schema), buffer)
    write_bytes(path, buffer.getvalue())


def read_rows(path: str | os.PathLike[str], columns: Sequence[str] | None = None) -> list[Row]:
    """Read the rows of a file that `write_rows` wrote, all columns or these.

    Raises
    ------
    InputError: for what is no such file.
    """
    pa, pq = require("pyarrow", "sweep"), require("pyarrow.parquet", "sweep")
    try:
        table = pq.read_table(Path(path), columns=list(columns) if columns else None)
    except OSError as error:
        reason = error.strerror if isinstance(error, FileNotFoundError) else None
        found = NoQuote(reason or "no Parquet file")
        raise InputError(str(path), "", found, "the results of a sweep") from None
    except (pa.ArrowException, ValueError):
        found = NoQuote("no Parquet file")
        raise InputError(str(path), "", found, "the results of a sweep") from None
    if (table.schema.metadata or {}).get(b"schema") != SCHEMA:
        raise InputError(str(path), "", NoQuote("another table"), "the results of a sweep")
    rows: list[Row] = table.to_pylist()
    return rows


def _type(pa: Any, kind: str) -> Any:
    return {"string": pa.string(), "int64": pa.int64(), "bool": pa.bool_()}.get(kind, pa.float64())


# -- what only the rows together can say --------------------------------------------------


def with_gaps(rows: Sequence[Row]) -> tuple[list[Row], list[str]]:
    """The rows with `DERIVED` filled in, and every contradiction between them.

    Results on the same problem that serve all that is asked are held against its best bound
    and its best known solution; one that turned something down is held against the bound in
    its own row.
    """
    groups: dict[str, list[Row]] = {}
    for row in rows:
        if row.get("problem"):
            groups.setdefault(row["problem"], []).append(row)
    best = {problem: _best(group) for problem, group in groups.items()}
    filled = [_filled(row, *best.get(str(row.get("problem")), (None, None))) for row in rows]
    return filled, [text for group in groups.values() for text in _contradictions(group)]


def _best(group: Sequence[Row]) -> tuple[float | None, float | None]:
    """The best bound and the best known objective for all that a problem asks."""
    sign = 1 if _sense(group) == "min" else -1
    bounds = [row["bound"] for row in group if row.get("bound_scope") == "all"]
    known = [row["objective"] for row in group if _serves(row)]
    return (
        max(bounds, key=lambda value: sign * value, default=None),
        min(known, key=lambda value: sign * value, default=None),
    )


def _sense(group: Sequence[Row]) -> str:
    return next((str(row["sense"]) for row in group if row.get("sense")), "min")


def _serves(row: Row) -> bool:
    return bool(row.get("serves_all")) and row.get("objective") is not None


def _filled(row: Row, bound: float | None, known: float | None) -> Row:
    objective = row.get("objective")
    gap_to_bound = gap_to_best = None
    if _serves(row):
        gap_to_bound = relative_gap(objective, bound)
        gap_to_best = relative_gap(objective, known)
    elif row.get("bound_scope") == "accepted":
        gap_to_bound = relative_gap(objective, row.get("bound"))
    values = (bound, known, gap_to_bound, gap_to_best)
    return {**row, **dict(zip(DERIVED, values, strict=True))}


def _contradictions(group: Sequence[Row]) -> list[str]:
    bound, known = _best(group)
    if bound is None or known is None or close(bound, known):
        return []
    ahead = bound - known if _sense(group) == "min" else known - bound
    if ahead <= 0:
        return []
    return [f"{group[0]['instance']}: a bound of {bound!r} and a solution of {known!r}"]
