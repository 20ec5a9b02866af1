"""Logs in CSV: the tables that `optgap run` writes, and what others write in their place."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from optgap.documents import load_solution
from optgap.models.columns import mapped, rewritten
from optgap.models.errors import InputError, NoQuote, one_of
from optgap.models.jsonio import Fields
from optgap.models.placement.solution import PlacementSolution
from optgap.models.queueing.solution import QueueingSolution
from optgap.models.reading import Held, Path, read_text
from optgap.models.tables import Column, read_header, read_table
from optgap.registry import family

Table = Mapping[str, list[Any]]
Document = dict[str, Any]
Reader = Callable[[Table, Any, str, Counter[str]], Any]
"""``f(table, problem, source, reasons)``; it counts the rows that it leaves out, by why."""


UNTOLD = "on GPUs that the log does not tell"


@dataclass(frozen=True)
class LoggedRows:
    """A logged solution, how many rows the log has, and which were left out, by why."""

    solution: Any
    records: int
    reasons: Mapping[str, int]

    @property
    def told(self) -> str:
        """The rows that are left out, in words."""
        return ", ".join(f"{count:,} {why}" for why, count in self.reasons.items())


def read_log(path: Path, problem: Any, columns: Mapping[str, str] | None = None) -> LoggedRows:
    """A logged solution of a problem: JSON, or the family's table in CSV.

    Parameters
    ----------
    columns: what the table calls our columns, as ``{"begin": "start_s:min"}``.

    Rows about tasks, jobs or nodes that the problem does not have are left out and counted.

    Raises
    ------
    InputError: for a table without the columns it must have, or cells that are no numbers.
    """
    name = str(path).removesuffix(".gz")
    if not name.endswith(".csv"):
        return LoggedRows(load_solution(path, problem), len(problem.subjects), {})
    reader = READERS[problem.family]
    if problem.family == "coscheduling" and "job" not in read_header(path):
        return LoggedRows(load_solution(path, problem), len(problem.subjects), {})
    ours = COLUMNS[problem.family]
    named: Path = _named(path, columns, [column.name for column in ours]) if columns else path
    if problem.family == "placement":  # of seq and task, one is enough
        key = "seq" if "seq" in read_header(named) else "task"
        ours = [c for c in ours if c.name not in ("seq", "task") or c.name == key]
    table = read_table(named, ours)
    reasons: Counter[str] = Counter()
    solution = reader(table, problem, str(path), reasons)
    if isinstance(solution, Mapping):
        kind = family(problem.family).models.solution
        solution = kind.from_json(Fields(solution, str(path)), problem)
    return LoggedRows(solution, len(table["#"]), reasons)


def _named(path: Path, columns: Mapping[str, str], ours: Sequence[str]) -> Held:
    """The table with its columns under our names and in our units."""
    wanted, header = mapped(columns, list(ours)), read_header(path)
    for name in wanted:
        if name not in header:
            raise InputError("--column", "", name, one_of(header))
    return Held(str(path), rewritten(read_text(path), wanted))


def _rows(table: Table) -> Iterator[tuple[Any, ...]]:
    """Rows with their cells in the order of the columns, the row's number last."""
    return zip(*table.values(), strict=True)


def _numbered(names: tuple[str, ...]) -> dict[str, list[int]]:
    """Places by name; a name may stand for several arrivals, in their order."""
    found: dict[str, list[int]] = defaultdict(list)
    for k, name in enumerate(names):
        found[name].append(k)
    return found


def _whole(text: str, name: str, row: int, source: str) -> list[int]:
    """``0-2-3``, or nothing."""
    parts = text.split("-") if text else []
    if not all(part.strip().isdigit() for part in parts):
        where = f"row {row}, column {name}"
        raise InputError(source, where, text, "indices joined with -, such as 0-2")
    return [int(part) for part in parts]


def _placement(table: Table, problem: Any, source: str, reasons: Counter[str]) -> PlacementSolution:
    """By arrival (``seq``) or by task; no node: not placed."""
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
    """GPUs as the log says; else the fullest that have room, for the largest requests first."""
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
    """Nodes as ``0:8-1:4``, by best fit without."""
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


