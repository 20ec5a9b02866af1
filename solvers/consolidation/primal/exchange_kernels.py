"""Compiled loop: with memory alone, two GPUs at a time exchange tasks until all of them fit.

A GPU that holds half a dozen tasks can be filled to the last MB from what it and another hold, and
what is too much, or too little, is then on the other. So both are driven together: room to few
GPUs, overload to few others, and overload from GPUs of dear levels to those of cheap ones, as cheap
tasks may be anywhere. Where little more than nothing is free in all, that still finds a placement
in some thousand pairs, where moves that only lessen the overload strand what is free bit by bit.
"""

from __future__ import annotations

import numpy as np

from optgap.models.compiled import compiled, inner
from optgap.solvers.consolidation.numerics import IntArray
from optgap.solvers.consolidation.primal.overload_kernels import holds, loads

MOST_EACH = 7
"""Tasks of either GPU that are exchanged at most: all 2^7 choices of them are looked at."""


@inner
def _chains(gpus: int, place: IntArray) -> tuple[IntArray, IntArray]:
    """Chains of what is on each GPU: (G,) their first entries and (entries,) the next; or -1."""
    first = np.full(gpus, -1, dtype=np.int64)
    after = np.full(len(place), -1, dtype=np.int64)
    for m in range(len(place)):
        after[m] = first[place[m]]
        first[place[m]] = m
    return first, after


@inner
def _choices(
    gpu: int, to: int, fixed: int, start: IntArray, owner: IntArray, sizes: IntArray,
    level: IntArray, cap: IntArray, apart: bool, place: IntArray, first: IntArray, after: IntArray,
    draw: np.random.Generator, chosen: IntArray, sums: IntArray,
) -> int:  # fmt: skip
    """Entries of a GPU that may be on the other, a random few where there are many; how many.

    Parameters
    ----------
    fixed: the first so many tasks stay. apart: the GPUs are in two servers that share no task.
    first, after: of `_chains`. sums: receives what each choice of the entries takes.
    """
    count, seen, m = 0, 0, int(first[gpu])
    while m >= 0:
        ell = owner[m]
        several = start[ell + 1] - start[ell] > 1
        stays = ell < fixed or level[ell] > cap[to]
        if not stays and not (several and (apart or holds(place, start, ell, to))):
            seen += 1
            if count < MOST_EACH:
                chosen[count] = m
                count += 1
            else:
                pick = draw.integers(0, seen)
                if pick < MOST_EACH:
                    chosen[pick] = m
        m = after[m]
    sums[0] = 0
    for k in range(count):
        for mask in range(1 << k):
            sums[mask | (1 << k)] = sums[mask] + sizes[owner[chosen[k]]]
    return count


@inner
def _send(
    a: int, b: int, choice: int, chosen: IntArray, count: int, place: IntArray, first: IntArray,
    after: IntArray,
) -> None:  # fmt: skip
    """Move a choice of entries from one GPU to the other."""
    for k in range(count):
        if choice >> k & 1:
            m = chosen[k]
            place[m] = b
            if first[a] == m:
                first[a] = after[m]
            else:
                before = first[a]
                while after[before] != m:
                    before = after[before]
                after[before] = after[m]
            after[m] = first[b]
            first[b] = m


@inner
def _astray(x: int, y: int, limit: int, dearer: int) -> float:
    """How far from where they should be room and overload of two GPUs are that hold x and y.

    Parameters
    ----------
    dearer: 1 where the first is of the dearer level, and should hold little, -1 where the second
        is; 0 for equal ones, of which one should have all the room, or all that is too much.
    """
    if dearer != 0:
        return float(x if dearer > 0 else y)
    return -(float(x - limit) ** 2 + float(y - limit) ** 2)


