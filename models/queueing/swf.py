"""The Standard Workload Format of the Parallel Workloads Archive, version 2.2.

One job per line, 18 numbers separated by spaces, -1 for what is unknown; lines that start with a
semicolon are the header or comments. Defined by Chapin et al., "Benchmarks and Standards for the
Evaluation of Parallel Job Schedulers", JSSPP 1999.
"""

from __future__ import annotations

import math
import os
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from optgap.models import tables
from optgap.models.errors import InputError, NoQuote

if TYPE_CHECKING:
    from optgap.models.queueing.readers import Read, Unusable

FIELDS = 18
MOST = 2.0**53
"""From here on a float does not tell neighbouring integers apart."""
NUMBER, SUBMIT, RUN, USED, ASKED, LIMIT, STATUS, USER, QUEUE = 0, 1, 3, 4, 7, 8, 10, 11, 14
PARTS = (2, 3, 4)
"""Status of a line that is one part of a job with checkpoints; a line of its own sums it up."""


@dataclass(frozen=True, slots=True)
class Line:
    """What is used of one job's line."""

    row: int
    number: str
    submit_s: float
    run_s: float
    processors: int
    limit_s: float
    queue: str


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

    source = str(path)
    lines, counts = _lines(path)
    notices = [f"{count} {what}" for what, count in counts.items() if count]
    where = [f"row {line.row}" for line in lines]
    duration = np.array([line.run_s for line in lines], dtype=float)
    gpus = np.array([line.processors for line in lines], dtype=np.int64)
    columns = {"run time": duration, "processors": gpus}
    kept, dropped = usable(columns, most_gpus, unusable != "refuse", where, source)
    known = sum(lines[k].limit_s > 0 for k in kept)
    if known < len(kept):
        notices.append(f"{len(kept) - known} jobs without a requested time, the run time taken")
    origin = min((lines[k].submit_s for k in kept), default=0.0)
    rest = {
        "names": [line.number for line in lines],
        "kinds": [line.queue for line in lines],
        "estimate_s": [line.limit_s if line.limit_s > 0 else line.run_s for line in lines],
    }
    arrival = [line.submit_s - origin for line in lines]
    return _stream(arrival, duration, gpus, rest, kept, where, [*notices, *dropped], source)


def _lines(path: str | os.PathLike[str]) -> tuple[list[Line], Counter[str]]:
    source = str(path)
    found: list[Line] = []
    counts: Counter[str] = Counter()
    for row, text in enumerate(tables.lines(path), 1):
        body = text.strip()
        if not body or body.startswith(";"):
            continue
        values = _values(body, f"row {row}", source)
        if values[STATUS] in PARTS:
            counts["parts of jobs with checkpoints left out"] += 1
        elif values[SUBMIT] < 0:
            counts["jobs without a submit time left out"] += 1
        else:
            found.append(_line(row, values))
    if not found:
        raise InputError(source, "", NoQuote("no jobs"), "at least one job")
    return found, counts


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
    processors = values[ASKED] if values[ASKED] > 0 else values[USED]
    return Line(
        row,
        f"{values[NUMBER]:.0f}",
        values[SUBMIT],
        values[RUN],
        int(processors),
        values[LIMIT],
        f"queue-{values[QUEUE]:.0f}" if values[QUEUE] >= 0 else "",
    )
