"""Compiled: of many states, those that no other is as good as in GPUs, power and cost."""

from __future__ import annotations

from typing import Any

import numpy as np

from optgap.models.compiled import compiled


@compiled
def pareto(used: Any, power: Any, cost: Any, starts: Any, slack: float) -> Any:
    """Indices of states, by (GPUs, power), to which no other is as good in all three.

    starts: (R + 1,) the runs in which the states come in that order already. A state also goes
    where another is at most `slack` dearer, and as good in GPUs and power.
    """
    order, other = np.arange(len(used)), np.empty(len(used), np.int64)
    ends = starts.copy()
    runs = len(ends) - 1
    while runs > 1:  # pairs of runs are merged until there is one
        kept = 0
        for r in range(0, runs, 2):
            a, middle = ends[r], ends[r + 1]
            end = ends[r + 2] if r + 1 < runs else middle
            b = middle
            for place in range(a, end):
                take = b >= end
                if not take and a < middle:
                    s, t = order[a], order[b]
                    take = used[s] < used[t] or (used[s] == used[t] and power[s] <= power[t])
                if take:
                    other[place] = order[a]
                    a += 1
                else:
                    other[place] = order[b]
                    b += 1
            ends[kept] = ends[r]
            kept += 1
        ends[kept] = ends[runs]
        runs = kept
        order, other = other, order
    # least cost so far at each power, over fewer or as many GPUs: a staircase
    stairs_w, stairs_c = np.empty(len(order) + 1), np.empty(len(order) + 1)
    height, kept = 0, 0
    for s in order:
        spot = np.searchsorted(stairs_w[:height], power[s], side="right")
        if spot > 0 and stairs_c[spot - 1] <= cost[s] + slack:
            continue
        order[kept] = s
        kept += 1
        last = spot
        while last < height and stairs_c[last] >= cost[s]:
            last += 1
        if last == spot:
            for x in range(height, spot, -1):
                stairs_w[x], stairs_c[x] = stairs_w[x - 1], stairs_c[x - 1]
            height += 1
        elif last > spot + 1:
            shift = last - spot - 1
            for x in range(spot + 1, height - shift):
                stairs_w[x], stairs_c[x] = stairs_w[x + shift], stairs_c[x + shift]
            height -= shift
        stairs_w[spot], stairs_c[spot] = power[s], cost[s]
    return order[:kept].copy()
