"""The results of a sweep: one row per run, gaps beside it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from optgap.api import close
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
