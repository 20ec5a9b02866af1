"""Event loop of every policy: tasks arrive, run, and leave.

`next_event` says which task arrives or leaves, and `decide` notes the answer about one that
arrives. The answer comes from `loop` for a built-in policy (`follow`), and from the user for a
policy of `custom`. At one time, departures come before arrivals. If tasks have no times, all arrive
at 0 and none leaves.
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
    counts: (2,) position of the loop.
    """

    submit_s: FloatArray
    lasting_s: FloatArray
    never: BoolArray
    node: IntArray
    mask: IntArray
    freed_s: FloatArray
    leaving: IntArray
    counts: IntArray


@inner
def next_event(flow: Flow) -> tuple[int, int]:
    """Return the task that the next event is about: 1 if it arrives, -1 if it ends, 0 for no more.

    A task that fits no empty node arrives unnoticed.
    """
    counts, total = flow.counts, len(flow.submit_s)
    while True:
        k, last = counts[ARRIVED], counts[RUNNING] - 1
        if last >= 0 and (k == total or flow.freed_s[last] <= flow.submit_s[k]):
            counts[RUNNING] = last
            return flow.leaving[last], -1
        if k == total:
            return 0, 0
        counts[ARRIVED] += 1
        if not flow.never[k]:
            return k, 1


@inner
def decide(flow: Flow, n: int, mask: int) -> None:
    """Give the last arrival node `n` and the GPUs that `mask` has as bits."""
    counts = flow.counts
    k = counts[ARRIVED] - 1
    flow.node[k], flow.mask[k] = n, mask
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

    Only this function calls the large functions, and each at one place, because each call
    compiles them once more.
    """
    while tasks > 0:
        k, sign = next_event(flow)
        if sign == 0:
            return False
        if sign > 0:
            tasks -= 1
            n = choose_node(run, k)
            if n < 0:
                continue
            decide(flow, n, choose_gpus(run, k, n))
        hold(run, k, flow.node[k], flow.mask[k], sign)
    return True
