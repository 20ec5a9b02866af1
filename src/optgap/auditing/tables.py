"""Logs in CSV: the tables that `optgap run` writes, and what others write in their place."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from optgap.documents import load_solution
from optgap.models.columns import mapped, rewritten
from optgap.models.errors import InputError, NoQuote, one_of
from optgap.models.jsonio import Fields
from optgap.models.placement.kubernetes.demands import Share
from optgap.models.placement.kubernetes.seats import seats
from optgap.models.placement.solution import PlacementSolution
from optgap.models.queueing.solution import QueueingSolution
from optgap.models.reading import Held, Path, read_text
from optgap.models.tables import Column, read_header, read_table
from optgap.registry import family


@dataclass(frozen=True)
class LoggedRows:
    """A logged solution, how many rows the log has, and which were left out, by why."""

    solution: Any
    records: int
    reasons: Mapping[str, int]


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
        solution = load_solution(path, problem)
        return LoggedRows(solution, len(problem.subjects), {})
    reader = READERS.get(problem.family)
    if reader is None or (problem.family == "coscheduling" and "job" not in read_header(path)):
        return LoggedRows(load_solution(path, problem), len(problem.subjects), {})
    table = _named(path, columns, COLUMNS[problem.family]) if columns else path
    found: LoggedRows = reader(table, problem)
    return found


def _named(path: Path, columns: Mapping[str, str], ours: Sequence[str]) -> Held:
    """The table with its columns under our names and in our units."""
    wanted, header = mapped(columns, list(ours)), read_header(path)
    for name in wanted:
        if name not in header:
            raise InputError("--column", "", name, one_of(header))
    return Held(str(path), rewritten(read_text(path), wanted))


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


def _placement(path: Path, problem: Any) -> LoggedRows:
    """``seq,node[,gpu_index]`` or ``task,node[,gpu_index]``; no node: not placed."""
    source, header = str(path), read_header(path)
    by_seq = "seq" in header
    key = Column("seq", "integer") if by_seq else Column("task")
    columns = (key, Column("node", empty=""), Column("gpu_index", required=False, empty=""))
    table = read_table(path, columns)
    places = _numbered(problem.tasks.names)
    reasons: Counter[str] = Counter()
    node = np.full(len(problem.tasks), -1, dtype=np.int64)
    mask = np.zeros(len(problem.tasks), dtype=np.int64)
    told: dict[int, tuple[int, ...]] = {}
    for value, where, gpus, row in zip(
        table[key.name], table["node"], table["gpu_index"], table["#"], strict=True
    ):
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
    _seat(problem, node, mask, told)
    return LoggedRows(PlacementSolution.of_arrays(node, mask), len(table["#"]), reasons)


def _seat(problem: Any, node: Any, mask: Any, told: Mapping[int, tuple[int, ...]]) -> None:
    """GPUs where the log says them, else where the fewest are in use."""
    tasks = problem.tasks
    members: dict[int, list[int]] = defaultdict(list)
    for k in np.flatnonzero((node >= 0) & (tasks.num_gpu > 0)).tolist():
        if k in told:
            mask[k] = sum(1 << g for g in set(told[k]))
        members[int(node[k])].append(k)
    for n, here in members.items():
        if all(k in told for k in here):
            continue
        shares = [Share(int(tasks.num_gpu[k]), int(tasks.gpu_milli[k]), told.get(k)) for k in here]
        found, _ = seats(shares, int(problem.cluster.gpus[n]), trust=True)
        for k, bits in zip(here, found, strict=True):
            mask[k] = mask[k] or bits


def _queueing(path: Path, problem: Any) -> LoggedRows:
    """``job,start_s[,end_s][,nodes]``; nodes as ``0:8-1:4``, by best fit without."""
    source = str(path)
    columns = (
        Column("job"),
        Column("start_s", "time"),
        Column("end_s", "time", required=False, empty=math.nan),
        Column("nodes", required=False, empty=""),
    )
    table = read_table(path, columns)
    jobs, reasons = problem.jobs, Counter[str]()
    start, end = np.full(len(jobs), math.nan), np.full(len(jobs), math.nan)
    held: list[list[tuple[int, int]]] = [[] for _ in range(len(jobs))]
    for name, begin, stop, nodes, row in zip(
        *(table[c.name] for c in columns), table["#"], strict=True
    ):
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
    solution = QueueingSolution.on_nodes(problem, start, held, end)
    return LoggedRows(solution, len(table["#"]), reasons)


def _coscheduling(path: Path, problem: Any) -> LoggedRows:
    """``job,start_s,end_s,gpu_index[,app,gpu_count]``."""
    source = str(path)
    columns = (
        Column("job", "integer"), Column("start_s", "number"), Column("end_s", "number"),
        Column("gpu_index"),
    )  # fmt: skip
    table = read_table(path, columns)
    entries, reasons = [], Counter[str]()
    for job, start, end, gpus, row in zip(
        *(table[c.name] for c in columns), table["#"], strict=True
    ):
        if job >= len(problem):
            reasons["a job that the problem does not have"] += 1
            continue
        indices = _whole(gpus, "gpu_index", row, source)
        entries.append({"job": job, "start_s": start, "end_s": end, "gpu_index": indices})
    document = {"schema": "optgap.coscheduling.solution/1", "schedule": entries}
    return _from_json(document, problem, source, len(table["#"]), reasons)


def _consolidation(path: Path, problem: Any) -> LoggedRows:
    """``task,server,gpu_index[,start_s]``, joined with ``-``; every GPU at its highest clock."""
    source = str(path)
    columns = (
        Column("task"), Column("server"), Column("gpu_index"),
        Column("start_s", "number", required=False, empty=0.0),
    )  # fmt: skip
    table = read_table(path, columns)
    known = {task.name for task in problem.tasks}
    entries, reasons, used = [], Counter[str](), set()
    for task, servers, gpus, start, row in zip(
        *(table[c.name] for c in columns), table["#"], strict=True
    ):
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
    document = {
        "schema": "optgap.consolidation.solution/1",
        "assignments": entries,
        "frequencies_mhz": _highest(problem, used),
    }
    return _from_json(document, problem, source, len(table["#"]), reasons)


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


def _elastic(path: Path, problem: Any) -> LoggedRows:
    """``time_s,job,event,gpus,frequency_mhz``; a job's events end where its next begins."""
    source = str(path)
    columns = (
        Column("time_s", "number"), Column("job"), Column("event"), Column("gpus", "integer"),
        Column("frequency_mhz", "number"),
    )  # fmt: skip
    table = read_table(path, columns)
    number = {name: k for k, name in enumerate(problem.jobs.names)}
    events: dict[int, list[tuple[float, str, int, float]]] = defaultdict(list)
    reasons: Counter[str] = Counter()
    for time, job, event, gpus, clock in zip(*(table[c.name] for c in columns), strict=True):
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
    document = {
        "schema": "optgap.elastic.solution/1", "switch_off": False, "places": [],
        "segments": fields,
    }  # fmt: skip
    return _from_json(document, problem, source, len(table["#"]), reasons)


def _from_json(
    document: dict[str, Any], problem: Any, source: str, records: int, reasons: Mapping[str, int]
) -> LoggedRows:
    solution = family(problem.family).solution_class.from_json(Fields(document, source), problem)
    return LoggedRows(solution, records, reasons)


READERS = {
    "placement": _placement,
    "queueing": _queueing,
    "coscheduling": _coscheduling,
    "consolidation": _consolidation,
    "elastic": _elastic,
}
"""What reads each family's table."""


COLUMNS = {
    "placement": ("seq", "task", "node", "gpu_index"),
    "queueing": ("job", "start_s", "end_s", "nodes"),
    "coscheduling": ("job", "start_s", "end_s", "gpu_index"),
    "consolidation": ("task", "server", "gpu_index", "start_s"),
    "elastic": ("time_s", "job", "event", "gpus", "frequency_mhz"),
}
"""The columns of each family's table."""


def require_some(found: LoggedRows, source: str) -> None:
    """Raise InputError where nothing of the log belongs to the problem."""
    left = sum(found.reasons.values())
    if found.records and left == found.records:
        told = ", ".join(f"{n} {why}" for why, n in found.reasons.items())
        raise InputError(source, "", NoQuote(told), "a log of this problem")
