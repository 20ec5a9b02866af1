"""Conservative backfilling (Mu'alem and Feitelson, 2001): every waiting job holds a reservation.

Reservations include nodes, and no job is delayed by a later one. Each node has its future as a list
of segments of constant free GPUs. A job gets the earliest time from which on enough GPUs stay free
until its estimated end, on the node with the fewest to spare during that time. As long as
everything happens as estimated a reservation never moves, so a job is planned once, when it
arrives. When a job ends early, overruns or leaves, all are planned anew.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from optgap.heuristics.queueing.cluster import book, head, insert, leave, slack
from optgap.heuristics.queueing.engine import drive, outcome_of, set_up
from optgap.heuristics.queueing.loop import happen, next_event
from optgap.heuristics.queueing.rule import EASY, INF, Rule
from optgap.heuristics.queueing.tables import ARRIVED, HEAD, NOW, QUEUE, ROUNDS, RUNNING, TRUE, Run
from optgap.models.compiled import compiled, inner
from optgap.models.limits import Limits
from optgap.models.queueing import QueueingProblem
from optgap.models.queueing.arrays import FloatArray, IntArray
from optgap.models.queueing.kernels import take
from optgap.models.result import Outcome

LATE_S = 60.0
"""A job that overruns is expected to run half as long again, and this long at least."""


class Plan(NamedTuple):
    """The future of the nodes and of the queue.

    Parameters
    ----------
    run: the queue and the cluster.
    first: first segment of each node.
    time, free, next: where segments start, what is free then, and the segment after.
    unused: segments that can be used again.
    until: planned ends of running jobs, s.
    starts, job: planned starts, descending, and whose they are.
    whole, rest: per node, when a wide job could have it as a whole, or what is left over of it.
    tally: see the names below.
    """

    run: Run
    first: IntArray
    time: FloatArray
    free: IntArray
    next: IntArray
    unused: IntArray
    until: FloatArray
    starts: FloatArray
    job: IntArray
    whole: FloatArray
    rest: FloatArray
    tally: IntArray


UNUSED, PLANNED, UPCOMING = range(3)
"""Places in `Plan.tally`: unused segments, jobs with a reservation, the next job to plan."""


def conservative(problem: QueueingProblem, *, limits: Limits, seed: int) -> Outcome:
    """Conservative backfilling."""
    plan: Any = _plan_of(problem)
    run = plan.run
    stopped = drive(
        problem, run.tally, lambda events: advance_planned(plan, events), limits, "conservative"
    )
    return outcome_of(problem, run, stopped)


def _plan_of(problem: QueueingProblem) -> Plan:
    """Idle nodes without reservations."""
    run: Any = set_up(problem, Rule(EASY))
    nodes, g = problem.shape
    # every node a job holds splits two segments at most
    size = nodes + 2 * int(run.jobs["nodes"].sum()) + 2
    free = np.zeros(size, dtype=np.int64)
    free[:nodes] = g
    count = np.zeros(3, dtype=np.int64)
    count[0] = size - nodes
    unused = np.zeros(size, dtype=np.int64)
    unused[: size - nodes] = np.arange(nodes, size)
    return Plan(
        run=run,
        first=np.arange(nodes, dtype=np.int64),
        time=np.zeros(size),
        free=free,
        next=np.full(size, -1, dtype=np.int64),
        unused=unused,
        until=np.full(len(problem), np.inf),
        starts=np.zeros(len(problem) + 1),
        job=np.zeros(len(problem) + 1, dtype=np.int64),
        whole=np.zeros(nodes),
        rest=np.zeros(nodes),
        tally=count,
    )


@inner
def _segment(plan: Plan, time: float, free: int, after: int) -> int:
    """A segment with `after` behind it."""
    plan.tally[UNUSED] -= 1
    k = plan.unused[plan.tally[UNUSED]]
    plan.time[k], plan.free[k], plan.next[k] = time, free, after
    return int(k)


@inner
def _split(plan: Plan, k: int, time: float) -> int:
    """The segment that starts at `time`, which lies in segment k or at its start."""
    if plan.time[k] >= time - slack(time):
        return k
    plan.next[k] = _segment(plan, time, plan.free[k], plan.next[k])
    return int(plan.next[k])


@inner
def _hold(plan: Plan, node: int, start: float, end: float, gpus: int) -> None:
    """Take GPUs out of a node's future."""
    k = plan.first[node]
    while plan.next[k] >= 0 and plan.time[plan.next[k]] <= start + slack(start):
        k = plan.next[k]
    k = _split(plan, k, start)
    while True:
        after = plan.next[k]
        if after < 0 or plan.time[after] > end + slack(end):
            _split(plan, k, end)
            plan.free[k] -= gpus
            return
        plan.free[k] -= gpus
        if plan.time[after] >= end - slack(end):
            return
        k = after


