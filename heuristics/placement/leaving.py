"""The compiled event loop over time: tasks arrive, wait where they may, run, and leave.

What is decided at an arrival is decided by `loop`. Of what happens at one time, tasks leave first,
then those that wait are asked in the order of the queue, then tasks arrive.
"""

from __future__ import annotations

from typing import NamedTuple

from optgap.heuristics.placement.loop import choose_gpus, choose_node, feasible, hold
from optgap.heuristics.placement.tables import PlacementRun
from optgap.models.compiled import compiled, inner
from optgap.models.placement.arrays import BoolArray, FloatArray, IntArray
from optgap.models.placement.cluster import TASKS_PER_NODE
from optgap.models.placement.kernels import Table
from optgap.models.times import ROUNDING, TOLERANCE_S

REJECT = 0
FIFO = 1
BACKFILL = 2

# places in `Flow.counts`
ARRIVED = 0
RUNNING = 1
WAITING = 2


class Flow(NamedTuple):
    """Tasks in order of submission, the queue, those that run, and what was counted so far.

    A task that takes several nodes has a row for each; what waits or comes is its first.

    Parameters
    ----------
    queue: `REJECT`, `FIFO` or `BACKFILL`.
    submit_s, lasting_s: (T,) when each comes and how long it runs, s.
    never: (T,) whether no empty node could take it.
    parts: (T,) how many nodes its task takes.
    line: (T,) which tasks are alike in all that decides where they fit.
    node, mask, start_s: (T,) what was decided: node by rank, -1 for none; GPUs as bits.
    freed_s, leaving: (T,) when the room of the tasks that run is free, descending, and which they
        are.
    waiting: (T,) the tasks that wait, in order of submission.
    blocked: (lines,) whether a task of a line has been tried at this moment, and there are too few
        nodes.
    kinds: (N, bits) running tasks of each kind on each node.
    changed: (N,) work space: the nodes that tasks leave at one moment.
    since_s: (N,) when each node last changed.
    rest: (N,) `STATE` with nothing on it.
    totals: (2,) ∫ (P − P₀) dt in J and ∫ (F − F₀) dt in milli-GPU·s.
    counts: tasks that arrived, that run, and that wait.
    """

    queue: int
    submit_s: FloatArray
    lasting_s: FloatArray
    never: BoolArray
    parts: IntArray
    line: IntArray
    node: IntArray
    mask: IntArray
    start_s: FloatArray
    freed_s: FloatArray
    leaving: IntArray
    waiting: IntArray
    blocked: BoolArray
    kinds: IntArray
    changed: IntArray
    since_s: FloatArray
    rest: Table
    totals: FloatArray
    counts: IntArray


@inner
def settle(run: PlacementRun, flow: Flow, k: int, n: int, mask: int, now: float, sign: int) -> None:
    """Count what node `n` drew since it last changed; then row `k` holds its part, or leaves."""
    state, request = run.state[n], run.requests[run.arrivals[k]["request"]]
    lasted = now - flow.since_s[n]
    flow.totals[0] += (state["power"] - flow.rest[n]["power"]) * lasted
    flow.totals[1] += (state["fragment"] - flow.rest[n]["fragment"]) * lasted
    flow.since_s[n] = now
    hold(run, k, n, mask, sign)
    bit = request["bit"]
    if bit >= 0:
        flow.kinds[n, bit] += sign
        if flow.kinds[n, bit] == 0:
            state["kinds"] -= request["kind"]


