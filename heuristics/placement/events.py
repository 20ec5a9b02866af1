"""The event loop of every policy: tasks arrive, wait where they may, run, and leave.

`next_row` passes the events until a task wants a node, and `decide` takes the answer, which is
`loop`'s for a built-in policy (`follow`) and a user's for one of `custom`. Of what happens at one
time, tasks leave first, then those that wait are asked in the order of the queue, then tasks
arrive. Where tasks have no times, all arrive at 0 and none leaves.
"""

from __future__ import annotations

import math
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
ARRIVED = 0  # rows of tasks that have come
RUNNING = 1  # that will leave
WAITING = 2
ASKED = 3  # the first row of the task that wants nodes
PLACED = 4  # how many of its rows have one
TURN = 5  # its place in the queue, or the one to go on from; -1 where the queue is not asked
CHANGED = 6  # nodes that tasks left at this moment


class Drawn(NamedTuple):
    """Counts and integrals so far.

    Parameters
    ----------
    kinds: (N, bits) running tasks of each kind on each node.
    since_s: (N,) when each node last changed.
    rest: (N,) `STATE` with nothing on it.
    totals: (2,) ∫ (P − P₀) dt in J and ∫ (F − F₀) dt in milli-GPU·s.
    """

    kinds: IntArray
    since_s: FloatArray
    rest: Table
    totals: FloatArray


class Flow(NamedTuple):
    """Tasks in order of submission, the queue, and those that run.

    A task that takes several nodes has a row for each; what waits or comes is its first.

    Parameters
    ----------
    queue: `REJECT`, `FIFO` or `BACKFILL`.
    picky: whether a policy may refuse a node that fits, so that what waits is asked about whenever
        a task leaves, wherever that is.
    submit_s, lasting_s: (T,) when each comes and how long it runs, s; infinite where none leaves.
    never: (T,) whether no empty node could take it.
    parts: (T,) how many nodes its task takes.
    line: (T,) which tasks are alike in all that decides where they fit.
    node, mask, start_s: (T,) what was decided: node by rank, -1 for none; GPUs as bits.
    freed_s, leaving: (T,) when the room of the tasks that run is free, descending, and which they
        are.
    waiting: (T,) the tasks that wait, in order of submission.
    blocked: (lines,) whether a task of a line has been tried at this moment, and there are too few
        nodes.
    changed: (N,) work space: the nodes that tasks leave at one moment.
    drawn: what was counted so far.
    now_s: (1,) the time.
    counts: (7,) where the loop is.
    """

    queue: int
    picky: bool
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
    changed: IntArray
    drawn: Drawn
    now_s: FloatArray
    counts: IntArray


@inner
def settle(
    run: PlacementRun, drawn: Drawn, k: int, n: int, mask: int, sign: int, now: float
) -> None:
    """Count what node `n` drew since it last changed; then row `k` holds its part, or leaves."""
    state, request = run.state[n], run.requests[run.arrivals[k]["request"]]
    lasted, rest = now - drawn.since_s[n], drawn.rest[n]
    drawn.totals[0] += (state["power"] - rest["power"]) * lasted
    drawn.totals[1] += (state["fragment"] - rest["fragment"]) * lasted
    drawn.since_s[n] = now
    hold(run, k, n, mask, sign)
    bit = request["bit"]
    if bit >= 0:
        drawn.kinds[n, bit] += sign
        if drawn.kinds[n, bit] == 0:
            state["kinds"] -= request["kind"]


@inner
def fits_one(run: PlacementRun, k: int, nodes: IntArray) -> bool:
    """Tell whether row `k` fits one of these nodes now."""
    r, memory = run.arrivals[k]["request"], run.arrivals[k]["memory_mib"]
    for n in nodes:
        now = run.state[n]
        if feasible(run.requests[r], memory, now) and run.accepts[r, now["model"]]:
            return True
    return False


