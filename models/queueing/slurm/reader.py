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
from dataclasses import dataclass
from functools import cached_property

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
from optgap.models.reading import Path, read_text
from optgap.models.times import SHORTEST_S

ANY = "gpu"
"""The pool of GPUs whose type is not told."""
NEEDED = ("jobid", "submit", "start", "end")


@dataclass(slots=True)
class _Run:
    """A run that held GPUs, before it is a job; `row` is its place in the table."""

    name: str
    row: int
    gpus: int
    pool: str
    nodes: tuple[str, ...]


Gang = list[_Run]
"""The runs that are one job, the parts of a heterogeneous one."""


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
    table = _table(read_text(path, stdin=True), columns or {}, source)
    times = _times(table, source)
    runs, reasons = _runs(table, times, source)
    _name_pools(runs)
    pools = _pools(runs, times)
    chosen = _chosen(pools, pool, reasons, source)
    gangs = _gangs([run for run in runs if run.pool == chosen])
    members = sum(map(len, gangs))
    reasons["of another pool"] = len(runs) - members
    reasons["part of a heterogeneous job, counted with its first"] = members - len(gangs)
    arrival = times.eligible if wait == "eligible" else times.submit
    gangs.sort(key=lambda gang: float(arrival[gang[0].row]))
    rows = [gang[0].row for gang in gangs]
    users, partitions = table.column("user"), table.column("partition")
    warnings = _warnings(table, times, runs)
    jobs = Jobs.of(
        arrival[rows],
        times.lasted[rows],
        [sum(run.gpus for run in gang) for gang in gangs],
        names=[gang[0].name for gang in gangs],
        kinds=[partitions[row] for row in rows],
        estimate_s=_estimates(table, times, rows, warnings),
        source=source,
    )
    count, per_node = _size(gangs, nodes, gpus_per_node)
    problem = QueueingProblem.of(
        jobs,
        nodes=count,
        gpus_per_node=per_node,
        placement="count",
        name=f"slurm {source}, {chosen}",
        origin=source,
        source=source,
    )
    return QueueLog(
        problem,
        as_run(problem, times.start[rows]),
        floats(times.submit[rows]),
        floats(times.eligible[rows]),
        tuple(users[row] for row in rows),
        jobs.kinds,
        sum("." not in name for name in table.columns["jobid"]) + len(table.unread),
        {why: number for why, number in reasons.items() if number},
        pools,
        tuple(warnings),
    )


def _table(text: str, columns: Mapping[str, str], source: str) -> Table:
    """The rows of either form, with the columns that are needed under sacct's names."""
    read = read_document if text.lstrip().startswith(("{", "[")) else read_table
    table = read(text, source)
    for theirs, ours in columns.items():
        if theirs.lower() not in table.columns:
            raise InputError("--column", "", theirs, one_of(table.columns))
        table.columns[ours.lower()] = table.columns[theirs.lower()]
    missing = [name for name in NEEDED if name not in table.columns]
    if not missing and not {"alloctres", "reqtres"} & set(table.columns):
        missing = ["AllocTRES"]
    if missing:
        there = NoQuote(f"no column {missing[0]}")
        raise InputError(source, "row 1", there, f"what `{COMMAND}` prints")
    return table


@dataclass(frozen=True)
class _Times:
    """(rows,) times in s; NaN where there is none. What `still` runs ends with the log."""

    submit: FloatArray
    eligible: FloatArray
    start: FloatArray
    end: FloatArray
    still: NDArray[np.bool_]

    @cached_property
    def lasted(self) -> FloatArray:
        """From start to end, s."""
        return floats(self.end - self.start)


def _times(table: Table, source: str) -> _Times:
    def column(name: str) -> FloatArray:
        return unix_s(table.column(name), name, source, table.rows)

    submit, start, end = column("submit"), column("start"), column("end")
    eligible = column("eligible")
    eligible = np.where(np.isnan(eligible), submit, eligible)
    eligible = np.minimum(np.maximum(eligible, submit), start)
    stamps = np.concatenate([submit, start, end])
    latest = float(np.nanmax(stamps)) if np.isfinite(stamps).any() else 0.0
    elapsed = np.array([_whole(text) for text in table.column("elapsedraw")])
    still = np.isnan(end) & ~np.isnan(start)
    latest = max([latest, *(start + elapsed)[still].tolist()])
    return _Times(submit, floats(eligible), start, floats(np.where(still, latest, end)), still)


def _whole(text: str) -> int:
    return int(text) if text.strip().isdigit() else 0


