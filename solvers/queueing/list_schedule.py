"""Schedules from lists, compiled: jobs start in turn, each on the node it wishes for if it can.

Job j starts as soon as it fits, and not before the job ahead of it in the list. If the nodes that
it wishes for have room then, it gets those; otherwise the node where it costs least: the time by
which it puts off the node's last end, plus `LEFT_GPU_S` for each GPU that stays idle; nodes in use
come before idle ones. A job that waits starts only once its own nodes have room. With the jobs of
any schedule in order of their starts, each waiting for the nodes it has there, no job starts later
than in that schedule; so some list gives an optimum.

Times are in s; `slack_s` says which of them are the same.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from optgap.models.compiled import inner
from optgap.models.queueing.arrays import FloatArray, IntArray
from optgap.models.queueing.kernels import fits
from optgap.models.times import ROUNDING, TOLERANCE_S, slack_s

if TYPE_CHECKING:
    from optgap.models.queueing.problem import QueueingProblem

LEFT_GPU_S = 600.0
"""Cost of a GPU left idle on a node, in seconds of a later last end."""
IDLE_S = 1e12
"""Cost of opening an idle node, s."""
LATE = 1e6
"""Cost of a second after the end of a job's patience."""
NOBODY = -1

slack = inner(slack_s)


class Stream(NamedTuple):
    """The jobs of a problem, and what is to be small.

    Parameters
    ----------
    arrival, duration, latest: when each job comes, how long it runs, and its latest start, s.
    gpus: n per job.
    at: job j's nodes stand from ``at[j]`` to ``at[j + 1]`` in arrays of nodes, whole ones first.
    g: GPUs per node.
    makespan: the last end is to be small, rather than the sum of waits.
    """

    arrival: FloatArray
    duration: FloatArray
    latest: FloatArray
    gpus: IntArray
    at: IntArray
    g: int
    makespan: bool


class Plan(NamedTuple):
    """A list of jobs with their nodes, and the schedule that it gives.

    Parameters
    ----------
    order: the jobs, as they start.
    wish: nodes that jobs wish for, by `Stream.at`; `NOBODY` for no wish.
    waits: per job, whether it waits for the nodes that it wishes for, if any: 1 or 0.
    start, node: per job when it starts, s, and on which nodes.
    """

    order: IntArray
    wish: IntArray
    waits: IntArray
    start: FloatArray
    node: IntArray


class Machine(NamedTuple):
    """The cluster at one moment.

    Parameters
    ----------
    free, level: free GPUs per node, and how many nodes have each number free.
    last: the last end on each node so far, s.
    ends, running: the running jobs and their ends, by descending end.
    size: how many run, shape (1,).
    clock: the time now, the cost of the jobs so far, and the last of their ends, shape (3,).
    starts: jobs started by `decode` since the arrays were made, shape (1,): its work.
    """

    free: IntArray
    level: IntArray
    last: FloatArray
    ends: FloatArray
    running: IntArray
    size: IntArray
    clock: FloatArray
    starts: IntArray


