"""Conservative backfilling (Mu'alem and Feitelson, 2001): every waiting job holds a reservation.

Reservations include nodes, and no later job delays an earlier one. The future of each node is a
list of segments with constant free GPUs. A job gets the earliest time at which enough GPUs are free
until its estimated end, on the node with the fewest to spare during that time. A job is planned
once, on arrival, because reservations never move as long as estimates hold. When a job ends early,
overruns or leaves, the policy plans all jobs again.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from optgap.heuristics.queueing.engine import drive
from optgap.models.compiled import compiled, inner
from optgap.models.limits import Limits
from optgap.models.queueing import QueueingProblem
from optgap.models.queueing.arrays import FloatArray, IntArray
from optgap.models.result import Outcome
from optgap.solvers.queueing.list_schedule import slack
from optgap.solvers.queueing.online import (
    ARRIVED,
    INF,
    ROUNDS,
    RUNNING,
    WAITING,
    Online,
    begin,
    happen,
    next_event,
    online_of,
    unqueue,
)

LATE_S = 60.0
"""Least further time expected of an overrunning job, s; the estimate is half its run time."""


class Plan(NamedTuple):
    """Future of the nodes and of the queue.

    Parameters
    ----------
    online: the queue and the cluster. node: the nodes reserved, by ``truth.at``.
    first: first segment of each node that has not ended.
    time, free, next: start of each segment, s, its free GPUs, and the next segment.
    until: planned ends of running jobs, s.
    starts, job: planned starts, descending, and their jobs.
    whole, rest: per node, when a wide job could have the whole node, or its last GPUs there.
    tally: counters, with names below.
    """

    online: Online
    node: IntArray
    first: IntArray
    time: FloatArray
    free: IntArray
    next: IntArray
    until: FloatArray
    starts: FloatArray
    job: IntArray
    whole: FloatArray
    rest: FloatArray
    tally: IntArray


USED, PLANNED, UPCOMING = range(3)
"""Positions in `Plan.tally`: segments in use, jobs with a reservation, the next job to plan."""


def conservative(problem: QueueingProblem, *, limits: Limits, seed: int) -> Outcome:
    """Run conservative backfilling."""
    plan = _plan_of(problem)
    return drive(
        problem, plan.online, lambda events: advance_planned(plan, events), limits, "conservative"
    )


def _plan_of(problem: QueueingProblem) -> Plan:
    """Return a plan of idle nodes without reservations."""
    online, count, (nodes, g) = online_of(problem), len(problem), problem.shape
    # every node that a job holds splits two segments at most
    size = nodes + 2 * len(online.node) + 2
    return Plan(
        online=online,
        node=online.node.copy(),
        first=np.arange(nodes, dtype=np.int64),
        time=np.zeros(size),
        free=np.full(size, g, dtype=np.int64),
        next=np.full(size, -1, dtype=np.int64),
        until=np.full(count, np.inf),
        starts=np.zeros(count + 1),
        job=np.zeros(count + 1, dtype=np.int64),
        whole=np.zeros(nodes),
        rest=np.zeros(nodes),
        tally=np.array([nodes, 0, 0], dtype=np.int64),
    )


@inner
def _split(plan: Plan, k: int, time: float) -> int:
    """Return the segment that starts at `time`, which lies in segment k or at its start."""
    if plan.time[k] >= time - slack(time):
        return k
    new = plan.tally[USED]
    plan.tally[USED] += 1
    plan.time[new], plan.free[new], plan.next[new] = time, plan.free[k], plan.next[k]
    plan.next[k] = new
    return int(new)


@inner
def _hold(plan: Plan, j: int, node: IntArray, start: float, end: float) -> None:
    """Take job j's GPUs out of the future of its nodes, which `node` lists."""
    at, left, g = plan.online.truth.at, plan.online.truth.gpus[j], plan.online.truth.g
    for h in range(at[j], at[j + 1]):
        gpus = min(left, g)
        left -= g
        k = plan.first[node[h]]
        while plan.next[k] >= 0 and plan.time[plan.next[k]] <= start + slack(start):
            k = plan.next[k]
        k = _split(plan, k, start)
        after = plan.next[k]
        while after >= 0 and plan.time[after] < end - slack(end):
            plan.free[k] -= gpus
            k = after
            after = plan.next[k]
        if after < 0 or plan.time[after] > end + slack(end):
            _split(plan, k, end)
        plan.free[k] -= gpus


@inner
def _earliest(plan: Plan, node: int, n: int, length: float, now: float) -> tuple[float, int]:
    """Return when n GPUs of a node are first free for `length`, and the fewest free then."""
    k = plan.first[node]
    start, least = INF, 0
    while k >= 0:
        after = plan.next[k]
        end = plan.time[after] if after >= 0 else INF
        if end > now:
            if plan.free[k] < n:
                start = INF
            elif start == INF:
                start, least = max(plan.time[k], now), plan.free[k]
            least = min(least, plan.free[k])
            if start < INF and end >= start + length - 0.5 * slack(start + length):
                return start, least
        k = after
    return INF, 0


