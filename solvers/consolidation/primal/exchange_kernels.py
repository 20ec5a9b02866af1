"""Compiled loops of pairwise exchange: GPUs of given levels, memory as the only capacity.

A GPU with half a dozen tasks can be filled to the last MB by exchanging tasks with another one,
which is then left with all the free room of both, or all the overload. So exchanges that keep the
sum of overloads concentrate free room on few GPUs and overload on few others, and move overload
from dear levels to cheap ones, whose tasks fit everywhere. With hardly any memory free in all, this
finds placements where exchanges that must lower the overload end with free room in useless pieces.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from optgap.models.compiled import compiled, inner
from optgap.solvers.consolidation.numerics import IntArray

MOST_EACH = 7
"""Most tasks of one GPU in an exchange: all 2^7 subsets of them are tried."""


class Tasks(NamedTuple):
    """The tasks.

    Parameters
    ----------
    start, owner: (L+1,) the first entry of each task in a flat placement; the task of each entry.
    size, limit: (L,) memory of each task on one GPU, and memory of a GPU.
    level: (L,) cost level of each task. fixed: number of preplaced tasks, which stay.
    """

    start: IntArray
    owner: IntArray
    size: IntArray
    limit: int
    level: IntArray
    fixed: int


class Gpus(NamedTuple):
    """The GPUs.

    Parameters
    ----------
    cap: (G,) level of each GPU, -1 for one that sleeps: its tasks have at most this level.
    load: (G,) memory in use. place: the GPU of each entry.
    first, after: linked lists of the entries on each GPU; -1 at their ends.
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
    """Place each task where it overloads least; False where levels leave it no GPU.

    Preplaced tasks get GPUs of their own.

    Parameters
    ----------
    order: of tasks, preplaced ones first. place: receives the GPU of each entry.
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
    """Choose entries of a GPU that may be on the other, at random where there are many; how many.

    Parameters
    ----------
    chosen: receives the entries. sums: receives the memory of each subset of them.
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
    """Move a subset of entries, given as bits, from GPU a to GPU b."""
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
def _unevenness(x: int, y: int, limit: int, dearer: int) -> float:
    """Secondary objective of an exchange between GPUs that hold x and y; smaller is better.

    Parameters
    ----------
    dearer: > 0 where the first GPU has the higher level and should hold little, < 0 where the
        second has; 0 for equal levels, where loads should be as uneven as possible.
    """
    if dearer != 0:
        return float(x if dearer > 0 else y)
    return -(float(x - limit) ** 2 + float(y - limit) ** 2)


@inner
def _best_exchange(
    x: int, y: int, limit: int, dearer: int, out: IntArray, back: IntArray, worse: int
) -> tuple[int, int]:
    """The subsets of both GPUs' tasks to exchange; 0 and 0 where no exchange is better.

    The least overload, then the least secondary objective, among exchanges that come closest to
    filling either GPU exactly.

    Parameters
    ----------
    x, y: memory in use of the GPUs. dearer: see `_unevenness`.
    out, back: memory of each subset of one GPU's tasks, and of the other's.
    worse: by how much the overload may rise; above 0 any exchange is accepted.
    """
    both = x + y
    over = max(0, x - limit) + max(0, y - limit)
    uneven, give, take = _unevenness(x, y, limit, dearer), 0, 0
    if worse > 0:
        over, uneven = over + worse, np.inf
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
                    far = _unevenness(now, both - now, limit, dearer)
                    if left < over or far < uneven:
                        over, uneven, give, take = left, far, i, j
    return give, take


@inner
def _excess(load: IntArray, limit: int) -> int:
    total = 0
    for g in range(len(load)):
        total += max(0, load[g] - limit)
    return total


@inner
def _uneven(load: IntArray, limit: int, cap: IntArray, draw: np.random.Generator) -> int:
    """Draw a GPU that is awake and holds more or less than its memory."""
    found, seen = -1, 0
    for g in range(len(load)):
        if cap[g] >= 0 and load[g] != limit:
            seen += 1
            if draw.integers(0, seen) == 0:
                found = g
    return found


@inner
def _loaded(tasks: Tasks, cap: IntArray, place: IntArray) -> Gpus:
    """The state of the GPUs after `place`."""
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
    """Exchange tasks until no GPU is overloaded; the overload left, in GPUs. `place` is changed.

    In each round a GPU that is not exactly full tries the others in random order until an exchange
    is better. Where none is, it exchanges with the last one, even if the overload rises a little.

    Parameters
    ----------
    cap, place: see `Gpus`.
    pairs: most pairs of GPUs to try. noise: by how much the overload may rise, as a share of a GPU.
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
