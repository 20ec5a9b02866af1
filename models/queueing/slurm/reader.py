"""From rows of accounting to jobs, the cluster they ran on, and when they ran.

What counts, by a job's row:

* it ran (it has a start) and held GPUs: a job, from start to end, whatever its state (completed,
  failed, cancelled, timed out, preempted, node failure): its GPUs were taken all the same;
* it still runs: a job that ends when the log does;
* every run of a requeued job (``sacct -D``) is a job; one row that stands twice is one;
* the parts of a heterogeneous job are one gang; steps repeat their job and are passed over;
* left out, and counted: jobs that never started, ran no second, or asked for no GPU.

Suspended time counts, as the allocation is kept.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from optgap.models.errors import InputError, NoQuote, one_of
from optgap.models.queueing.arrays import FloatArray, floats
from optgap.models.queueing.jobs import Jobs
from optgap.models.queueing.log import QueueLog, as_run
from optgap.models.queueing.problem import QueueingProblem
from optgap.models.queueing.slurm.document import read_document
from optgap.models.queueing.slurm.fields import gpus, hosts, limit_s, unix_s
from optgap.models.queueing.slurm.table import COMMAND, Table, read_table
from optgap.models.reading import Held, Path, read_text
from optgap.models.times import SHORTEST_S

ANY = "gpu"
"""The pool of GPUs whose type is not told."""
NEEDED = ("jobid", "submit", "start", "end")


@dataclass
class _Rows:
    """Runs that held GPUs, one entry each, before they are jobs."""

    names: list[str] = field(default_factory=list)
    at: list[int] = field(default_factory=list)
    gpus: list[int] = field(default_factory=list)
    pool: list[str] = field(default_factory=list)
    nodes: list[tuple[str, ...]] = field(default_factory=list)


def read_slurm(
    path: Path,
    *,
    pool: str | None = None,
    wait: str = "eligible",
    nodes: int | None = None,
    gpus_per_node: int | None = None,
    columns: Mapping[str, str] | None = None,
) -> QueueLog:
    """Read what ``sacct -P`` or ``sacct --json`` prints; ``-`` is standard input.

    Parameters
    ----------
    pool: the GPU type to look at; the one with the most GPU time without it.
    wait: what a wait counts from: ``eligible``, when the job could have started, or ``submit``.
    nodes, gpus_per_node: the pool's size; as seen in the log without them.
    columns: sacct's names of columns that the file calls otherwise.

    Raises
    ------
    InputError: for a file that is none of these, a column that is missing, dates in a form that
        cannot be told, an unknown pool, or no job that held GPUs.
    """
    source = str(path)
    if wait not in ("eligible", "submit"):
        raise InputError("--set", "wait", wait, one_of(("eligible", "submit")))
    text = read_text(path, stdin=True)
    held = Held(source, text)
    table = (
        read_document(text, path)
        if text.lstrip()[:1] in "{[" and text.strip()
        else (read_table(held))
    )
    for theirs, ours in (columns or {}).items():
        if theirs.lower() not in table.columns:
            raise InputError("--column", "", theirs, one_of(table.columns))
        table.columns[ours.lower()] = table.columns[theirs.lower()]
    _require_columns(table, source)
    reasons: Counter[str] = Counter()
    warnings = [*table.unread[:5], *[f"… {len(table.unread) - 5} more"][: len(table.unread) > 5]]
    times = _times(table, source)
    runs = _runs(table, times, reasons, source)
    reasons["cannot be read"] = len(table.unread)
    return _pooled(table, times, runs, reasons, warnings, source, pool, wait, nodes, gpus_per_node)


def _require_columns(table: Table, source: str) -> None:
    for name in NEEDED:
        if name not in table.columns:
            there = NoQuote("no column " + name)
            raise InputError(source, "row 1", there, f"what `{COMMAND}` prints")
    if "alloctres" not in table.columns and "reqtres" not in table.columns:
        raise InputError(
            source, "row 1", NoQuote("no column AllocTRES"), f"what `{COMMAND}` prints"
        )


@dataclass(frozen=True)
class _Times:
    """(rows,) times in s; NaN where there is none. What `still` runs ends with the log."""

    submit: FloatArray
    eligible: FloatArray
    start: FloatArray
    end: FloatArray
    still: NDArray[np.bool_]


def _times(table: Table, source: str) -> _Times:
    def column(name: str) -> FloatArray:
        texts = table.columns.get(name)
        if texts is None:
            return floats(np.full(len(table), math.nan))
        return unix_s(texts, name, source, table.rows)

    submit, start, end = column("submit"), column("start"), column("end")
    eligible = column("eligible")
    eligible = floats(np.where(np.isnan(eligible), submit, eligible))
    stamps = np.concatenate([submit, start, end])
    latest = float(np.nanmax(stamps)) if np.isfinite(stamps).any() else 0.0
    elapsed = np.array([_whole(t) for t in table.columns.get("elapsedraw", ["0"] * len(table))])
    still = np.isnan(end) & ~np.isnan(start)
    latest = max([latest, *(start + elapsed)[still].tolist()])
    return _Times(submit, eligible, start, floats(np.where(still, latest, end)), still)


def _whole(text: str) -> int:
    return int(text) if text.strip().isdigit() else 0


def _runs(table: Table, times: _Times, reasons: Counter[str], source: str) -> _Rows:
    """The rows that are runs, with their GPUs and nodes."""
    columns = table.columns
    empty = [""] * len(table)
    alloc, asked = columns.get("alloctres", empty), columns.get("reqtres", empty)
    raw, states = columns.get("jobidraw", columns["jobid"]), columns.get("state", empty)
    places = columns.get("nodelist", empty)
    found, seen, copies = _Rows(), set(), Counter[str]()
    for k, name in enumerate(columns["jobid"]):
        if "." in name:
            continue  # a step
        key = (raw[k], float(times.submit[k]), float(times.start[k]))
        if math.isnan(times.start[k]) or math.isnan(times.submit[k]):
            reasons[_never(states[k])] += 1
            continue
        if key in seen:
            reasons["stands twice"] += 1
            continue
        seen.add(key)
        count, kind = gpus(alloc[k] or asked[k])
        if not alloc[k] and asked[k] and math.isclose(times.start[k], times.end[k]):
            reasons["refused"] += 1
        elif not count:
            reasons["asks for no GPU"] += 1
        elif times.end[k] - times.start[k] < SHORTEST_S:
            reasons["ran no second"] += 1
        else:
            try:
                nodes = hosts(places[k])
            except ValueError as error:
                where = f"{table.rows[k]}, column nodelist"
                raise InputError(source, where, places[k], f"a host list: {error}") from None
            copies[name] += 1
            found.names.append(name if copies[name] == 1 else f"{name}#{copies[name]}")
            found.at.append(k)
            found.gpus.append(count)
            found.pool.append(kind)
            found.nodes.append(nodes)
    return found


def _never(state: str) -> str:
    word = state.split()[0].lower().rstrip("+") if state.split() else "?"
    return {
        "pending": "still pending", "cancelled": "cancelled before it started",
        "failed": "refused", "deadline": "past its deadline",
    }.get(word, f"never started ({word})")  # fmt: skip


def _pooled(
    table: Table,
    times: _Times,
    runs: _Rows,
    reasons: Counter[str],
    warnings: list[str],
    source: str,
    pool: str | None,
    wait: str,
    nodes: int | None,
    gpus_per_node: int | None,
) -> QueueLog:
    """The jobs of one pool."""
    _name_pools(runs)
    still = times.still[runs.at]
    end = times.end[runs.at]
    start = times.start[runs.at]
    hours: dict[str, tuple[int, float]] = {}
    for name, count, lasted in zip(runs.pool, runs.gpus, end - start, strict=True):
        jobs, spent = hours.get(name, (0, 0.0))
        hours[name] = (jobs + 1, spent + count * float(lasted) / 3600)
    if not hours:
        told = ", ".join(f"{n} {why}" for why, n in reasons.items() if n)
        raise InputError(source, "", NoQuote(f"no job that held GPUs ({told})"), "at least one")
    chosen = pool or max(hours, key=lambda name: hours[name][1])
    if chosen not in hours:
        raise InputError("--set", "pool", chosen, one_of(hours))
    if still.any():
        warnings.append(f"{int(still.sum())} jobs still run: they end with the log")
    if sum(_whole(text) for text in table.columns.get("restarts", [])):
        more = "only the last run of a requeued job is there unless sacct got -D"
        warnings.append(more)
    gangs = _gangs(runs, [k for k, name in enumerate(runs.pool) if name == chosen])
    others = len(runs.at) - sum(map(len, gangs))
    if others:
        reasons["of another pool"] = others
    merged = sum(map(len, gangs)) - len(gangs)
    if merged:
        reasons["part of a heterogeneous job, counted with its first"] = merged
    return _reading(table, times, runs, reasons, warnings, source, chosen, hours, wait, gangs,
                    end, (nodes, gpus_per_node))  # fmt: skip


def _name_pools(runs: _Rows) -> None:
    """Name the pool of jobs whose GPU type is not told: by their nodes, where these are known."""
    of_node = {
        node: kind
        for kind, nodes in zip(runs.pool, runs.nodes, strict=True)
        for node in nodes
        if kind and "+" not in kind
    }
    for k, kind in enumerate(runs.pool):
        if not kind:
            known = {of_node[node] for node in runs.nodes[k] if node in of_node}
            runs.pool[k] = known.pop() if len(known) == 1 else ANY


def _gangs(runs: _Rows, chosen: Sequence[int]) -> list[list[int]]:
    """Runs that are one job: parts of a heterogeneous job that started together."""
    found: dict[str, list[int]] = {}
    for k in chosen:
        name, _, run = runs.names[k].partition("#")
        whole, plus, _ = name.partition("+")
        found.setdefault(f"{whole}+ {run}" if plus else runs.names[k], []).append(k)
    return list(found.values())


def _reading(
    table: Table,
    times: _Times,
    runs: _Rows,
    reasons: Counter[str],
    warnings: list[str],
    source: str,
    pool: str,
    hours: Mapping[str, tuple[int, float]],
    wait: str,
    gangs: list[list[int]],
    end: FloatArray,
    size: tuple[int | None, int | None],
) -> QueueLog:
    heads = [gang[0] for gang in gangs]
    rows = [runs.at[k] for k in heads]
    start, submit = times.start[rows], times.submit[rows]
    eligible = np.minimum(np.maximum(times.eligible[rows], submit), start)
    held = np.array([sum(runs.gpus[k] for k in gang) for gang in gangs])
    duration = end[heads] - start
    limits = [limit_s(text) for text in table.columns.get("timelimit", [""] * len(table))]
    limit = np.array([limits[row] for row in rows])
    known = limit[np.isfinite(limit)]
    longest = max(float(known.max(initial=0.0)), float(duration.max()))
    endless = ~np.isfinite(limit) | (limit <= 0)
    if endless.any():
        told = f"{int(endless.sum())} jobs without a time limit: the longest, {longest:g} s, taken"
        warnings.append(told)
    nodes = sorted({node for gang in gangs for k in gang for node in runs.nodes[k]})
    count, per_node = _size(runs, gangs, nodes, size)
    arrival = eligible if wait == "eligible" else submit
    names = [runs.names[k] for k in heads]
    order = np.argsort(arrival, kind="stable")  # as `Jobs.of` will
    jobs = Jobs.of(
        arrival,
        duration,
        held,
        names=names,
        kinds=[table.columns.get("partition", [""] * len(table))[row] for row in rows],
        estimate_s=np.where(endless, longest, limit),
        source=source,
    )
    problem = QueueingProblem.of(
        jobs,
        nodes=count,
        gpus_per_node=per_node,
        placement="count",
        name=f"slurm {source}, {pool}",
        origin=source,
        source=source,
    )
    users = table.columns.get("user", [""] * len(table))
    logged = as_run(jobs, start[order])
    steps = sum("." in name for name in table.columns["jobid"])
    return QueueLog(
        problem,
        logged,
        floats(submit[order]),
        floats(eligible[order]),
        tuple(users[rows[k]] for k in order.tolist()),
        jobs.kinds,
        len(table) - steps + len(table.unread),
        {why: number for why, number in reasons.items() if number},
        hours,
        tuple(warnings),
    )


def _size(
    runs: _Rows, gangs: list[list[int]], nodes: Sequence[str], size: tuple[int | None, int | None]
) -> tuple[int, int]:
    """Nodes of the pool and GPUs on each: as told, else as seen in the log."""
    members = [k for gang in gangs for k in gang]
    per_node = max(-(-runs.gpus[k] // max(1, len(runs.nodes[k]))) for k in members)
    most = max(sum(runs.gpus[k] for k in gang) for gang in gangs)
    per_node = size[1] or per_node
    return size[0] or max(len(nodes), -(-most // per_node)), per_node
