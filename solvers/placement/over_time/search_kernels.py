"""Compiled annealing of schedules whose tasks keep their starts: where each runs, for life."""

from __future__ import annotations

import math
from typing import NamedTuple

from optgap.models.compiled import compiled, inner
from optgap.models.placement.arrays import FloatArray, IntArray
from optgap.solvers.placement.over_time.book_kernels import (
    Book,
    Case,
    added_j,
    full,
    insert,
    remove,
    saved_j,
)

NEAR = 6.0
"""Tasks to change places with, or to join: up to e^6 places away in the order of starts, the near
ones more often."""
DRAWS = 5
"""Random numbers per move."""


class Moves(NamedTuple):
    """What annealing chooses from.

    Parameters
    ----------
    exchanges, joins: shares of the moves that exchange the places of two tasks, and that put one
        on another's node; the others put one on any node.
    by_start, rank: (T,) tasks in order of their starts, and the place of each in it.
    by_worth: (T,) the sum of how much tasks weigh, up to each: half of the moves choose by it.
    """

    exchanges: float
    joins: float
    by_start: IntArray
    rank: IntArray
    by_worth: FloatArray


@inner
def drawn(moves: Moves, draw: float) -> int:
    """A task: with half of the draws any, else the heavier the likelier."""
    count = len(moves.rank)
    if draw < 0.5:
        return int(2 * draw * count)
    sought = (2 * draw - 1) * moves.by_worth[count - 1]
    low, high = 0, count - 1
    while low < high:
        middle = (low + high) // 2
        if moves.by_worth[middle] > sought:
            high = middle
        else:
            low = middle + 1
    return low


@inner
def neighbour(moves: Moves, k: int, draw: float) -> int:
    """A task that starts some places before or after `k`."""
    far = int(math.exp(NEAR * abs(2 * draw - 1)))
    at = moves.rank[k] + (far if draw < 0.5 else -far)
    return int(moves.by_start[min(max(at, 0), len(moves.rank) - 1)])


@inner
def relocate(case: Case, book: Book, k: int, n: int, most_j: float) -> float:
    """Put task `k` on node `n` if that adds less than `most_j` beyond what it saves; the change."""
    home, own = book.node[k], book.mask[k]
    if home == n:
        before = saved_j(case, book, k)
        remove(case, book, k)
        after, mask = added_j(case, book, k, n, before + most_j)
        if after - before >= most_j:
            insert(case, book, k, n, own)
            return 0.0
        insert(case, book, k, n, mask)
        return after - before
    if full(book, n):
        return 0.0
    before = saved_j(case, book, k)
    after, mask = added_j(case, book, k, n, before + most_j)
    if after - before >= most_j:
        return 0.0
    remove(case, book, k)
    insert(case, book, k, n, mask)
    return after - before


@inner
def exchange(case: Case, book: Book, k: int, j: int, most_j: float) -> float:
    """Let two tasks change nodes if that adds less than `most_j`; the change."""
    at_k, at_j = book.node[k], book.node[j]
    mask_k, mask_j = book.mask[k], book.mask[j]
    before = saved_j(case, book, k) + saved_j(case, book, j)
    remove(case, book, k)
    remove(case, book, j)
    there, gpus = added_j(case, book, k, at_j, before + most_j)
    back, others = math.inf, 0
    if there < before + most_j:
        back, others = added_j(case, book, j, at_k, before + most_j - there)
    if there + back - before < most_j:
        insert(case, book, k, at_j, gpus)
        insert(case, book, j, at_k, others)
        return there + back - before
    insert(case, book, k, at_k, mask_k)
    insert(case, book, j, at_j, mask_j)
    return 0.0


@compiled
def anneal(
    case: Case, book: Book, moves: Moves, draws: FloatArray, hot_j: float, cold_j: float
) -> tuple[float, int]:
    """So many moves as there are draws, (moves, `DRAWS`), at temperatures from `hot_j` to `cold_j`.

    Returns
    -------
    By how much energy changed, J, and how many tasks without a place found one.
    """
    joules, found = 0.0, 0
    count = len(draws)
    for i in range(count):
        draw = draws[i]
        heat = hot_j * (cold_j / hot_j) ** (i / count)
        most_j = -heat * math.log(max(draw[3], 1e-300))  # Metropolis: what may be added
        k = drawn(moves, draw[1])
        n = int(draw[4] * len(book.rows))
        if book.node[k] < 0:
            added, mask = added_j(case, book, k, n, math.inf)
            if added < math.inf and not full(book, n):
                insert(case, book, k, n, mask)
                joules += added
                found += 1
            continue
        if draw[0] < moves.exchanges + moves.joins:
            j = neighbour(moves, k, draw[2])
            if book.node[j] < 0:
                continue
            n = book.node[j]
            if draw[0] < moves.exchanges:
                if n != book.node[k]:
                    joules += exchange(case, book, k, j, most_j)
                continue
        joules += relocate(case, book, k, n, most_j)
    return joules, found
