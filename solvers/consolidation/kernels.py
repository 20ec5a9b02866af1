"""Compiled loops: the sets of tasks that prices make worth a GPU."""

from __future__ import annotations

import numpy as np

from optgap.models.compiled import compiled
from optgap.solvers.consolidation.packing import FloatArray, IntArray

DEEPEST = 128
"""Tasks on one GPU at most, in a column."""


@compiled
def suffix_table(sizes: IntArray, capacity: int, profits: FloatArray) -> FloatArray:
    """(n+1, capacity+1): the most that items i, i+1, … can earn within a capacity."""
    n = len(sizes)
    table = np.zeros((n + 1, capacity + 1))
    for i in range(n - 1, -1, -1):
        size, profit = sizes[i], profits[i]
        for c in range(capacity + 1):
            best = table[i + 1, c]
            if size <= c:
                other = table[i + 1, c - size] + profit
                best = max(best, other)
            table[i, c] = best
    return table


@compiled
def best_sets(
    rows: IntArray,
    limits: IntArray,
    profits: FloatArray,
    coarse: IntArray,
    room: IntArray,
    tables: FloatArray,
    worth: FloatArray,
    most_nodes: int,
    apart: np.ndarray,
) -> tuple[FloatArray, FloatArray, IntArray, IntArray]:
    """The most valuable set for each first item i, whose others come after it.

    Parameters
    ----------
    rows, limits: (R, n) demand and (R,) capacity, exact.
    profits: (n,).
    coarse, room: (S, n) sizes rounded down and (S,) capacities of each table.
    tables: (S, n+1, C+1) of `suffix_table`.
    worth: (n,) sets that begin with an item and are worth no more are not looked for.
    most_nodes: of each first item's search.
    apart: (n, n) bool, items that may not be together; (0, 0) where all may.

    Returns
    -------
    value (n,) of the set found, upper (n,) what no set exceeds, size (n,) and items (n, DEEPEST).
    """
    count, n = rows.shape
    value = np.zeros(n)
    upper = np.zeros(n)
    sizes = np.zeros(n, dtype=np.int64)
    items = np.zeros((n, DEEPEST), dtype=np.int64)
    stack = np.zeros(DEEPEST + 1, dtype=np.int64)
    left = np.zeros((DEEPEST + 1, count), dtype=np.int64)
    free = np.zeros((DEEPEST + 1, len(room)), dtype=np.int64)
    earned = np.zeros(DEEPEST + 1)
    for first in range(n):
        fits = True
        for r in range(count):
            left[1, r] = limits[r] - rows[r, first]
            if left[1, r] < 0:
                fits = False
        if not fits:
            continue
        bound = 1e300
        for s in range(len(room)):
            free[1, s] = room[s] - coarse[s, first]
            bound = min(bound, tables[s, first + 1, free[1, s]])
        upper[first] = profits[first] + bound
        if upper[first] <= worth[first]:
            continue
        best = profits[first]
        sizes[first] = 1
        items[first, 0] = first
        stack[0] = first
        earned[1] = profits[first]
        depth, j, nodes = 1, first + 1, 0
        while depth > 0:
            pushed = False
            while j < n:
                bound = 1e300
                for s in range(len(room)):
                    bound = min(bound, tables[s, j, free[depth, s]])
                if earned[depth] + bound <= best + 1e-12:
                    break
                fits = profits[j] > 0
                for r in range(count):
                    if rows[r, j] > left[depth, r]:
                        fits = False
                        break
                if fits and len(apart) > 0:
                    for k in range(depth):
                        if apart[stack[k], j]:
                            fits = False
                            break
                if fits:
                    pushed = True
                    break
                j += 1
            if pushed and depth < DEEPEST - 1 and nodes < most_nodes:
                nodes += 1
                for r in range(count):
                    left[depth + 1, r] = left[depth, r] - rows[r, j]
                for s in range(len(room)):
                    free[depth + 1, s] = free[depth, s] - coarse[s, j]
                earned[depth + 1] = earned[depth] + profits[j]
                stack[depth] = j
                depth += 1
                if earned[depth] > best:
                    best = earned[depth]
                    sizes[first] = depth
                    for k in range(depth):
                        items[first, k] = stack[k]
                j += 1
                continue
            if pushed:  # out of nodes: `upper` stays what the tables say
                break
            depth -= 1
            if depth > 0:
                j = stack[depth] + 1
        value[first] = best
        if depth == 0:
            upper[first] = best
    return value, upper, sizes, items
