"""Hot loops of the allocation policies, compiled.

Tables are by class, GPU count and clock. Priorities of PowerFlow are ratios in which the
remaining work of a job cancels, (T − T')/(E' − E): jobs of one class at one configuration share
them, so that whole groups take a step together. Only a job's first GPUs and steps that save
both time and energy are ordered by its remaining work.
"""

from __future__ import annotations

import heapq
from typing import Any

import numpy as np

from optgap.models.compiled import compiled, inner

NO_STEP, FINITE, FREE = 0, 1, 2
"""A step that is no candidate; one with a ratio; one that is faster and not costlier."""


@compiled
def powerflow(
    of_class: Any,
    first_key: Any,
    remaining: Any,
    locked: Any,
    locked_w: Any,
    counts: Any,
    least: Any,
    following: Any,
    start: Any,
    grow_kind: Any,
    grow_value: Any,
    watts: Any,
    raise_kind: Any,
    raise_value: Any,
    gpus: int,
    per_node: int,
    limit: float,
    strict: bool,
    idle_w: float,
) -> Any:
    """Algorithm 1 for A active jobs in order of submission.

    Parameters
    ----------
    of_class, first_key, remaining: (A,) class, order of the first GPUs, iterations left.
    locked, locked_w: (A,) GPU-count index of a job that may not be touched (−1: none), its W.
    counts: (K,) GPU counts; least, following: (C,) and (C, K) first and next count index.
    start: (C, K) clock that a job starts phase 2 with.
    grow_kind, grow_value: (C, K) of the step to `following`; value: ratio, or dT per iteration.
    watts: (C, K, F) power as the limit counts it.
    raise_kind, raise_value: (C, K, F) of the step to the next clock.
    idle_w: W that the limit counts for each idle GPU of as many nodes as hold the jobs.

    Returns
    -------
    (A,) count index, −1 to wait; (A,) clock index; power in W.
    """
    size = len(of_class)
    classes = len(least)
    n_counts = len(counts)
    n_clocks = watts.shape[2]
    chosen = np.full(size, -1, np.int64)
    clock = np.zeros(size, np.int64)
    free = gpus
    power = 0.0
    for a in range(size):
        if locked[a] >= 0:
            chosen[a] = locked[a]
            free -= counts[locked[a]]
            power += locked_w[a]
    # -- phase 1: first GPUs in the order of first_key
    stop = False
    for a in np.argsort(first_key, kind="mergesort"):
        if locked[a] >= 0 or stop:
            continue
        c = of_class[a]
        k = least[c]
        n = counts[k]
        if n > free:
            continue
        more = watts[c, k, start[c, k]]
        idle = idle_w * ((free - n - gpus) % per_node)
        if strict and power + more + idle > limit:
            continue
        chosen[a] = k
        before = free
        free -= n
        power += more
        crossed = free % per_node == 0 or free // per_node < before // per_node
        stop = not strict and crossed and power + idle >= limit
        if free == 0:
            break
    # -- members of each class, by submission
    begin = np.zeros(classes + 1, np.int64)
    for a in range(size):
        begin[of_class[a] + 1] += 1
    for c in range(classes):
        begin[c + 1] += begin[c]
    fill = begin.copy()
    member = np.zeros(size, np.int64)
    for a in range(size):
        member[fill[of_class[a]]] = a
        fill[of_class[a]] += 1
    # -- free wins, by time saved
    if not stop and free > 0:
        wins = [(0.0, 0)]
        wins.pop()
        for a in range(size):
            if chosen[a] >= 0 and locked[a] < 0 and grow_kind[of_class[a], chosen[a]] == FREE:
                value = remaining[a] * grow_value[of_class[a], chosen[a]]
                heapq.heappush(wins, (-value, a))
        while len(wins) > 0 and not stop:
            _, a = heapq.heappop(wins)
            free, power, done, stop = _grow(
                a, of_class, chosen, counts, following, start, watts, free, power, limit,
                strict, per_node, idle_w, gpus,
            )  # fmt: skip
            if done and grow_kind[of_class[a], chosen[a]] == FREE:
                value = remaining[a] * grow_value[of_class[a], chosen[a]]
                heapq.heappush(wins, (-value, a))
    # -- finite ratios, group by group
    if not stop and free > 0:
        queued = np.zeros((classes, n_counts), np.bool_)
        heap = [(0.0, 0, 0, 0)]
        heap.pop()
        for a in range(size):
            c, k = of_class[a], chosen[a]
            if k >= 0 and locked[a] < 0 and grow_kind[c, k] == FINITE and not queued[c, k]:
                queued[c, k] = True
                heapq.heappush(heap, (-grow_value[c, k], a, c, k))
        while len(heap) > 0 and not stop and free > 0:
            minus, _, c, k = heapq.heappop(heap)
            queued[c, k] = False
            after = following[c, k]
            kind = grow_kind[c, after]
            alone = kind == FREE or (kind == FINITE and grow_value[c, after] >= -minus)
            again = -1
            for m in range(begin[c], begin[c + 1]):
                a = member[m]
                if chosen[a] != k or locked[a] >= 0:
                    continue
                if again == -2:
                    again = a
                    break
                free, power, done, stop = _grow(
                    a, of_class, chosen, counts, following, start, watts, free, power, limit,
                    strict, per_node, idle_w, gpus,
                )  # fmt: skip
                if not done:
                    break  # nor for any other of the group, now or later
                while kind == FREE and not stop and grow_kind[c, chosen[a]] == FREE:
                    free, power, done, stop = _grow(
                        a, of_class, chosen, counts, following, start, watts, free, power,
                        limit, strict, per_node, idle_w, gpus,
                    )  # fmt: skip
                    if not done:
                        break
                now = chosen[a]
                if grow_kind[c, now] == FINITE and not queued[c, now]:
                    queued[c, now] = True
                    heapq.heappush(heap, (-grow_value[c, now], a, c, now))
                if stop:
                    break
                if alone:
                    again = -2
            if again >= 0 and not queued[c, k]:
                queued[c, k] = True
                heapq.heappush(heap, (minus, again, c, k))
    for a in range(size):
        if chosen[a] >= 0 and locked[a] < 0:
            clock[a] = start[of_class[a], chosen[a]]
    power = _raise(
        of_class, chosen, clock, locked, remaining, begin, member, watts, raise_kind,
        raise_value, power, limit - idle_w * ((free - gpus) % per_node), strict, n_clocks,
    )  # fmt: skip
    return chosen, clock, power


