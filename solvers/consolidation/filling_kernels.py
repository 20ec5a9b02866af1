"""Compiled loops: GPUs filled one after another, each with the set of tasks that fills it best."""

from __future__ import annotations

import numpy as np

from optgap.models.compiled import compiled, inner
from optgap.solvers.consolidation.packing import FloatArray, IntArray

DEEPEST = 64
"""Tasks chosen at once, at most."""
BRANCHES = (40, 12, 5, 2)
"""How many tasks are tried in the first places of a set; one in all later ones."""
FULL = 1e-4
"""Room of a GPU that is not worth looking for better, as a share."""


@inner
def first_below(items: IntArray, low: int, high: int, weight: FloatArray, room: float) -> int:
    """The first of `items[low:high]`, which fall in weight, that is no heavier than `room`."""
    while low < high:
        middle = (low + high) // 2
        if weight[items[middle]] > room:
            low = middle + 1
        else:
            high = middle
    return low


@inner
def best_set(
    items: IntArray,
    low: int,
    high: int,
    rows: IntArray,
    weight: FloatArray,
    room: IntArray,
    space: float,
    forced: bool,
    breadth: IntArray,
    left: IntArray,
    picked: IntArray,
) -> int:
    """The heaviest set of `items[low:high]` found that fits `room`; how many `picked`.

    Parameters
    ----------
    items: fall in weight within the range.
    space: the weight that `room` stands for; no set that fits is heavier.
    forced: the first that fits is in the set.
    left: (DEEPEST+1, R), working space.
    """
    count = len(room)
    chosen = np.zeros(DEEPEST, dtype=np.int64)
    cursor = np.zeros(DEEPEST + 1, dtype=np.int64)
    tried = np.zeros(DEEPEST + 1, dtype=np.int64)
    earned = np.zeros(DEEPEST + 1)
    for r in range(count):
        left[0, r] = room[r]
    best, size, depth = 0.0, 0, 0
    cursor[0] = first_below(items, low, high, weight, space * (1 + 1e-12))
    while depth >= 0:
        most = breadth[min(depth, len(breadth) - 1)]
        if forced and depth == 0:
            most = 1
        j = cursor[depth]
        found = False
        if tried[depth] < most and depth < DEEPEST:
            while j < high:
                fits = True
                for r in range(count):
                    if rows[r, items[j]] > left[depth, r]:
                        fits = False
                        break
                if fits:
                    found = True
                    break
                j += 1
        if not found:
            depth -= 1
            continue
        item = items[j]
        chosen[depth] = j
        cursor[depth] = j + 1
        tried[depth] += 1
        # of tasks of one weight one is enough to look at
        while cursor[depth] < high and weight[items[cursor[depth]]] == weight[item]:
            cursor[depth] += 1
        earned[depth + 1] = earned[depth] + weight[item]
        for r in range(count):
            left[depth + 1, r] = left[depth, r] - rows[r, item]
        depth += 1
        if earned[depth] > best + 1e-12:
            best, size = earned[depth], depth
            for k in range(depth):
                picked[k] = chosen[k]
            if space - best <= FULL:
                return size
        tried[depth] = 0
        low_next = first_below(items, j + 1, high, weight, space - earned[depth] + 1e-12)
        cursor[depth] = low_next
    return size


@compiled
def fill(
    items: IntArray,
    class_start: IntArray,
    class_width: IntArray,
    class_level: IntArray,
    rows: IntArray,
    limit: IntArray,
    weight: FloatArray,
    shares: FloatArray,
    width: int,
    servers: int,
    breadth: IntArray,
    start: IntArray,
    place: IntArray,
) -> bool:
    """Dearest level first: fill the GPUs that are awake, then wake servers one after another.

    Within a level tasks of many GPUs come first; v GPUs of a server that such tasks share are
    filled as one. `place[start[l]:start[l+1]]` receives the GPUs of task l.

    Parameters
    ----------
    items: (L,) tasks in classes of one level and one width, falling in weight within a class.
    class_start: (C+1,) classes from dear to cheap, within a level from wide to narrow.
    class_width, class_level: (C,).
    weight: (L,) Σ shares·demand/limit.
    width: GPUs of each server.
    """
    count = len(limit)
    classes = len(class_width)
    end = class_start[1:].copy()
    gpus = servers * width
    left = np.zeros((gpus, count), dtype=np.int64)
    for g in range(gpus):
        for r in range(count):
            left[g, r] = limit[r]
    fresh = np.ones(gpus, dtype=np.bool_)
    space = np.ones(gpus)
    work = np.zeros((DEEPEST + 1, count), dtype=np.int64)
    picked = np.zeros(DEEPEST, dtype=np.int64)
    room = np.zeros(count, dtype=np.int64)
    group = np.zeros(width, dtype=np.int64)
    awake = 0
    first = 0
    while first < classes:
        after = first
        while after < classes and class_level[after] == class_level[first]:
            after += 1
        for new in range(2):
            i = 0 if new == 0 else awake
            while True:
                if new == 0 and i >= awake:
                    break
                waiting = 0
                for c in range(first, after):
                    waiting += end[c] - class_start[c]
                if waiting == 0:
                    break
                if i >= servers:
                    return False
                for c in range(first, after):
                    v = class_width[c]
                    lo, hi = i * width, (i + 1) * width
                    for _ in range(2 * (width // v)):
                        if end[c] == class_start[c]:
                            break
                        lightest = weight[items[end[c] - 1]]
                        # the v emptiest GPUs
                        for m in range(v):
                            pick = -1
                            for g in range(lo, hi):
                                taken = False
                                for k in range(m):
                                    if group[k] == g:
                                        taken = True
                                if not taken and (pick < 0 or space[g] > space[pick]):
                                    pick = g
                            group[m] = pick
                        if space[group[v - 1]] < lightest:
                            break
                        forced = True
                        for r in range(count):
                            room[r] = left[group[0], r]
                        for m in range(v):
                            forced = forced and fresh[group[m]]
                            for r in range(count):
                                room[r] = min(room[r], left[group[m], r])
                        total = 0.0
                        for r in range(count):
                            total += shares[r] * room[r] / max(1, limit[r])
                        size = best_set(
                            items, class_start[c], end[c], rows, weight, room, total, forced,
                            breadth, work, picked,
                        )  # fmt: skip
                        if size == 0:
                            break
                        for k in range(size):
                            item = items[picked[k]]
                            for m in range(v):
                                g = group[m]
                                place[start[item] + m] = g
                                fresh[g] = False
                                total = 0.0
                                for r in range(count):
                                    left[g, r] -= rows[r, item]
                                    total += shares[r] * left[g, r] / max(1, limit[r])
                                space[g] = total
                        # take them out; picked rises
                        for k in range(size - 1, -1, -1):
                            for j in range(picked[k], end[c] - 1):
                                items[j] = items[j + 1]
                            end[c] -= 1
                i += 1
                if new == 1:
                    awake = i
        first = after
    return True
