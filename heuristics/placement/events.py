"""Event loop of every policy: tasks arrive, wait if the problem lets them, run, and leave.

`next_row` passes events until a task needs a node, and `decide` carries out the answer. The answer
comes from `loop` for a built-in policy (`follow`), and from the user for a policy of `custom`. At
one time, departures come first, then decisions on waiting tasks in the order of the queue, then
arrivals. If tasks have no times, all arrive at 0 and none leaves.
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
    """Counts and integrals up to now.

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
    """Tasks in order of submission, the queue, and the running tasks.

    A task that takes several nodes has a row for each; its first row arrives and waits.

    Parameters
    ----------
    queue: `REJECT`, `FIFO` or `BACKFILL`.
    picky: whether a policy may refuse a node that fits, so that waiting tasks are tried whenever a
        task leaves, on whichever node.
    submit_s, lasting_s: (T,) arrival and duration of each task, s; infinite if none leaves.
    never: (T,) whether no empty node could take it.
    parts: (T,) number of nodes that the task takes.
    line: (T,) number of the class of tasks that fit the same nodes.
    node, mask, start_s: (T,) decisions: the node by rank, -1 for none; GPUs as bits; start, s.
    freed_s, leaving: (T,) when the running tasks free their nodes, descending, and the numbers of
        these tasks.
    waiting: (T,) waiting tasks, in order of submission.
    blocked: (lines,) whether too few nodes were found for a task of this line at the current
        time.
    changed: (N,) work space: the nodes that tasks leave at one time.
    drawn: counts and integrals so far.
    now_s: (1,) current time, s.
    counts: (7,) position of the loop.
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
    """Add the integrals of node `n` since its last change; then place row `k`, or remove it."""
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
    """Pass events until a row of a task needs a node, and return the row; -1 after the last event.

    A waiting task is tried only if it fits a node that a task has just left. Unless the policy is
    picky, it fits no other node: it did not fit on arrival, and the other nodes have only been
    filled since. A task that takes several nodes needs at least one of the nodes just left.
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
    """Give the current row node `n` (-1 for none) and the GPUs that `mask` has as bits.

    A task starts with its last row. If a row gets no node, the other rows lose theirs, and the
    task waits or is rejected. If the cluster is `full` for a task, it is full for its whole line.
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
    """Let the rule of a run decide about up to `rows` rows; return whether any is left.

    Only this function calls the large functions, because each caller compiles them once more.
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
