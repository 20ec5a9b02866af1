"""Compiled books of nodes: what runs on each between its events, and what a task adds to that.

A task k takes a node from s_k until f_k, its start and when its room is free again. A node's book
has a row for its first moment and one for every start and end on it, in order of time; each row
says what is in use until the next. So what k adds to a node,

    Σ over rows r that overlap k:  |r ∩ [s_k, f_k)| · (P(in use in r, and k) − P(in use in r)),

is one walk over the rows between s_k and f_k. A GPU's part of it is how long nothing else is on it.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from optgap.models.compiled import compiled, inner
from optgap.models.placement.arrays import BoolArray, FloatArray, IntArray
from optgap.models.placement.cluster import TASKS_PER_NODE
from optgap.models.placement.kernels import Row, Table, cpu_w
from optgap.solvers.engines.annealing import Random, draw


class TimedTasks(NamedTuple):
    """Given data: T tasks with their times, N nodes.

    Parameters
    ----------
    start_s, lasting_s: (T,) when each comes and how long it runs, s.
    freed_s: (T,) until when it has its room (`freed_s`).
    cpu_milli, memory_mib, num_gpu, gpu_milli: (T,) what it takes; the last of each GPU.
    kind: (T,) which row of `accepts` is its.
    accepts: (kinds, models) which GPU models it may run on.
    nodes: (N,) `NODE`.
    used_s: (G,) work space: by how much a task makes each GPU of a node longer in use.
    room: (G,) work space: whether it has room for the task all the time.
    """

    start_s: FloatArray
    lasting_s: FloatArray
    freed_s: FloatArray
    cpu_milli: IntArray
    memory_mib: IntArray
    num_gpu: IntArray
    gpu_milli: IntArray
    kind: IntArray
    accepts: BoolArray
    nodes: Table
    used_s: FloatArray
    room: BoolArray


class Book(NamedTuple):
    """Tasks on each node, in R rows for all nodes.

    Parameters
    ----------
    first, rows: (N,) a node's first row, and how many it has; `first` has one entry more, and a
        node room until the next one's.
    time_s: (R,) from when on a row holds; minus infinity for the first of a node.
    event: (R,) 2k for the start of task k, 2k + 1 for its end, -1 for the first of a node.
    cpu_milli, memory_mib, tasks: (R,) in use. gpu_milli: (R, G) the same of each GPU.
    cpu_w: (R,) what the node's CPUs draw.
    node, mask: (T,) where each task is, -1 for nowhere, and its GPUs as bits.
    """

    first: IntArray
    rows: IntArray
    time_s: FloatArray
    event: IntArray
    cpu_milli: IntArray
    memory_mib: IntArray
    tasks: IntArray
    gpu_milli: IntArray
    cpu_w: FloatArray
    node: IntArray
    mask: IntArray


@inner
def row_at(book: Book, n: int, time_s: float) -> int:
    """Return the last row of node `n` that begins by then."""
    low, high = book.first[n], book.first[n] + book.rows[n]
    while high - low > 1:
        middle = (low + high) // 2
        if book.time_s[middle] <= time_s:
            low = middle
        else:
            high = middle
    return int(low)


@inner
def row_of(book: Book, n: int, time_s: float, event: int) -> int:
    """Return the row of this event."""
    row = row_at(book, n, time_s)
    while book.event[row] != event:
        row -= 1
    return row


@inner
def used_w(node: Row, used_milli: int) -> float:
    """Return what a node's CPUs draw, of which so much is in use."""
    return float(cpu_w(node, node["cpu_milli"] - used_milli))