@inner
def _grow(
    a: int,
    of_class: Any,
    chosen: Any,
    counts: Any,
    following: Any,
    start: Any,
    watts: Any,
    free: int,
    power: float,
    limit: float,
    strict: bool,
    per_node: int,
    idle_w: float,
    gpus: int,
) -> Any:
    """One step of job a to its next count if it fits: (free, power, done, stop)."""
    c, k = of_class[a], chosen[a]
    after = following[c, k]
    if after < 0:
        return free, power, False, False
    more = counts[after] - counts[k]
    extra = watts[c, after, start[c, after]] - watts[c, k, start[c, k]]
    if more > free:
        return free, power, False, False
    left = free - more
    idle = idle_w * ((left - gpus) % per_node)
    rise = extra + idle - idle_w * ((free - gpus) % per_node)
    if strict and rise > 0 and power + extra + idle > limit:
        return free, power, False, False
    chosen[a] = after
    power += extra
    # a whole number of nodes has been handed out, or a step has passed such a number
    crossed = left % per_node == 0 or left // per_node < free // per_node
    return left, power, True, not strict and crossed and power + idle >= limit


@inner
def _raise(
    of_class: Any,
    chosen: Any,
    clock: Any,
    locked: Any,
    remaining: Any,
    begin: Any,
    member: Any,
    watts: Any,
    raise_kind: Any,
    raise_value: Any,
    power: float,
    limit: float,
    strict: bool,
    n_clocks: int,
) -> float:
    """Phase 2: clocks up in the order of ratios while the limit allows."""
    size = len(of_class)
    wins = [(0.0, 0)]
    wins.pop()
    for a in range(size):
        c, k = of_class[a], chosen[a]
        if k >= 0 and locked[a] < 0 and raise_kind[c, k, clock[a]] == FREE:
            heapq.heappush(wins, (-remaining[a] * raise_value[c, k, clock[a]], a))
    while len(wins) > 0 and (strict or power <= limit):
        _, a = heapq.heappop(wins)
        c, k, f = of_class[a], chosen[a], clock[a]
        extra = watts[c, k, f + 1] - watts[c, k, f]
        if strict and extra > 0 and power + extra > limit:
            continue
        clock[a] = f + 1
        power += extra
        if raise_kind[c, k, f + 1] == FREE:
            heapq.heappush(wins, (-remaining[a] * raise_value[c, k, f + 1], a))
    queued = np.zeros((raise_kind.shape[0], raise_kind.shape[1], n_clocks), np.bool_)
    heap = [(0.0, 0, 0, 0, 0)]
    heap.pop()
    for a in range(size):
        c, k, f = of_class[a], chosen[a], clock[a]
        if k >= 0 and locked[a] < 0 and raise_kind[c, k, f] == FINITE and not queued[c, k, f]:
            queued[c, k, f] = True
            heapq.heappush(heap, (-raise_value[c, k, f], a, c, k, f))
    while len(heap) > 0 and (strict or power <= limit):
        minus, _, c, k, f = heapq.heappop(heap)
        queued[c, k, f] = False
        extra = watts[c, k, f + 1] - watts[c, k, f]
        kind = raise_kind[c, k, f + 1]
        alone = kind == FREE or (kind == FINITE and raise_value[c, k, f + 1] >= -minus)
        again = -1
        for m in range(begin[c], begin[c + 1]):
            a = member[m]
            if chosen[a] != k or clock[a] != f or locked[a] >= 0:
                continue
            if again == -2:
                again = a
                break
            if (strict and extra > 0 and power + extra > limit) or (not strict and power > limit):
                break
            clock[a] = f + 1
            power += extra
            while raise_kind[c, k, clock[a]] == FREE:
                step = watts[c, k, clock[a] + 1] - watts[c, k, clock[a]]
                if (strict and step > 0 and power + step > limit) or (not strict and power > limit):
                    break
                clock[a] += 1
                power += step
            now = clock[a]
            if raise_kind[c, k, now] == FINITE and not queued[c, k, now]:
                queued[c, k, now] = True
                heapq.heappush(heap, (-raise_value[c, k, now], a, c, k, now))
            if alone:
                again = -2
        if again >= 0 and not queued[c, k, f]:
            queued[c, k, f] = True
            heapq.heappush(heap, (minus, again, c, k, f))
    return power


