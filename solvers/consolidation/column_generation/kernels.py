"""Compiled loops of pricing and enumeration: sets of tasks that duals make worth a GPU."""

from __future__ import annotations

import numpy as np

from optgap.models.compiled import compiled, inner
from optgap.solvers.consolidation.numerics import BoolArray, FloatArray, IntArray

DEEPEST = 128
"""Tasks on one GPU at most, in a column."""


@compiled
def fill_tables(coarse: IntArray, room: IntArray, profits: FloatArray, tables: FloatArray) -> None:
    """The most that items i, i+1, … can earn within c cells of line s, into (S, n+1, C+1)."""
    n = len(profits)
    for s in range(len(room)):
        for c in range(room[s] + 1):
            tables[s, n, c] = 0.0
        for i in range(n - 1, -1, -1):
            size, profit = coarse[s, i], profits[i]
            for c in range(min(size, room[s] + 1)):
                tables[s, i, c] = tables[s, i + 1, c]
            for c in range(size, room[s] + 1):
                other = tables[s, i + 1, c - size] + profit
                tables[s, i, c] = max(tables[s, i + 1, c], other)


@compiled
def best_columns(
    rows: IntArray,
    limits: IntArray,
    profits: FloatArray,
    coarse: IntArray,
    room: IntArray,
    tables: FloatArray,
    wanted: FloatArray,
    most_nodes: int,
    server: IntArray,
    toll: FloatArray,
    forbidden: BoolArray,
) -> tuple[FloatArray, FloatArray, IntArray, IntArray]:
    """The most valuable set for each first item i, whose others come after it, in one server.

    Parameters
    ----------
    rows, limits: (R, n) demand and (R,) capacity, exact.
    profits: (n,).
    coarse, room: (S, n) sizes rounded down and (S,) capacities of each table.
    tables: (S, n+1, C+1) of `fill_tables`.
    wanted: (n,) sets that begin with an item and are worth no more are not looked for.
    most_nodes: of each first item's search.
    server: (n,) the server each item is assigned to, or -1.
    toll: (N,) what a GPU of each server costs beyond its level, at least 0.
    forbidden: (n, N) bool; servers that an unassigned item may not be in.

    Returns
    -------
    value (n,) of the set found less its toll, upper (n,) what no set exceeds, or `wanted` where
    none exceeds that, size (n,) and items (n, DEEPEST).
    """
    count, n = rows.shape
    value = np.full(n, -1e300)
    upper = np.full(n, -1e300)
    sizes = np.zeros(n, dtype=np.int64)
    items = np.zeros((n, DEEPEST), dtype=np.int64)
    stack = np.zeros(DEEPEST + 1, dtype=np.int64)
    left = np.zeros((DEEPEST + 1, count), dtype=np.int64)
    free = np.zeros((DEEPEST + 1, len(room)), dtype=np.int64)
    earned = np.zeros(DEEPEST + 1)
    home = np.full(DEEPEST + 1, -1, dtype=np.int64)
    tied = (server >= 0).any()  # else room is all that is asked for: fast
    for first in range(n):
        fits = True
        for r in range(count):
            left[1, r] = limits[r] - rows[r, first]
            if left[1, r] < 0:
                fits = False
        if not fits:
            continue
        home[1] = server[first]
        own = profits[first] - (toll[home[1]] if home[1] >= 0 else 0.0)
        bound = 1e300
        for s in range(len(room)):
            free[1, s] = room[s] - coarse[s, first]
            bound = min(bound, tables[s, first + 1, free[1, s]])
        upper[first] = own + bound
        if upper[first] <= wanted[first]:
            continue
        best = wanted[first]
        if own > best:
            best = own
            sizes[first] = 1
            items[first, 0] = first
        stack[0] = first
        earned[1] = own
        depth, j, nodes = 1, first + 1, 0
        while depth > 0:
            pushed = False
            while j < n:
                bound = 1e300
                for s in range(len(room)):
                    bound = min(bound, tables[s, j, free[depth, s]])
                if earned[depth] + bound <= best + 1e-12:
                    break
                pushed = profits[j] > 0
                for r in range(count):
                    pushed = pushed and rows[r, j] <= left[depth, r]
                if pushed and tied:
                    pushed = _allowed(server, forbidden, stack, depth, home[depth], j)
                if pushed:
                    break
                j += 1
            if pushed and depth < DEEPEST - 1 and nodes < most_nodes:
                nodes += 1
                for r in range(count):
                    left[depth + 1, r] = left[depth, r] - rows[r, j]
                for s in range(len(room)):
                    free[depth + 1, s] = free[depth, s] - coarse[s, j]
                earned[depth + 1] = earned[depth] + profits[j]
                home[depth + 1] = home[depth]
                if server[j] >= 0 and home[depth] < 0:
                    earned[depth + 1] -= toll[server[j]]
                    home[depth + 1] = server[j]
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
        if sizes[first] > 0:
            value[first] = best
        if depth == 0:
            upper[first] = best
    return value, upper, sizes, items