@inner
def place(run: PlacementRun, flow: Flow, k: int, now: float) -> bool:
    """Give the task that begins with row `k` its nodes, and start it; nothing where they lack."""
    parts, end = flow.parts[k], now + flow.lasting_s[k]
    placed = 0
    while placed < parts:
        i = k + placed
        n = choose_node(run, i)
        if n < 0:
            break
        flow.node[i], flow.mask[i], flow.start_s[i] = n, choose_gpus(run, i, n), now
        settle(run, flow, i, n, flow.mask[i], now, 1)
        run.state[n]["tasks"] += TASKS_PER_NODE  # no other row of it fits there
        placed += 1
    for i in range(k, k + placed):
        n = flow.node[i]
        run.state[n]["tasks"] -= TASKS_PER_NODE
        if placed < parts:
            settle(run, flow, i, n, flow.mask[i], now, -1)
            flow.node[i], flow.mask[i], flow.start_s[i] = -1, 0, 0.0
            continue
        freed = end - min(TOLERANCE_S + ROUNDING * abs(end), flow.lasting_s[k] / 2)
        at = flow.counts[RUNNING]
        while at > 0 and flow.freed_s[at - 1] <= freed:
            flow.freed_s[at], flow.leaving[at] = flow.freed_s[at - 1], flow.leaving[at - 1]
            at -= 1
        flow.freed_s[at], flow.leaving[at] = freed, i
        flow.counts[RUNNING] += 1
    return bool(placed == parts)


@inner
def next_waiting(run: PlacementRun, flow: Flow, begin: int, changed: int) -> int:
    """The first place in the queue from `begin` on whose task may start and fits a changed node.

    -1 for none. No other node fits any of them: what waits did not fit when it came, and nodes have
    only been filled since, but for those that a task has left. One that takes several nodes did not
    find enough, and needs at least one of these.
    """
    for p in range(begin, flow.counts[WAITING]):
        k = flow.waiting[p]
        if flow.blocked[flow.line[k]]:
            continue
        if flow.queue == FIFO:
            return p
        r, memory = run.arrivals[k]["request"], run.arrivals[k]["memory_mib"]
        for i in range(changed):
            now = run.state[flow.changed[i]]
            if feasible(run.requests[r], memory, now) and run.accepts[r, now["model"]]:
                return p
    return -1


@compiled
def follow(run: PlacementRun, flow: Flow, events: int) -> bool:
    """Pass up to so many arrivals and moments at which tasks leave; whether any is left.

    The large functions are called from here alone: each caller would compile them once more.
    """
    total, counts = len(flow.submit_s), flow.counts
    for _ in range(events):
        k, p, changed = counts[ARRIVED], -1, 0
        last = counts[RUNNING] - 1
        if last >= 0 and (k == total or flow.freed_s[last] <= flow.submit_s[k]):
            gone = flow.leaving[last]
            now = flow.start_s[gone] + flow.lasting_s[gone]
            while counts[RUNNING] > 0 and flow.freed_s[counts[RUNNING] - 1] <= now:
                counts[RUNNING] -= 1
                gone = flow.leaving[counts[RUNNING]]
                n, end = flow.node[gone], flow.start_s[gone] + flow.lasting_s[gone]
                settle(run, flow, gone, n, flow.mask[gone], end, -1)
                if not (flow.changed[:changed] == n).any():
                    flow.changed[changed] = n
                    changed += 1
            flow.blocked[:] = False
            p = next_waiting(run, flow, 0, changed)
            while p >= 0:
                k = flow.waiting[p]
                if place(run, flow, k, now):
                    counts[WAITING] -= 1
                    for i in range(p, counts[WAITING]):
                        flow.waiting[i] = flow.waiting[i + 1]
                elif flow.queue == FIFO:
                    break
                else:
                    flow.blocked[flow.line[k]] = True
                p = next_waiting(run, flow, p, changed)
        elif k < total:
            counts[ARRIVED] += flow.parts[k]
            if flow.never[k]:
                continue
            behind = flow.queue == FIFO and counts[WAITING] > 0
            if (behind or not place(run, flow, k, flow.submit_s[k])) and flow.queue != REJECT:
                flow.waiting[counts[WAITING]] = k
                counts[WAITING] += 1
        else:
            return False
    return bool(counts[ARRIVED] < total or counts[RUNNING] > 0)
