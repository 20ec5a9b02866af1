"""Compiled loop of construction: each task goes where it adds the least power."""

from __future__ import annotations

import numpy as np

from optgap.models.compiled import compiled, inner
from optgap.solvers.consolidation.numerics import FloatArray, IntArray
from optgap.solvers.consolidation.primal.gpu_state import (
    Cluster,
    Gpus,
    asleep,
    fits,
    gpu_cost,
    insert,
)


@inner
def _added_power(task: int, last: int, gpus: Gpus, cluster: Cluster, added: FloatArray) -> None:
    """Power a task adds on each of the first `last` GPUs, W; infinite where it does not fit."""
    for g in range(last):
        added[g] = np.inf
        if fits(g, task, -1, gpus, cluster.demand):
            k = cluster.kind[g]
            watts = gpu_cost(
                gpus.many[g], gpus.held[g], -1, task, cluster.clock[k], cluster.static[k],
                cluster.slope[k],
            )  # fmt: skip
            added[g] = watts - gpus.cost[g]


@inner
def _cheapest_group(
    low: int, high: int, v: int, added: FloatArray, load: FloatArray, group: IntArray
) -> tuple[float, float]:
    """The `v` GPUs of a range that add least, the fullest of equal ones: power and load."""
    power, filled = 0.0, 0.0
    for found in range(v):
        pick = -1
        for g in range(low, high):
            taken = np.isinf(added[g])
            for m in range(found):
                taken = taken or group[m] == g
            if not taken and (pick < 0 or (added[g], -load[g]) < (added[pick], -load[pick])):
                pick = g
        if pick < 0:
            return np.inf, 0.0
        group[found] = pick
        power, filled = power + added[pick], filled + load[pick]
    return power, filled


@compiled
def construct(order: IntArray, cluster: Cluster, alike: bool, place: IntArray) -> bool:
    """Place tasks in order, each where it adds the least power, on the fullest of equal GPUs.

    Parameters
    ----------
    order: of tasks. alike: all servers are identical, so that one sleeping server stands for all.
    place: receives the GPU of each entry.

    Returns
    -------
    Whether all tasks were placed.
    """
    gpus, start, server_start = asleep(cluster), cluster.start, cluster.server_start
    count, servers = len(cluster.kind), len(cluster.server_w)
    added, touched = np.zeros(count), 0
    group, chosen = np.zeros(count, dtype=np.int64), np.zeros(count, dtype=np.int64)
    for ell in order:
        v = start[ell + 1] - start[ell]
        together = cluster.gang or v == 1
        near = min(servers, touched + (1 if together else v)) if alike else servers
        _added_power(ell, server_start[near], gpus, cluster, added)
        best, fullest = np.inf, 0.0
        for i in range(near if together else 1):
            low, high = server_start[i], server_start[i + 1] if together else server_start[near]
            power, filled = _cheapest_group(low, high, v, added, gpus.load, group)
            if together and gpus.awake[i] == 0:
                power += cluster.server_w[i]
            if power < best - 1e-9 or (power <= best + 1e-9 and filled > fullest):
                best, fullest = power, filled
                chosen[:v] = group[:v]
        if np.isinf(best):
            return False
        for m in range(v):
            g = chosen[m]
            insert(g, ell, gpus, cluster)
            place[start[ell] + m] = g
            touched = max(touched, cluster.server[g] + 1)
    return True
