"""Compiled loops of pricing and enumeration: depth-first search for columns, by their dearest task.

A column's tasks are taken in the pricer's order, so that the first is the dearest. A branch is cut
off where the tables of `fill_tables` show that the tasks to come cannot raise the dual value
enough.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from optgap.models.compiled import compiled, inner
from optgap.solvers.consolidation.numerics import FloatArray, IntArray

DEEPEST = 128
"""Tasks in one column at most: the length of arrays."""


class Knapsack(NamedTuple):
    """The pricing subproblem: a knapsack with R capacity rows over n tasks.

    Parameters
    ----------
    demand, limit: (R, n) and (R,), exact. profit: (n,) dual value of each task, W.
    coarse, room: (S, n) demands rounded down to table cells, and (S,) cells of each table.
    tables: (S, n+1, C+1) as `fill_tables` fills them.
    server, server_price: (n,) the server that each task is assigned to, or -1; (N,) dual price of a
        GPU of each server, at least 0.
    """

    demand: IntArray
    limit: IntArray
    profit: FloatArray
    coarse: IntArray
    room: IntArray
    tables: FloatArray
    server: IntArray
    server_price: FloatArray


class Path(NamedTuple):
    """The tasks that the search has chosen so far, by depth; row d holds for the first d tasks.

    Parameters
    ----------
    task: (D,) the tasks. home: (D,) the server of those assigned to one, or -1.
    left: (D, R) capacity left, and cells: (D, S) the same in table cells.
    earned: (D,) their dual value less the price of their server, W.
    """

    task: IntArray
    home: IntArray
    left: IntArray
    cells: IntArray
    earned: FloatArray


@compiled
def fill_tables(knapsack: Knapsack) -> None:
    """Fill tables[s, i, c], the largest dual value of tasks i, i+1, … within c cells of table s."""
    coarse, room, tables = knapsack.coarse, knapsack.room, knapsack.tables
    n = len(knapsack.profit)
    for s in range(len(room)):
        tables[s, n, : room[s] + 1] = 0.0
        for i in range(n - 1, -1, -1):
            size, profit = coarse[s, i], knapsack.profit[i]
            for c in range(min(size, room[s] + 1)):
                tables[s, i, c] = tables[s, i + 1, c]
            for c in range(size, room[s] + 1):
                other = tables[s, i + 1, c - size] + profit
                tables[s, i, c] = max(tables[s, i + 1, c], other)


@inner
def _new_path(deepest: int, knapsack: Knapsack) -> Path:
    path = Path(
        np.zeros(deepest + 2, dtype=np.int64),
        np.full(deepest + 2, -1, dtype=np.int64),
        np.zeros((deepest + 2, len(knapsack.limit)), dtype=np.int64),
        np.zeros((deepest + 2, len(knapsack.room)), dtype=np.int64),
        np.zeros(deepest + 2),
    )
    path.left[0], path.cells[0] = knapsack.limit, knapsack.room
    return path


@inner
def _added(path: Path, depth: int, task: int, knapsack: Knapsack) -> bool:
    """Add one more task to the first `depth` ones if it fits, and is in no other server."""
    home, server = path.home[depth], knapsack.server[task]
    fits = server < 0 or home < 0 or server == home
    for r in range(len(knapsack.limit)):
        fits = fits and knapsack.demand[r, task] <= path.left[depth, r]
    if not fits:
        return False
    path.task[depth], path.home[depth + 1] = task, max(home, server)
    path.earned[depth + 1] = path.earned[depth] + knapsack.profit[task]
    if home < 0 and server >= 0:
        path.earned[depth + 1] -= knapsack.server_price[server]
    for r in range(len(knapsack.limit)):
        path.left[depth + 1, r] = path.left[depth, r] - knapsack.demand[r, task]
    for s in range(len(knapsack.room)):
        path.cells[depth + 1, s] = path.cells[depth, s] - knapsack.coarse[s, task]
    return True


@inner
def _upper_limit(path: Path, depth: int, task: int, knapsack: Knapsack) -> float:
    """Return what the dual value is at most, whichever tasks from `task` on are added."""
    most = 1e300
    for s in range(len(knapsack.room)):
        most = min(most, knapsack.tables[s, task, path.cells[depth, s]])
    return path.earned[depth] + most


@inner
def _next(
    path: Path, depth: int, task: int, bar: float, floor: float, knapsack: Knapsack
) -> tuple[int, int, int]:
    """Go on to the next set, depth first, beyond which the upper limit reaches `bar`.

    Parameters
    ----------
    task: the first that may be added to the present set.
    floor: tasks of no more dual value than this are not added.

    Returns
    -------
    The depth of the set, 0 where none is left; the first task that may be added to it; and how many
    tasks were looked at.
    """
    looks = 0
    while depth > 0:
        while task < len(knapsack.profit) and _upper_limit(path, depth, task, knapsack) >= bar:
            looks += 1
            if knapsack.profit[task] > floor and _added(path, depth, task, knapsack):
                return depth + 1, task + 1, looks
            task += 1
        looks += 1
        depth -= 1
        task = path.task[depth] + 1
    return 0, task, looks


@compiled
def best_columns(
    knapsack: Knapsack, wanted: FloatArray, most_nodes: int
) -> tuple[FloatArray, FloatArray, IntArray, IntArray, int]:
    """For each dearest task the column of the largest value: dual value less its server's price.

    Parameters
    ----------
    wanted: (n,) columns whose value is no more than this are not looked for.
    most_nodes: of the search for each dearest task.

    Returns
    -------
    value (n,) of the column found; upper (n,), an upper limit on the value of every column, or
    `wanted` where none exceeds that; size (n,) and tasks (n, DEEPEST) of the column found; and how
    many tasks were looked at.
    """
    n = len(knapsack.profit)
    value, upper = np.full(n, -1e300), np.full(n, -1e300)
    sizes, tasks = np.zeros(n, dtype=np.int64), np.zeros((n, DEEPEST), dtype=np.int64)
    path, looks = _new_path(DEEPEST, knapsack), n
    for first in range(n):
        if not _added(path, 0, first, knapsack):
            continue
        upper[first] = _upper_limit(path, 1, first + 1, knapsack)
        if upper[first] <= wanted[first]:
            continue
        best, depth, task, nodes = wanted[first], 1, first + 1, 0
        while depth > 0:
            if path.earned[depth] > best:
                best = value[first] = path.earned[depth]
                sizes[first] = depth
                tasks[first, :depth] = path.task[:depth]
            depth, task, seen = _next(path, depth, task, best + 1e-12, 0.0, knapsack)
            looks, nodes = looks + seen, nodes + 1
            if depth > DEEPEST or (depth > 0 and nodes > most_nodes):
                break  # cut short: `upper` stays what the tables say
        if depth == 0:
            upper[first] = best
    return value, upper, sizes, tasks, looks


@compiled
def all_columns(
    knapsack: Knapsack,
    least: FloatArray,
    found: IntArray,
    size: IntArray,
    excess: FloatArray,
    most_nodes: int,
) -> tuple[int, bool, int]:
    """Return every column whose dual value is at least `least` of its dearest task.

    Parameters
    ----------
    least: (n,) W.
    found, size, excess: (most, deepest), (most,) and (most,) receive the tasks of each column, how
        many, and its dual value beyond `least`.

    Returns
    -------
    How many were found, and whether that is all: False where there are more than `most` of them,
    or the search took more than `most_nodes`; and how many nodes it took.
    """
    most, deepest = found.shape
    path = _new_path(deepest, knapsack)
    number, nodes = 0, 0
    for first in range(len(knapsack.profit)):
        depth, task = int(_added(path, 0, first, knapsack)), first + 1
        while depth > 0:
            if path.earned[depth] >= least[first]:
                if number == most:
                    return number, False, nodes
                found[number, :depth] = path.task[:depth]
                size[number], excess[number] = depth, path.earned[depth] - least[first]
                number += 1
            depth, task, _ = _next(path, depth, task, least[first], -1.0, knapsack)
            nodes += depth > 0
            if depth > deepest or nodes > most_nodes:
                return number, False, nodes
    return number, True, nodes
