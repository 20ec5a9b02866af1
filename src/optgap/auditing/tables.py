"""Reader of logs of placements and queues in CSV, as `optgap run` or others write them."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from optgap.documents import load_solution
from optgap.models.columns import mapped, rewritten
from optgap.models.errors import InputError, NoQuote, one_of
from optgap.models.placement.solution import PlacementSolution
from optgap.models.queueing.solution import QueueingSolution
from optgap.models.reading import Held, Path, read_text
from optgap.models.tables import Column, read_header, read_table

Table = Mapping[str, list[Any]]
UNTOLD = "on GPUs that the log does not tell"


@dataclass(frozen=True)
class LoggedRows:
    """Logged solution, the number of rows in the log, and of those left out by reason."""

    solution: Any
    records: int
    reasons: Mapping[str, int]

    @property
    def told(self) -> str:
        """Reasons why rows are left out, in words."""
        return ", ".join(f"{count:,} {why}" for why, count in self.reasons.items())


def read_log(path: Path, problem: Any, columns: Mapping[str, str] | None = None) -> LoggedRows:
    """Read a logged solution of a problem: JSON, or a table in CSV of a placement or a queue.

    Parameters
    ----------
    columns: our names for the table's own columns, as ``{"begin": "start_s:min"}``.

    Rows about tasks, jobs or nodes that the problem does not have are left out and counted.

    Raises
    ------
    InputError: for a table without the columns it must have, or cells that are no numbers.
    """
    is_table = str(path).removesuffix(".gz").endswith(".csv")
    if not is_table or problem.family == "coscheduling":  # whose solutions are tables, too
        return LoggedRows(load_solution(path, problem), len(problem.subjects), {})
    if problem.family not in COLUMNS:
        found = NoQuote("a table")
        raise InputError(str(path), "", found, "JSON, as `optgap run … -o FILE` writes it")
    columns_of = COLUMNS[problem.family]
    named: Path = _named(path, columns, [c.name for c in columns_of]) if columns else path
    if problem.family == "placement":  # of seq and task, one is enough
        key = "seq" if "seq" in read_header(named) else "task"
        columns_of = [c for c in columns_of if c.name not in ("seq", "task") or c.name == key]
    table = read_table(named, columns_of)
    reasons: Counter[str] = Counter()
    reader = _placement if problem.family == "placement" else _queueing
    solution = reader(table, problem, str(path), reasons)
    return LoggedRows(solution, len(table["#"]), reasons)


def _named(path: Path, columns: Mapping[str, str], ours: Sequence[str]) -> Held:
    """Return the table with its columns under our names and in our units."""
    wanted, header = mapped(columns, list(ours)), read_header(path)
    for name in wanted:
        if name not in header:
            raise InputError("--column", "", name, one_of(header))
    return Held(str(path), rewritten(read_text(path), wanted))


def _rows(table: Table) -> Iterator[tuple[Any, ...]]:
    """Yield the rows with their cells in the order of the columns, and the row's number last."""
    return zip(*table.values(), strict=True)


def _numbered(names: tuple[str, ...]) -> dict[str, list[int]]:
    """Return the positions of each name; a name may stand for several arrivals, in their order."""
    found: dict[str, list[int]] = defaultdict(list)
    for k, name in enumerate(names):
        found[name].append(k)
    return found


def _whole(text: str, name: str, row: int, source: str) -> list[int]:
    """Read indices such as ``0-2-3``; an empty text has none."""
    parts = text.split("-") if text else []
    if not all(part.strip().isdigit() for part in parts):
        where = f"row {row}, column {name}"
        raise InputError(source, where, text, "indices joined with -, such as 0-2")
    return [int(part) for part in parts]


