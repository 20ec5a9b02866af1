"""Event loop of every policy: tasks arrive, run, and leave.

`next_task` lets tasks leave until the next one arrives, and `decide` carries out the answer about
it. The answer comes from `loop` for a built-in policy (`follow`), and from the user for a policy of
`custom`. At one time, departures come before arrivals. If tasks have no times, all arrive at 0 and
none leaves.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from optgap.heuristics.placement.loop import choose_gpus, choose_node, hold
from optgap.heuristics.placement.tables import PlacementRun
from optgap.models.compiled import compiled, inner
from optgap.models.placement.arrays import BoolArray, FloatArray, IntArray
from optgap.models.times import ROUNDING, TOLERANCE_S

# places in `Flow.counts`
ARRIVED = 0  # tasks that have come
RUNNING = 1  # that will leave


class Flow(NamedTuple):
    """Tasks in order of submission, and the running tasks.

    Parameters
    ----------
    submit_s, lasting_s: (T,) arrival and duration of each task, s; infinite if none leaves.
    never: (T,) whether no empty node could take it.
    node, mask: (T,) decisions: the node by rank, -1 for none, and GPUs as bits.
    freed_s, leaving: (T,) when the running tasks free their nodes, descending, and the numbers of
        these tasks.
    kinds: (N, bits) running tasks of each kind on each node.
    counts: (2,) position of the loop.
    """

    submit_s: FloatArray
    lasting_s: FloatArray
    never: BoolArray
    node: IntArray
    mask: IntArray
    freed_s: FloatArray
    leaving: IntArray
    kinds: IntArray
    counts: IntArray


@inner
def settle(run: PlacementRun, flow: Flow, k: int, n: int, mask: int, sign: int) -> None:
    """Place task `k` on node `n`, or remove it with a `sign` of -1."""
    request = run.requests[run.arrivals[k]["request"]]
    hold(run, k, n, mask, sign)
    bit = request["bit"]
    if bit >= 0:
        flow.kinds[n, bit] += sign
        if flow.kinds[n, bit] == 0:
            run.state[n]["kinds"] -= request["kind"]


@inner
def next_task(run: PlacementRun, flow: Flow) -> int:
    """Pass events until a task needs a node, and return the task; -1 after the last event."""
    counts, total = flow.counts, len(flow.submit_s)
    while True:
        k, last = counts[ARRIVED], counts[RUNNING] - 1
        if last >= 0 and (k == total or flow.freed_s[last] <= flow.submit_s[k]):
            gone = flow.leaving[last]
            counts[RUNNING] = last
            settle(run, flow, gone, flow.node[gone], flow.mask[gone], -1)
        elif k == total:
            return -1
        else:
            counts[ARRIVED] += 1
            if not flow.never[k]:
                return int(k)


@inner
def decide(run: PlacementRun, flow: Flow, n: int, mask: int) -> None:
    """Give the last arrival node `n`, -1 to reject it, and the GPUs that `mask` has as bits."""
    counts = flow.counts
    k = counts[ARRIVED] - 1
    if n < 0:
        return
    flow.node[k], flow.mask[k] = n, mask
    settle(run, flow, k, n, mask, 1)
    if flow.lasting_s[k] < math.inf:
        end = flow.submit_s[k] + flow.lasting_s[k]
        freed = end - min(TOLERANCE_S + ROUNDING * abs(end), flow.lasting_s[k] / 2)
        at = counts[RUNNING]
        while at > 0 and flow.freed_s[at - 1] <= freed:
            flow.freed_s[at], flow.leaving[at] = flow.freed_s[at - 1], flow.leaving[at - 1]
            at -= 1
        flow.freed_s[at], flow.leaving[at] = freed, k
        counts[RUNNING] += 1


@compiled
def follow(run: PlacementRun, flow: Flow, tasks: int) -> bool:
    """Let the rule of a run decide about up to so many tasks; return whether any is left.

    Only this function calls the large functions, because each caller compiles them once more.
    """
    for _ in range(tasks):
        k = next_task(run, flow)
        if k < 0:
            return False
        n = choose_node(run, k)
        decide(run, flow, n, choose_gpus(run, k, n) if n >= 0 else 0)
    return True
