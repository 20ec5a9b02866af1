"""A stream being served: the events, the queue and the cluster; compiled.

The one simulator of the family: built-in policies, policies of users and the first schedules of
``offline`` all run on it. It knows no job that has not arrived; where estimates differ from run
times, decisions see the estimates.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from optgap.models.compiled import compiled, inner
from optgap.models.queueing import QueueingProblem
from optgap.models.queueing.arrays import FloatArray, IntArray
from optgap.models.queueing.kernels import fits, place, take
from optgap.solvers.queueing.list_schedule import NOBODY, Stream, slack, stream_of

ARRIVED, WAITING, RUNNING, EVENTS, ROUNDS, LONGEST = range(6)
"""Places in `Online.tally`: jobs that have arrived, that wait and that run; events, rounds of
decisions, and the longest queue."""
INF = float("inf")


class Online(NamedTuple):
    """A stream being served.

    Parameters
    ----------
    truth: the jobs as they are.
    estimate: what is known of their run times, s.
    key: the queue is in order of these when jobs arrive, and of arrival where they are equal.
    queue: the waiting jobs.
    ends, running: the running jobs by descending true end.
    start, node: what has been started, and where; NaN for not yet.
    free, level: free GPUs per node, and nodes per number free.
    sizes, cls: the different GPU counts, and which of them each job has.
    waiting, fit: how many jobs of each GPU count wait, and whether `look` saw that one would fit.
    tally: see the names above.
    patient: no job leaves.
    """

    truth: Stream
    estimate: FloatArray
    key: FloatArray
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
    fit: IntArray
    tally: IntArray
    patient: bool


def online_of(
    problem: QueueingProblem, key: FloatArray | None = None, hindsight: bool = False
) -> Online:
    """Return an idle cluster before the first arrival.

    Parameters
    ----------
    key: what the queue is in order of; arrival without it.
    hindsight: know run times, and let no job leave.
    """
    truth, count = stream_of(problem), len(problem)
    estimate = truth.duration if hindsight else problem.jobs.estimate_s.copy()
    if hindsight:
        truth = truth._replace(latest=np.full(count, np.inf))
    nodes, g = problem.shape
    most = min(count, nodes * g) + 1
    sizes, cls = np.unique(truth.gpus, return_inverse=True)
    level = np.zeros(g + 1, dtype=np.int64)
    level[g] = nodes
    return Online(
        truth,
        estimate,
        np.zeros(count) if key is None else np.array(key, dtype=np.float64),
        np.zeros(count, dtype=np.int64),
        np.zeros(most),
        np.zeros(most, dtype=np.int64),
        np.full(count, np.nan),
        np.full(int(truth.at[-1]), NOBODY, dtype=np.int64),
        np.full(nodes, g, dtype=np.int64),
        level,
        sizes.astype(np.int64),
        cls.astype(np.int64),
        np.zeros(len(sizes), dtype=np.int64),
        np.zeros(len(sizes), dtype=np.int64),
        np.zeros(6, dtype=np.int64),
        bool(np.isinf(truth.latest).all()),
    )


@inner
def next_event(online: Online) -> float:
    """Return when a job arrives, ends or leaves next, s; infinite for never again."""
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
    truth, tally, queue = online.truth, online.tally, online.queue
    now, until = time, time + slack(time)
    tally[EVENTS] += 1
    while tally[RUNNING] > 0 and online.ends[tally[RUNNING] - 1] <= until:
        tally[RUNNING] -= 1
        now = max(now, online.ends[tally[RUNNING]])
        release(online, online.running[tally[RUNNING]], online.free, online.level)
    while tally[ARRIVED] < len(online.start) and truth.arrival[tally[ARRIVED]] <= until:
        j, p = tally[ARRIVED], tally[WAITING]
        now = max(now, truth.arrival[j])
        while p > 0 and online.key[queue[p - 1]] > online.key[j]:
            queue[p] = queue[p - 1]
            p -= 1
        queue[p] = j
        online.waiting[online.cls[j]] += 1
        tally[ARRIVED] += 1
        tally[WAITING] += 1
    tally[LONGEST] = max(tally[LONGEST], tally[WAITING])
    kept = 0
    for p in range(0 if online.patient else tally[WAITING]):
        j = queue[p]
        if truth.latest[j] <= until:
            now = max(now, truth.latest[j])
            online.waiting[online.cls[j]] -= 1
        else:
            queue[kept] = j
            kept += 1
    if not online.patient:
        tally[WAITING] = kept
    return now


@inner
def release(online: Online, j: int, free: IntArray, level: IntArray) -> None:
    """Give job j's GPUs back, on the cluster itself or on a copy of it."""
    at, left = online.truth.at, online.truth.gpus[j]
    for h in range(at[j], at[j + 1]):
        take(free, level, online.node[h], -min(left, online.truth.g))
        left -= online.truth.g


@inner
def copy_free(online: Online, free: IntArray, level: IntArray) -> None:
    """Make the free GPUs of a copy of the cluster what they are now."""
    for k in range(len(online.free)):
        free[k] = online.free[k]
    for f in range(len(online.level)):
        level[f] = online.level[f]


@inner
def look(online: Online) -> bool:
    """Note in `fit` of which GPU counts a job waits and fits now; whether there are any."""
    found = False
    for c in range(len(online.sizes)):
        fit = online.waiting[c] > 0 and fits(
            online.free, online.level, online.sizes[c], online.truth.g
        )
        online.fit[c] = 1 if fit else 0
        found = found or fit
    return found


@inner
def unqueue(online: Online, j: int) -> None:
    """Take job j off the queue."""
    online.tally[WAITING] -= 1
    online.waiting[online.cls[j]] -= 1
    p = 0
    while online.queue[p] != j:
        p += 1
    for k in range(p, online.tally[WAITING]):
        online.queue[k] = online.queue[k + 1]


@inner
def book(online: Online, j: int, now: float) -> None:
    """Note that job j, which has its nodes and GPUs, runs from now on."""
    end, p, ends = now + online.truth.duration[j], online.tally[RUNNING], online.ends
    online.start[j] = now
    while p > 0 and ends[p - 1] < end:
        ends[p], online.running[p] = ends[p - 1], online.running[p - 1]
        p -= 1
    ends[p], online.running[p] = end, j
    online.tally[RUNNING] += 1


@inner
def begin(online: Online, j: int, node: IntArray, now: float) -> None:
    """Start job j, which waits no longer, on the nodes written down for it in `node`."""
    at, left = online.truth.at, online.truth.gpus[j]
    for h in range(at[j], at[j + 1]):
        online.node[h] = node[h]
        take(online.free, online.level, node[h], min(left, online.truth.g))
        left -= online.truth.g
    book(online, j, now)


@compiled
def serve_in_order(online: Online, events: int, blocking: bool) -> bool:
    """Work through so many events; whether there may be more.

    The first job of the queue that fits is started, by best fit; if the queue is `blocking`, the
    first of all, once it fits.
    """
    truth = online.truth
    for _ in range(events):
        time = next_event(online)
        if time == INF:
            return False
        now = happen(online, time)
        while online.tally[WAITING] > 0 and look(online):
            p = 0
            while not blocking and online.fit[online.cls[online.queue[p]]] == 0:
                p += 1
            j = online.queue[p]
            if online.fit[online.cls[j]] == 0:
                break
            unqueue(online, j)
            place(online.free, online.level, truth.gpus[j], truth.g, online.node, truth.at[j])
            book(online, j, now)
            online.tally[ROUNDS] += 1
    return True
