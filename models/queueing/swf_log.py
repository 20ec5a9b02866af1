"""The schedule that a log in the Standard Workload Format holds: waits are among its fields."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace

import numpy as np

from optgap.models import tables
from optgap.models.errors import InputError, NoQuote, shorten
from optgap.models.queueing.arrays import floats
from optgap.models.queueing.log import QueueLog, as_run
from optgap.models.queueing.problem import MOST_GPUS, QueueingProblem
from optgap.models.queueing.swf import NUMBER, SUBMIT, USER, read_swf
from optgap.models.reading import Path

WAIT = 2
PROCESSORS = re.compile(r";\s*Max(?:Procs|Nodes)\s*:\s*(\d+)", re.IGNORECASE)


def read_swf_log(
    path: Path, *, nodes: int | None = None, gpus_per_node: int | None = None
) -> QueueLog:
    """Read the jobs as `read_swf` does, and when they really started.

    Parameters
    ----------
    nodes, gpus_per_node: the cluster; ``MaxProcs`` of the header (else the largest job) without.

    Raises
    ------
    InputError: as for `read_swf`; when no job says how long it waited.
    """
    source = str(path)
    waits: dict[str, float] = {}
    users: dict[str, str] = {}
    submits: dict[str, float] = {}
    most = 0
    for text in tables.lines(path):
        header = PROCESSORS.match(text)
        if header:
            if len(header[1]) > len(str(MOST_GPUS)) or int(header[1]) > MOST_GPUS:
                where, expected = text.partition(":")[0].strip("; "), f"at most {MOST_GPUS}"
                raise InputError(source, where, NoQuote(shorten(header[1])), expected)
            most = max(most, int(header[1]))
        cells = text.split()
        if len(cells) > USER and not text.lstrip().startswith(";"):
            try:
                name = f"{float(cells[NUMBER]):.0f}"
                waits.setdefault(name, float(cells[WAIT]))
                submits.setdefault(name, float(cells[SUBMIT]))
            except ValueError:
                continue  # `read_swf` names the place
            users.setdefault(name, cells[USER])
    given = (nodes or 1) * (gpus_per_node or most or 1)
    found = read_swf(path, given if nodes or gpus_per_node or most else MOST_GPUS)
    jobs = found.jobs
    reasons: Counter[str] = Counter()
    for notice in found.notices:
        count, _, what = notice.partition(" ")
        if what.endswith(" left out"):
            reasons[what.removesuffix(" left out")] += int(count)
    known = np.array([k for k, name in enumerate(jobs.names) if waits.get(name, -1.0) >= 0])
    if not known.size:
        raise InputError(source, "", NoQuote("no job with a wait (field 3)"), "at least one")
    if known.size < len(jobs):
        reasons["jobs that say no wait"] = len(jobs) - int(known.size)
        jobs = jobs.take(known)
    submit = floats([submits[name] for name in jobs.names])
    jobs = replace(jobs, arrival_s=submit)  # as the log counts, not from its first job
    size = (nodes or 1, gpus_per_node or most or int(jobs.gpus.max()))
    problem = QueueingProblem.of(
        jobs, nodes=size[0], gpus_per_node=size[1], placement="count",
        name=f"swf {source}", origin=source, source=source,
    )  # fmt: skip
    wait = np.array([waits[name] for name in jobs.names])
    hours = float(jobs.gpu_seconds.sum()) / 3600
    return QueueLog(
        problem,
        as_run(problem, jobs.arrival_s + wait),
        submit,
        submit,
        tuple(f"user-{users[name]}" for name in jobs.names),
        jobs.kinds,
        len(jobs) + sum(reasons.values()),
        reasons,
        {"processors": (len(jobs), hours)},
        tuple(n for n in found.notices if not n.endswith(" left out")),
    )
