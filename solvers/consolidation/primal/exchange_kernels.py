"""Compiled loops: tasks onto GPUs whose levels are given, with memory as the only limit.

A GPU that holds half a dozen tasks can be filled to the last MB from what it and another hold, and
what is too much, or too little, is then on the other. So both are driven together: room to few
GPUs, overload to few others, and overload from GPUs of dear levels to those of cheap ones, as cheap
tasks may be anywhere. Where little more than nothing is free in all, that still finds a placement
in some thousand pairs, where moves that only lessen the overload strand what is free bit by bit.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from optgap.models.compiled import compiled, inner
from optgap.solvers.consolidation.numerics import IntArray

MOST_EACH = 7
"""Tasks of either GPU that are exchanged at most: all 2^7 choices of them are looked at."""


class Tasks(NamedTuple):
    """What is placed.

    Parameters
    ----------
    start, owner: (L+1,) the first entry of each task in a flat placement; the task of each entry.
    size, limit: (L,) memory of each share, and of a GPU.
    level: (L,) of each task's cost. fixed: the first so many tasks stay where they are.
    """

    start: IntArray
    owner: IntArray
    size: IntArray
    limit: int
    level: IntArray
    fixed: int


class Gpus(NamedTuple):
    """Where it is placed.

    Parameters
    ----------
    cap: (G,) the highest level a GPU may take, -1 for one that sleeps. load: (G,) what it holds.
    place: the GPU of each entry. first, after: chains of the entries on each GPU; -1 at their ends.
    """

    cap: IntArray
    load: IntArray
    place: IntArray
    first: IntArray
    after: IntArray


@inner
def _holds(task: int, gpu: int, tasks: Tasks, place: IntArray) -> bool:
    """Whether a share of the task is on the GPU."""
    found = False
    for m in range(tasks.start[task], tasks.start[task + 1]):
        found = found or place[m] == gpu
    return found


@compiled
def fill_levels(order: IntArray, tasks: Tasks, cap: IntArray, place: IntArray) -> bool:
    """Each task where it overloads least, tightest first; False where levels leave it no place.

    No two of the tasks that stay where they are share a GPU.

    Parameters
    ----------
    order: of tasks, those first. place: receives the GPU of each entry.
    """
    load, kept = np.zeros(len(cap), dtype=np.int64), np.zeros(len(cap), dtype=np.bool_)
    for ell in order:
        size = tasks.size[ell]
        for m in range(tasks.start[ell], tasks.start[ell + 1]):
            pick, least = -1, np.inf
            for g in range(len(cap)):
                taken = cap[g] < tasks.level[ell] or (ell < tasks.fixed and kept[g])
                for k in range(tasks.start[ell], m):
                    taken = taken or place[k] == g
                if taken:
                    continue
                over = max(0, load[g] + size - tasks.limit) / max(1, tasks.limit)
                filled = load[g] / max(1, tasks.limit)
                worse = 1e3 * over + 2.0 * (cap[g] - tasks.level[ell]) - filled
                if worse < least:
                    pick, least = g, worse
            if pick < 0:
                return False
            place[m] = pick
            load[pick] += size
            kept[pick] = kept[pick] or ell < tasks.fixed
    return True


@inner
def _choices(
    gpu: int, to: int, tasks: Tasks, gpus: Gpus, draw: np.random.Generator, chosen: IntArray,
    sums: IntArray,
) -> int:  # fmt: skip
    """Entries of a GPU that may be on the other, a random few where there are many; how many.

    Parameters
    ----------
    sums: receives what each choice of the entries takes.
    """
    count, seen, m = 0, 0, int(gpus.first[gpu])
    while m >= 0:
        ell = tasks.owner[m]
        stays = ell < tasks.fixed or tasks.level[ell] > gpus.cap[to]
        if not stays and not _holds(ell, to, tasks, gpus.place):
            seen += 1
            if count < MOST_EACH:
                chosen[count] = m
                count += 1
            else:
                pick = draw.integers(0, seen)
                if pick < MOST_EACH:
                    chosen[pick] = m
        m = gpus.after[m]
    sums[0] = 0
    for k in range(count):
        for mask in range(1 << k):
            sums[mask | (1 << k)] = sums[mask] + tasks.size[tasks.owner[chosen[k]]]
    return count


@inner
def _send(a: int, b: int, choice: int, chosen: IntArray, count: int, gpus: Gpus) -> None:
    """Move a choice of entries from one GPU to the other."""
    for k in range(count):
        if choice >> k & 1:
            m = chosen[k]
            gpus.place[m] = b
            if gpus.first[a] == m:
                gpus.first[a] = gpus.after[m]
            else:
                before = gpus.first[a]
                while gpus.after[before] != m:
                    before = gpus.after[before]
                gpus.after[before] = gpus.after[m]
            gpus.after[m] = gpus.first[b]
            gpus.first[b] = m


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
    x, y: what the GPUs hold. dearer: see `_astray`.
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


@inner
def _loaded(tasks: Tasks, cap: IntArray, place: IntArray) -> Gpus:
    """GPUs with what is placed on them."""
    count, entries = len(cap), len(place)
    first, after = np.full(count, -1, dtype=np.int64), np.full(entries, -1, dtype=np.int64)
    gpus = Gpus(cap, np.zeros(count, dtype=np.int64), place, first, after)
    for m in range(entries):
        gpus.load[place[m]] += tasks.size[tasks.owner[m]]
        after[m] = first[place[m]]
        first[place[m]] = m
    return gpus


@compiled
def exchange(
    tasks: Tasks, cap: IntArray, place: IntArray, pairs: int, noise: float,
    draw: np.random.Generator,
) -> float:  # fmt: skip
    """What GPUs hold too much at the end, in GPUs, 0 if all fits; `place` is changed.

    In each round a GPU that is not just full exchanges tasks with others, until one of them makes
    it better; where none does, with the last of them for about the same overload.

    Parameters
    ----------
    cap, place: see `Gpus`.
    pairs: of GPUs, at most, that are looked at. noise: how much more of a GPU the overload may be.
    """
    gpus, limit = _loaded(tasks, cap, place), tasks.limit
    load, count = gpus.load, len(cap)
    mine, theirs = np.zeros(MOST_EACH, dtype=np.int64), np.zeros(MOST_EACH, dtype=np.int64)
    out, back = np.zeros(1 << MOST_EACH, dtype=np.int64), np.zeros(1 << MOST_EACH, dtype=np.int64)
    order = np.arange(count)
    while pairs > 0 and _excess(load, limit) > 0:
        a = _uneven(load, limit, cap, draw)
        pairs -= 1  # it may be the only one that is awake
        for turn in range(count):
            k = draw.integers(turn, count)
            b = order[k]
            order[k], order[turn] = order[turn], b
            if b == a or cap[b] < 0:
                continue
            pairs -= 1
            many = _choices(a, b, tasks, gpus, draw, mine, out)
            more = _choices(b, a, tasks, gpus, draw, theirs, back)
            worse = int(noise * limit) if turn == count - 1 else 0
            give, take = _best_exchange(
                load[a], load[b], limit, cap[a] - cap[b], out[: 1 << many], back[: 1 << more], worse
            )
            if give or take:
                load[a] += back[take] - out[give]
                load[b] += out[give] - back[take]
                _send(a, b, give, mine, many, gpus)
                _send(b, a, take, theirs, more, gpus)
                break
    return _excess(load, limit) / max(1, limit)