def stream_of(problem: QueueingProblem) -> Stream:
    """Return the jobs of a problem as arrays."""
    jobs, g = problem.jobs, problem.shape[1]
    return Stream(
        jobs.arrival_s.copy(),
        jobs.duration_s.copy(),
        jobs.arrival_s + jobs.patience_s,
        jobs.gpus.copy(),
        np.concatenate([[0], np.cumsum(-(-jobs.gpus // g))]).astype(np.int64),
        g,
        problem.objective.goal == "makespan",
    )


def held_gpus(stream: Stream) -> IntArray:
    """GPUs that jobs hold on their nodes, by `Stream.at`."""
    sizes = np.diff(stream.at)
    place = np.arange(stream.at[-1]) - np.repeat(stream.at[:-1], sizes)
    held: IntArray = np.minimum(np.repeat(stream.gpus, sizes) - place * stream.g, stream.g)
    return held


def plan_of(order: IntArray, held: int) -> Plan:
    """Return a list without wishes; `held` is how many nodes its jobs hold together."""
    count = len(order)
    return Plan(
        order.astype(np.int64),
        np.full(held, NOBODY, dtype=np.int64),
        np.zeros(count, dtype=np.int64),
        np.zeros(count),
        np.zeros(held, dtype=np.int64),
    )


def machine_of(nodes: int, g: int, most: int) -> Machine:
    """Return an idle cluster on which at most so many jobs run at once."""
    level = np.zeros(g + 1, dtype=np.int64)
    level[g] = nodes
    return Machine(
        np.full(nodes, g, dtype=np.int64),
        level,
        np.zeros(nodes),
        np.zeros(most),
        np.zeros(most, dtype=np.int64),
        np.zeros(1, dtype=np.int64),
        np.zeros(3),
        np.zeros(1, dtype=np.int64),
    )


@inner
def copy_machine(source: Machine, target: Machine) -> None:
    """Make one cluster what another is; each counts its own starts.

    Item by item: numba takes seconds to compile the assignment of a slice.
    """
    for k in range(len(source.free)):
        target.free[k], target.last[k] = source.free[k], source.last[k]
    for f in range(len(source.level)):
        target.level[f] = source.level[f]
    for i in range(source.size[0]):
        target.ends[i], target.running[i] = source.ends[i], source.running[i]
    target.size[0] = source.size[0]
    for i in range(3):
        target.clock[i] = source.clock[i]


@inner
def pick(free: IntArray, last: FloatArray, n: int, g: int, now: float, end: float) -> int:
    """Return the node where n ≤ g GPUs from now until `end` cost least, or `NOBODY`."""
    best, chosen = np.inf, NOBODY
    for k in range(len(free)):
        left = free[k] - n
        if left >= 0:
            idle = IDLE_S if left + n == g else 0.0
            score = max(0.0, end - max(last[k], now)) + LEFT_GPU_S * left + idle
            if score < best:
                best, chosen = score, k
    return chosen


@inner
def settle(stream: Stream, machine: Machine, node: IntArray, j: int, now: float) -> None:
    """Write down nodes for job j; `NOBODY` for the last one where there is no room.

    As many nodes as it takes whole must be free.
    """
    begin, stop, g, free = stream.at[j], stream.at[j + 1], stream.g, machine.free
    whole = stream.gpus[j] // g
    h, k = begin, 0
    while h < begin + whole:
        if free[k] == g:
            node[h] = k
            free[k] = 0
            h += 1
        k += 1
    rest, end = stream.gpus[j] % g, now + stream.duration[j]
    if rest > 0:
        node[stop - 1] = pick(free, machine.last, rest, g, now, end)
    for h in range(begin, begin + whole):
        free[node[h]] = g


@inner
def decode(
    stream: Stream,
    plan: Plan,
    machine: Machine,
    start: FloatArray,
    node: IntArray,
    window: tuple[int, int, int],
    after: FloatArray,
    most: float,
    doubt: float,
) -> int:
    """Start the jobs from one place of the list to another, in turn, on the cluster given.

    Parameters
    ----------
    start, node: where the schedule is written.
    window: the first place, the one to stop at, and the last that may differ from when
        ``plan.start`` and ``plan.node`` were made. As soon as the rest would be as it was there,
        its cost is added to the clock and the place is returned.
    after: per place of the list the cost of the jobs from there on, and the last of their ends.
    most: once the cost is above this, -1 is returned.
    doubt: the same once all changes are made and the cost, with the rest's as it was, is above
        `most` by more than this: those behind rarely make up for it.

    One function of plain loops, with every array at hand: it is run some hundred thousand times a
    second, and the compiler counts references at every call.
    """
    first, stop, changed = window
    arrival, duration, latest = stream.arrival, stream.duration, stream.latest
    gpus, at, g, makespan = stream.gpus, stream.at, stream.g, stream.makespan
    order, wish, waits, planned, was = plan.order, plan.wish, plan.waits, plan.start, plan.node
    free, level, last, ends = machine.free, machine.level, machine.last, machine.ends
    running, clock = machine.running, machine.clock
    size, now, cost, latest_end = machine.size[0], clock[0], clock[1], clock[2]
    weight, count, nodes = 1e-3 if makespan else 1.0, len(order), len(free)
    differ = 0.0  # when the last job has ended that is not where it is in the plan
    p = first
    while p < stop:
        if p > changed and differ <= now and now == planned[order[p - 1]]:
            cost += after[0, p]
            latest_end = max(latest_end, after[1, p])
            break
        j = order[p]
        n, begin, end_at = gpus[j], at[j], at[j + 1]
        now = max(now, arrival[j])
        patient = waits[j] == 1 and wish[begin] != NOBODY
        while True:
            if size > 0 and ends[size - 1] <= now + (TOLERANCE_S + ROUNDING * now):
                ready = False
            elif patient:
                ready = True
                for h in range(begin, end_at):
                    ready = ready and free[wish[h]] >= min(n - (h - begin) * g, g)
            elif nodes == 1:
                ready = free[0] >= n
            elif n <= g:
                f = n
                while f <= g and level[f] == 0:
                    f += 1
                ready = f <= g
            else:
                ready = fits(free, level, n, g)
            if ready or size == 0:
                break
            size -= 1
            now = max(now, ends[size])
            i = running[size]
            for h in range(at[i], at[i + 1]):
                k = node[h]
                level[free[k]] -= 1
                free[k] += min(gpus[i] - (h - at[i]) * g, g)
                level[free[k]] += 1
        end = now + duration[j]
        wished = True
        for h in range(begin, end_at):
            k = wish[h]
            wished = wished and k != NOBODY and free[k] >= min(n - (h - begin) * g, g)
        if wished:
            for h in range(begin, end_at):
                node[h] = wish[h]
        elif n > g:
            settle(stream, machine, node, j, now)
        else:
            node[begin] = pick(free, last, n, g, now, end) if nodes > 1 else 0
        moved = now != planned[j]
        for h in range(begin, end_at):
            k = node[h]
            level[free[k]] -= 1
            free[k] -= min(n - (h - begin) * g, g)
            level[free[k]] += 1
            last[k] = max(last[k], end)
            moved = moved or k != was[h]
        i = size
        while i > 0 and ends[i - 1] < end:
            ends[i], running[i] = ends[i - 1], running[i - 1]
            i -= 1
        ends[i], running[i] = end, j
        size += 1
        start[j] = now
        latest_end = max(latest_end, end)
        cost += (now - arrival[j]) * weight
        if now > latest[j]:
            cost += LATE * max(0.0, now - latest[j] - (TOLERANCE_S + ROUNDING * now))
        if moved:
            differ = max(differ, end, planned[j] + duration[j])
        p += 1
        hopeless = cost + (count * latest_end if makespan else 0.0) > most
        if hopeless or (p > changed and cost + after[0, p] - most > doubt):
            machine.starts[0] += p - first
            return -1
    machine.starts[0] += p - first
    machine.size[0] = size
    clock[0], clock[1], clock[2] = now, cost, latest_end
    return p if cost + (count * latest_end if makespan else 0.0) <= most else -1