@inner
def _forget(plan: Plan, now: float) -> None:
    """Drop what lies before now."""
    for node in range(len(plan.first)):
        k = plan.first[node]
        while plan.next[k] >= 0 and plan.time[plan.next[k]] <= now:
            plan.unused[plan.tally[UNUSED]] = k
            plan.tally[UNUSED] += 1
            k = plan.next[k]
        plan.first[node] = k


@inner
def _earliest(
    plan: Plan, node: int, n: int, length: float, now: float, latest: float
) -> tuple[float, int]:
    """When n GPUs of a node are first free for so long, and the fewest free in that time.

    Gives up, with infinity, once it cannot be by `latest`.
    """
    k = plan.first[node]
    start, least = INF, 0
    while k >= 0:
        after = plan.next[k]
        end = plan.time[after] if after >= 0 else INF
        if end <= now:
            k = after
            continue
        if plan.free[k] < n:
            start = INF
        else:
            if start == INF:
                start, least = max(plan.time[k], now), plan.free[k]
            least = min(least, plan.free[k])
            if start > latest:
                return INF, 0
            if end >= start + length - 0.5 * slack(start + length):
                return start, least
        if start == INF and end > latest:
            return INF, 0
        k = after
    return INF, 0


@inner
def _narrow(plan: Plan, j: int, now: float) -> float:
    """Reserve one node for job j; returns its start."""
    jobs, run = plan.run.jobs, plan.run
    n, length = jobs[j]["gpus"], jobs[j]["estimate"]
    best, spare, node = INF, 0, -1
    for k in range(len(plan.first)):
        start, least = _earliest(plan, k, n, length, now, best + slack(best))
        near = 0.5 * slack(start)  # as early, but for rounding
        if start + near < best or (start < INF and start <= best + near and least < spare):
            best, spare, node = start, least, k
    run.held[0, jobs[j]["held_at"]], run.held[1, jobs[j]["held_at"]] = node, n
    _hold(plan, node, best, best + length, n)
    return best


@inner
def _wide(plan: Plan, j: int, now: float) -> float:
    """Reserve whole nodes, and one for what is left over, for job j; returns its start."""
    run, jobs = plan.run, plan.run.jobs
    g, length, at = run.g, jobs[j]["estimate"], jobs[j]["held_at"]
    count, rest = jobs[j]["gpus"] // g, jobs[j]["gpus"] % g
    time = now
    while True:
        later, start = INF, time
        until = time + 0.5 * slack(time)
        for k in range(len(plan.first)):
            plan.whole[k], _ = _earliest(plan, k, g, length, time, INF)
            plan.rest[k] = plan.whole[k]
            if rest > 0:
                plan.rest[k], _ = _earliest(plan, k, rest, length, time, INF)
            if plan.whole[k] > until:
                later = min(later, plan.whole[k])
            if plan.rest[k] > until:
                later = min(later, plan.rest[k])
        used, node, spare = 0, -1, 0
        for k in range(len(plan.first)):
            if plan.whole[k] <= until and used < count:
                run.held[0, at + used], run.held[1, at + used] = k, g
                start = max(start, plan.whole[k])
                used += 1
            elif rest > 0 and plan.rest[k] <= until:
                _, least = _earliest(plan, k, rest, length, time, INF)
                if node < 0 or least < spare:
                    node, spare = k, least
        if used == count and (rest == 0 or node >= 0):
            break
        time = later
        if used < count:  # not before as many nodes have been whole
            for k in range(len(plan.first)):
                plan.rest[k] = plan.whole[k]
            plan.rest.sort()
            time = max(time, plan.rest[count - 1])
    if rest > 0:
        run.held[0, at + count], run.held[1, at + count] = node, rest
        start = max(start, plan.rest[node])
    for h in range(at, at + jobs[j]["nodes"]):
        _hold(plan, run.held[0, h], start, start + length, run.held[1, h])
    return start


