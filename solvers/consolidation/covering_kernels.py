"""Compiled loops: tasks covered exactly by sets whose reduced costs have little to add up to."""

from __future__ import annotations

import numpy as np

from optgap.models.compiled import compiled, inner
from optgap.solvers.consolidation.packing import FloatArray, IntArray

NONE, FOUND, OPEN = 0, 1, 2
"""How a search ends: with no cover, with one, or with neither."""
ROOM = 40
"""Times as many sets as there are, that are kept of all depths together."""


@compiled
def earned(inside: IntArray, size: IntArray, sets: IntArray, prices: FloatArray) -> FloatArray:
    """(sets,) what the tasks of sets are worth together.

    Parameters
    ----------
    inside, size: (K, D) tasks of all sets, and (K,) how many there are. sets: which are asked for.
    """
    found = np.zeros(len(sets))
    for i, k in enumerate(sets):
        for d in range(size[k]):
            found[i] += prices[inside[k, d]]
    return found


@compiled
def tallied(inside: IntArray, size: IntArray, sets: IntArray, tasks: int) -> IntArray:
    """(L,) how many of the sets each task is in."""
    found = np.zeros(tasks, dtype=np.int64)
    for k in sets:
        for d in range(size[k]):
            found[inside[k, d]] += 1
    return found


@inner
def _give(
    k: int, gpus: int, inside: IntArray, size: IntArray, level: IntArray, wanted: IntArray,
    counts: IntArray,
) -> int:  # fmt: skip
    """Let set k have so many GPUs more; how much less is wanted."""
    less = 0
    for d in range(size[k]):
        ell = inside[k, d]
        less += max(0, wanted[ell])
        wanted[ell] -= gpus
        less -= max(0, wanted[ell])
    for q in range(level[k] + 1):
        counts[q] -= gpus
    return less


@inner
def _cost(
    k: int, inside: IntArray, size: IntArray, reduced: FloatArray, prices: FloatArray,
    wanted: IntArray,
) -> float:  # fmt: skip
    """Set k's reduced cost, with the prices of its tasks that need no more GPUs."""
    cost = float(reduced[k])
    for d in range(size[k]):
        if wanted[inside[k, d]] <= 0:
            cost += prices[inside[k, d]]
    return cost


@inner
def _parted(
    alive: IntArray, begin: int, end: int, pivot: int, inside: IntArray, size: IntArray,
    cost: FloatArray,
) -> int:  # fmt: skip
    """Sets without the pivot first, then those with it, the cheapest last; where those begin."""
    border = end
    a = begin
    while a < border:
        k = alive[a]
        having = False
        for d in range(size[k]):
            having = having or inside[k, d] == pivot
        if not having:
            a += 1
            continue
        border -= 1
        alive[a], alive[border] = alive[border], k
        place = border  # among those behind, which are in order
        while place + 1 < end and cost[alive[place + 1]] > cost[k]:
            alive[place] = alive[place + 1]
            place += 1
        alive[place] = k
    return border


@compiled
def cover(
    inside: IntArray,
    size: IntArray,
    level: IntArray,
    reduced: FloatArray,
    prices: FloatArray,
    needed: IntArray,
    allowed: IntArray,
    budget: float,
    most_work: int,
) -> tuple[int, IntArray]:
    """Sets that cover each task as often as it is needed, or that there are none.

    Always for the task that the fewest sets are left for, each of those sets, the cheapest first.

    Parameters
    ----------
    inside, size, level: (K, D), (K,), (K,) tasks of sets and their levels.
    reduced: (K,) reduced costs, not negative. prices: (L,) what covering a task once more costs.
    needed: (L,) GPUs that tasks want. allowed: (Q,) GPUs of each level or more that there are.
    budget: what reduced costs and prices may add up to.
    most_work: looks at sets after which the search stays open.
    """
    sets, tasks = len(size), len(needed)
    wanted, counts = needed.copy(), allowed.copy()
    left = int(needed.sum())
    if left == 0:
        return FOUND, np.zeros(0, dtype=np.int64)
    # the sets left at a depth, behind those of the depth before; those with its pivot at the end
    alive = np.empty(ROOM * sets + 1, dtype=np.int64)
    alive[:sets] = np.arange(sets)
    first, last = np.zeros(left + 2, dtype=np.int64), np.zeros(left + 2, dtype=np.int64)
    last[0] = sets
    others = np.zeros(left + 1, dtype=np.int64)
    chosen, spare = np.zeros(left + 1, dtype=np.int64), np.zeros(left + 1)
    spare[0] = budget
    cost, each = np.zeros(sets), np.zeros(tasks)
    number = np.zeros(tasks, dtype=np.int64)
    depth, down, work = 0, True, 0
    while True:
        if down:
            if left == 0:
                return FOUND, chosen[:depth].copy()
            begin = place = last[depth]
            work += begin - first[depth] + tasks
            if work > most_work or 2 * begin - first[depth] > len(alive):
                return OPEN, chosen[:0]
            for ell in range(tasks):
                number[ell], each[ell] = 0, np.inf
            for a in range(first[depth], begin):
                k = alive[a]
                fits = True
                for q in range(level[k] + 1):
                    fits = fits and counts[q] > 0
                useful = 0
                for d in range(size[k]):
                    useful += wanted[inside[k, d]] > 0
                cost[k] = _cost(k, inside, size, reduced, prices, wanted)
                if not fits or useful == 0 or cost[k] > spare[depth]:
                    continue
                alive[place] = k
                place += 1
                share = cost[k] / useful
                for d in range(size[k]):
                    ell = inside[k, d]
                    number[ell] += 1
                    if share < each[ell]:
                        each[ell] = share
            fewest, pivot, least = sets + 1, -1, 0.0
            for ell in range(tasks):
                if wanted[ell] > 0:
                    least += each[ell] * wanted[ell]
                    if number[ell] < fewest:
                        fewest, pivot = number[ell], ell
            first[depth + 1], last[depth + 1] = begin, place
            others[depth] = place
            if least <= spare[depth]:
                others[depth] = _parted(alive, begin, place, pivot, inside, size, cost)
            down = False
        elif last[depth + 1] > others[depth]:
            k = alive[last[depth + 1] - 1]
            spare[depth + 1] = spare[depth] - _cost(k, inside, size, reduced, prices, wanted)
            left -= _give(k, 1, inside, size, level, wanted, counts)
            chosen[depth] = k
            depth += 1
            down = True
        elif depth == 0:
            return NONE, chosen[:0]
        else:
            depth -= 1
            k = chosen[depth]
            left -= _give(k, -1, inside, size, level, wanted, counts)
            last[depth + 1] -= 1  # whatever has that set has been looked at