@compiled
def all_columns(
    rows: IntArray,
    limits: IntArray,
    profits: FloatArray,
    coarse: IntArray,
    room: IntArray,
    tables: FloatArray,
    least: FloatArray,
    same: IntArray,
    width: IntArray,
    found: IntArray,
    size: IntArray,
    worth: FloatArray,
    most_nodes: int,
) -> tuple[int, bool]:
    """Every set that earns what its first item i asks, but those that a larger one stands for.

    Parameters
    ----------
    least: (n,) what a set that begins with an item must earn.
    same: (n,) the first item that costs no more than each. width: (n,) how many GPUs each takes. A
        set to which an item can be added is left out where that costs no more, and it takes as
        many GPUs as one of the set does; none is where `same` is n.
    found, size, worth: (most, deepest), (most,) and (most,) receive items, how many, and what the
        set earns beyond what is asked.

    For the others see `best_columns`.

    Returns
    -------
    How many were found, and whether that is all: False where there are more than `most` of them,
    or more than `most_nodes` were looked at.
    """
    count, n = rows.shape
    most, deepest = found.shape
    stack = np.zeros(deepest + 1, dtype=np.int64)
    left = np.zeros((deepest + 2, count), dtype=np.int64)
    free = np.zeros((deepest + 2, len(room)), dtype=np.int64)
    earned = np.zeros(deepest + 2)
    number, nodes = 0, 0
    for first in range(n):
        fits = True
        for r in range(count):
            left[1, r] = limits[r] - rows[r, first]
            fits = fits and left[1, r] >= 0
        if not fits:
            continue
        for s in range(len(room)):
            free[1, s] = room[s] - coarse[s, first]
        stack[0], earned[1] = first, profits[first]
        depth, j, fresh = 1, first + 1, True
        while depth > 0:
            if fresh and earned[depth] >= least[first] and (
                _full(rows, left, stack, depth, same[first], width)
            ):  # fmt: skip
                if number == most:
                    return number, False
                for k in range(depth):
                    found[number, k] = stack[k]
                size[number], worth[number] = depth, earned[depth] - least[first]
                number += 1
            fresh = False
            while j < n:
                bound = 1e300
                for s in range(len(room)):
                    bound = min(bound, tables[s, j, free[depth, s]])
                if earned[depth] + bound < least[first]:
                    j = n
                    break
                fits = True
                for r in range(count):
                    fits = fits and rows[r, j] <= left[depth, r]
                if fits:
                    break
                j += 1
            if j < n:
                nodes += 1
                if depth == deepest or nodes > most_nodes:
                    return number, False
                for r in range(count):
                    left[depth + 1, r] = left[depth, r] - rows[r, j]
                for s in range(len(room)):
                    free[depth + 1, s] = free[depth, s] - coarse[s, j]
                earned[depth + 1] = earned[depth] + profits[j]
                stack[depth] = j
                depth += 1
                j += 1
                fresh = True
                continue
            depth -= 1
            if depth > 0:
                j = stack[depth] + 1
    return number, True


@inner
def _full(
    rows: IntArray, left: IntArray, stack: IntArray, depth: int, first: int, width: IntArray
) -> bool:
    """Whether no item from `first` on, as wide as one of the stack, can be added to it."""
    least = width[stack[0]]
    for k in range(1, depth):
        least = min(least, width[stack[k]])
    for i in range(first, rows.shape[1]):
        inside = width[i] < least
        for k in range(depth):
            inside = inside or stack[k] == i
        if inside:
            continue
        fits = True
        for r in range(len(rows)):
            fits = fits and rows[r, i] <= left[depth, r]
        if fits:
            return False
    return True


@inner
def _allowed(
    server: IntArray, forbidden: BoolArray, stack: IntArray, depth: int, home: int, item: int
) -> bool:
    """Whether servers allow an item to be with those of the stack."""
    own = server[item]
    if own < 0:
        return home < 0 or not forbidden[item, home]
    if home >= 0:
        return bool(own == home)
    free = True
    for k in range(depth):
        free = free and not forbidden[stack[k], own]
    return free
