"""Compiled loop: tasks onto GPUs whose levels are given, until none holds more than it may."""

from __future__ import annotations

import numpy as np

from optgap.models.compiled import compiled, inner
from optgap.solvers.consolidation.packing import FloatArray, IntArray

FITS = 1e-12
"""Excess below any quantum of memory or utilisation, as a share of a limit."""
ACROSS, WHOLE, LEVELS = 0.3, 0.15, 0.95
"""Of the steps for a task whose GPUs are in one server, those that take it to another, and those
for another task of as many; of all steps, beyond what share two GPUs change levels."""
RETURNED = 0.6
"""How often a GPU gives a task of one GPU for the share that it takes."""


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
def loads(gpus: int, owner: IntArray, rows: IntArray, place: IntArray) -> IntArray:
    """(gpus, R) what each GPU holds."""
    load = np.zeros((gpus, len(rows)), dtype=np.int64)
    for m in range(len(owner)):
        shift(load[place[m]], rows, owner[m], 1)
    return load


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


@inner
def _link(head: IntArray, after: IntArray, before: IntArray, gpu: int, entry: int) -> None:
    """Put an entry in front of what a GPU holds."""
    first = head[gpu]
    after[entry], before[entry] = first, -1
    if first >= 0:
        before[first] = entry
    head[gpu] = entry


@inner
def _unlink(head: IntArray, after: IntArray, before: IntArray, gpu: int, entry: int) -> None:
    """Take an entry out of what a GPU holds."""
    if before[entry] >= 0:
        after[before[entry]] = after[entry]
    else:
        head[gpu] = after[entry]
    if after[entry] >= 0:
        before[after[entry]] = before[entry]


@inner
def _parts(
    head: IntArray, after: IntArray, start: IntArray, owner: IntArray, level: IntArray, gpu: int,
    rows: IntArray, loose: IntArray,
) -> int:  # fmt: skip
    """The highest level of what stays on a GPU, tasks of several GPUs; `loose` receives the rest's
    load."""
    loose[:] = 0
    most = -1
    entry = head[gpu]
    while entry >= 0:
        ell = owner[entry]
        if start[ell + 1] - start[ell] > 1:
            most = max(most, level[ell])
        else:
            shift(loose, rows, ell, 1)
        entry = after[entry]
    return most


@inner
def _moved(
    head: IntArray, after: IntArray, before: IntArray, start: IntArray, owner: IntArray,
    place: IntArray, a: int, b: int, first: int,
) -> int:  # fmt: skip
    """Send tasks of one GPU, from an entry on, to another GPU; the first entry that was there."""
    entry, old = first, head[b]
    while entry >= 0:
        following = after[entry]
        ell = owner[entry]
        if start[ell + 1] - start[ell] == 1:
            _unlink(head, after, before, a, entry)
            _link(head, after, before, b, entry)
            place[entry] = b
        entry = following
    return int(old)


@inner
def _single(
    head: IntArray, after: IntArray, start: IntArray, owner: IntArray, level: IntArray, gpu: int,
    most: int, draw: np.random.Generator,
) -> int:  # fmt: skip
    """A random entry on a GPU of a task of one GPU and of that level at most, or -1."""
    pick, seen = -1, 0
    entry = head[gpu]
    while entry >= 0:
        ell = owner[entry]
        if start[ell + 1] - start[ell] == 1 and level[ell] <= most:
            seen += 1
            if draw.integers(0, seen) == 0:
                pick = entry
        entry = after[entry]
    return pick