def _placement(table: Table, problem: Any, source: str, reasons: Counter[str]) -> PlacementSolution:
    """Read a placement by arrival (``seq``) or by task; a row without a node is not placed."""
    by_seq = "seq" in table
    places = _numbered(problem.tasks.names)
    node = np.full(len(problem.tasks), -1, dtype=np.int64)
    mask = np.zeros(len(problem.tasks), dtype=np.int64)
    told: dict[int, tuple[int, ...]] = {}
    for value, where, gpus, row in _rows(table):
        known = [value] if by_seq and value < len(node) else [] if by_seq else places[value][:1]
        if not known:
            reasons["a task that the problem does not have"] += 1
        elif not where:
            reasons["not placed"] += 1
        elif where not in problem.cluster.index:
            reasons["on a node that the problem does not have"] += 1
        elif node[known[0]] >= 0:
            reasons["stands twice"] += 1
        else:
            k = known[0]
            if not by_seq and len(places[value]) > 1:
                places[value].pop(0)
            node[k] = problem.cluster.index[where]
            indices = _whole(gpus, "gpu_index", row, source)
            if any(g > 61 for g in indices):
                raise InputError(source, f"row {row}, column gpu_index", gpus, "GPUs of the node")
            if gpus:
                told[k] = tuple(indices)
    _seat(problem, node, mask, told, reasons)
    return PlacementSolution.of_arrays(node, mask)


def _seat(
    problem: Any, node: Any, mask: Any, told: Mapping[int, tuple[int, ...]], reasons: Counter[str]
) -> None:
    """Choose GPUs: those in the log, else the fullest with room, the largest requests first."""
    num, milli = problem.tasks.num_gpu, problem.tasks.gpu_milli
    room: dict[int, list[int]] = {}
    placed = np.flatnonzero((node >= 0) & (num > 0)).tolist()
    for k in sorted(placed, key=lambda k: (k not in told, -num[k], -milli[k])):
        free = room.setdefault(int(node[k]), [1000] * int(problem.cluster.gpus[node[k]]))
        able = [g for g, left in enumerate(free) if left >= milli[k]]
        cards = told.get(k) or sorted(able, key=free.__getitem__)[: num[k]]
        if k not in told and len(cards) < num[k]:
            reasons[UNTOLD] += 1
            node[k] = -1
            continue
        for g in cards:
            mask[k] |= 1 << g
            if g < len(free):
                free[g] -= int(milli[k])


def _queueing(table: Table, problem: Any, source: str, reasons: Counter[str]) -> QueueingSolution:
    """Read a queue's schedule, with nodes as ``0:8-1:4``; without these choose them by best fit."""
    jobs = problem.jobs
    start, end = np.full(len(jobs), math.nan), np.full(len(jobs), math.nan)
    held: list[list[tuple[int, int]]] = [[] for _ in range(len(jobs))]
    for name, begin, stop, nodes, row in _rows(table):
        k = jobs.index.get(name)
        if k is None or not math.isnan(start[k]):
            why = "stands twice" if k is not None else "a job that the problem does not have"
            reasons[why] += 1
            continue
        start[k] = begin
        end[k] = begin + jobs.duration_s[k] if math.isnan(stop) else stop
        for pair in nodes.split("-") if nodes else ():
            at, _, count = pair.partition(":")
            if not (at.isdigit() and count.isdigit()):
                raise InputError(source, f"row {row}, column nodes", nodes, "0:8-1:4")
            held[k].append((int(at), int(count)))
    if not any(held):
        from optgap.models.queueing.packing import best_fit

        held = best_fit(problem, start, end)
    return QueueingSolution.on_nodes(problem, start, held, end)


COLUMNS: Mapping[str, Sequence[Column]] = {
    "placement": (
        Column("seq", "integer"),
        Column("task"),
        Column("node", empty=""),
        Column("gpu_index", required=False, empty=""),
    ),
    "queueing": (
        Column("job"),
        Column("start_s", "time"),
        Column("end_s", "time", required=False, empty=math.nan),
        Column("nodes", required=False, empty=""),
    ),
}
"""Columns of each family's table; of ``seq`` and ``task`` one is enough."""


def require_some(found: LoggedRows, source: str) -> None:
    """Raise InputError where nothing of the log belongs to the problem."""
    left = sum(found.reasons.values())
    if found.records and left == found.records:
        raise InputError(source, "", NoQuote(found.told), "a log of this problem")


def require_all(found: LoggedRows, source: str) -> None:
    """Raise InputError where anything of the log does not belong to the problem."""
    if found.reasons:
        raise InputError(source, "", NoQuote(found.told), "a log of this problem alone")