@inner
def added_j(case: TimedTasks, book: Book, k: int, n: int, most_j: float) -> tuple[float, int]:
    """Return what task `k` adds on node `n` on the GPUs that are best for it, and these as bits.

    Infinity where it finds no room, or where it is `most_j` or more.
    """
    node = case.nodes[n]
    wanted, milli, cpu = case.num_gpu[k], case.gpu_milli[k], case.cpu_milli[k]
    gpus = node["gpus"]
    if wanted > gpus or (wanted > 0 and not case.accepts[case.kind[k], node["model"]]):
        return math.inf, 0
    most_cpu = node["cpu_milli"] - cpu
    most_memory = node["memory_mib"] - case.memory_mib[k]
    for g in range(gpus):
        case.used_s[g] = 0.0
        case.room[g] = True
    joules, until = 0.0, case.freed_s[k]
    row = row_at(book, n, case.start_s[k])
    last = book.first[n] + book.rows[n] - 1
    now = case.start_s[k]
    while now < until:
        then = until if row == last else min(until, book.time_s[row + 1])
        lasts = then - now
        if lasts > 0.0:
            if book.cpu_milli[row] > most_cpu or book.memory_mib[row] > most_memory:
                return math.inf, 0
            if book.tasks[row] >= TASKS_PER_NODE:
                return math.inf, 0
            if cpu > 0:
                watts = used_w(node, book.cpu_milli[row] + cpu)
                joules += lasts * (watts - book.cpu_w[row])
                if joules >= most_j:
                    return math.inf, 0
            if wanted > 0:
                for g in range(gpus):
                    used = book.gpu_milli[row, g]
                    if used + milli > 1000:
                        case.room[g] = False
                    elif used == 0:
                        case.used_s[g] += lasts
            now = then
        row += 1
    mask = 0
    for _ in range(wanted):
        chosen = -1
        for g in range(gpus):
            if case.room[g] and (chosen < 0 or case.used_s[g] < case.used_s[chosen]):
                chosen = g
        if chosen < 0:
            return math.inf, 0
        joules += case.used_s[chosen] * (node["gpu_full_w"] - node["gpu_idle_w"])
        case.room[chosen] = False
        mask |= 1 << chosen
    if joules >= most_j:
        return math.inf, 0
    return joules, mask


@inner
def saved_j(case: TimedTasks, book: Book, k: int) -> float:
    """Return what task `k` adds where it is."""
    n = book.node[k]
    node = case.nodes[n]
    milli, cpu, mask = case.gpu_milli[k], case.cpu_milli[k], book.mask[k]
    joules, watts = 0.0, node["gpu_full_w"] - node["gpu_idle_w"]
    row = row_of(book, n, case.start_s[k], 2 * k)
    while book.event[row] != 2 * k + 1:
        lasts = book.time_s[row + 1] - book.time_s[row]
        if lasts > 0.0:
            if cpu > 0:
                rest_w = used_w(node, book.cpu_milli[row] - cpu)
                joules += lasts * (book.cpu_w[row] - rest_w)
            for g in range(node["gpus"]):
                if mask >> g & 1 and book.gpu_milli[row, g] == milli:
                    joules += lasts * watts
        row += 1
    return joules


@inner
def copy_row(book: Book, source: int, target: int) -> None:
    """Make one row what another is."""
    book.time_s[target] = book.time_s[source]
    book.event[target] = book.event[source]
    book.cpu_milli[target] = book.cpu_milli[source]
    book.memory_mib[target] = book.memory_mib[source]
    book.tasks[target] = book.tasks[source]
    book.cpu_w[target] = book.cpu_w[source]
    for g in range(book.gpu_milli.shape[1]):
        book.gpu_milli[target, g] = book.gpu_milli[source, g]


@inner
def new_row(book: Book, n: int, time_s: float, event: int) -> int:
    """Divide a row of node `n` at this time, and tell where the second half is."""
    at = row_at(book, n, time_s) + 1
    for row in range(book.first[n] + book.rows[n], at, -1):
        copy_row(book, row - 1, row)
    copy_row(book, at - 1, at)
    book.time_s[at] = time_s
    book.event[at] = event
    book.rows[n] += 1
    return at


