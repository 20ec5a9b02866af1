"""Algorithm 1 of PowerFlow, compiled.

Priorities are ratios in which the remaining work of a job cancels, (T − T')/(E' − E): jobs of one
class at one configuration share them, so that whole groups take a step together. Only a job's
first GPUs and steps that save both time and energy are ordered by its remaining work.
"""

from __future__ import annotations

import heapq
from typing import Any, NamedTuple

import numpy as np

from optgap.models.compiled import compiled, inner

NO_STEP, FINITE, FREE = 0, 1, 2
"""A step that is no candidate; one with a ratio; one that is faster and not costlier."""
GO_ON, STOP, AGAIN = 0, 1, 2
"""After a step of phase 1: on; the limit is reached; the power has fallen, and what it kept from
being taken may be taken now."""


class Jobs(NamedTuple):
    """A active jobs in order of submission.

    Parameters
    ----------
    of_class, first_key, remaining: (A,) class, order of the first GPUs, iterations left.
    locked, locked_w: (A,) GPU-count index of a job that may not be touched (−1: none), its W.
    """

    of_class: Any
    first_key: Any
    remaining: Any
    locked: Any
    locked_w: Any


class Steps(NamedTuple):
    """Every step that a job of a class (C) may take from its GPU count (K) and clock (F).

    Parameters
    ----------
    counts: (K,) GPU counts; least, following: (C,) and (C, K) first and next count index.
    start: (C, K) clock that a job starts phase 2 with, f*.
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
    """What there is.

    Parameters
    ----------
    gpus, per_node: GPUs in all and of each node.
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
    """Algorithm 1: (A,) count index, −1 to wait; (A,) clock index; power in W."""
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
    begin, member = _members(jobs.of_class, len(steps.least))
    stop = AGAIN
    while stop == AGAIN:
        free, power, stop = _first_gpus(jobs, steps, limit, chosen, free, power)
        if stop == GO_ON and free > 0:
            free, power, stop = _free_growth(jobs, steps, limit, chosen, free, power)
        if stop == GO_ON and free > 0:
            free, power, stop = _growth(jobs, steps, limit, chosen, begin, member, free, power)
    for a in range(size):
        if chosen[a] >= 0 and jobs.locked[a] < 0:
            clock[a] = steps.start[jobs.of_class[a], chosen[a]]
    power = _free_rises(jobs, steps, chosen, clock, power, limit.watts, limit.strict)
    power = _rises(jobs, steps, chosen, clock, begin, member, power, limit.watts, limit.strict)
    return chosen, clock, power


@inner
def _members(of_class: Any, classes: int) -> Any:
    """(C+1,) where each class begins among (A,) the jobs by class and submission."""
    begin = np.zeros(classes + 1, np.int64)
    for a in range(len(of_class)):
        begin[of_class[a] + 1] += 1
    for c in range(classes):
        begin[c + 1] += begin[c]
    fill = begin.copy()
    member = np.zeros(len(of_class), np.int64)
    for a in range(len(of_class)):
        member[fill[of_class[a]]] = a
        fill[of_class[a]] += 1
    return begin, member


@inner
def _first_gpus(jobs: Any, steps: Any, limit: Any, chosen: Any, free: int, power: float) -> Any:
    """Phase 1, the fewest GPUs for each in the order of `first_key`: (free, power, stop)."""
    stop = GO_ON
    for a in np.argsort(jobs.first_key, kind="mergesort"):
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
    """Whether steps end, as printed: the limit is reached when a whole number of nodes has been
    handed out, or a step has passed such a number."""
    crossed = free % limit.per_node == 0 or free // limit.per_node < before // limit.per_node
    return STOP if not limit.strict and crossed and power >= limit.watts else GO_ON


@inner
def _grow(a: int, jobs: Any, steps: Any, limit: Any, chosen: Any, free: int, power: float) -> Any:
    """One step of job a to its next count if it fits: (free, power, done, stop)."""
    c, k = jobs.of_class[a], chosen[a]
    after = steps.following[c, k]
    if after < 0:
        return free, power, False, GO_ON
    more = steps.counts[after] - steps.counts[k]
    extra = steps.watts[c, after, steps.start[c, after]] - steps.watts[c, k, steps.start[c, k]]
    if more > free:
        return free, power, False, GO_ON
    left = free - more
    if limit.strict and extra > 0 and power + extra > limit.watts:
        return free, power, False, GO_ON
    chosen[a] = after
    power += extra
    if limit.strict and extra < 0:
        return left, power, True, AGAIN
    return left, power, True, _passed(limit, free, left, power)


@inner
def _free_growth(jobs: Any, steps: Any, limit: Any, chosen: Any, free: int, power: float) -> Any:
    """Phase 1, steps that cost no energy, by time saved: (free, power, stop)."""
    stop = GO_ON
    wins = [(0.0, 0)]
    wins.pop()
    for a in range(len(chosen)):
        c = jobs.of_class[a]
        if chosen[a] >= 0 and jobs.locked[a] < 0 and steps.grow_kind[c, chosen[a]] == FREE:
            heapq.heappush(wins, (-jobs.remaining[a] * steps.grow_value[c, chosen[a]], a))
    while len(wins) > 0 and not stop:
        _, a = heapq.heappop(wins)
        free, power, done, stop = _grow(a, jobs, steps, limit, chosen, free, power)
        c = jobs.of_class[a]
        if done and steps.grow_kind[c, chosen[a]] == FREE:
            heapq.heappush(wins, (-jobs.remaining[a] * steps.grow_value[c, chosen[a]], a))
    return free, power, stop


