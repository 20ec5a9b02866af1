"""Construction: tasks placed greedily in orders by power and size, later ones randomised."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from optgap.models.compiled import compiled, inner
from optgap.models.limits import Limits
from optgap.models.work import CONSOLIDATION
from optgap.solvers.consolidation.instance import Instance
from optgap.solvers.consolidation.numerics import FloatArray, IntArray
from optgap.solvers.consolidation.outcome import Incumbent
from optgap.solvers.consolidation.primal.gpu_state import (
    MOST_RESIDENTS,
    Cluster,
    cluster_of,
    fits,
    gpu_cost,
    occupied,
    shift,
)


def construct(
    incumbent: Incumbent, limits: Limits, rng: np.random.Generator, tries: int = 8
) -> None:
    """Offer greedy placements to the incumbent; the first is made whatever the limits.

    Parameters
    ----------
    tries: orders that are tried; from the fourth on sizes are multiplied by factors from 0.7 to 1.
    """
    instance = incumbent.instance
    cluster = cluster_of(instance)
    scale = np.maximum(instance.max_capacity[:, None], 1)
    sizes = (instance.demand / scale * instance.scarcity[:, None]).sum(axis=0)
    tallest, watts = instance.largest_share, instance.least_watts
    for k in range(tries):
        if incumbent.placement is not None and limits.stop is not None:
            return
        noise = 1.0 if k < 3 else rng.uniform(0.7, 1.0, instance.tasks)
        keys = [(-sizes * noise, -watts), (-tallest * noise, -watts), (-watts, -sizes * noise)]
        wide = -instance.width if k % 2 == 0 else np.zeros(instance.tasks)
        entries = np.full(int(instance.entry_start[-1]), -1, dtype=np.int64)
        order = np.lexsort((*keys[k % 3], wide))
        limits.spend(CONSOLIDATION.placed * len(entries) * instance.gpus)
        if _construct(order, cluster, instance.identical_servers, entries):
            incumbent.offer_flat(entries)


def complete(instance: Instance, stay: Sequence[tuple[int, ...] | None]) -> IntArray | None:
    """Residents where they are, newcomers where they add least; None where that is infeasible.

    Parameters
    ----------
    stay: the GPUs of each task, or None for a newcomer.
    """
    pairs = zip(stay, instance.width.tolist(), strict=True)
    entries = np.array([g for gpus, v in pairs for g in gpus or [-1] * v], dtype=np.int64)
    if np.bincount(entries[entries >= 0], minlength=1).max() >= MOST_RESIDENTS - 1:
        return None
    newcomers = np.array([ell for ell, gpus in enumerate(stay) if gpus is None], dtype=np.int64)
    placed = _construct(newcomers, cluster_of(instance), instance.identical_servers, entries)
    return entries if placed else None


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
def _construct(order: IntArray, cluster: Cluster, alike: bool, place: IntArray) -> bool:
    """Place tasks in order, each where it adds the least power, on the fullest of equal GPUs.

    Parameters
    ----------
    order: of the tasks to place. alike: all servers are identical, so that one sleeping server
        stands for all.
    place: the GPU of each entry; -1 for those of the tasks to place, which it receives.

    Returns
    -------
    Whether all tasks were placed; False as well where those in place already do not fit.
    """
    gpus, start, server_start = occupied(place, cluster), cluster.start, cluster.server_start
    count, servers = len(cluster.kind), len(cluster.server_w)
    added, touched = np.zeros(count), 0
    for g in place:
        touched = max(touched, cluster.server[g] + 1 if g >= 0 else 0)
    if gpus.left.min() < 0:
        return False
    group, chosen = np.zeros(count, dtype=np.int64), np.zeros(count, dtype=np.int64)
    for ell in order:
        v = start[ell + 1] - start[ell]
        together = cluster.gang or v == 1
        near = min(servers, touched + (1 if together else v)) if alike else servers
        for g in range(server_start[near]):
            added[g] = np.inf
            if fits(g, ell, -1, gpus, cluster.demand):
                added[g] = gpu_cost(g, ell, gpus, cluster) - gpus.cost[g]
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
            shift(g, ell, 1, gpus, cluster)
            place[start[ell] + m] = g
            touched = max(touched, cluster.server[g] + 1)
    return True
