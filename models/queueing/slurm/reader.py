"""Reader that turns rows of accounting into jobs, their cluster, and the times when they ran.

A row of accounting counts as follows:

* a row that has a start and held GPUs is a job from start to end, whatever its state (completed,
  failed, cancelled, timed out, preempted, node failure), because it occupied its GPUs;
* a row that still runs is a job that ends with the log;
* every run of a requeued job (``sacct -D``) is a job; a repeated row counts once;
* steps repeat their job and are skipped;
* left out, and counted: jobs that never started, ran for no second, requested no GPU or held parts
  of GPUs, parts of heterogeneous jobs, and rows whose times contradict each other.

Suspended time counts, because the job keeps its allocation.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from optgap.models.errors import InputError, NoQuote, one_of
from optgap.models.queueing.arrays import FloatArray, floats, integers
from optgap.models.queueing.jobs import Jobs
from optgap.models.queueing.log import AT_ONCE, Pool, QueueLog, peak, peaks
from optgap.models.queueing.slurm.clock import Times, read_times
from optgap.models.queueing.slurm.table import Table, gpus, hosts, limit_s, read_table, shares
from optgap.models.reading import Path, read_text
from optgap.models.shown import counted
from optgap.models.times import SHORTEST_S

ANY = "gpu"
"""Name of the pool of GPUs of unknown type."""
BY_NODE = "the most that each node held, added up (--set gpus=N)"


@dataclass
class _Run:
    """Run that held GPUs, before it becomes a job; `row` is its row in the table."""

    name: str
    row: int
    start_s: float
    lasted_s: float
    gpus: int
    pool: str
    nodes: tuple[str, ...]


def read_slurm(
    path: Path,
    *,
    pool: str | None = None,
    wait: str = "eligible",
    zone: str | None = None,
    gpus: int | None = None,
) -> QueueLog:
    """Read the output of ``sacct -P``; ``-`` is standard input.

    Parameters
    ----------
    pool: GPU type to read. Default: the one with the most GPU time.
    wait: begin of a wait: ``eligible``, when the job could have started, or ``submit``.
    zone: time zone whose local time the file has, such as ``Europe/Berlin``. Default: UTC.
    gpus: size of the pool. Default: the sum of the most GPUs ever held on each node.

    Raises
    ------
    InputError: for a file of another kind, a missing column, dates of an ambiguous form, changed
        clocks, an unknown pool, or no job that held GPUs.
    """
    source = str(path)
    if wait not in ("eligible", "submit"):
        raise InputError("--set", "wait", wait, one_of(("eligible", "submit")))
    table = read_table(read_text(path, stdin=True), source)
    times = read_times(table, zone, source)
    runs, reasons = _runs(table, times, source)
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
    partitions = table.column("partition")
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
    shown, name = _pool(found, start, lasted), f"slurm {source}, {chosen}"
    return QueueLog.of(jobs, start, gpus, shown, name, source, times.at, reasons, pools, warnings)


def _runs(table: Table, times: Times, source: str) -> tuple[list[_Run], Counter[str]]:
    """Return the runs with their GPUs and nodes, and counts of rows left out by reason."""
    asked, states = table.column("reqtres"), table.column("state")
    # what was held counts; what was asked for only where the other is not in the file
    held = table.columns.get("alloctres", asked)
    raw, places = table.columns.get("jobidraw", table.columns["jobid"]), table.column("nodelist")
    found: list[_Run] = []
    reasons, seen, copies = Counter[str](), set(), Counter[str]()
    types: dict[str, set[str]] = {}  # that a node was seen to have
    for k, name in enumerate(table.columns["jobid"]):
        if "." in name:
            continue  # a step
        submit, start, end = (float(when[k]) for when in (times.submit, times.start, times.end))
        if math.isnan(start) or math.isnan(submit):
            reasons[_never(states[k])] += 1
            continue
        if (raw[k], submit, start) in seen and not times.unfit[k]:
            reasons["stands twice"] += 1
            continue
        seen.add((raw[k], submit, start))
        count, kind = gpus(held[k])
        part = shares(held[k]) or ("" if count else shares(asked[k]))
        if not held[k] and gpus(asked[k])[0]:
            # 22.05 gives jobs that never ran a start all the same
            reasons[_never(states[k]) if end == start else "tells no AllocTRES"] += 1
        elif part:
            reasons[f"job holds {part}, which are not counted as GPUs"] += 1
        elif not count:
            reasons["asks for no GPU"] += 1
        elif "+" in name:
            reasons["part of a heterogeneous job"] += 1
        elif times.unfit[k]:
            reasons[times.unfit[k]] += 1
        elif end - start < SHORTEST_S:
            reasons["ran no second"] += 1
        else:
            try:
                nodes = hosts(places[k])
            except ValueError as error:
                where = f"{table.rows[k]}, column nodelist"
                raise InputError(source, where, places[k], f"a host list: {error}") from None
            copies[name] += 1
            own = name if copies[name] == 1 else f"{name}#{copies[name]}"
            found.append(_Run(own, k, start, end - start, count, kind, nodes))
            for node in nodes if kind else ():
                types.setdefault(node, set()).update(kind.split("+"))
    # runs whose type is not told are of their nodes' types; of two, a pool of their own
    for run in found:
        known = set().union(*(types.get(node, ()) for node in run.nodes))
        run.pool = run.pool or "/".join(sorted(known)) or ANY
    if table.unread:
        reasons["cannot be read"] = len(table.unread)
    return found, reasons


def _never(state: str) -> str:
    word = state.split()[0].lower().rstrip("+") if state.split() else "?"
    return {
        "pending": "still pending", "cancelled": "cancelled before it started",
        "failed": "refused", "deadline": "past its deadline",
    }.get(word, f"never started ({word})")  # fmt: skip


def _pool(runs: Sequence[_Run], start_s: FloatArray, lasted_s: FloatArray) -> Pool:
    """Return the sum of the most GPUs ever held on each node."""
    end_s, held = start_s + lasted_s, integers([run.gpus for run in runs])
    most = peak(start_s, end_s, held)[0]
    names = {node: k for k, node in enumerate(dict.fromkeys(n for run in runs for n in run.nodes))}
    if not names:
        return Pool(most, AT_ONCE)
    # how a gang's GPUs lie on its nodes is not told: on each as many, and the rest anywhere
    on = [
        (k, run.gpus // len(run.nodes), names[n]) for k, run in enumerate(runs) for n in run.nodes
    ]
    k, share, node = (integers(column) for column in zip(*on, strict=True))
    seen = int(peaks(start_s[k], end_s[k], share, node)[0].sum())
    return Pool(max(seen, most), BY_NODE)


def _warnings(table: Table, times: Times, runs: Sequence[_Run], pool: str) -> list[str]:
    """Return warnings about odd rows."""
    told, more = table.unread[:1], len(table.unread) - 1
    if more > 0:
        told[0] += f" (as {more:,} more)"
    early = sum(bool(times.early[run.row]) for run in runs)
    if early:
        told.append(counted(early, "job began before its submission: a wait of 0"))
    running = sum(bool(times.still[run.row]) for run in runs)
    if running:
        told.append(f"{counted(running, 'job still runs')}: the log's end is taken for its own")
    if any(text.strip("0 ").isdigit() for text in table.column("restarts")):
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
    """Return time limits, s; a missing limit becomes the longest one, with a warning."""
    texts = table.column("timelimit")
    limit = np.array([limit_s(texts[row]) for row in rows])
    known = limit[np.isfinite(limit)]
    longest = max(float(known.max(initial=0.0)), float(lasted.max(initial=0.0)))
    endless = ~np.isfinite(limit) | (limit <= 0)
    if endless.any():
        told = counted(int(endless.sum()), "job without a time limit")
        warnings.append(f"{told}: the longest, {longest:g} s, taken")
    return floats(np.where(endless, longest, limit))