@inner
def change(case: TimedTasks, book: Book, k: int, n: int, mask: int, sign: int) -> None:
    """Add what task `k` takes to the rows from its start to its end, or take it off."""
    node = case.nodes[n]
    row = row_of(book, n, case.start_s[k], 2 * k)
    while book.event[row] != 2 * k + 1:
        book.cpu_milli[row] += sign * case.cpu_milli[k]
        book.memory_mib[row] += sign * case.memory_mib[k]
        book.tasks[row] += sign
        for g in range(node["gpus"]):
            if mask >> g & 1:
                book.gpu_milli[row, g] += sign * case.gpu_milli[k]
        if case.cpu_milli[k] > 0:
            book.cpu_w[row] = used_w(node, book.cpu_milli[row])
        row += 1


@compiled
def insert(case: TimedTasks, book: Book, k: int, n: int, mask: int) -> None:
    """Put task `k` on a node, whose book must have room for two more rows."""
    new_row(book, n, case.start_s[k], 2 * k)
    new_row(book, n, case.freed_s[k], 2 * k + 1)
    change(case, book, k, n, mask, 1)
    book.node[k] = n
    book.mask[k] = mask


@inner
def remove(case: TimedTasks, book: Book, k: int) -> None:
    """Take task `k` off its node."""
    n = book.node[k]
    change(case, book, k, n, book.mask[k], -1)
    begin = row_of(book, n, case.start_s[k], 2 * k)
    end = row_of(book, n, case.freed_s[k], 2 * k + 1)
    for row in range(begin + 1, end):
        copy_row(book, row, row - 1)
    for row in range(end + 1, book.first[n] + book.rows[n]):
        copy_row(book, row, row - 2)
    book.rows[n] -= 2
    book.node[k] = -1
    book.mask[k] = 0


class Moves(NamedTuple):
    """Settings by which moves are drawn, and work space for them.

    Parameters
    ----------
    nodes: of how many tasks are taken off at once, at most.
    blinks: share of the nodes that are passed over, other than those that tasks are taken off.
    by_worth: (T,) the sum of how long tasks run, up to each: half of the moves begin with these.
    like: (N,) which nodes are alike when empty: one of those is enough.
    tasks, node, mask: (L,) which tasks are taken off at once, and where they were.
    key: (L,) by what they are put back in order.
    opened: (N,) whether tasks are taken off a node.
    """

    nodes: int
    blinks: float
    by_worth: FloatArray
    like: IntArray
    tasks: IntArray
    node: IntArray
    mask: IntArray
    key: FloatArray
    opened: BoolArray


@inner
def cheapest(
    case: TimedTasks, book: Book, moves: Moves, k: int, renewing: bool, random: Random
) -> tuple[float, int, int]:
    """Return where task `k` adds least: how much, which node and which GPUs; the first of equals.

    When `renewing`, some nodes are passed over, and those whose books are full.
    """
    best, node, mask, seen = math.inf, -1, 0, -1
    for n in range(len(book.rows)):
        row, end = row_at(book, n, case.start_s[k]), book.first[n] + book.rows[n]
        if book.tasks[row] == 0 and (row == end - 1 or book.time_s[row + 1] >= case.freed_s[k]):
            if moves.like[n] == seen:  # nothing runs there all the time, as on that one
                continue
            seen = moves.like[n]
        if renewing and not moves.opened[n] and draw(random) < moves.blinks:
            continue
        if renewing and end + 2 > book.first[n + 1]:
            continue
        joules, gpus = added_j(case, book, k, n, best)
        if joules < best:
            best, node, mask = joules, n, gpus
    return best, node, mask


@compiled
def place_all(
    case: TimedTasks,
    book: Book,
    moves: Moves,
    order: IntArray,
    begin: int,
    end: int,
    random: Random,
) -> int:
    """Put tasks, `order` from `begin` to `end`, where each adds least; where to go on.

    That is before `end` where a book is full. A task without room is left out.
    """
    for i in range(begin, end):
        k = order[i]
        _, n, mask = cheapest(case, book, moves, k, False, random)
        if n >= 0:
            if book.first[n] + book.rows[n] + 2 > book.first[n + 1]:
                return i
            insert(case, book, k, n, mask)
    return end
