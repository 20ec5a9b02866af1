"""Algorithm 1 of PowerFlow, compiled.

Priorities are ratios in which the remaining work of a job cancels, (T − T')/(E' − E). Only a job's
first GPUs and steps that save both time and energy are ordered by its remaining work.
"""

from __future__ import annotations

import heapq
from typing import Any, NamedTuple

import numpy as np

from optgap.models.compiled import compiled, inner

NO_STEP, FINITE, FREE = 0, 1, 2
"""Kinds of steps: no candidate, a step with a ratio, a step that is faster and not costlier."""
GO_ON, STOP, AGAIN = 0, 1, 2
"""States after a step of phase 1: go on; the limit is reached; the power has fallen, so that steps
that the limit forbade may be possible now."""


class Jobs(NamedTuple):
    """Active jobs, A of them, in order of submission.

    Parameters
    ----------
    of_class, order, remaining: (A,) class, order of the first GPUs, iterations left.
    locked, locked_w: (A,) GPU-count index of a job that may not be touched (−1: none), its W.
    """

    of_class: Any
    order: Any
    remaining: Any
    locked: Any
    locked_w: Any


class Steps(NamedTuple):
    """Steps that a job of a class (C) may take from its GPU count (K) and clock (F).

    Parameters
    ----------
    counts: (K,) GPU counts; least, following: (C,) and (C, K) first and next count index.
    start: (C, K) clock f* with which a job starts phase 2.
    grow_kind, grow_value: (C, K) of the step to `following`; value: ratio, or dT per iteration.
    watts: (C, K, F) power as the limit counts it.
    raise_kind, raise_value: (C, K, F) of the step to the next clock.
    """

    counts: Any
    least: Any
    following: Any
    start: Any
    grow_kind: Any
    grow_value: Any
    watts: Any
    raise_kind: Any
    raise_value: Any


class Limit(NamedTuple):
    """Limits of the cluster.

    Parameters
    ----------
    gpus, per_node: GPUs of the cluster and of each node.
    watts: the limit on power, W.
    strict: a step is taken only if the limit holds after it; otherwise, as printed, steps end
        once it has been passed.
    """

    gpus: int
    per_node: int
    watts: float
    strict: bool


@compiled
def allocate(jobs: Any, steps: Any, limit: Any) -> Any:
    """Run Algorithm 1; return (A,) count index, −1 to wait, (A,) clock index and power, W."""
    size = len(jobs.of_class)
    chosen = np.full(size, -1, np.int64)
    clock = np.zeros(size, np.int64)
    free = limit.gpus
    power = 0.0
    for a in range(size):
        if jobs.locked[a] >= 0:
            chosen[a] = jobs.locked[a]
            free -= steps.counts[jobs.locked[a]]
            power += jobs.locked_w[a]
    stop = AGAIN
    while stop == AGAIN:
        free, power, stop = _first_gpus(jobs, steps, limit, chosen, free, power)
        if stop == GO_ON:
            free, power, stop = _grown(jobs, steps, limit, chosen, free, power)
    for a in range(size):
        if chosen[a] >= 0 and jobs.locked[a] < 0:
            clock[a] = steps.start[jobs.of_class[a], chosen[a]]
    return chosen, clock, _raised(jobs, steps, limit, chosen, clock, power)


@inner
def _first_gpus(jobs: Any, steps: Any, limit: Any, chosen: Any, free: int, power: float) -> Any:
    """Give each job in `order` its fewest GPUs (phase 1); return (free, power, stop)."""
    stop = GO_ON
    for a in jobs.order:
        if chosen[a] >= 0 or stop or free == 0:
            continue
        c = jobs.of_class[a]
        k = steps.least[c]
        n = steps.counts[k]
        if n > free:
            continue
        more = steps.watts[c, k, steps.start[c, k]]
        if limit.strict and power + more > limit.watts:
            continue
        chosen[a] = k
        stop = _passed(limit, free, free - n, power + more)
        free -= n
        power += more
    return free, power, stop


@inner
def _passed(limit: Any, before: int, free: int, power: float) -> int:
    """Tell whether steps end as printed: the limit is checked when a whole number of nodes has been
    handed out, or a step has passed such a number."""
    crossed = free % limit.per_node == 0 or free // limit.per_node < before // limit.per_node
    return STOP if not limit.strict and crossed and power >= limit.watts else GO_ON


@inner
def _push(heap: Any, a: int, kind: int, value: float, remaining: float) -> None:
    """Add a step of job a as a candidate: steps that cost no energy come first, by time saved, then
    the others by ratio."""
    if kind == FREE:
        heapq.heappush(heap, (0, -remaining * value, a))
    elif kind == FINITE:
        heapq.heappush(heap, (1, -value, a))


@inner
def _grown(jobs: Any, steps: Any, limit: Any, chosen: Any, free: int, power: float) -> Any:
    """Give jobs more GPUs (phase 1); return (free, power, stop)."""
    kinds, values, watts, start = steps.grow_kind, steps.grow_value, steps.watts, steps.start
    heap = [(0, 0.0, 0)]
    heap.pop()
    for a in range(len(chosen)):
        c, k = jobs.of_class[a], chosen[a]
        if k >= 0 and jobs.locked[a] < 0:
            _push(heap, a, kinds[c, k], values[c, k], jobs.remaining[a])
    stop = GO_ON
    while len(heap) > 0 and stop == GO_ON and free > 0:
        a = heapq.heappop(heap)[2]
        c, k = jobs.of_class[a], chosen[a]
        after = steps.following[c, k]
        more = steps.counts[after] - steps.counts[k]
        extra = watts[c, after, start[c, after]] - watts[c, k, start[c, k]]
        if more > free or (limit.strict and extra > 0 and power + extra > limit.watts):
            continue
        chosen[a] = after
        power += extra
        stop = _passed(limit, free, free - more, power)
        if limit.strict and extra < 0:
            stop = AGAIN
        free -= more
        _push(heap, a, kinds[c, after], values[c, after], jobs.remaining[a])
    return free, power, stop


@inner
def _raised(jobs: Any, steps: Any, limit: Any, chosen: Any, clock: Any, power: float) -> float:
    """Raise clocks (phase 2) until the limit is passed or, if strict, as far as it allows."""
    kinds, values, watts = steps.raise_kind, steps.raise_value, steps.watts
    heap = [(0, 0.0, 0)]
    heap.pop()
    for a in range(len(chosen)):
        c, k, f = jobs.of_class[a], chosen[a], clock[a]
        if k >= 0 and jobs.locked[a] < 0:
            _push(heap, a, kinds[c, k, f], values[c, k, f], jobs.remaining[a])
    while len(heap) > 0 and (limit.strict or power <= limit.watts):
        a = heapq.heappop(heap)[2]
        c, k, f = jobs.of_class[a], chosen[a], clock[a]
        extra = watts[c, k, f + 1] - watts[c, k, f]
        if limit.strict and extra > 0 and power + extra > limit.watts:
            continue
        clock[a] = f + 1
        power += extra
        _push(heap, a, kinds[c, k, f + 1], values[c, k, f + 1], jobs.remaining[a])
    return power
