"""The compiled event loop over time: tasks arrive, wait where they may, run, and leave.

What is decided at an arrival is decided by `loop`. Of what happens at one time, tasks leave first,
then those that wait are asked in the order of the queue, then tasks arrive.
"""

from __future__ import annotations

from typing import NamedTuple

from optgap.heuristics.placement.loop import choose_gpus, choose_node, commit, feasible, refresh
from optgap.heuristics.placement.tables import Run
from optgap.models.compiled import compiled, inner
from optgap.models.placement.arrays import BoolArray, FloatArray, IntArray
from optgap.models.placement.cluster import TASKS_PER_NODE
from optgap.models.placement.kernels import Table
from optgap.models.times import ROUNDING, TOLERANCE_S

REJECT = 0
FIFO = 1
BACKFILL = 2

# places in `Flow.count`
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
    line: (T,) its line of the queue: tasks alike in all that decides where they fit.
    node, mask, start_s: (T,) what was decided: node by rank, -1 for none; GPUs as bits.
    freed_s, end_s, leaving: (T,) a heap of the tasks that run, by when their room is free: that,
        when they end, and which they are.
    first, last: (lines,) the first and the last task that waits in each line, -1 for none.
    behind: (T,) the task behind it in its line, -1 for none.
    blocked: (lines,) whether its first has been tried at this moment, and there are too few nodes.
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
    end_s: FloatArray
    leaving: IntArray
    first: IntArray
    last: IntArray
    behind: IntArray
    blocked: BoolArray
    kinds: IntArray
    changed: IntArray
    since_s: FloatArray
    rest: Table
    totals: FloatArray
    counts: IntArray


@inner
def settle(run: Run, flow: Flow, n: int, now: float) -> None:
    """Count what node `n` drew since it last changed."""
    lasted = now - flow.since_s[n]
    flow.totals[0] += (run.state[n]["power"] - flow.rest[n]["power"]) * lasted
    flow.totals[1] += (run.state[n]["fragment"] - flow.rest[n]["fragment"]) * lasted
    flow.since_s[n] = now


@inner
def push(flow: Flow, freed: float, end: float, k: int) -> None:
    """Put a running task on the heap."""
    at = flow.counts[RUNNING]
    flow.counts[RUNNING] += 1
    while at > 0:
        above = (at - 1) // 2
        if flow.freed_s[above] <= freed:
            break
        flow.freed_s[at] = flow.freed_s[above]
        flow.end_s[at] = flow.end_s[above]
        flow.leaving[at] = flow.leaving[above]
        at = above
    flow.freed_s[at] = freed
    flow.end_s[at] = end
    flow.leaving[at] = k


@inner
def pop(flow: Flow) -> int:
    """Take the task that leaves first off the heap."""
    k = int(flow.leaving[0])
    flow.counts[RUNNING] -= 1
    size = flow.counts[RUNNING]
    freed = flow.freed_s[size]
    at = 0
    while 2 * at + 1 < size:
        below = 2 * at + 1
        if below + 1 < size and flow.freed_s[below + 1] < flow.freed_s[below]:
            below += 1
        if freed <= flow.freed_s[below]:
            break
        flow.freed_s[at] = flow.freed_s[below]
        flow.end_s[at] = flow.end_s[below]
        flow.leaving[at] = flow.leaving[below]
        at = below
    flow.freed_s[at] = freed
    flow.end_s[at] = flow.end_s[size]
    flow.leaving[at] = flow.leaving[size]
    return k


@inner
def place(run: Run, flow: Flow, k: int, now: float) -> bool:
    """Give the task that begins with row `k` its nodes, and start it; nothing where they lack."""
    parts = flow.parts[k]
    for i in range(k, k + parts):
        n = choose_node(run, i)
        if n < 0:
            for j in range(k, i):
                take_back(run, flow, j)
            return False
        mask = choose_gpus(run, i, n)
        settle(run, flow, n, now)
        commit(run, i, n, mask)
        flow.node[i] = n
        flow.mask[i] = mask
        if parts > 1:
            run.state[n]["tasks"] += TASKS_PER_NODE  # no other row of it fits there
    for i in range(k, k + parts):
        if parts > 1:
            run.state[flow.node[i]]["tasks"] -= TASKS_PER_NODE
        begin(run, flow, i, now, now + flow.lasting_s[i])
    return True


@inner
def take_back(run: Run, flow: Flow, k: int) -> None:
    """Undo that row `k` was given its node."""
    n = flow.node[k]
    run.state[n]["tasks"] -= TASKS_PER_NODE
    give_back(run, k, n, flow.mask[k])
    request = run.requests[run.arrivals[k]["request"]]
    bit = request["bit"]
    if bit >= 0 and flow.kinds[n, bit] == 0:
        run.state[n]["kinds"] -= request["kind"]
    refresh(run, n)
    flow.node[k] = -1
    flow.mask[k] = 0


