"""Compiled search for the set that fits one GPU and is worth most."""

from __future__ import annotations

import numpy as np

from optgap.models.compiled import compiled
from optgap.solvers.consolidation.numerics import FloatArray, IntArray


@compiled
def heaviest(
    worth: FloatArray, demand: IntArray, limit: IntArray, nodes: int, chosen: IntArray
) -> float:
    """What no set that fits is worth more than; the best set found goes into `chosen`.

    Depth first, by worth per size; what is left is bounded by each row's fractional knapsack, the
    one that binds most first. Exact unless more than `nodes` are visited.

    Parameters
    ----------
    worth: (n,) above 0. demand, limit: (R, n) and (R,). chosen: (n,) ones for what is in the set.
    """
    n, rows = len(worth), len(limit)
    size = np.zeros(n)
    for r in range(rows):
        if limit[r] > 0:
            size += demand[r] / limit[r]
    order = np.argsort(-worth / np.maximum(size, 1e-12))
    ratio = np.empty((rows, n), dtype=np.int64)
    for r in range(rows):
        ratio[r] = np.argsort(-worth / np.maximum(demand[r], 1e-3))
    rank = np.empty(n, dtype=np.int64)
    for k in range(n):
        rank[order[k]] = k
    left = limit.copy()
    taken = np.zeros(n, dtype=np.int64)
    value, best, open_worth = 0.0, 0.0, 0.0
    chosen[:] = 0
    depth, visited = 0, 0
    while True:
        visited += 1
        # how much more can come from order[depth:]
        most = np.inf
        for r in range(rows):
            room, more = float(left[r]), 0.0
            for k in ratio[r]:
                if rank[k] >= depth:
                    if demand[r, k] <= room:
                        room -= demand[r, k]
                        more += worth[k]
                    else:
                        more += worth[k] * room / demand[r, k]
                        break
            most = min(most, more)
            if value + most <= best + 1e-12:
                break
        promising = depth < n and value + most > best + 1e-12
        if promising and visited > nodes:
            open_worth = max(open_worth, value + most)
            promising = False
        if promising:
            k = order[depth]
            room_for = True
            for r in range(rows):
                room_for = room_for and demand[r, k] <= left[r]
            if room_for:
                for r in range(rows):
                    left[r] -= demand[r, k]
                value += worth[k]
                taken[depth] = 1
                if value > best:
                    best = value
                    chosen[:] = 0
                    for j in range(depth + 1):
                        chosen[order[j]] = taken[j]
            else:
                taken[depth] = 0
            depth += 1
            continue
        while depth > 0:
            depth -= 1
            if taken[depth]:
                break
        if depth == 0 and not taken[0]:
            return max(best, open_worth)
        k = order[depth]
        for r in range(rows):
            left[r] += demand[r, k]
        value -= worth[k]
        taken[depth] = 0
        depth += 1
