"""Compiled search: tasks of some nodes at a moment are taken off and put back where they add least.

Tasks keep their starts. Which nodes, and in which order tasks are put back, is drawn, and some
nodes are passed over now and then (ruin and recreate with blinks, Christiaens and Vanden Berghe
2020); what that changes is accepted by Metropolis' rule.
"""

from __future__ import annotations

from optgap.models.compiled import compiled, inner
from optgap.solvers.engines.annealing import Random, allowed, draw
from optgap.solvers.placement.over_time.book_kernels import (
    Book,
    Moves,
    TimedTasks,
    cheapest,
    insert,
    remove,
    row_at,
    saved_j,
)


@inner
def renew(
    case: TimedTasks, book: Book, moves: Moves, most_j: float, random: Random
) -> tuple[float, int]:
    """Take tasks off and put them back, if that adds less than `most_j`; the change.

    Beside it, how many rows without a place found one.
    """
    u, count = draw(random), len(moves.by_worth)
    k = int(2 * u * count)
    if u >= 0.5:  # the longer a task the likelier; else any
        sought, k, high = (2 * u - 1) * moves.by_worth[count - 1], 0, count - 1
        while k < high:
            middle = (k + high) // 2
            if moves.by_worth[middle] > sought:
                high = middle
            else:
                k = middle + 1
    taken, before, missing = 0, 0.0, 0
    share = min(1.0, 2.0 * draw(random))
    time_s = case.start_s[k] + draw(random) * (case.freed_s[k] - case.start_s[k])
    first, n, more = k, book.node[k], 1 + int(moves.nodes * draw(random))
    if n < 0:
        moves.tasks[0], moves.node[0] = k, -1
        missing = taken = 1
        more, n = more - 1, int(draw(random) * len(book.rows))
    for _ in range(4 * more):  # a share of what some nodes run then
        row = row_at(book, n, time_s)
        left = book.tasks[row] if more > 0 else 0
        if left > 0:
            more -= 1
            moves.opened[n] = True
        while left > 0 and taken < len(moves.tasks):
            k = book.event[row] // 2
            if book.event[row] % 2 == 0 and case.freed_s[k] > time_s:
                left -= 1
                if k == first or draw(random) <= share:
                    moves.tasks[taken], moves.node[taken] = k, n
                    moves.mask[taken] = book.mask[k]
                    taken += 1
                    before += saved_j(case, book, k)
                    remove(case, book, k)
            row -= 1
        n = int(draw(random) * len(book.rows))
    rule = draw(random)
    for i in range(taken):  # the longest, the largest or the first comes first, or any
        k, node, mask, at = moves.tasks[i], moves.node[i], moves.mask[i], i
        if rule < 0.4:
            key = -case.lasting_s[k]
        elif rule < 0.7:
            demand = case.num_gpu[k] * case.gpu_milli[k] + case.cpu_milli[k] / 32
            key = -case.lasting_s[k] * demand
        elif rule < 0.8:
            key = case.start_s[k]
        else:
            key = draw(random)
        while at > 0 and moves.key[at - 1] > key:
            moves.key[at], moves.tasks[at] = moves.key[at - 1], moves.tasks[at - 1]
            moves.node[at], moves.mask[at] = moves.node[at - 1], moves.mask[at - 1]
            at -= 1
        moves.key[at], moves.tasks[at], moves.node[at], moves.mask[at] = key, k, node, mask
    after, put = 0.0, 0
    while put < taken and after - before < most_j:
        k = moves.tasks[put]
        joules, n, mask = cheapest(case, book, moves, k, True, random)
        after += joules
        if n < 0:
            break
        insert(case, book, k, n, mask)
        put += 1
    for i in range(taken):
        if moves.node[i] >= 0:
            moves.opened[moves.node[i]] = False
    if put == taken and (missing > 0 or after - before < most_j):
        return after - before, missing
    for i in range(put):
        remove(case, book, moves.tasks[i])
    for i in range(taken):
        if moves.node[i] >= 0:
            insert(case, book, moves.tasks[i], moves.node[i], moves.mask[i])
    return 0.0, 0


@compiled
def try_moves(
    case: TimedTasks,
    book: Book,
    moves: Moves,
    count: int,
    hot_j: float,
    cold_j: float,
    random: Random,
) -> tuple[float, int]:
    """Try so many moves at temperatures from `hot_j` to `cold_j`.

    Returns
    -------
    By how much energy changed, J, and how many rows without a place found one.
    """
    joules, found = 0.0, 0
    for i in range(count):
        most_j = allowed(i, count, hot_j, cold_j, draw(random))
        changed, placed = renew(case, book, moves, most_j, random)
        joules += changed
        found += placed
    return joules, found
