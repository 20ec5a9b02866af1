"""A stream served online: whenever jobs may start, those that wait are planned anew; compiled.

The plan is a list schedule of the waiting jobs beside the running ones, improved by annealing; what
it starts now is started. It knows no job that has not arrived and, where they differ, estimates
instead of run times.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from optgap.models.compiled import compiled, inner
from optgap.models.queueing.arrays import FloatArray, IntArray
from optgap.models.queueing.kernels import fits, take
from optgap.models.queueing.list_annealing import Moves, Search, anneal, schedule, search_of
from optgap.models.queueing.list_schedule import (
    COMPACT,
    NOBODY,
    Machine,
    Plan,
    Stream,
    demand,
    slack,
)

ARRIVED, WAITING, RUNNING, STARTED, EVENTS, PLANS, LONGEST = range(7)
OVERRUN, OVERRUN_S = 0.5, 60.0
"""A job that overruns its estimate is taken to run half as long again, and this long at least."""
INF = float("inf")


class Effort(NamedTuple):
    """How much work goes into one plan.

    Parameters
    ----------
    jobs: waiting jobs that are planned, the first of the last plan's order; others come after.
    moves: moves tried per plan, at most.
    starts: jobs started on trial per plan, at most: fewer moves for longer queues.
    hot, cold: temperatures, s.
    """

    jobs: int = 64
    moves: int = 1000
    starts: int = 40_000
    hot: float = 2000.0
    cold: float = 50.0


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
    moves: how plans are changed.
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
    moves: Moves


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
        np.zeros(7, dtype=np.int64),
        bool(np.isinf(truth.latest).all()),
        Moves(earlier=0.45, behind=0.35, anywhere=0.2, reach=40, waits=False),
    )


@compiled
def serve(online: Online, effort: Effort, events: int) -> bool:
    """Work through so many events; whether there may be more."""
    tally = online.tally
    for _ in range(events):
        time = _next_event(online)
        if time == INF:
            return False
        now = _happen(online, time)
        tally[EVENTS] += 1
        while tally[WAITING] > 0 and _some_fit(online):
            if _plan(online, effort, now) == 0:
                break
    return True


@inner
def _next_event(online: Online) -> float:
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
def _happen(online: Online, time: float) -> float:
    """Ends, arrivals and departures at the same time; when the last of them is."""
    truth, tally, until = online.truth, online.tally, time + slack(time)
    now = time
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


@inner
def _some_fit(online: Online) -> bool:
    """Whether any waiting job fits now."""
    for c in range(len(online.sizes)):
        if online.waiting[c] > 0 and fits(
            online.free, online.level, online.sizes[c], online.truth.g
        ):
            return True
    return False


@inner
def _look_ahead(online: Online, machine: Machine, now: float) -> None:
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
def _short(plan: Plan, count: int) -> Plan:
    """A plan with only the first jobs of the list."""
    return Plan(plan.order[:count], plan.wish, plan.rule, plan.start, plan.node)


@inner
def _plan(online: Online, effort: Effort, now: float) -> int:
    """Plan the first waiting jobs anew and start what is to start now; how many jobs that are."""
    whole, tally, queue = online.search, online.tally, online.queue
    count = min(tally[WAITING], effort.jobs)
    search = Search(
        whole.stream, _short(whole.plan, count), _short(whole.best, count), whole.before,
        whole.now, whole.start, whole.node, whole.after, whole.costs, whole.random,
    )  # fmt: skip
    _look_ahead(online, search.before, now)
    for p in range(count):
        j = queue[p]
        search.plan.order[p] = j
        for h in range(search.stream.at[j], search.stream.at[j + 1]):
            search.plan.wish[h] = NOBODY
    search.costs[1] = INF
    schedule(search)
    tries = min(effort.moves, effort.starts // count)
    if count > 1:
        anneal(search, online.moves, 0, count, (effort.hot, effort.cold), tries)
    tally[PLANS] += 1
    started = 0
    for p in range(count):
        j = search.best.order[p]
        queue[p] = j
        if search.best.start[j] <= now + slack(now):
            _begin(online, j, search.best.node, now)
            started += 1
        elif started > 0:
            queue[p - started] = j
    for p in range(count, tally[WAITING]):
        queue[p - started] = queue[p]
    tally[WAITING] -= started
    return started


@inner
def _begin(online: Online, j: int, node: IntArray, now: float) -> None:
    """Start job j on the nodes of the plan."""
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
    tally[STARTED] += 1
    online.waiting[online.cls[j]] -= 1