@inner
def _reserve(plan: Plan, j: int, now: float) -> None:
    """Reserve whole nodes, and one node for the remaining GPUs, for job j at the earliest time."""
    truth, node, g, first = plan.online.truth, plan.node, plan.online.truth.g, plan.first
    at, count, rest = truth.at[j], truth.gpus[j] // g, truth.gpus[j] % g
    length, time, start, chosen = plan.online.estimate[j], now, now, -1
    while True:
        later, until = INF, time + 0.5 * slack(time)
        used, chosen, spare, start = 0, -1, 0, time
        for k in range(len(first)):
            plan.whole[k] = INF
            if count > 0:
                plan.whole[k], _ = _earliest(plan, k, g, length, time)
            if plan.whole[k] <= until and used < count:
                node[at + used] = k
                start = max(start, plan.whole[k])
                used += 1
            elif plan.whole[k] > until:
                later = min(later, plan.whole[k])
            plan.rest[k] = INF
            if rest > 0:
                plan.rest[k], least = _earliest(plan, k, rest, length, time)
                if plan.rest[k] > until:
                    later = min(later, plan.rest[k])
                elif (used == 0 or node[at + used - 1] != k) and (chosen < 0 or least < spare):
                    chosen, spare = k, least
        if used == count and (rest == 0 or chosen >= 0):
            break
        time = later
        for k in range(len(first)):  # not before as many nodes have been whole
            if used < count and plan.whole[k] > time:
                by_then = 0
                for other in plan.whole:
                    by_then += other < plan.whole[k]
                if by_then < count:
                    time = max(time, plan.whole[k])
    if rest > 0:
        node[at + count] = chosen
        start = max(start, plan.rest[chosen])
    _hold(plan, j, node, start, start + length)
    p = plan.tally[PLANNED]
    # later jobs stand before earlier ones with the same start, so that those start first
    low = p
    while low > 0 and plan.starts[low - 1] <= start:
        plan.starts[low], plan.job[low] = plan.starts[low - 1], plan.job[low - 1]
        low -= 1
    plan.starts[low], plan.job[low] = start, j
    plan.tally[PLANNED] = p + 1


@inner
def _anew(plan: Plan, now: float) -> None:
    """Forget all reservations; the running jobs keep their nodes."""
    online = plan.online
    plan.tally[USED], plan.tally[PLANNED], plan.tally[UPCOMING] = len(plan.first), 0, 0
    for k in range(len(plan.first)):
        plan.first[k], plan.time[k], plan.free[k], plan.next[k] = k, now, online.truth.g, -1
    for r in range(online.tally[RUNNING]):
        j = online.running[r]
        if plan.until[j] <= now:
            plan.until[j] = now + max(LATE_S, 0.5 * (now - online.start[j]))
        _hold(plan, j, online.node, now, plan.until[j])


@compiled
def advance_planned(plan: Plan, events: int) -> bool:
    """Process up to `events` events; return whether there may be more."""
    online, tally, starts = plan.online, plan.online.tally, plan.starts
    for _ in range(events):
        time = next_event(online)
        if plan.tally[PLANNED] > 0:
            time = min(time, starts[plan.tally[PLANNED] - 1])
        if time == INF:
            return False
        until, surprise = time + slack(time), False
        for r in range(tally[RUNNING]):
            planned = plan.until[online.running[r]] <= until
            surprise = surprise or (online.ends[r] <= until) != planned
        stay = tally[WAITING] - tally[ARRIVED]
        now, due = happen(online, time), plan.tally[PLANNED] - 1
        while due >= 0 and starts[due] <= until:
            now = max(now, starts[due])
            due -= 1
        if surprise or tally[WAITING] - tally[ARRIVED] < stay:
            _anew(plan, now)
        else:
            for k in range(len(plan.first)):  # drop what lies before now
                while plan.next[plan.first[k]] >= 0 and plan.time[plan.next[plan.first[k]]] <= now:
                    plan.first[k] = plan.next[plan.first[k]]
        for p in range(tally[WAITING]):
            if online.queue[p] >= plan.tally[UPCOMING]:
                plan.tally[UPCOMING] = online.queue[p] + 1
                _reserve(plan, online.queue[p], now)
        while plan.tally[PLANNED] > 0 and starts[plan.tally[PLANNED] - 1] <= now:
            plan.tally[PLANNED] -= 1
            j = plan.job[plan.tally[PLANNED]]
            unqueue(online, j)
            begin(online, j, plan.node, now)
            plan.until[j] = now + online.estimate[j]
            tally[ROUNDS] += 1
    return True
