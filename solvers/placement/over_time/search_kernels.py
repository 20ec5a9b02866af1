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
def take_off(
    case: TimedTasks,
    book: Book,
    moves: Moves,
    n: int,
    time_s: float,
    taken: int,
    first: int,
    share: float,
    random: Random,
) -> tuple[int, float]:
    """Take off a share of what runs on node `n` then, with task `first` if that is there.

    Returns
    -------
    How many are off by now, and what these added, J.
    """
    joules = 0.0
    moves.opened[n] = True
    row = row_at(book, n, time_s)
    left = book.tasks[row]
    while left > 0 and taken < len(moves.tasks):
        event = book.event[row]
        k = event // 2
        row -= 1
        if event % 2 == 0 and case.freed_s[k] > time_s:
            left -= 1
            if k != first and draw(random) > share:
                continue
            moves.tasks[taken] = k
            moves.node[taken] = n
            moves.mask[taken] = book.mask[k]
            taken += 1
            joules += saved_j(case, book, k)
            remove(case, book, k)
    return taken, joules


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
    if book.node[k] < 0:
        moves.tasks[0], moves.node[0] = k, -1
        missing = taken = 1
    else:
        taken, before = take_off(case, book, moves, book.node[k], time_s, 0, k, share, random)
    others = int(moves.nodes * draw(random))
    for _ in range(4 * others):
        n = int(draw(random) * len(book.rows))
        if others > 0 and book.tasks[row_at(book, n, time_s)] > 0:
            others -= 1
            taken, joules = take_off(case, book, moves, n, time_s, taken, k, share, random)
            before += joules
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
