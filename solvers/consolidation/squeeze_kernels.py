"""Compiled loop: tasks onto GPUs whose levels are given, until none holds more than it may."""

from __future__ import annotations

import numpy as np

from optgap.models.compiled import compiled, inner
from optgap.solvers.consolidation.packing import FloatArray, IntArray

FITS = 1e-12
"""Excess below any quantum of memory or utilisation, as a share of a limit."""


@inner
def excess(load: IntArray, limit: IntArray, rows: IntArray, plus: int, minus: int) -> float:
    """What a GPU would hold beyond its limits with task `plus` and without `minus`; -1: none."""
    total = 0.0
    for r in range(len(limit)):
        held = load[r]
        if plus >= 0:
            held += rows[r, plus]
        if minus >= 0:
            held -= rows[r, minus]
        if held > limit[r]:
            total += (held - limit[r]) / max(1, limit[r])
    return total


@inner
def shift(load: IntArray, rows: IntArray, task: int, sign: int) -> None:
    """Add a task to a GPU's load, or take it away."""
    for r in range(len(load)):
        load[r] += sign * rows[r, task]


@inner
def holds(place: IntArray, start: IntArray, task: int, gpu: int) -> bool:
    """Whether a share of the task is on the GPU."""
    found = False
    for m in range(start[task], start[task + 1]):
        found = found or place[m] == gpu
    return found


@compiled
def spread(
    order: IntArray,
    start: IntArray,
    rows: IntArray,
    limit: IntArray,
    level: IntArray,
    cap: IntArray,
    width: int,
    gang: bool,
    place: IntArray,
) -> bool:
    """Each task where it exceeds least, tightest first; False where levels leave it no place.

    Parameters
    ----------
    cap: (G,) the highest level a GPU may take, -1 for one that sleeps.
    width: GPUs of a server.
    """
    gpus, count = len(cap), len(limit)
    load = np.zeros((gpus, count), dtype=np.int64)
    taken = np.zeros(gpus, dtype=np.bool_)
    group = np.zeros(gpus, dtype=np.int64)
    chosen = np.zeros(gpus, dtype=np.int64)
    for ell in order:
        v = start[ell + 1] - start[ell]
        size = width if gang and v > 1 else gpus
        best = 1e300
        for low in range(0, gpus, size):
            total = 0.0
            found = 0
            high = min(gpus, low + size)
            for g in range(low, high):
                taken[g] = False
            for _ in range(v):
                pick, least = -1, 1e300
                for g in range(low, high):
                    if cap[g] < level[ell] or taken[g]:
                        continue
                    more = excess(load[g], limit, rows, ell, -1)
                    more -= excess(load[g], limit, rows, -1, -1)
                    worth = more * 1e3 + (cap[g] - level[ell]) * 2.0
                    for r in range(count):
                        worth -= load[g, r] / max(1, limit[r]) / count
                    if worth < least:
                        pick, least = g, worth
                if pick < 0:
                    break
                taken[pick] = True
                group[found] = pick
                total += least
                found += 1
            if found == v and total < best:
                best = total
                for m in range(v):
                    chosen[m] = group[m]
        if best >= 1e299:
            return False
        for m in range(v):
            place[start[ell] + m] = chosen[m]
            shift(load[chosen[m]], rows, ell, 1)
    return True


@compiled
def squeeze(
    start: IntArray,
    owner: IntArray,
    rows: IntArray,
    limit: IntArray,
    level: IntArray,
    cap: IntArray,
    width: int,
    gang: bool,
    place: IntArray,
    steps: int,
    hot: float,
    cold: float,
    draw: np.random.Generator,
) -> float:
    """Moves and swaps that lower what GPUs hold in excess; what is left at the end, 0 if it fits.

    `owner` is the task of each entry of `place`; see `spread` for the others.
    """
    gpus, count, entries = len(cap), len(limit), len(owner)
    load = np.zeros((gpus, count), dtype=np.int64)
    for m in range(entries):
        shift(load[place[m]], rows, owner[m], 1)
    over: FloatArray = np.zeros(gpus)
    now = 0.0
    for g in range(gpus):
        over[g] = excess(load[g], limit, rows, -1, -1)
        now += over[g]
    group = np.zeros(gpus, dtype=np.int64)
    servers = gpus // width
    for step in range(steps):
        if now <= FITS:
            # sums of floats drift: only what is counted afresh ends the search
            now = 0.0
            for g in range(gpus):
                now += over[g]
            if now <= FITS:
                return 0.0
        heat = hot * (cold / hot) ** (step / steps)
        entry = draw.integers(0, entries)
        ell = owner[entry]
        a = place[entry]
        lo, v = start[ell], start[ell + 1] - start[ell]
        tied = gang and v > 1
        kind = draw.random()
        if tied and kind < 0.3:
            i = draw.integers(0, servers)
            if i == a // width:
                continue
            found = 0
            for g in range(i * width, (i + 1) * width):
                if cap[g] >= level[ell]:
                    group[found] = g
                    found += 1
            if found < v:
                continue
            change = 0.0
            for m in range(v):
                pick = m + draw.integers(0, found - m)
                group[m], group[pick] = group[pick], group[m]
                g, b = place[lo + m], group[m]
                change += excess(load[g], limit, rows, -1, ell) - over[g]
                change += excess(load[b], limit, rows, ell, -1) - over[b]
            if change > 0 and draw.random() >= np.exp(-change / heat):
                continue
            for m in range(v):
                g, b = place[lo + m], group[m]
                shift(load[g], rows, ell, -1)
                shift(load[b], rows, ell, 1)
                over[g] = excess(load[g], limit, rows, -1, -1)
                over[b] = excess(load[b], limit, rows, -1, -1)
                place[lo + m] = b
            now += change
            continue
        other = -1
        back = 0
        if kind > 0.65:
            back = int(draw.integers(0, entries))
            other = int(owner[back])
            b = place[back]
            if other == ell or cap[a] < level[other]:
                continue
            if gang and start[other + 1] - start[other] > 1 and a // width != b // width:
                continue
            if holds(place, start, other, a):
                continue
        elif tied:
            b = a // width * width + draw.integers(0, width)
        else:
            b = draw.integers(0, gpus)
        if a == b or cap[b] < level[ell] or (tied and a // width != b // width):
            continue
        if v > 1 and holds(place, start, ell, b):
            continue
        after_a = excess(load[a], limit, rows, other, ell)
        after_b = excess(load[b], limit, rows, ell, other)
        change = after_a + after_b - over[a] - over[b]
        if change > 0 and draw.random() >= np.exp(-change / heat):
            continue
        shift(load[a], rows, ell, -1)
        shift(load[b], rows, ell, 1)
        place[entry] = b
        if other >= 0:
            shift(load[b], rows, other, -1)
            shift(load[a], rows, other, 1)
            place[back] = a
        over[a], over[b] = after_a, after_b
        now += change
    total = 0.0
    for g in range(gpus):
        total += over[g]
    return 0.0 if total <= FITS else total