@inner
def begin(run: Run, flow: Flow, k: int, now: float, end: float) -> None:
    """Note that row `k`, which has its node, starts now, and when it ends."""
    n = flow.node[k]
    bit = run.requests[run.arrivals[k]["request"]]["bit"]
    if bit >= 0:
        flow.kinds[n, bit] += 1
    flow.start_s[k] = now
    slack = TOLERANCE_S + ROUNDING * abs(end)
    push(flow, end - min(slack, flow.lasting_s[k] / 2), end, k)


@inner
def give_back(run: Run, k: int, n: int, mask: int) -> None:
    """Take back from task `k` what it held; `refresh` says what follows from it."""
    state = run.state[n]
    request = run.requests[run.arrivals[k]["request"]]
    state["free_cpu"] += request["cpu_milli"]
    state["free_memory"] += run.arrivals[k]["memory_mib"]
    state["tasks"] -= 1
    state["changes"] += 1
    for g in range(run.nodes[n]["gpus"]):
        if mask >> g & 1:
            run.gpu_free[n, g] += request["gpu_milli"]


@inner
def leave(run: Run, flow: Flow, k: int, now: float) -> None:
    """Task `k` ends."""
    n = flow.node[k]
    settle(run, flow, n, now)
    give_back(run, k, n, flow.mask[k])
    request = run.requests[run.arrivals[k]["request"]]
    bit = request["bit"]
    if bit >= 0:
        flow.kinds[n, bit] -= 1
        if flow.kinds[n, bit] == 0:
            run.state[n]["kinds"] -= request["kind"]


@inner
def wait(flow: Flow, k: int) -> None:
    """Task `k` joins the end of its line."""
    line = flow.line[k]
    if flow.first[line] < 0:
        flow.first[line] = k
    else:
        flow.behind[flow.last[line]] = k
    flow.last[line] = k
    flow.counts[WAITING] += 1


@inner
def next_in_queue(run: Run, flow: Flow, changed: int) -> int:
    """The first waiting task that the queue may start and one of the changed nodes fits; or -1.

    No other node fits any of them: what waits did not fit when it came, and nodes have only been
    filled since, but for those that a task has left. One that takes several nodes did not find
    enough, and needs at least one of these.
    """
    head = -1
    if flow.counts[WAITING] == 0:
        return head
    for line in range(len(flow.first)):
        k = flow.first[line]
        if k < 0 or (0 <= head < k) or flow.blocked[line]:
            continue
        if flow.queue == FIFO:
            head = k
            continue
        r, memory = run.arrivals[k]["request"], run.arrivals[k]["memory_mib"]
        for i in range(changed):
            now = run.state[flow.changed[i]]
            if feasible(run.requests[r], memory, now) and run.accepts[r, now["model"]]:
                head = k
                break
    return head


@compiled
def follow(run: Run, flow: Flow, events: int) -> bool:
    """Pass up to so many arrivals and moments at which tasks leave; whether any is left.

    The large functions are called from here alone: each caller would compile them once more.
    """
    total = len(flow.submit_s)
    for _ in range(events):
        k = flow.counts[ARRIVED]
        changed = 0
        if flow.counts[RUNNING] > 0 and (k == total or flow.freed_s[0] <= flow.submit_s[k]):
            now = flow.end_s[0]
            while flow.counts[RUNNING] > 0 and flow.freed_s[0] <= now:
                end = flow.end_s[0]
                gone = pop(flow)
                leave(run, flow, gone, end)
                refresh(run, flow.node[gone])
                if not (flow.changed[:changed] == flow.node[gone]).any():
                    flow.changed[changed] = flow.node[gone]
                    changed += 1
            flow.blocked[:] = False
            k = next_in_queue(run, flow, changed)
        elif k < total:
            now = flow.submit_s[k]
            flow.counts[ARRIVED] += flow.parts[k]
            if flow.never[k]:
                continue
            if flow.queue == FIFO and flow.counts[WAITING] > 0:
                wait(flow, k)
                continue
        else:
            return False
        while k >= 0:
            if not place(run, flow, k, now):
                if changed == 0 and flow.queue != REJECT:
                    wait(flow, k)
                if changed == 0 or flow.queue == FIFO:
                    break
                flow.blocked[flow.line[k]] = True
                k = next_in_queue(run, flow, changed)
                continue
            if changed == 0:  # it has just come
                break
            flow.first[flow.line[k]] = flow.behind[k]  # it waits no longer
            flow.counts[WAITING] -= 1
            k = next_in_queue(run, flow, changed)
    return bool(flow.counts[ARRIVED] < total or flow.counts[RUNNING] > 0)