def _runs(table: Table, times: _Times, source: str) -> tuple[list[_Run], Counter[str]]:
    """The rows that are runs, with their GPUs and nodes; how many are left out, by why."""
    alloc, asked, states = (table.column(name) for name in ("alloctres", "reqtres", "state"))
    raw, places = table.columns.get("jobidraw", table.columns["jobid"]), table.column("nodelist")
    found: list[_Run] = []
    reasons, seen, copies = Counter[str](), set(), Counter[str]()
    for k, name in enumerate(table.columns["jobid"]):
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
            reasons[_never(states[k])] += 1  # 22.05 gives it a start all the same
        elif not count:
            reasons["asks for no GPU"] += 1
        elif times.lasted[k] < SHORTEST_S:
            reasons["ran no second"] += 1
        else:
            try:
                nodes = hosts(places[k])
            except ValueError as error:
                where = f"{table.rows[k]}, column nodelist"
                raise InputError(source, where, places[k], f"a host list: {error}") from None
            copies[name] += 1
            own = name if copies[name] == 1 else f"{name}#{copies[name]}"
            found.append(_Run(own, k, count, kind, nodes))
    reasons["cannot be read"] = len(table.unread)
    return found, reasons


def _never(state: str) -> str:
    word = state.split()[0].lower().rstrip("+") if state.split() else "?"
    return {
        "pending": "still pending", "cancelled": "cancelled before it started",
        "failed": "refused", "deadline": "past its deadline",
    }.get(word, f"never started ({word})")  # fmt: skip


def _name_pools(runs: Sequence[_Run]) -> None:
    """Name the pool of jobs whose GPU type is not told: by their nodes, where these are known."""
    of_node = {
        node: run.pool for run in runs for node in run.nodes if run.pool and "+" not in run.pool
    }
    for run in runs:
        if not run.pool:
            known = {of_node[node] for node in run.nodes if node in of_node}
            run.pool = known.pop() if len(known) == 1 else ANY


def _pools(runs: Sequence[_Run], times: _Times) -> dict[str, tuple[int, float]]:
    """Runs and GPU-hours by pool."""
    found: dict[str, tuple[int, float]] = {}
    for run in runs:
        count, hours = found.get(run.pool, (0, 0.0))
        found[run.pool] = (count + 1, hours + run.gpus * float(times.lasted[run.row]) / 3600)
    return found


def _chosen(
    pools: Mapping[str, tuple[int, float]], pool: str | None, reasons: Counter[str], source: str
) -> str:
    """The pool that was asked for, or the one with the most GPU time."""
    if not pools:
        told = ", ".join(f"{n} {why}" for why, n in reasons.items() if n)
        raise InputError(source, "", NoQuote(f"no job that held GPUs ({told})"), "at least one")
    chosen = pool or max(pools, key=lambda name: pools[name][1])
    if chosen not in pools:
        raise InputError("--set", "pool", chosen, one_of(pools))
    return chosen


def _gangs(runs: Sequence[_Run]) -> list[Gang]:
    """Runs that are one job: parts of a heterogeneous job that started together."""
    found: dict[str, Gang] = {}
    for run in runs:
        name, _, number = run.name.partition("#")
        whole, plus, _ = name.partition("+")
        found.setdefault(f"{whole}+ {number}" if plus else run.name, []).append(run)
    return list(found.values())


def _warnings(table: Table, times: _Times, runs: Sequence[_Run]) -> list[str]:
    """What is odd about the rows."""
    told = table.unread[:5]
    if len(table.unread) > 5:
        told.append(f"… {len(table.unread) - 5} more")
    running = sum(bool(times.still[run.row]) for run in runs)
    if running:
        told.append(f"{running} jobs still run: they end with the log")
    if any(map(_whole, table.column("restarts"))):
        told.append("only the last run of a requeued job is there unless sacct got -D")
    return told


def _estimates(table: Table, times: _Times, rows: Sequence[int], warnings: list[str]) -> FloatArray:
    """Time limits in s; the longest where there is none, with a warning."""
    texts = table.column("timelimit")
    limit = np.array([limit_s(texts[row]) for row in rows])
    known = limit[np.isfinite(limit)]
    longest = max(float(known.max(initial=0.0)), float(times.lasted[rows].max()))
    endless = ~np.isfinite(limit) | (limit <= 0)
    if endless.any():
        told = f"{int(endless.sum())} jobs without a time limit: the longest, {longest:g} s, taken"
        warnings.append(told)
    return floats(np.where(endless, longest, limit))


def _size(gangs: Sequence[Gang], nodes: int | None, gpus_per_node: int | None) -> tuple[int, int]:
    """Nodes of the pool and GPUs on each: as told, else as seen in the log."""
    members = [run for gang in gangs for run in gang]
    seen = len({node for run in members for node in run.nodes})
    per_node = gpus_per_node or max(-(-run.gpus // max(1, len(run.nodes))) for run in members)
    most = max(sum(run.gpus for run in gang) for gang in gangs)
    return nodes or max(seen, -(-most // per_node)), per_node
