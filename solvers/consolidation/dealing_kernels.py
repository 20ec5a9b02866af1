"""Compiled loop: with memory alone, what two GPUs hold dealt anew until room and excess meet.

A GPU that holds half a dozen tasks can be filled to the last MB from what it and another hold, and
what is too much, or too little, is then on the other. So both are driven together: room to few
GPUs, excess to few others, and excess from GPUs of dear levels to those of cheap ones, as cheap
tasks may be anywhere. Where little more than nothing is free in all, that still finds a placement
in some thousand pairs, where moves that only lessen the excess strand what is free bit by bit.
"""

from __future__ import annotations

import numpy as np

from optgap.models.compiled import compiled, inner
from optgap.solvers.consolidation.exchange_kernels import MOST_EACH, chained, choices, send
from optgap.solvers.consolidation.packing import IntArray
from optgap.solvers.consolidation.squeeze_kernels import loads


@inner
def _astray(x: int, y: int, limit: int, dearer: int) -> float:
    """How far from where they should be room and excess of two GPUs are that hold x and y.

    Parameters
    ----------
    dearer: 1 where the first is of the dearer level, and should hold little, -1 where the second
        is; 0 for equal ones, of which one should have all the room, or all that is too much.
    """
    if dearer != 0:
        return float(x if dearer > 0 else y)
    return -(float(x - limit) ** 2 + float(y - limit) ** 2)


@inner
def _dealt(
    x: int, y: int, limit: int, dearer: int, out: IntArray, back: IntArray, worse: int
) -> tuple[int, int]:
    """Choices that are given and taken, of both GPUs' tasks; 0 and 0 where nothing is better.

    The least excess, then what is least astray, among those that fill either GPU best.

    Parameters
    ----------
    out, back: what each choice of one GPU's tasks, and of the other's, holds.
    worse: how much more the excess may be, for a change.
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
def deal(
    start: IntArray,
    owner: IntArray,
    sizes: IntArray,
    limit: int,
    fixed: int,
    level: IntArray,
    cap: IntArray,
    width: int,
    gang: bool,
    place: IntArray,
    pairs: int,
    noise: float,
    draw: np.random.Generator,
) -> float:
    """What GPUs hold in excess at the end, in GPUs, 0 if all fits; see `squeeze` for the others.

    In each round a GPU that is not just full is dealt anew with others, until one of them makes
    it better; where none does, with the last of them for about the same excess.

    Parameters
    ----------
    sizes: (L,) memory of a share of each task. fixed: the first so many tasks stay where they are.
    pairs: of GPUs, at most, that are looked at. noise: how much more of a GPU the excess may be.
    """
    gpus = len(cap)
    rows = sizes.reshape(1, len(sizes))
    load = loads(gpus, owner, rows, place)[:, 0]
    first, after = chained(gpus, place)
    mine, theirs = np.zeros(MOST_EACH, dtype=np.int64), np.zeros(MOST_EACH, dtype=np.int64)
    out = np.zeros((1 << MOST_EACH, 1), dtype=np.int64)
    back = np.zeros((1 << MOST_EACH, 1), dtype=np.int64)
    given, taken = out.reshape(-1), back.reshape(-1)  # one row: the same numbers in one line
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
            apart = gang and a // width != b // width
            many = choices(
                a, b, fixed, start, owner, rows, level, cap, apart, place, first, after, draw,
                mine, out,
            )  # fmt: skip
            more = choices(
                b, a, fixed, start, owner, rows, level, cap, apart, place, first, after, draw,
                theirs, back,
            )  # fmt: skip
            worse = int(noise * limit) if turn == gpus - 1 else 0
            give, take = _dealt(
                load[a], load[b], limit, cap[a] - cap[b], given[: 1 << many], taken[: 1 << more],
                worse,
            )  # fmt: skip
            if give or take:
                load[a] += taken[take] - given[give]
                load[b] += given[give] - taken[take]
                send(a, b, give, mine, many, place, first, after)
                send(b, a, take, theirs, more, place, first, after)
                break
    return _excess(load, limit) / max(1, limit)
