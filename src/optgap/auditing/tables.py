"""Reader of logs of placements and queues in CSV, as `optgap run` or others write them."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from optgap.documents import load_solution
from optgap.models.columns import mapped, rewritten
from optgap.models.errors import InputError, NoQuote, one_of
from optgap.models.placement.cluster import MAX_GPUS_PER_NODE
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


def read_log(path: Path, problem: Any, columns: Mapping[str, str] | None = None) -> LoggedRows:
    """Read a logged solution of a problem: JSON, or a table in CSV of a placement or a queue.

    Parameters
    ----------
    columns: our names for the table's own columns, as ``{"begin": "start_s:min"}``.

    Rows about tasks, jobs or nodes that the problem does not have are left out and counted.

    Raises
    ------
    InputError: for a table that lacks a necessary column, or cells that are no numbers.
    """
    is_table = str(path).removesuffix(".gz").endswith(".csv")
    if not is_table or problem.family == "coscheduling":  # whose solutions are tables, too
        return LoggedRows(load_solution(path, problem), len(problem.subjects), {})
    if problem.family not in COLUMNS:
        found = NoQuote("a table")
        raise InputError(str(path), "", found, "JSON, as `optgap run … -o FILE` writes it")
    columns_of = COLUMNS[problem.family]
    if columns:
        path = _named(path, columns, [c.name for c in columns_of])
    if problem.family == "placement":  # of seq and task, one is enough
        key = "seq" if "seq" in read_header(path) else "task"
        columns_of = [c for c in columns_of if c.name not in ("seq", "task") or c.name == key]
    table = read_table(path, columns_of)
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


def _placement(table: Table, problem: Any, source: str, reasons: Counter[str]) -> PlacementSolution:
    """Read a placement by arrival (``seq``) or by task; a row without a node is not placed."""
    tasks, cluster = problem.tasks, problem.cluster
    places: dict[Any, list[int]] = defaultdict(list)  # of several arrivals of a name, in order
    for k, name in enumerate(range(len(tasks)) if "seq" in table else tasks.names):
        places[name].append(k)
    node = np.full(len(tasks), -1, dtype=np.int64)
    mask = np.zeros(len(tasks), dtype=np.int64)
    untold: list[int] = []
    for name, where, text, row in zip(*table.values(), strict=True):
        parts = [part.strip() for part in text.split("-")] if text else []
        if not all(part.isdecimal() and int(part) < MAX_GPUS_PER_NODE for part in parts):
            place = f"row {row}, column gpu_index"
            raise InputError(source, place, text, "indices of GPUs joined with -, such as 0-2")
        if name not in places:
            reasons["a task that the problem does not have"] += 1
        elif not where:
            reasons["not placed"] += 1
        elif where not in cluster.index:
            reasons["on a node that the problem does not have"] += 1
        elif node[places[name][0]] >= 0:
            reasons["stands twice"] += 1
        else:
            k = places[name].pop(0) if len(places[name]) > 1 else places[name][0]
            node[k], mask[k] = cluster.index[where], sum(1 << int(part) for part in {*parts})
            untold += [k] if tasks.num_gpu[k] and not parts else []
    for k in untold:  # whole cards of a node are alike: the lowest that no other row holds
        held = int(np.bitwise_or.reduce(mask[node == node[k]]))
        free = [g for g in range(cluster.gpus[node[k]]) if not held >> g & 1][: tasks.num_gpu[k]]
        if len(free) == tasks.num_gpu[k] and tasks.gpu_milli[k] == 1000:
            mask[k] = sum(1 << g for g in free)
        else:
            node[k] = -1
            reasons[UNTOLD] += 1
    return PlacementSolution.of_arrays(node, mask)


def _queueing(table: Table, problem: Any, source: str, reasons: Counter[str]) -> QueueingSolution:
    """Read a queue's schedule, with nodes as ``0:8-1:4``; without these choose them by best fit."""
    jobs = problem.jobs
    start, end = np.full(len(jobs), math.nan), np.full(len(jobs), math.nan)
    held: list[list[tuple[int, int]]] = [[] for _ in range(len(jobs))]
    for name, begin, stop, nodes, row in zip(*table.values(), strict=True):
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


def require(found: LoggedRows, source: str, every: bool = False) -> None:
    """Raise InputError if no row of the log belongs to the problem, or not `every` row does."""
    left = sum(found.reasons.values())
    if left and (every or left == found.records):
        told = ", ".join(f"{count:,} {why}" for why, count in found.reasons.items())
        expected = "a log of this problem alone" if every else "a log of this problem"
        raise InputError(source, "", NoQuote(told), expected)
