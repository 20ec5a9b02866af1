"""What the compiled event loop works on: the stream, the queue and the cluster, as arrays.

Few arrays with fields rather than many: the compiler passes every array on to every function.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from optgap.models.queueing.arrays import FloatArray, IntArray

Table = Any
"""A structured array: one row per job, GPU count or family, with the fields named below."""

FIFO, SJF, SHORTEST, SHORTEST_GPU, HPS, ADAPTIVE, EASY, PBS, SBS = range(9)
"""Rules that the loop knows; conservative backfilling has a loop of its own."""
INF = float("inf")

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


class Rule(NamedTuple):
    """A policy and its parameters; each uses its own.

    Parameters
    ----------
    kind: one of the constants above.
    strict: only the first job of the order is looked at.
    threshold, boost, full, fixed: HPS's aging.
    reserve: s after which the oldest job's start is protected (HPS); infinite for never.
    weights: the adaptive rule's (efficiency, fairness, resources) for short, middle and long
        queues, row by row.
    tau, small, medium, spread, cap, pairs: PBS's τ, γ, T, Δ, GPUs of a pair, and where pairs
        stand (0 off, 1 after rule 1, 2 first).
    similar, batch_gpus, batch_jobs, unit, whole: SBS's θ, G_max, jobs in a batch, seconds in a
        unit of time, and whether the whole batch is started.
    """

    kind: int
    strict: bool = False
    threshold: float = 300.0
    boost: float = 2.0
    full: float = 1800.0
    fixed: bool = False
    reserve: float = INF
    weights: tuple[float, ...] = (0.5, 0.2, 0.3, 0.3, 0.4, 0.3, 0.2, 0.6, 0.2)
    tau: float = 0.1
    small: int = 4
    medium: float = 7200.0
    spread: float = 0.25
    cap: int = 8
    pairs: int = 1
    similar: float = 0.5
    batch_gpus: int = 8
    batch_jobs: int = 4
    unit: float = 3600.0
    whole: bool = True


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
