"""What the compiled event loop works on: the stream, the queue and the cluster, as arrays.

Few arrays with fields rather than many: the compiler passes every array on to every function.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from optgap.heuristics.queueing.rule import Rule
from optgap.models.queueing.arrays import FloatArray, IntArray

Table = Any
"""A structured array: one row per job, GPU count or family, with the fields named below."""

JOB = np.dtype(
    [
        *((name, "f8") for name in ("arrival", "duration", "estimate", "leaves", "start")),
        *((name, "f8") for name in ("iterations", "efficiency")),
        *((name, "i8") for name in ("gpus", "cls", "family", "held_at", "nodes", "waiting")),
        *((name, "i8") for name in ("time_rank", "size_rank")),
    ]
)
"""The jobs by arrival; a job's number is its rank where ties are broken.

Times in s: decisions see the estimate only; `leaves` is when a job that still waits goes away,
`start` is NaN until it starts. `efficiency` is it/(n·t) rounded to 1e-9, `cls` the place of n among
the different GPU counts, ascending. The job's nodes are written to `held` from `held_at` on, so
many as `nodes`. The ranks are by (t, n) and by (n, t)."""

CLASS = np.dtype(
    [(name, "i8") for name in ("gpus", "first", "size", "root", "width", "waiting", "fit")]
)
"""One GPU count: its `size` jobs stand in each order from `first` on. The tree of an order starts
at `root`, has its top at 1 and its leaves from `width` on. `waiting` counts those that wait, and
`fit` is 1 where some do and fit now."""

FAMILY = np.dtype([(name, "i8") for name in ("count", "next", "end")])
"""One model family: how many of its jobs SBS looks at, and the jobs of `member` from `next` to
`end` that it has not looked at yet."""

BY_ARRIVAL, BY_TIME, BY_EFFICIENCY = range(3)
"""Orders of the jobs of one GPU count. Their trees hold estimates, negative efficiencies and
zeros; infinity for a job that does not wait."""
NOW, AHEAD = range(2)
"""The cluster itself, and a copy to look ahead on."""
TRUE, PLANNED = range(2)
"""Ends of the running jobs as they will be, and as estimated."""

COUNTS = ("arrived", "left", "running", "queue", "head", "rounds", "events", "longest_queue")
ARRIVED, LEFT, RUNNING, QUEUE, HEAD, ROUNDS, EVENTS, LONGEST = range(8)
"""Places in `Run.tally`: jobs that have arrived, places of `leavers` that are done, running and
waiting jobs, the first that may wait, rounds of decisions, events, the longest queue."""


class Run(NamedTuple):
    """One run of one policy.

    Parameters
    ----------
    jobs, classes, families: rows of `JOB`, `CLASS` and `FAMILY`.
    leavers: the jobs that leave if they still wait, in that order.
    order, place, tree: per order the jobs by GPU count, a job's place within its own, and trees.
    tally: see `COUNTS`.
    free, level: free GPUs per node, and nodes per number of free GPUs; now and ahead.
    ends, running: running jobs by descending end; true and planned.
    held: nodes, and GPUs on them, of the jobs that have started.
    picks: jobs chosen together.
    spare: where a placement is written that is only tried.
    lists: per family the jobs that SBS looks at, by (t, n) and by (n, t).
    member: the jobs by family.
    g: GPUs per node.
    """

    rule: Rule
    jobs: Table
    classes: Table
    families: Table
    leavers: IntArray
    order: IntArray
    place: IntArray
    tree: FloatArray
    tally: IntArray
    free: IntArray
    level: IntArray
    ends: FloatArray
    running: IntArray
    held: IntArray
    picks: IntArray
    spare: IntArray
    lists: IntArray
    member: IntArray
    g: int
