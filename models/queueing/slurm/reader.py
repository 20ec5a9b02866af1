"""From rows of accounting to jobs, the cluster they ran on, and when they ran.

What counts, by a job's row:

* it ran (it has a start) and held GPUs: a job, from start to end, whatever its state (completed,
  failed, cancelled, timed out, preempted, node failure): its GPUs were taken all the same;
* it still runs: a job that ends when the log does;
* every run of a requeued job (``sacct -D``) is a job; one row that stands twice is one;
* steps repeat their job and are passed over;
* left out, and counted: jobs that never started, ran no second, asked for no GPU or held parts of
  GPUs, parts of heterogeneous jobs, and rows whose times do not fit each other.

Suspended time counts, as the allocation is kept.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from optgap.models.errors import InputError, NoQuote, one_of
from optgap.models.queueing.arrays import FloatArray, IntArray, floats, integers
from optgap.models.queueing.jobs import Jobs
from optgap.models.queueing.log import AT_ONCE, Pool, QueueLog, happened, peak, peaks
from optgap.models.queueing.slurm.clock import Times, read_times
from optgap.models.queueing.slurm.fields import gpus, hosts, limit_s, shares
from optgap.models.queueing.slurm.table import COMMAND, Table, read_table
from optgap.models.reading import Path, read_text
from optgap.models.shown import counted
from optgap.models.times import SHORTEST_S

ANY = "gpu"
"""The pool of GPUs whose type is not told."""
NEEDED = ("jobid", "submit", "start", "end")
BY_NODE = "the most that each node held, added up (--set gpus=N)"


@dataclass(frozen=True, slots=True)
class _Run:
    """A run that held GPUs, before it is a job; `row` is its place in the table."""

    name: str
    row: int
    start_s: float
    end_s: float
    gpus: int
    pool: str
    nodes: tuple[str, ...]

    @property
    def lasted_s(self) -> float:
        return self.end_s - self.start_s


def read_slurm(
    path: Path,
    *,
    pool: str | None = None,
    wait: str = "eligible",
    zone: str | None = None,
    gpus: int | None = None,
) -> QueueLog:
    """Read what ``sacct -P`` prints; ``-`` is standard input.

    Parameters
    ----------
    pool: the GPU type to look at; the one with the most GPU time without it.
    wait: what a wait counts from: ``eligible``, when the job could have started, or ``submit``.
    zone: whose local time the file has, such as ``Europe/Berlin``; UTC without it.
    gpus: the pool's size; the most that each node was seen to hold, added up, without it.

    Raises
    ------
    InputError: for a file that is none of these, a column that is missing, dates in a form that
        cannot be told, clocks that were changed, an unknown pool, or no job that held GPUs.
    """
    source = str(path)
    if wait not in ("eligible", "submit"):
        raise InputError("--set", "wait", wait, one_of(("eligible", "submit")))
    table = _table(read_text(path, stdin=True), source)
    times = read_times(table, zone, source)
    runs, reasons = _runs(table, times, source)
    runs = _in_pools(runs)
    pools: dict[str, tuple[int, float]] = {}
    for run in runs:
        count, hours = pools.get(run.pool, (0, 0.0))
        pools[run.pool] = (count + 1, hours + run.gpus * run.lasted_s / 3600)
    if not pools:
        told = ", ".join(counted(n, why) for why, n in reasons.items())
        expected = "at least one" + (f"; left out: {told}" if told else "")
        raise InputError(source, "", NoQuote("no job that held GPUs"), expected)
    chosen = pool or max(pools, key=lambda name: pools[name][1])
    if chosen not in pools:
        raise InputError("--set", "pool", chosen, one_of(pools))
    arrivals = getattr(times, wait)
    found = [run for run in runs if run.pool == chosen]
    found.sort(key=lambda run: min(arrivals[run.row], run.start_s))
    reasons["of another pool"] = len(runs) - len(found)
    rows, start = [run.row for run in found], floats([run.start_s for run in found])
    lasted = floats([run.lasted_s for run in found])
    users, partitions = table.column("user"), table.column("partition")
    warnings = _warnings(table, times, runs, chosen)
    jobs = Jobs.of(
        np.minimum(arrivals[rows], start),
        lasted,
        [run.gpus for run in found],
        names=[run.name for run in found],
        kinds=[partitions[row] for row in rows],
        estimate_s=_estimates(table, lasted, rows, warnings),
        source=source,
    )
    size = _pool(found, gpus)
    name = f"slurm {source}, {chosen}"
    problem, logged, lacks = happened(jobs, start, size, name, source, times.at)
    return QueueLog(
        problem,
        logged,
        tuple(users[row] for row in rows),
        size.said,
        sum("." not in name for name in table.columns["jobid"]) + len(table.unread),
        {why: count for why, count in reasons.items() if count},
        pools,
        tuple(warnings),
        lacks,
    )


def _table(text: str, source: str) -> Table:
    """The rows, with the columns that are needed."""
    table = read_table(text, source)
    missing = [name for name in NEEDED if name not in table.columns]
    if not missing and not {"alloctres", "reqtres"} & set(table.columns):
        missing = ["AllocTRES"]
    if missing:
        there = NoQuote(f"no column {missing[0]}")
        raise InputError(source, "row 1", there, f"what `{COMMAND}` prints")
    return table


def _runs(table: Table, times: Times, source: str) -> tuple[list[_Run], Counter[str]]:
    """The rows that are runs, with their GPUs and nodes; how many are left out, by why."""
    asked, states = table.column("reqtres"), table.column("state")
    # what was held counts; what was asked for only where the other is not in the file
    held = table.columns.get("alloctres", asked)
    raw, places = table.columns.get("jobidraw", table.columns["jobid"]), table.column("nodelist")
    found: list[_Run] = []
    reasons, seen, copies = Counter[str](), set(), Counter[str]()
    for k, name in enumerate(table.columns["jobid"]):
        if "." in name:
            continue  # a step
        key = (raw[k], float(times.submit[k]), float(times.start[k]))
        lasted = float(times.end[k] - times.start[k])
        if math.isnan(times.start[k]) or math.isnan(times.submit[k]):
            reasons[_never(states[k])] += 1
            continue
        if key in seen and not times.unfit[k]:
            reasons["stands twice"] += 1
            continue
        seen.add(key)
        count, kind = gpus(held[k])
        part = shares(held[k]) or ("" if count else shares(asked[k]))
        if not held[k] and gpus(asked[k])[0]:
            # 22.05 gives jobs that never ran a start all the same
            reasons[_never(states[k]) if lasted == 0 else "tells no AllocTRES"] += 1
        elif part:
            reasons[f"job holds {_SHARES[part]} ({part}), which are not counted as GPUs"] += 1
        elif not count:
            reasons["asks for no GPU"] += 1
        elif "+" in name:
            reasons["part of a heterogeneous job"] += 1
        elif times.unfit[k]:
            reasons[times.unfit[k]] += 1
        elif lasted < SHORTEST_S:
            reasons["ran no second"] += 1
        else:
            try:
                nodes = hosts(places[k])
            except ValueError as error:
                where = f"{table.rows[k]}, column nodelist"
                raise InputError(source, where, places[k], f"a host list: {error}") from None
            copies[name] += 1
            own = name if copies[name] == 1 else f"{name}#{copies[name]}"
            start, end = float(times.start[k]), float(times.end[k])
            found.append(_Run(own, k, start, end, count, kind, nodes))
    if table.unread:
        reasons["cannot be read"] = len(table.unread)
    return found, reasons


_SHARES = {"gres/shard": "shards of GPUs", "gres/mps": "percentages of GPUs"}


def _never(state: str) -> str:
    word = state.split()[0].lower().rstrip("+") if state.split() else "?"
    return {
        "pending": "still pending", "cancelled": "cancelled before it started",
        "failed": "refused", "deadline": "past its deadline",
    }.get(word, f"never started ({word})")  # fmt: skip


def _in_pools(runs: Sequence[_Run]) -> list[_Run]:
    """The runs, those whose GPU type is not told in the pool of their nodes' types.

    Runs on nodes of two types have a pool of their own.
    """
    types: dict[str, set[str]] = {}
    for run in runs:
        for node in run.nodes if run.pool else ():
            types.setdefault(node, set()).update(run.pool.split("+"))

    def pool(run: _Run) -> str:
        known = set().union(*(types.get(node, ()) for node in run.nodes))
        return run.pool or "/".join(sorted(known)) or ANY

    return [replace(run, pool=pool(run)) for run in runs]


def _pool(runs: Sequence[_Run], told: int | None) -> Pool:
    """The pool as told, else the most that each node was seen to hold, added up."""

    def held(pairs: Sequence[tuple[_Run, int]]) -> tuple[FloatArray, FloatArray, IntArray]:
        start, end = ([getattr(run, name) for run, _ in pairs] for name in ("start_s", "end_s"))
        return floats(start), floats(end), integers([count for _, count in pairs])

    names = {node: k for k, node in enumerate(dict.fromkeys(n for run in runs for n in run.nodes))}
    # how a gang's GPUs lie on its nodes is not told: on each as many, and the rest anywhere
    shares = [(run, run.gpus // len(run.nodes)) for run in runs for _ in run.nodes]
    at = integers([names[node] for run in runs for node in run.nodes])
    seen = int(peaks(*held(shares), at)[0].sum()) if names else 0
    most = peak(*held([(run, run.gpus) for run in runs]))[0]
    return Pool.of(told, max(seen, most), BY_NODE if names else AT_ONCE)


def _whole(text: str) -> int:
    return int(text) if text.strip().isdigit() else 0


def _warnings(table: Table, times: Times, runs: Sequence[_Run], pool: str) -> list[str]:
    """What is odd about the rows."""
    told = table.unread[:5]
    early = sum(bool(times.early[run.row]) for run in runs)
    if early:
        told.append(counted(early, "job began before its submission: a wait of 0"))
    if len(table.unread) > 5:
        told.append(f"… {len(table.unread) - 5} more")
    running = sum(bool(times.still[run.row]) for run in runs)
    if running:
        told.append(f"{counted(running, 'job still runs')}: the log's end is taken for its own")
    if any(map(_whole, table.column("restarts"))):
        told.append("only the last run of a requeued job is there unless sacct got -D")
    if "elapsedraw" not in table.columns:
        told.append("ElapsedRaw is not in the file: whether clocks were changed was not checked")
    if "alloctres" not in table.columns:
        told.append("AllocTRES is not in the file: what was asked for counts as held")
    if pool == ANY:
        told.append("no type of GPU is in the file: MIG instances would count as GPUs")
    return told


def _estimates(
    table: Table, lasted: FloatArray, rows: Sequence[int], warnings: list[str]
) -> FloatArray:
    """Time limits in s; the longest where there is none, with a warning."""
    texts = table.column("timelimit")
    limit = np.array([limit_s(texts[row]) for row in rows])
    known = limit[np.isfinite(limit)]
    longest = max(float(known.max(initial=0.0)), float(lasted.max(initial=0.0)))
    endless = ~np.isfinite(limit) | (limit <= 0)
    if endless.any():
        told = counted(int(endless.sum()), "job without a time limit")
        warnings.append(f"{told}: the longest, {longest:g} s, taken")
    return floats(np.where(endless, longest, limit))