@inner
def _best_exchange(
    x: int, y: int, limit: int, dearer: int, out: IntArray, back: IntArray, worse: int
) -> tuple[int, int]:
    """Choices of both GPUs' tasks that change places; 0 and 0 where nothing is better.

    The least overload, then what is least astray, among those that fill either GPU best.

    Parameters
    ----------
    out, back: what each choice of one GPU's tasks, and of the other's, takes.
    worse: how much more the overload may be, for a change.
    """
    both = x + y
    over = max(0, x - limit) + max(0, y - limit)
    astray, give, take = _astray(x, y, limit, dearer), 0, 0
    if worse > 0:
        over, astray = over + worse, np.inf
    outs, backs = np.argsort(out), np.argsort(back)
    for target in (limit, both - limit):
        at = 0
        for i in outs:
            while at < len(backs) - 1 and x - out[i] + back[backs[at]] < target:
                at += 1
            for j in backs[max(0, at - 1) : at + 1]:
                now = x - out[i] + back[j]
                if now in (x, y):
                    continue
                left = max(0, now - limit) + max(0, both - now - limit)
                if left <= over:
                    far = _astray(now, both - now, limit, dearer)
                    if left < over or far < astray:
                        over, astray, give, take = left, far, i, j
    return give, take


@inner
def _excess(load: IntArray, limit: int) -> int:
    total = 0
    for g in range(len(load)):
        total += max(0, load[g] - limit)
    return total


@inner
def _uneven(load: IntArray, limit: int, cap: IntArray, draw: np.random.Generator) -> int:
    """A GPU that is awake and holds more or less than its limit."""
    found, seen = -1, 0
    for g in range(len(load)):
        if cap[g] >= 0 and load[g] != limit:
            seen += 1
            if draw.integers(0, seen) == 0:
                found = g
    return found


@compiled
def exchange(
    start: IntArray,
    owner: IntArray,
    sizes: IntArray,
    limit: int,
    fixed: int,
    level: IntArray,
    cap: IntArray,
    server_gpus: int,
    gang: bool,
    place: IntArray,
    pairs: int,
    noise: float,
    draw: np.random.Generator,
) -> float:
    """What GPUs hold too much at the end, in GPUs, 0 if all fits.

    In each round a GPU that is not just full exchanges tasks with others, until one of them makes
    it better; where none does, with the last of them for about the same overload.

    Parameters
    ----------
    sizes: (L,) memory of a share of each task. fixed: the first so many tasks stay where they are.
    pairs: of GPUs, at most, that are looked at. noise: how much more of a GPU the overload may be.
    For the others see `overload_kernels`.
    """
    gpus = len(cap)
    load = loads(gpus, owner, sizes.reshape(1, len(sizes)), place)[:, 0]
    first, after = _chains(gpus, place)
    mine, theirs = np.zeros(MOST_EACH, dtype=np.int64), np.zeros(MOST_EACH, dtype=np.int64)
    out, back = np.zeros(1 << MOST_EACH, dtype=np.int64), np.zeros(1 << MOST_EACH, dtype=np.int64)
    order = np.arange(gpus)
    while pairs > 0 and _excess(load, limit) > 0:
        a = _uneven(load, limit, cap, draw)
        pairs -= 1  # it may be the only one that is awake
        for turn in range(gpus):
            k = draw.integers(turn, gpus)
            b = order[k]
            order[k], order[turn] = order[turn], b
            if b == a or cap[b] < 0:
                continue
            pairs -= 1
            apart = gang and a // server_gpus != b // server_gpus
            many = _choices(
                a, b, fixed, start, owner, sizes, level, cap, apart, place, first, after, draw,
                mine, out,
            )  # fmt: skip
            more = _choices(
                b, a, fixed, start, owner, sizes, level, cap, apart, place, first, after, draw,
                theirs, back,
            )  # fmt: skip
            worse = int(noise * limit) if turn == gpus - 1 else 0
            give, take = _best_exchange(
                load[a], load[b], limit, cap[a] - cap[b], out[: 1 << many], back[: 1 << more], worse
            )
            if give or take:
                load[a] += back[take] - out[give]
                load[b] += out[give] - back[take]
                _send(a, b, give, mine, many, place, first, after)
                _send(b, a, take, theirs, more, place, first, after)
                break
    return _excess(load, limit) / max(1, limit)