@inner
def _trade(
    ell: int, kind: float, start: IntArray, owner: IntArray, level: IntArray, cap: IntArray,
    width: int, place: IntArray, head: IntArray, after: IntArray, draw: np.random.Generator,
    group: IntArray, back: IntArray,
) -> bool:  # fmt: skip
    """GPUs of another server for a task of several, and the entry that each gives for it.

    Those of another task that has as many, or any, for which tasks of one GPU come back.

    Parameters
    ----------
    group, back: receive the GPUs, and an entry or -1 for each.
    """
    lo, v = start[ell], start[ell + 1] - start[ell]
    home = place[lo] // width
    if kind < WHOLE:
        one = owner[draw.integers(0, len(owner))]
        if start[one + 1] - start[one] != v or place[start[one]] // width == home:
            return False
        for m in range(v):
            group[m], back[m] = place[start[one] + m], start[one] + m
    else:
        i = draw.integers(0, len(cap) // width)
        if i == home:
            return False
        found = 0
        for g in range(i * width, (i + 1) * width):
            if cap[g] >= level[ell]:
                group[found] = g
                found += 1
        if found < v:
            return False
    for m in range(v):
        if kind < WHOLE:
            pick = m + draw.integers(0, v - m)
            group[m], group[pick] = group[pick], group[m]
            back[m], back[pick] = back[pick], back[m]
        else:
            pick = m + draw.integers(0, found - m)
            group[m], group[pick] = group[pick], group[m]
            back[m] = -1
            if draw.random() < RETURNED:
                g = place[lo + m]
                back[m] = _single(head, after, start, owner, level, group[m], cap[g], draw)
        if cap[group[m]] < level[ell]:
            return False
        if back[m] >= 0 and cap[place[lo + m]] < level[owner[back[m]]]:
            return False
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

    `owner` is the task of each entry of `place`; see `spread` for the others. Where tasks of
    several GPUs stay in one server, levels change places, and `cap` with them.
    """
    gpus, count, entries = len(cap), len(limit), len(owner)
    load = loads(gpus, owner, rows, place)
    head = np.full(gpus, -1, dtype=np.int64)
    after, before = np.zeros(entries, dtype=np.int64), np.zeros(entries, dtype=np.int64)
    for m in range(entries):
        _link(head, after, before, place[m], m)
    over: FloatArray = np.zeros(gpus)
    now = 0.0
    for g in range(gpus):
        over[g] = excess(load[g], limit, rows, -1, -1)
        now += over[g]
    group, back = np.zeros(gpus, dtype=np.int64), np.zeros(gpus, dtype=np.int64)
    mine, theirs = np.zeros(count, dtype=np.int64), np.zeros(count, dtype=np.int64)
    for step in range(steps):
        if now <= FITS:
            # sums of floats drift: only what is counted afresh ends the search
            now = 0.0
            for g in range(gpus):
                now += over[g]
            if now <= FITS:
                return 0.0
        heat = hot * (cold / hot) ** (step / steps)
        entry = int(draw.integers(0, entries))
        ell = owner[entry]
        a = place[entry]
        lo, v = start[ell], start[ell + 1] - start[ell]
        tied = gang and v > 1
        kind = draw.random()
        if gang and kind > LEVELS:
            b = int(draw.integers(0, gpus))
            if cap[a] == cap[b] or a // width == b // width:
                continue
            if _parts(head, after, start, owner, level, a, rows, mine) > cap[b]:
                continue
            if _parts(head, after, start, owner, level, b, rows, theirs) > cap[a]:
                continue
            load[a] += theirs - mine
            load[b] += mine - theirs
            after_a = excess(load[a], limit, rows, -1, -1)
            after_b = excess(load[b], limit, rows, -1, -1)
            change = after_a + after_b - over[a] - over[b]
            if change > 0 and draw.random() >= np.exp(-change / heat):
                load[a] += mine - theirs
                load[b] += theirs - mine
                continue
            old = _moved(head, after, before, start, owner, place, a, b, head[a])
            _moved(head, after, before, start, owner, place, b, a, old)
            cap[a], cap[b] = cap[b], cap[a]
            over[a], over[b] = after_a, after_b
            now += change
            continue
        if tied and kind < ACROSS:
            if not _trade(
                ell, kind, start, owner, level, cap, width, place, head, after, draw, group, back
            ):
                continue
            change = 0.0
            for m in range(v):
                g, b = place[lo + m], group[m]
                other = owner[back[m]] if back[m] >= 0 else -1
                change += excess(load[g], limit, rows, other, ell) - over[g]
                change += excess(load[b], limit, rows, ell, other) - over[b]
            if change > 0 and draw.random() >= np.exp(-change / heat):
                continue
            for m in range(v):
                g, b = place[lo + m], group[m]
                _unlink(head, after, before, g, lo + m)
                shift(load[g], rows, ell, -1)
                shift(load[b], rows, ell, 1)
                if back[m] >= 0:
                    other = owner[back[m]]
                    _unlink(head, after, before, b, back[m])
                    _link(head, after, before, g, back[m])
                    shift(load[b], rows, other, -1)
                    shift(load[g], rows, other, 1)
                    place[back[m]] = g
                _link(head, after, before, b, lo + m)
                place[lo + m] = b
                over[g] = excess(load[g], limit, rows, -1, -1)
                over[b] = excess(load[b], limit, rows, -1, -1)
            now += change
            continue
        other, reverse = -1, 0
        if kind > 0.65:
            reverse = int(draw.integers(0, entries))
            other = int(owner[reverse])
            b = place[reverse]
            if other == ell or cap[a] < level[other]:
                continue
            if gang and start[other + 1] - start[other] > 1 and a // width != b // width:
                continue
            if holds(place, start, other, a):
                continue
        elif tied:
            b = int(a // width * width + draw.integers(0, width))
        else:
            b = int(draw.integers(0, gpus))
        if a == b or cap[b] < level[ell] or (tied and a // width != b // width):
            continue
        if v > 1 and holds(place, start, ell, b):
            continue
        after_a = excess(load[a], limit, rows, other, ell)
        after_b = excess(load[b], limit, rows, ell, other)
        change = after_a + after_b - over[a] - over[b]
        if change > 0 and draw.random() >= np.exp(-change / heat):
            continue
        _unlink(head, after, before, a, entry)
        shift(load[a], rows, ell, -1)
        shift(load[b], rows, ell, 1)
        place[entry] = b
        if other >= 0:
            _unlink(head, after, before, b, reverse)
            _link(head, after, before, a, reverse)
            shift(load[b], rows, other, -1)
            shift(load[a], rows, other, 1)
            place[reverse] = a
        _link(head, after, before, b, entry)
        over[a], over[b] = after_a, after_b
        now += change
    total = 0.0
    for g in range(gpus):
        total += over[g]
    return 0.0 if total <= FITS else total
