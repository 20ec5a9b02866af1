"""Reader of the Standard Workload Format of the Parallel Workloads Archive, version 2.2.

A line has one job as 18 numbers separated by spaces, -1 for unknown ones. Lines that start with a
semicolon are the header or comments. Chapin et al. define the format in "Benchmarks and Standards
for the Evaluation of Parallel Job Schedulers", JSSPP 1999.
"""

from __future__ import annotations

import math
import os
import re
from collections import Counter
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from optgap.models import tables
from optgap.models.errors import InputError, NoQuote, shorten
from optgap.models.queueing.arrays import FloatArray, floats, integers
from optgap.models.queueing.jobs import Jobs
from optgap.models.queueing.log import AT_ONCE, Pool, QueueLog, peak
from optgap.models.queueing.problem import MOST_GPUS
from optgap.models.shown import counted
from optgap.models.times import SHORTEST_S, shown

if TYPE_CHECKING:
    from optgap.models.queueing.readers import Rows

FIELDS = 18
MOST = 2.0**53
"""Least integer from which on floats cannot represent all integers."""
NUMBER, SUBMIT, WAIT, RUN, USED, ASKED, LIMIT, STATUS, QUEUE = 0, 1, 2, 3, 4, 7, 8, 10, 14
PARTS = (2, 3, 4)
"""Status of a part of a job with checkpoints; another line has the whole job."""
HEADER = re.compile(r";\s*(MaxProcs|MaxNodes)\s*:\s*(\d+)", re.IGNORECASE)


class Log(NamedTuple):
    """Lines of a log that are jobs.

    Parameters
    ----------
    values: (J, 18) numbers of the lines; -1 is unknown.
    rows: place of each line.
    reasons: number of lines left out, by reason.
    header: numbers of processors by the name of the comment.
    """

    values: FloatArray
    rows: list[str]
    reasons: Counter[str]
    header: Counter[str]


def _told(values: FloatArray) -> dict[str, Any]:
    """Return names of jobs and queues, and estimates: requested times, else run times."""
    number, run, limit, queue = values[:, [NUMBER, RUN, LIMIT, QUEUE]].T
    return {
        "names": [f"{one:.0f}" for one in number],
        "kinds": [f"queue-{one:.0f}" if one >= 0 else "" for one in queue],
        "estimate_s": floats(np.where(limit > 0, limit, run)),
    }


def _guessed(values: FloatArray) -> list[str]:
    """Return a notice if some jobs have no requested time."""
    count = int((values[:, LIMIT] <= 0).sum())
    what = counted(count, "job without a requested time")
    return [f"{what}, the run time taken"] if count else []


def swf_rows(path: str | os.PathLike[str]) -> Rows:
    """Read a log as a stream of jobs; processors count as GPUs.

    Processors are the requested ones, or the used ones if no request is known. The scheduler's
    estimate is the requested time, or the run time if that is unknown. Parts of jobs with
    checkpoints (status 2 to 4) and jobs without a submit time are left out and counted.

    Raises
    ------
    InputError: naming the row of a line that is not 18 numbers.
    """
    from optgap.models.queueing.readers import Rows

    log = _read(path)
    submit, run, used, asked = log.values[:, [SUBMIT, RUN, USED, ASKED]].T
    gpus = np.where(asked > 0, asked, used).astype(np.int64)
    left = [counted(count, f"{what} left out") for what, count in log.reasons.items()]
    return Rows(
        str(path), log.rows, ("run time", "processors", "submit time"), run, gpus, submit,
        _told(log.values), notices=lambda kept: left + _guessed(log.values[kept]),
    )  # fmt: skip


def read_swf_log(
    path: str | os.PathLike[str],
    *,
    gpus: int | None = None,
) -> QueueLog:
    """Read the jobs with the processors that they held, and when they really started.

    Parameters
    ----------
    gpus: GPUs of the cluster. Default: ``MaxProcs`` of the header, else the most processors held
        at once, or ``MaxNodes`` if that is more.

    Raises
    ------
    InputError: as for `swf_rows`; if no job held processors from a known start.
    """
    source, log = str(path), _read(path)
    submit, wait, run, used = log.values[:, [SUBMIT, WAIT, RUN, USED]].T
    held = np.where(used >= 0, used, log.values[:, ASKED]).astype(np.int64)
    lacks = {
        "job without processors": held < 1,
        "job with a run time of -1, unknown": run < 0,
        "job with a run time of 0": run < SHORTEST_S,
        "job without a wait": wait < 0,
    }
    lack = np.select([*lacks.values()], [*lacks], "")
    reasons = log.reasons + Counter(lack[lack != ""].tolist())
    kept = integers(sorted(np.flatnonzero(lack == ""), key=lambda k: submit[k]))
    if not kept.size:
        left = ", ".join(counted(n, what) for what, n in reasons.items())
        expected = "a job with a wait, a run time and processors (fields 3 to 5)"
        raise InputError(source, "", NoQuote("none"), f"{expected}; left out: {left}")
    jobs = Jobs.of(
        submit[kept],
        run[kept],
        held[kept],
        **_told(log.values[kept]),
        places=[log.rows[k] for k in kept],
        source=source,
    )
    start = floats((submit + wait)[kept])
    most, procs = peak(start, start + jobs.duration_s, jobs.gpus)[0], log.header["maxprocs"]
    count = log.header["maxnodes"]
    pool = Pool(max(most, count), "MaxNodes" if count > most else AT_ONCE)
    pool = Pool(procs, "MaxProcs", "MaxProcs") if procs else pool
    pools = {"processors": (len(jobs), float(jobs.gpu_seconds.sum()) / 3600)}
    return QueueLog.of(
        jobs, start, gpus, pool, f"swf {source}", source, lambda t: f"{shown(t)} s", reasons, pools,
        _guessed(log.values[kept]),
    )  # fmt: skip


def _read(path: str | os.PathLike[str]) -> Log:
    source = str(path)
    jobs: list[list[float]] = []
    rows: list[str] = []
    reasons, most = Counter[str](), Counter[str]()
    for row, text in enumerate(tables.lines(path), 1):
        body = text.strip()
        header = HEADER.match(body)
        if header:
            name, number = header.groups()
            if len(number) > len(str(MOST_GPUS)) or int(number) > MOST_GPUS:
                raise InputError(source, name, NoQuote(shorten(number)), f"at most {MOST_GPUS}")
            most[name.lower()] = max(most[name.lower()], int(number))
        if not body or body.startswith(";"):
            continue
        values = _values(body, f"row {row}", source)
        if values[STATUS] in PARTS:
            reasons["part of a job with checkpoints"] += 1
        elif values[SUBMIT] < 0:
            reasons["job without a submit time"] += 1
        else:
            jobs.append(values)
            rows.append(f"row {row}")
    if not jobs:
        raise InputError(source, "", NoQuote("no jobs"), "at least one job")
    return Log(floats(np.array(jobs)), rows, reasons, most)


def _values(body: str, where: str, source: str) -> list[float]:
    cells = body.split()
    if len(cells) != FIELDS:
        raise InputError(source, where, NoQuote(counted(len(cells), "field")), f"{FIELDS} numbers")
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
