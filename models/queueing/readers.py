"""Readers of job streams: the tidy table, Philly's table, and the Standard Workload Format."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

import numpy as np

from optgap.models.errors import InputError, NoQuote, one_of
from optgap.models.queueing.jobs import Jobs
from optgap.models.shown import counted
from optgap.models.tables import Column, read_header, read_table
from optgap.models.times import SHORTEST_S

Path = str | os.PathLike[str]
Unusable = Literal["auto", "refuse", "drop"]
ENDLESS = float("inf")
UNKNOWN = -1.0
LONG_ENOUGH = f"a number of seconds, at least {SHORTEST_S:g}"

TIDY = (
    Column("job"),
    Column("arrival_s", "time"),
    Column("duration_s", "number", required=False, empty=UNKNOWN),
    Column("gpus", "integer"),
    Column("type", required=False, empty=""),
    Column("family", required=False, empty=""),
    Column("iterations", "number", required=False, empty=-1.0),
    Column("estimate_s", "number", required=False, empty=-1.0),
    Column("patience_s", "number", required=False, empty=ENDLESS),
    Column("batch", "integer", required=False, empty=0),
)
PHILLY = (
    Column("timestamp", "time"),
    Column("duration", "number"),
    Column("num_gpus", "integer"),
    Column("cluster", required=False, empty=""),
)


@dataclass
class Rows:
    """Jobs of a file, in the order of the file.

    Parameters
    ----------
    source, where: the file, and the place of each job in it.
    called: the file's names for run times, GPU counts and arrivals.
    duration, gpus, arrival: run times, GPU counts and arrivals, (J,); NaN is unknown.
    rest: further columns of `Jobs`.
    from_first: whether time starts with the first job.
    notices: remarks about odd values.
    """

    source: str
    where: Sequence[str]
    called: tuple[str, str, str]
    duration: Any
    gpus: Any
    arrival: Any
    rest: dict[str, Any]
    from_first: bool = True
    notices: Callable[[Sequence[int]], list[str]] = lambda kept: []


def read_jobs(
    path: Path,
    most_gpus: int,
    unusable: Unusable = "auto",
    strict: bool = False,
    fitted: bool = False,
) -> tuple[Jobs, list[str]]:
    """Read jobs from a file, with notices about changes and omissions; see `presets.from_csv`.

    The file's name and header decide the format.

    Unless `unusable` is ``refuse``, jobs of a log (SWF, Philly's table) that cannot be run are left
    out and counted; jobs of the tidy table are left out only with ``drop``.

    Raises
    ------
    InputError: naming file, row and column of a value that cannot be used.
    """
    if unusable not in get_args(Unusable):
        expected = one_of(get_args(Unusable))
        raise InputError("--set", "unusable", unusable, expected)
    drop = unusable != "refuse"
    if str(path).removesuffix(".gz").endswith(".swf"):
        from optgap.models.queueing.swf import swf_rows

        return _usable(swf_rows(path), most_gpus, drop)
    if {"timestamp", "num_gpus"} <= set(read_header(path)):
        return _usable(_philly(path, drop), most_gpus, drop)
    drop = unusable == "drop"
    return _usable(_tidy(path, drop, strict, fitted), most_gpus, drop)


def _tidy(path: Path, drop: bool, strict: bool, fitted: bool) -> Rows:
    """Read ``job,arrival_s,duration_s,gpus[,type,family,iterations,estimate_s,patience_s]``.

    Arrivals may be dates; `strict` refuses implausible values. Empty cells of optional columns
    mean unknown; iterations are then duration × GPUs, and the estimate is the duration. If a fit
    follows (`fitted`), jobs of iterations need no duration.

    Raises
    ------
    InputError: for a job without a duration that may not be dropped, with what is missing.
    """
    table = read_table(path, _lenient(TIDY) if drop else TIDY, strict=strict)
    where = [f"row {row}" for row in table["#"]]
    gpus, duration, iterations, estimate, batch = (
        np.array(table[name])
        for name in ("gpus", "duration_s", "iterations", "estimate_s", "batch")
    )
    later = (duration == UNKNOWN) & fitted & (batch > 0) & (iterations > 0)
    duration = np.where(later, 1.0 + abs(estimate), duration)  # another than a given estimate
    for k in [] if drop else np.flatnonzero(duration == UNKNOWN)[:1].tolist():
        expected = f"{LONG_ENOUGH}; or family, batch, iterations and a fit of powerflow-throughput"
        raise InputError(str(path), f"{where[k]}, column duration_s", NoQuote("nothing"), expected)
    rest = {
        "names": table["job"],
        "kinds": table["type"],
        "families": table["family"],
        "iterations": np.where(iterations < 0, duration * gpus, iterations),
        "estimate_s": np.where(estimate < 0, duration, estimate),
        "patience_s": table["patience_s"],
        "batches": table["batch"] if any(table["batch"]) else None,
    }
    called = "duration_s", "gpus", "arrival_s"
    return Rows(str(path), where, called, duration, gpus, table["arrival_s"], rest, False)


def _lenient(columns: Sequence[Column]) -> list[Column]:
    """Return the columns with values for empty cells."""

    def unknown(column: Column) -> Any:
        if column.kind == "text":
            return None
        if column.empty is not None:
            return column.empty
        return math.nan if column.kind == "time" else 0 if column.kind == "integer" else UNKNOWN

    return [replace(column, unknown=unknown(column)) for column in columns]


def _philly(path: Path, drop: bool) -> Rows:
    """Read ``timestamp,duration,num_gpus[,cluster]``.

    Timestamps are ISO 8601, time zones respected, or seconds, durations in s; `cluster` (a
    virtual cluster) becomes the type.
    """
    table = read_table(path, _lenient(PHILLY) if drop else PHILLY)
    where = [f"row {row}" for row in table["#"]]
    rest = {"kinds": table["cluster"], "names": [place.replace(" ", "-") for place in where]}
    called = "duration", "num_gpus", "timestamp"
    duration, gpus, arrival = (table[name] for name in called)
    return Rows(str(path), where, called, duration, gpus, arrival, rest)


def _usable(rows: Rows, most_gpus: int, drop: bool) -> tuple[Jobs, list[str]]:
    """Return the jobs that can be run, by arrival, with notices of omissions and sorting.

    Raises
    ------
    InputError: for the first job that cannot be run, unless such jobs are dropped; if none is
        left.
    """
    time, size, when = rows.called
    duration, gpus = np.asarray(rows.duration, dtype=float), np.asarray(rows.gpus)
    arrival = np.asarray(rows.arrival, dtype=float)
    most = f"at most {most_gpus}, what the cluster has"
    good, dropped = np.ones(len(duration), dtype=bool), []
    for text, name, values, bad, expected in (
        (f"without a {time}", time, duration, duration < SHORTEST_S, LONG_ENOUGH),
        (f"without {size}", size, gpus, gpus < 1, "an integer of at least 1"),
        (f"larger than {most_gpus} GPUs", size, gpus, gpus > most_gpus, most),
        (f"without {when}", when, arrival, np.isnan(arrival), "a time"),
    ):
        for k in [] if drop else np.flatnonzero(bad)[:1].tolist():
            place = f"{rows.where[k]}, column {name}"
            raise InputError(rows.source, place, values[k].item(), expected)
        count = int((bad & good).sum())
        dropped += [counted(count, f"job {text} left out")] if count else []
        good &= ~bad
    kept = np.flatnonzero(good).tolist()
    notices = [*rows.notices(kept), *dropped]
    if not kept:
        raise InputError(rows.source, "", NoQuote("no jobs"), "at least one job")
    times = arrival[kept] - (min(arrival[kept]) if rows.from_first else 0.0)
    late = int((times[1:] < np.maximum.accumulate(times)[:-1]).sum())
    if late:
        notices.append(counted(late, "job out of order, sorted by arrival"))
    taken = {n: None if c is None else [c[k] for k in kept] for n, c in rows.rest.items()}
    jobs = Jobs.of(
        times,
        duration[kept],
        gpus[kept],
        **taken,  # type: ignore[arg-type]  # None only for batches
        places=[rows.where[k] for k in kept],
        source=rows.source,
    )
    return jobs, notices