@inner
def next_row(run: PlacementRun, flow: Flow) -> int:
    """Pass events until a task wants a node for a row, and return that; -1 at the end of all.

    What waits is asked about where it fits a node that a task has left. No other fits any of them,
    unless the policy is picky: what waits did not fit when it came, and nodes have only been filled
    since. One that takes several nodes did not find enough, and needs at least one of these.
    """
    counts, total = flow.counts, len(flow.submit_s)
    if counts[PLACED] > 0:
        return int(counts[ASKED] + counts[PLACED])
    while True:
        while 0 <= counts[TURN] < counts[WAITING]:
            k = flow.waiting[counts[TURN]]
            if not flow.blocked[flow.line[k]] and (
                flow.queue == FIFO
                or flow.picky
                or fits_one(run, k, flow.changed[: counts[CHANGED]])
            ):
                counts[ASKED] = k
                return int(k)
            counts[TURN] += 1
        counts[TURN] = -1
        k, last = counts[ARRIVED], counts[RUNNING] - 1
        if last >= 0 and (k == total or flow.freed_s[last] <= flow.submit_s[k]):
            gone = flow.leaving[last]
            now = flow.start_s[gone] + flow.lasting_s[gone]
            flow.now_s[0], counts[CHANGED], counts[TURN] = now, 0, 0
            while counts[RUNNING] > 0 and flow.freed_s[counts[RUNNING] - 1] <= now:
                counts[RUNNING] -= 1
                gone = flow.leaving[counts[RUNNING]]
                n, end = flow.node[gone], flow.start_s[gone] + flow.lasting_s[gone]
                settle(run, flow.drawn, gone, n, flow.mask[gone], -1, end)
                if not (flow.changed[: counts[CHANGED]] == n).any():
                    flow.changed[counts[CHANGED]] = n
                    counts[CHANGED] += 1
            flow.blocked[:] = False
            continue
        if k == total:
            return -1
        counts[ARRIVED] += flow.parts[k]
        if flow.never[k]:
            continue
        if flow.queue == FIFO and counts[WAITING] > 0:
            flow.waiting[counts[WAITING]] = k
            counts[WAITING] += 1
            continue
        counts[ASKED], flow.now_s[0] = k, flow.submit_s[k]
        return int(k)


@inner
def decide(run: PlacementRun, flow: Flow, n: int, mask: int, full: bool) -> None:
    """Give the row that was asked about this node and these GPUs as bits; -1 for no node.

    A task starts with its last row. Without a node its other rows lose theirs, and it waits or
    is turned away; where the cluster is `full` for it, so it is for tasks alike.
    """
    counts, now = flow.counts, flow.now_s[0]
    k, placed = counts[ASKED], counts[PLACED]
    if n >= 0:
        i = k + placed
        flow.node[i], flow.mask[i], flow.start_s[i] = n, mask, now
        settle(run, flow.drawn, i, n, mask, 1, now)
        run.state[n]["tasks"] += TASKS_PER_NODE  # no other row of it fits there
        placed += 1
        counts[PLACED] = placed
        if placed < flow.parts[k]:
            return
    counts[PLACED] = 0
    for i in range(k, k + placed):
        run.state[flow.node[i]]["tasks"] -= TASKS_PER_NODE
        if n < 0:
            settle(run, flow.drawn, i, flow.node[i], flow.mask[i], -1, now)
            flow.node[i], flow.mask[i], flow.start_s[i] = -1, 0, 0.0
        elif flow.lasting_s[k] < math.inf:
            end = now + flow.lasting_s[k]
            freed = end - min(TOLERANCE_S + ROUNDING * abs(end), flow.lasting_s[k] / 2)
            at = counts[RUNNING]
            while at > 0 and flow.freed_s[at - 1] <= freed:
                flow.freed_s[at], flow.leaving[at] = flow.freed_s[at - 1], flow.leaving[at - 1]
                at -= 1
            flow.freed_s[at], flow.leaving[at] = freed, i
            counts[RUNNING] += 1
    turn = counts[TURN]
    if n >= 0 and turn >= 0:
        counts[WAITING] -= 1
        for i in range(turn, counts[WAITING]):
            flow.waiting[i] = flow.waiting[i + 1]
    elif turn >= 0:
        flow.blocked[flow.line[k]] = full
        counts[TURN] = -1 if flow.queue == FIFO else turn + 1
    elif n < 0 and flow.queue != REJECT:
        flow.waiting[counts[WAITING]] = k
        counts[WAITING] += 1


@compiled
def follow(run: PlacementRun, flow: Flow, rows: int) -> bool:
    """Let the rule of a run decide about up to so many rows; whether any is left.

    The large functions are called from here alone: each caller would compile them once more.
    """
    done = 0
    while done < rows or flow.counts[PLACED] > 0:  # never in the middle of a task
        k = next_row(run, flow)
        if k < 0:
            return False
        n = choose_node(run, k)
        decide(run, flow, n, choose_gpus(run, k, n) if n >= 0 else 0, True)
        done += 1
    return True
