"""Job streams from files: the tidy table, Philly's table, and the Standard Workload Format."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

import numpy as np

from optgap.models.errors import InputError, NoQuote, one_of
from optgap.models.performance.fitted import Iterations
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


@dataclass(frozen=True)
class Read:
    """Jobs, and what was changed or left out on the way."""

    jobs: Jobs
    notices: tuple[str, ...]


def read_jobs(
    path: Path,
    most_gpus: int,
    unusable: Unusable = "auto",
    strict: bool = False,
    times: Mapping[str, Iterations] | None = None,
    gpus_per_node: int = 8,
) -> Read:
    """Jobs from a file, whose format its name and header tell; see `presets.from_csv`.

    Raises
    ------
    InputError: naming file, row and column of what cannot be used.
    """
    if unusable not in get_args(Unusable):
        expected = one_of(get_args(Unusable))
        raise InputError("--set", "unusable", unusable, expected)
    name = str(path).removesuffix(".gz")
    if name.endswith(".swf"):
        from optgap.models.queueing.swf import read_swf

        return read_swf(path, most_gpus, unusable)
    if {"timestamp", "num_gpus"} <= set(read_header(path)):
        return _philly(path, most_gpus, unusable != "refuse")
    return _tidy(path, most_gpus, unusable == "drop", strict, times or {}, gpus_per_node)


def _tidy(
    path: Path,
    most_gpus: int,
    drop: bool,
    strict: bool,
    times: Mapping[str, Iterations],
    gpus_per_node: int,
) -> Read:
    """Read ``job,arrival_s,duration_s,gpus[,type,family,iterations,estimate_s,patience_s]``.

    Arrivals may be dates; with `strict`, values that are not believed are refused. With the
    `times` of iterations by family, jobs that tell a batch and iterations last as long as these
    take. Empty cells of the optional columns mean unknown; iterations are then duration × GPUs and
    the estimate is the duration.
    """
    table = read_table(path, _lenient(TIDY) if drop else TIDY, strict=strict)
    where = [f"row {row}" for row in table["#"]]
    gpus = np.array(table["gpus"])
    duration = _timed(table, times, gpus_per_node, where, str(path), drop)
    iterations, estimate = np.array(table["iterations"]), np.array(table["estimate_s"])
    columns = {
        "names": table["job"],
        "kinds": table["type"],
        "families": table["family"],
        "iterations": np.where(iterations < 0, duration * gpus, iterations),
        "estimate_s": np.where(estimate < 0, duration, estimate),
        "patience_s": table["patience_s"],
        "batches": table["batch"] if any(table["batch"]) else None,
    }
    told = {"duration_s": duration, "gpus": gpus, "arrival_s": np.array(table["arrival_s"])}
    kept, notices = usable(told, most_gpus, drop, where, str(path))
    return _stream(table["arrival_s"], duration, gpus, columns, kept, where, notices, str(path))


def _lenient(columns: Sequence[Column]) -> list[Column]:
    """The columns, with what stands for cells that tell nothing."""

    def unknown(column: Column) -> Any:
        if column.kind == "text":
            return None
        if column.empty is not None:
            return column.empty
        return math.nan if column.kind == "time" else 0 if column.kind == "integer" else UNKNOWN

    return [replace(column, unknown=unknown(column)) for column in columns]


def _timed(
    table: dict[str, list[Any]],
    times: Mapping[str, Iterations],
    gpus_per_node: int,
    where: Sequence[str],
    source: str,
    drop: bool,
) -> Any:
    """Run times in s: those given, and iterations × T_iter where a fit knows the family.

    Raises
    ------
    InputError: for a job with neither that is not to be dropped: what it says and what is missing.
    """
    found = np.array(table["duration_s"], dtype=float)
    for k, place in enumerate(where):
        family, batch, count = table["family"][k], table["batch"][k], table["iterations"][k]
        by_fit = bool(times) and batch > 0 and count > 0 and table["gpus"][k] > 0
        if by_fit and family not in times:
            raise InputError(source, f"{place}, column family", family, one_of(times))
        if by_fit:
            item = times[family]
            per_iteration = item.seconds(table["gpus"][k], batch, item.top_mhz, gpus_per_node)
            found[k] = count * float(per_iteration)
        elif found[k] == UNKNOWN and not drop:
            expected = (
                f"{LONG_ENOUGH}; or family, batch, iterations and a fit of powerflow-throughput"
            )
            raise InputError(source, f"{place}, column duration_s", NoQuote("nothing"), expected)
    return found


def _philly(path: Path, most_gpus: int, drop: bool) -> Read:
    """Read ``timestamp,duration,num_gpus[,cluster]``; time starts with the first job.

    Timestamps are ISO 8601, time zones respected, or seconds, durations in s; `cluster` (a
    virtual cluster) becomes the type.
    """
    table = read_table(path, _lenient(PHILLY) if drop else PHILLY)
    where = [f"row {row}" for row in table["#"]]
    stamps = np.array(table["timestamp"], dtype=float)
    duration, gpus = np.array(table["duration"]), np.array(table["num_gpus"])
    told = {"duration": duration, "num_gpus": gpus, "timestamp": stamps}
    kept, notices = usable(told, most_gpus, drop, where, str(path))
    origin = min((stamps[k] for k in kept), default=0.0)
    columns = {"kinds": table["cluster"], "names": [f"row-{row}" for row in table["#"]]}
    arrival = [stamp - origin for stamp in stamps]
    return _stream(arrival, duration, gpus, columns, kept, where, notices, str(path))


def usable(
    columns: dict[str, Any],
    most_gpus: int,
    drop: bool,
    where: Sequence[str],
    source: str,
) -> tuple[list[int], list[str]]:
    """The jobs that can be run, and how many were left out why.

    `columns` are the run times, the GPU counts and, where they may be unknown (NaN), the arrivals,
    under the names the file has for them.

    Raises
    ------
    InputError: for the first job that cannot be run, unless they are to be dropped.
    """
    time, size, *arrival = columns
    duration, gpus = columns[time], columns[size]
    most = f"at most {most_gpus}, what the cluster has"
    faults = [
        (f"without a {time}", time, duration < SHORTEST_S, LONG_ENOUGH),
        (f"without {size}", size, gpus < 1, "an integer of at least 1"),
        (f"larger than {most_gpus} GPUs", size, gpus > most_gpus, most),
    ]
    faults += [(f"without {name}", name, np.isnan(columns[name]), "a time") for name in arrival]
    good = np.ones(len(duration), dtype=bool)
    notices = []
    for text, name, bad, expected in faults:
        bad = bad & good
        if not bad.any():
            continue
        if not drop:
            k = int(np.argmax(bad))
            raise InputError(
                source, f"{where[k]}, column {name}", columns[name][k].item(), expected
            )
        notices.append(counted(int(bad.sum()), f"job {text} left out"))
        good &= ~bad
    return np.flatnonzero(good).tolist(), notices


def _stream(
    arrival: Sequence[float],
    duration: Any,
    gpus: Any,
    columns: dict[str, Any],
    kept: list[int],
    where: Sequence[str],
    notices: list[str],
    source: str,
) -> Read:
    """The jobs kept, by arrival, and a notice when they were not so in the file."""
    times = np.array(arrival, dtype=float)[kept]
    late = int((times[1:] < np.maximum.accumulate(times)[:-1]).sum()) if len(times) else 0
    if late:
        notices = [*notices, counted(late, "job out of order, sorted by arrival")]
    if not kept:
        raise InputError(source, "", NoQuote("no jobs"), "at least one job")
    taken = {n: None if c is None else [c[k] for k in kept] for n, c in columns.items()}
    jobs = Jobs.of(
        times,
        np.asarray(duration, dtype=float)[kept],
        np.asarray(gpus)[kept],
        **taken,  # type: ignore[arg-type]  # None only for batches
        places=[where[k] for k in kept],
        source=source,
    )
    return Read(jobs, tuple(notices))