@inner
def _reserve(plan: Plan, j: int, now: float) -> None:
    """Plan job j at the earliest."""
    wide = plan.run.jobs[j]["gpus"] > plan.run.g
    start = _wide(plan, j, now) if wide else _narrow(plan, j, now)
    # later jobs stand before earlier ones with the same start, so that those start first
    insert(plan.starts, plan.job, plan.tally[PLANNED], start, j)
    plan.tally[PLANNED] += 1


@inner
def _anew(plan: Plan, now: float) -> None:
    """Forget all reservations; the running jobs keep their nodes."""
    run = plan.run
    plan.tally[UNUSED] = len(plan.unused)
    for k in range(len(plan.unused)):
        plan.unused[k] = k
    for node in range(len(plan.first)):
        plan.first[node] = _segment(plan, now, run.g, -1)
    for r in range(run.tally[RUNNING]):
        j = run.running[TRUE][r]
        if plan.until[j] <= now:
            plan.until[j] = now + max(LATE_S, 0.5 * (now - run.jobs[j]["start"]))
        for h in range(run.jobs[j]["held_at"], run.jobs[j]["held_at"] + run.jobs[j]["nodes"]):
            _hold(plan, run.held[0, h], now, plan.until[j], run.held[1, h])
    plan.tally[PLANNED] = 0
    if run.tally[QUEUE] > 0:
        head(run)
    plan.tally[UPCOMING] = run.tally[HEAD]


@inner
def _happen(plan: Plan, time: float) -> tuple[float, bool]:
    """Ends, arrivals, departures and planned starts at the same time: when the last of them is,
    and whether anything was not as planned."""
    run, count = plan.run, plan.run.tally
    until, surprise = time + slack(time), False
    for r in range(count[RUNNING]):
        planned = plan.until[run.running[TRUE][r]] <= until
        surprise |= (run.ends[TRUE][r] <= until) != planned
    waiting = count[QUEUE] - count[ARRIVED]
    now = happen(run, time)
    surprise |= count[QUEUE] - count[ARRIVED] < waiting  # some have left
    k = plan.tally[PLANNED] - 1
    while k >= 0 and plan.starts[k] <= until:
        now = max(now, plan.starts[k])
        k -= 1
    return now, surprise


@compiled
def advance_planned(plan: Plan, events: int) -> bool:
    """Work through so many events; whether there may be more."""
    run, jobs = plan.run, plan.run.jobs
    for _ in range(events):
        time = next_event(run)
        if plan.tally[PLANNED] > 0:
            time = min(time, plan.starts[plan.tally[PLANNED] - 1])
        if time == INF:
            return False
        now, surprise = _happen(plan, time)
        if surprise:
            _anew(plan, now)
        else:
            _forget(plan, now)
        while True:
            while plan.tally[UPCOMING] < run.tally[ARRIVED]:
                j = plan.tally[UPCOMING]
                plan.tally[UPCOMING] += 1
                if jobs[j]["waiting"] != 0:
                    _reserve(plan, j, now)
            last = plan.tally[PLANNED] - 1
            if last < 0 or plan.starts[last] > now:
                break
            plan.tally[PLANNED] = last
            _start(plan, plan.job[last], now)
    return True


@inner
def _start(plan: Plan, j: int, now: float) -> None:
    """Start job j on the nodes reserved for it."""
    run = plan.run
    leave(run, j)
    for h in range(run.jobs[j]["held_at"], run.jobs[j]["held_at"] + run.jobs[j]["nodes"]):
        take(run.free[NOW], run.level[NOW], run.held[0, h], run.held[1, h])
    book(run, j, now)
    plan.until[j] = now + run.jobs[j]["estimate"]
    run.tally[ROUNDS] += 1