def _coscheduling(table: Table, problem: Any, source: str, reasons: Counter[str]) -> Document:
    """GPUs joined with ``-``."""
    entries = []
    for job, start, end, gpus, row in _rows(table):
        if job >= len(problem):
            reasons["a job that the problem does not have"] += 1
            continue
        indices = _whole(gpus, "gpu_index", row, source)
        entries.append({"job": job, "start_s": start, "end_s": end, "gpu_index": indices})
    return {"schema": "optgap.coscheduling.solution/1", "schedule": entries}


def _consolidation(table: Table, problem: Any, source: str, reasons: Counter[str]) -> Document:
    """Servers and GPUs joined with ``-``; every GPU at its highest clock."""
    known = {task.name for task in problem.tasks}
    entries, used = [], set()
    for task, servers, gpus, start, row in _rows(table):
        if task not in known:
            reasons["a task that the problem does not have"] += 1
            continue
        indices = _whole(gpus, "gpu_index", row, source)
        at = _whole(servers, "server", row, source)
        at = at * len(indices) if len(at) == 1 else at
        if len(at) != len(indices):
            where = f"row {row}, column server"
            raise InputError(source, where, servers, "one server, or one for each GPU")
        pairs = [list(pair) for pair in zip(at, indices, strict=True)]
        used |= {tuple(pair) for pair in pairs}
        entries.append({"task": task, "gpus": pairs, "start_s": start})
    return {
        "schema": "optgap.consolidation.solution/1",
        "assignments": entries,
        "frequencies_mhz": _highest(problem, used),
    }


def _highest(problem: Any, used: set[tuple[int, ...]]) -> list[Any]:
    """Every GPU in use at its highest clock: the table says none."""
    rows = [
        [
            float(problem.kinds[kind].f_max_mhz) if (i, j) in used else 0.0
            for j, kind in enumerate(server.gpus)
        ]
        for i, server in enumerate(problem.servers)
    ]
    if problem.objective.goal != "energy":
        return rows
    return [
        {"time_s": 0.0, "gpu": [i, j], "mhz": mhz}
        for i, row in enumerate(rows)
        for j, mhz in enumerate(row)
        if mhz
    ]


def _elastic(table: Table, problem: Any, source: str, reasons: Counter[str]) -> Document:
    """A job's events end where its next begins."""
    number = {name: k for k, name in enumerate(problem.jobs.names)}
    events: dict[int, list[tuple[float, str, int, float]]] = defaultdict(list)
    for time, job, event, gpus, clock, _ in _rows(table):
        if job not in number:
            reasons["a job that the problem does not have"] += 1
        else:
            events[number[job]].append((time, event, gpus, clock))
    fields: dict[str, list[Any]] = {
        name: [] for name in ("job", "start_s", "end_s", "kind", "gpus", "frequency_mhz", "place")
    }
    for job, found in events.items():
        found.sort(key=lambda e: e[0])
        for (time, event, gpus, clock), (end, *_) in pairwise(found):
            if event in ("prerun", "restart", "profile", "run") and end > time:
                values = (job, time, end, event, gpus, clock, -1)
                for name, value in zip(fields, values, strict=True):
                    fields[name].append(value)
    head = {"schema": "optgap.elastic.solution/1", "switch_off": False, "places": []}
    return {**head, "segments": fields}


READERS: Mapping[str, Reader] = {
    "placement": _placement,
    "queueing": _queueing,
    "coscheduling": _coscheduling,
    "consolidation": _consolidation,
    "elastic": _elastic,
}
"""What makes a solution, or its JSON form, of each family's table."""
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
    "coscheduling": (
        Column("job", "integer"),
        *(Column(name, "number") for name in ("start_s", "end_s")),
        Column("gpu_index"),
    ),
    "consolidation": (
        *map(Column, ("task", "server", "gpu_index")),
        Column("start_s", "number", required=False, empty=0.0),
    ),
    "elastic": (
        Column("time_s", "number"),
        *map(Column, ("job", "event")),
        Column("gpus", "integer"),
        Column("frequency_mhz", "number"),
    ),
}
"""The columns of each family's table; of ``seq`` and ``task`` one is enough."""


def require_some(found: LoggedRows, source: str) -> None:
    """Raise InputError where nothing of the log belongs to the problem."""
    left = sum(found.reasons.values())
    if found.records and left == found.records:
        raise InputError(source, "", NoQuote(found.told), "a log of this problem")


def require_all(found: LoggedRows, source: str) -> None:
    """Raise InputError where anything of the log does not belong to the problem."""
    if found.reasons:
        raise InputError(source, "", NoQuote(found.told), "a log of this problem alone")
