"""The Standard Workload Format of the Parallel Workloads Archive, version 2.2.

One job per line, 18 numbers separated by spaces, -1 for what is unknown; lines that start with a
semicolon are the header or comments. Defined by Chapin et al., "Benchmarks and Standards for the
Evaluation of Parallel Job Schedulers", JSSPP 1999.
"""

from __future__ import annotations

import math
import os
import re
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from optgap.models import tables
from optgap.models.errors import InputError, NoQuote, shorten
from optgap.models.queueing.arrays import floats
from optgap.models.queueing.jobs import Jobs
from optgap.models.queueing.log import AT_ONCE, Pool, QueueLog, peak
from optgap.models.queueing.problem import MOST_GPUS
from optgap.models.shown import counted
from optgap.models.times import SHORTEST_S, shown

if TYPE_CHECKING:
    from optgap.models.queueing.readers import Read, Unusable

FIELDS = 18
MOST = 2.0**53
"""From here on a float does not tell neighbouring integers apart."""
NUMBER, SUBMIT, WAIT, RUN, USED, ASKED, LIMIT, STATUS, USER, QUEUE = 0, 1, 2, 3, 4, 7, 8, 10, 11, 14
PARTS = (2, 3, 4)
"""Status of a line that is one part of a job with checkpoints; a line of its own sums it up."""
HEADER = re.compile(r";\s*(MaxProcs|MaxNodes)\s*:\s*(\d+)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Line:
    """What is used of one job's line; -1 is what the log does not tell."""

    row: int
    number: str
    submit_s: float
    wait_s: float
    run_s: float
    used: int
    asked: int
    limit_s: float
    user: str
    queue: str

    @property
    def estimate_s(self) -> float:
        """The time that was requested, or else the run time."""
        return self.limit_s if self.limit_s > 0 else self.run_s

    @property
    def held(self) -> int:
        """Processors that were allocated, or else requested."""
        return self.used if self.used >= 0 else self.asked

    @property
    def lacks(self) -> str:
        """Why it is no job that held processors from a known start; "" where it is."""
        if self.held < 1:
            return "job without processors"
        if self.run_s < SHORTEST_S:
            return "job with a run time of " + ("0" if self.run_s >= 0 else "-1, unknown")
        return "" if self.wait_s >= 0 else "job without a wait"


@dataclass(frozen=True)
class Log:
    """The lines that are jobs, how many are left out by why, and numbers of the header."""

    lines: list[Line]
    reasons: Counter[str]
    header: dict[str, int]


def read_swf(path: str | os.PathLike[str], most_gpus: int, unusable: Unusable = "auto") -> Read:
    """Read a log; processors count as GPUs.

    Processors are those requested, or those used where no request is known; the requested
    time is the scheduler's estimate, or the run time where none is known. Time starts with the
    first job. Left out, and counted: parts of jobs with checkpoints (status 2 to 4), jobs whose
    submit time is unknown, and, unless `unusable` is ``refuse``, jobs without a run time or
    processors and jobs larger than the cluster.

    Raises
    ------
    InputError: naming the row of a line that is not 18 numbers, or of a job number that is there
        twice.
    """
    from optgap.models.queueing.readers import _stream, usable

    source, log = str(path), _read(path)
    lines = log.lines
    notices = [counted(count, f"{what} left out") for what, count in log.reasons.items()]
    where = [f"row {line.row}" for line in lines]
    duration = np.array([line.run_s for line in lines], dtype=float)
    gpus = np.array([line.asked if line.asked > 0 else line.used for line in lines], dtype=np.int64)
    columns = {"run time": duration, "processors": gpus}
    kept, dropped = usable(columns, most_gpus, unusable != "refuse", where, source)
    notices += _no_limit([lines[k] for k in kept])
    origin = min((lines[k].submit_s for k in kept), default=0.0)
    rest = {
        "names": [line.number for line in lines],
        "kinds": [line.queue for line in lines],
        "estimate_s": [line.estimate_s for line in lines],
    }
    arrival = [line.submit_s - origin for line in lines]
    return _stream(arrival, duration, gpus, rest, kept, where, [*notices, *dropped], source)


def read_swf_log(
    path: str | os.PathLike[str],
    *,
    gpus: int | None = None,
    nodes: int | None = None,
    gpus_per_node: int | None = None,
) -> QueueLog:
    """Read the jobs with the processors that they held, and when they really started.

    Parameters
    ----------
    gpus: the cluster's; without it ``MaxProcs`` of the header, else the most processors held at
        once, or ``MaxNodes`` if that is more.
    nodes, gpus_per_node: the same, as two numbers.

    Raises
    ------
    InputError: as for `read_swf`; when no job held processors from a known start.
    """
    source, log = str(path), _read(path)
    reasons = log.reasons + Counter(line.lacks for line in log.lines if line.lacks)
    lines = sorted((x for x in log.lines if not x.lacks), key=lambda line: line.submit_s)
    if not lines:
        left = ", ".join(counted(n, why) for why, n in reasons.items())
        expected = "a job with a wait, a run time and processors (fields 3 to 5)"
        raise InputError(source, "", NoQuote("none"), f"{expected}; left out: {left}")
    submit = floats([line.submit_s for line in lines])
    jobs = Jobs.of(
        submit,
        [line.run_s for line in lines],
        [line.held for line in lines],
        names=[line.number for line in lines],
        kinds=[line.queue for line in lines],
        estimate_s=[line.estimate_s for line in lines],
        places=[f"row {line.row}" for line in lines],
        source=source,
    )
    start = floats(submit + [line.wait_s for line in lines])
    told = {"gpus": gpus, "nodes": nodes, "gpus_per_node": gpus_per_node}
    most, procs = peak(start, start + jobs.duration_s, jobs.gpus)[0], log.header.get("maxprocs", 0)
    count = log.header.get("maxnodes", 0)
    pool = Pool(1, procs, "MaxProcs", "MaxProcs")
    if not procs or any(told.values()):
        why = "MaxNodes" if count > most else AT_ONCE
        pool = Pool.of(told, [procs or max(most, count)], most, why)
    hours = float(jobs.gpu_seconds.sum()) / 3600
    return QueueLog.of(
        jobs,
        start,
        pool,
        name=f"swf {source}",
        source=source,
        unit="processors",
        at=lambda time_s: f"{shown(time_s)} s",
        submit_s=submit,
        users=[f"user-{line.user}" for line in lines],
        records=len(jobs) + reasons.total(),
        reasons=reasons,
        pools={"processors": (len(jobs), hours)},
        warnings=_no_limit(lines),
    )


def _no_limit(lines: list[Line]) -> list[str]:
    """A notice where times are not requested."""
    count = sum(line.limit_s <= 0 for line in lines)
    what = counted(count, "job without a requested time")
    return [f"{what}, the run time taken"] if count else []


def _read(path: str | os.PathLike[str]) -> Log:
    source = str(path)
    log = Log([], Counter(), {})
    for row, text in enumerate(tables.lines(path), 1):
        body = text.strip()
        header = HEADER.match(body)
        if header:
            name, number = header.groups()
            if len(number) > len(str(MOST_GPUS)) or int(number) > MOST_GPUS:
                raise InputError(source, name, NoQuote(shorten(number)), f"at most {MOST_GPUS}")
            log.header[name.lower()] = max(log.header.get(name.lower(), 0), int(number))
        if not body or body.startswith(";"):
            continue
        values = _values(body, f"row {row}", source)
        if values[STATUS] in PARTS:
            log.reasons["part of a job with checkpoints"] += 1
        elif values[SUBMIT] < 0:
            log.reasons["job without a submit time"] += 1
        else:
            log.lines.append(_line(row, values))
    if not log.lines:
        raise InputError(source, "", NoQuote("no jobs"), "at least one job")
    return log


def _values(body: str, where: str, source: str) -> list[float]:
    cells = body.split()
    if len(cells) != FIELDS:
        raise InputError(source, where, NoQuote(f"{len(cells)} fields"), f"{FIELDS} numbers")
    values = []
    for k, cell in enumerate(cells, 1):
        try:
            value = float(cell)
        except ValueError:
            value = math.nan
        if not -1 <= value < MOST:
            expected = f"a number of at least 0 and below {MOST:g}, or -1"
            raise InputError(source, f"{where}, field {k}", cell, expected)
        values.append(value)
    return values


def _line(row: int, values: list[float]) -> Line:
    return Line(
        row,
        f"{values[NUMBER]:.0f}",
        values[SUBMIT],
        values[WAIT],
        values[RUN],
        int(values[USED]),
        int(values[ASKED]),
        values[LIMIT],
        f"{values[USER]:.0f}",
        f"queue-{values[QUEUE]:.0f}" if values[QUEUE] >= 0 else "",
    )