@inner
def _growth(
    jobs: Any, steps: Any, limit: Any, chosen: Any, begin: Any, member: Any, free: int,
    power: float,
) -> Any:  # fmt: skip
    """Phase 1, steps that cost energy, by ratio, group by group: (free, power, stop)."""
    kinds, values = steps.grow_kind, steps.grow_value
    stop = GO_ON
    queued = np.zeros(kinds.shape, np.bool_)
    heap = [(0.0, 0, 0, 0)]
    heap.pop()
    for a in range(len(chosen)):
        c, k = jobs.of_class[a], chosen[a]
        if k >= 0 and jobs.locked[a] < 0 and kinds[c, k] == FINITE and not queued[c, k]:
            queued[c, k] = True
            heapq.heappush(heap, (-values[c, k], a, c, k))
    while len(heap) > 0 and not stop and free > 0:
        minus, _, c, k = heapq.heappop(heap)
        queued[c, k] = False
        after = steps.following[c, k]
        kind = kinds[c, after]
        alone = kind == FREE or (kind == FINITE and values[c, after] >= -minus)
        again = -1
        for m in range(begin[c], begin[c + 1]):
            a = member[m]
            if chosen[a] != k or jobs.locked[a] >= 0:
                continue
            if again == -2:
                again = a
                break
            free, power, done, stop = _grow(a, jobs, steps, limit, chosen, free, power)
            if not done:
                break  # nor for any other of the group, now or later
            while done and kind == FREE and not stop and kinds[c, chosen[a]] == FREE:
                free, power, done, stop = _grow(a, jobs, steps, limit, chosen, free, power)
            now = chosen[a]
            if kinds[c, now] == FINITE and not queued[c, now]:
                queued[c, now] = True
                heapq.heappush(heap, (-values[c, now], a, c, now))
            if stop:
                break
            if alone:
                again = -2
        if again >= 0 and not queued[c, k]:
            queued[c, k] = True
            heapq.heappush(heap, (minus, again, c, k))
    return free, power, stop


@inner
def _over(strict: bool, power: float, extra: float, top: float) -> bool:
    """Whether a rise is not to be taken: it breaks the limit, or the limit has been passed."""
    if strict:
        return extra > 0 and power + extra > top
    return power > top


@inner
def _free_rises(
    jobs: Any, steps: Any, chosen: Any, clock: Any, power: float, top: float, strict: bool
) -> float:
    """Phase 2, clocks up where that costs no energy, by time saved; the power then."""
    kinds, values, watts = steps.raise_kind, steps.raise_value, steps.watts
    wins = [(0.0, 0)]
    wins.pop()
    for a in range(len(chosen)):
        c, k = jobs.of_class[a], chosen[a]
        if k >= 0 and jobs.locked[a] < 0 and kinds[c, k, clock[a]] == FREE:
            heapq.heappush(wins, (-jobs.remaining[a] * values[c, k, clock[a]], a))
    while len(wins) > 0 and (strict or power <= top):
        _, a = heapq.heappop(wins)
        c, k, f = jobs.of_class[a], chosen[a], clock[a]
        extra = watts[c, k, f + 1] - watts[c, k, f]
        if _over(strict, power, extra, top):
            continue
        clock[a] = f + 1
        power += extra
        if kinds[c, k, f + 1] == FREE:
            heapq.heappush(wins, (-jobs.remaining[a] * values[c, k, f + 1], a))
    return power


@inner
def _rises(
    jobs: Any, steps: Any, chosen: Any, clock: Any, begin: Any, member: Any, power: float,
    top: float, strict: bool,
) -> float:  # fmt: skip
    """Phase 2, clocks up that cost energy, by ratio, group by group; the power then."""
    kinds, values, watts = steps.raise_kind, steps.raise_value, steps.watts
    queued = np.zeros(kinds.shape, np.bool_)
    heap = [(0.0, 0, 0, 0, 0)]
    heap.pop()
    for a in range(len(chosen)):
        c, k, f = jobs.of_class[a], chosen[a], clock[a]
        if k >= 0 and jobs.locked[a] < 0 and kinds[c, k, f] == FINITE and not queued[c, k, f]:
            queued[c, k, f] = True
            heapq.heappush(heap, (-values[c, k, f], a, c, k, f))
    while len(heap) > 0 and (strict or power <= top):
        minus, _, c, k, f = heapq.heappop(heap)
        queued[c, k, f] = False
        extra = watts[c, k, f + 1] - watts[c, k, f]
        kind = kinds[c, k, f + 1]
        alone = kind == FREE or (kind == FINITE and values[c, k, f + 1] >= -minus)
        again = -1
        for m in range(begin[c], begin[c + 1]):
            a = member[m]
            if chosen[a] != k or clock[a] != f or jobs.locked[a] >= 0:
                continue
            if again == -2:
                again = a
                break
            if _over(strict, power, extra, top):
                break
            clock[a] = f + 1
            power += extra
            while kinds[c, k, clock[a]] == FREE:
                step = watts[c, k, clock[a] + 1] - watts[c, k, clock[a]]
                if _over(strict, power, step, top):
                    break
                clock[a] += 1
                power += step
            now = clock[a]
            if kinds[c, k, now] == FINITE and not queued[c, k, now]:
                queued[c, k, now] = True
                heapq.heappush(heap, (-values[c, k, now], a, c, k, now))
            if alone:
                again = -2
        if again >= 0 and not queued[c, k, f]:
            queued[c, k, f] = True
            heapq.heappush(heap, (minus, again, c, k, f))
    return power