@compiled
def afs(
    of_class: Any, remaining: Any, counts: Any, following: Any, least: Any, speed: Any, gpus: int
) -> Any:
    """AFS-L: the next GPUs go to the winner of a tournament of pairs, until nobody gains.

    speed: (C, K) iterations per second at the common clock. Returns (A,) count index, −1 for
    none. Jobs that are at their fastest, or whose next step needs more GPUs than are free, are
    out of it.
    """
    size = len(of_class)
    chosen = np.full(size, -1, np.int64)
    # what the comparisons ask of each job; only the winner's changes
    length, single = np.empty(size), np.empty(size)
    gain_short, gain_long = np.empty(size), np.empty(size)
    more = np.empty(size, np.int64)
    for j in range(size):
        single[j] = remaining[j] / speed[of_class[j], least[of_class[j]]]
        _ask(j, of_class, chosen, remaining, counts, following, least, speed, length, gain_short,
             gain_long, more)  # fmt: skip
    left = np.arange(size)
    free = gpus
    while free > 0:
        s, kept = -1, 0
        for i in range(len(left)):
            j = left[i]
            if more[j] > free:
                continue  # out of it for good: fewer GPUs are free from here on
            left[kept] = j
            kept += 1
            if s < 0:
                s = j
            elif chosen[s] < 0 and chosen[j] < 0:
                if single[j] < single[s]:
                    s = j
            elif length[j] < length[s]:  # j is the shorter, s the longer
                if not gain_long[s] > gain_short[j]:
                    s = j
            elif gain_long[j] > gain_short[s]:
                s = j
        left = left[:kept]
        if s < 0:
            break
        free -= more[s]
        c, k = of_class[s], chosen[s]
        chosen[s] = least[c] if k < 0 else following[c, k]
        _ask(s, of_class, chosen, remaining, counts, following, least, speed, length, gain_short,
             gain_long, more)  # fmt: skip
    return chosen


@inner
def _ask(
    j: int, of_class: Any, chosen: Any, remaining: Any, counts: Any, following: Any, least: Any,
    speed: Any, length: Any, gain_short: Any, gain_long: Any, more: Any,
) -> None:  # fmt: skip
    """Length at the share of now, gain of the next step as the shorter and as the longer job, and
    the GPUs of that step; more than there are where the job is at its fastest."""
    c, k = of_class[j], chosen[j]
    if k < 0:
        length[j], gain_long[j], gain_short[j] = np.inf, 1.0, np.inf
        more[j] = counts[least[c]]
        return
    length[j] = remaining[j] / speed[c, k]
    after = following[c, k]
    if after < 0 or not speed[c, after] > speed[c, k]:
        more[j] = np.iinfo(np.int64).max
        return
    new, old = speed[c, after], speed[c, k]
    gain_long[j], gain_short[j] = (new - old) / new, (new - old) / old
    more[j] = counts[after] - counts[k]


@compiled
def govern(
    of_class: Any, chosen: Any, wanted: Any, order: Any, watts: Any, locked: Any, fewer: Any,
    limit: float,
) -> Any:  # fmt: skip
    """Clocks of at most a common ceiling, the highest under which the limit is kept.

    Where the lowest ceiling is not enough, jobs get fewer GPUs, the last of `order` first, and
    in the end none. `fewer`: (C, K) the next smaller count index, −1 for none. `locked`: (A,)
    power of jobs that keep theirs, −1 for the others. Changes `chosen` and `wanted` in place.
    """
    size = len(of_class)
    for ceiling in range(watts.shape[2] - 1, -1, -1):
        power = 0.0
        for a in range(size):
            if chosen[a] >= 0:
                if locked[a] >= 0:
                    power += locked[a]
                else:
                    power += watts[of_class[a], chosen[a], min(wanted[a], ceiling)]
        if power <= limit:
            break
    for a in range(size):
        wanted[a] = min(wanted[a], ceiling)
    place = size - 1
    while power > limit and place >= 0:
        a = order[place]
        place -= 1
        while power > limit and chosen[a] >= 0 and locked[a] < 0:
            c = of_class[a]
            power -= watts[c, chosen[a], wanted[a]]
            chosen[a] = fewer[c, chosen[a]]
            if chosen[a] >= 0:
                power += watts[c, chosen[a], wanted[a]]
    return power
