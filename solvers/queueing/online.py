"""A stream being served online: the events, the queue and the cluster; compiled.

For policies that pick the nodes of jobs themselves. They know no job that has not arrived and,
where they differ, estimates instead of run times.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from optgap.models.compiled import compiled, inner
from optgap.models.queueing.arrays import FloatArray, IntArray
from optgap.models.queueing.kernels import fits, take
from optgap.solvers.queueing.list_annealing import Search, search_of
from optgap.solvers.queueing.list_schedule import (
    COMPACT,
    NOBODY,
    Machine,
    Stream,
    demand,
    slack,
)

ARRIVED, WAITING, RUNNING, EVENTS, PLANS, LONGEST = range(6)
"""Places in `Online.tally`: jobs that have arrived, that wait and that run; events, plans made, and
the longest queue."""
OVERRUN, OVERRUN_S = 0.5, 60.0
"""A job that overruns its estimate is taken to run half as long again, and this long at least."""
INF = float("inf")


class Online(NamedTuple):
    """A stream being served.

    Parameters
    ----------
    truth: the jobs as they are.
    search: the jobs as estimated, and the plan.
    queue: the waiting jobs, in the order of the last plan; new ones by estimate.
    ends, running: the running jobs by descending true end.
    start, node: what has been started, and where; NaN for not yet.
    free, level: free GPUs per node, and nodes per number free.
    sizes, cls, waiting: the different GPU counts, which of them each job has, and how many jobs
        of each wait.
    tally: see the names above.
    patient: no job leaves.
    """

    truth: Stream
    search: Search
    queue: IntArray
    ends: FloatArray
    running: IntArray
    start: FloatArray
    node: IntArray
    free: IntArray
    level: IntArray
    sizes: IntArray
    cls: IntArray
    waiting: IntArray
    tally: IntArray
    patient: bool


def online_of(truth: Stream, estimate: FloatArray, nodes: int, seed: int) -> Online:
    """An idle cluster before the first arrival."""
    g, count = truth.g, len(truth.gpus)
    most = min(count, nodes * g)
    guess = truth._replace(duration=estimate.copy(), latest=np.full(count, np.inf))
    sizes, cls = np.unique(truth.gpus, return_inverse=True)
    level = np.zeros(g + 1, dtype=np.int64)
    level[g] = nodes
    return Online(
        truth,
        search_of(guess, np.arange(count), nodes, COMPACT, seed),
        np.zeros(count, dtype=np.int64),
        np.zeros(most + 1),
        np.zeros(most + 1, dtype=np.int64),
        np.full(count, np.nan),
        np.full(int(truth.at[-1]), NOBODY, dtype=np.int64),
        np.full(nodes, g, dtype=np.int64),
        level,
        sizes.astype(np.int64),
        cls.astype(np.int64),
        np.zeros(len(sizes), dtype=np.int64),
        np.zeros(6, dtype=np.int64),
        bool(np.isinf(truth.latest).all()),
    )


@inner
def next_event(online: Online) -> float:
    """When a job arrives, ends or leaves next, s; infinite for never again."""
    tally, time = online.tally, INF
    if tally[ARRIVED] < len(online.start):
        time = online.truth.arrival[tally[ARRIVED]]
    if tally[RUNNING] > 0:
        time = min(time, online.ends[tally[RUNNING] - 1])
    for p in range(0 if online.patient else tally[WAITING]):
        time = min(time, online.truth.latest[online.queue[p]])
    return time


@inner
def happen(online: Online, time: float) -> float:
    """Ends, arrivals and departures at the same time; when the last of them is."""
    truth, tally, until = online.truth, online.tally, time + slack(time)
    now = time
    tally[EVENTS] += 1
    while tally[RUNNING] > 0 and online.ends[tally[RUNNING] - 1] <= until:
        tally[RUNNING] -= 1
        j = online.running[tally[RUNNING]]
        now = max(now, online.ends[tally[RUNNING]])
        for h in range(truth.at[j], truth.at[j + 1]):
            n = demand(truth.gpus[j], truth.g, h - truth.at[j])
            take(online.free, online.level, online.node[h], -n)
    while tally[ARRIVED] < len(online.start) and truth.arrival[tally[ARRIVED]] <= until:
        j = tally[ARRIVED]
        now = max(now, truth.arrival[j])
        tally[ARRIVED] += 1
        _line_up(online, j)
    tally[LONGEST] = max(tally[LONGEST], tally[WAITING])
    return now if online.patient else _depart(online, now, until)


@inner
def _depart(online: Online, now: float, until: float) -> float:
    """Take the jobs off the queue whose patience has ended; when the last of them did."""
    truth, queue, kept = online.truth, online.queue, 0
    for p in range(online.tally[WAITING]):
        j = queue[p]
        if truth.latest[j] <= until:
            now = max(now, truth.latest[j])
            online.waiting[online.cls[j]] -= 1
        else:
            queue[kept] = j
            kept += 1
    online.tally[WAITING] = kept
    return now


@inner
def _line_up(online: Online, j: int) -> None:
    """Let job j into the queue, before the jobs at its end that are estimated to be longer."""
    guess, queue, p = online.search.stream.duration, online.queue, online.tally[WAITING]
    while p > 0 and guess[queue[p - 1]] > guess[j]:
        queue[p] = queue[p - 1]
        p -= 1
    queue[p] = j
    online.tally[WAITING] += 1
    online.waiting[online.cls[j]] += 1


@compiled
def by_estimate(online: Online) -> None:
    """Bring the queue in the order of estimates again."""
    many = online.tally[WAITING]
    online.tally[WAITING] = 0
    for p in range(many):
        j = online.queue[p]
        online.waiting[online.cls[j]] -= 1
        _line_up(online, j)


@inner
def some_fit(online: Online) -> bool:
    """Whether any waiting job fits now."""
    for c in range(len(online.sizes)):
        if online.waiting[c] > 0 and fits(
            online.free, online.level, online.sizes[c], online.truth.g
        ):
            return True
    return False


@inner
def look_ahead(online: Online, machine: Machine, now: float) -> None:
    """Make `machine` the cluster as it is now, with the ends that are expected."""
    search, tally = online.search, online.tally
    guess = search.stream
    machine.free[:] = online.free
    machine.level[:] = online.level
    machine.last[:] = now
    for k in range(tally[RUNNING]):
        j = online.running[k]
        end = online.start[j] + guess.duration[j]
        if end <= now + slack(now):
            end = now + max(OVERRUN_S, OVERRUN * (now - online.start[j]))
        p = k
        while p > 0 and machine.ends[p - 1] < end:
            machine.ends[p], machine.running[p] = machine.ends[p - 1], machine.running[p - 1]
            p -= 1
        machine.ends[p], machine.running[p] = end, j
        for h in range(guess.at[j], guess.at[j + 1]):
            node = online.node[h]
            search.node[h] = search.plan.node[h] = node
            machine.last[node] = max(machine.last[node], end)
    machine.size[0] = tally[RUNNING]
    machine.clock[0], machine.clock[1], machine.clock[2] = now, 0.0, 0.0


@inner
def begin(online: Online, j: int, node: IntArray, now: float) -> None:
    """Start job j on the nodes written down for it in `node`."""
    truth, tally, ends = online.truth, online.tally, online.ends
    online.start[j] = now
    for h in range(truth.at[j], truth.at[j + 1]):
        online.node[h] = node[h]
        n = demand(truth.gpus[j], truth.g, h - truth.at[j])
        take(online.free, online.level, node[h], n)
    end, p = now + truth.duration[j], tally[RUNNING]
    while p > 0 and ends[p - 1] < end:
        ends[p], online.running[p] = ends[p - 1], online.running[p - 1]
        p -= 1
    ends[p], online.running[p] = end, j
    tally[RUNNING] += 1
    online.waiting[online.cls[j]] -= 1
