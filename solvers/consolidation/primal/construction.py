"""Construction: tasks placed greedily in orders by power and size, later ones randomised.

A *share* of a task is what it takes of one of its GPUs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from optgap.models.compiled import compiled, inner
from optgap.models.limits import Limits
from optgap.models.work import CONSOLIDATION
from optgap.solvers.consolidation.instance import Instance
from optgap.solvers.consolidation.numerics import FloatArray, IntArray
from optgap.solvers.consolidation.outcome import Incumbent

MOST_RESIDENTS = 160
"""Tasks on one GPU at most, in this loop: the length of an array."""


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
    sizes, tallest, watts = sizes_of(instance), instance.largest_share, instance.least_watts
    for k in range(tries):
        if incumbent.placement is not None and limits.stop is not None:
            return
        noise = 1.0 if k < 3 else rng.uniform(0.7, 1.0, instance.tasks)
        keys = [(-sizes * noise, -watts), (-tallest * noise, -watts), (-watts, -sizes * noise)]
        wide = -instance.width if k % 2 == 0 else np.zeros(instance.tasks)
        entries = np.full(int(instance.entry_start[-1]), -1, dtype=np.int64)
        order = np.lexsort((*keys[k % 3], wide))
        limits.spend(CONSOLIDATION.placed * len(entries) * instance.gpus)
        if place_in_order(order, cluster, instance.identical_servers, entries):
            incumbent.offer_flat(entries)


def sizes_of(instance: Instance) -> FloatArray:
    """Return (L,) demand of each task, as shares of capacities weighted by their scarcity."""
    scale = np.maximum(instance.max_capacity[:, None], 1)
    return np.asarray((instance.demand / scale * instance.scarcity[:, None]).sum(axis=0))


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
    placed = place_in_order(newcomers, cluster_of(instance), instance.identical_servers, entries)
    return entries if placed else None


class Gpus(NamedTuple):
    """The state of the GPUs.

    Parameters
    ----------
    left: (G, R) capacity left. load: (G,) weighted demand, 1 where all capacities are used up.
    held, many: (G, most) and (G,) residents, and how many. cost: (G,) power, W.
    awake: (N,) GPUs in use of each server.
    """

    left: IntArray
    load: FloatArray
    held: IntArray
    many: IntArray
    cost: FloatArray
    awake: IntArray


class Cluster(NamedTuple):
    """The instance as compiled loops need it; nothing in it changes.

    Parameters
    ----------
    start, owner: (L+1,) the first entry of each task in a flat placement; the task of each entry.
    demand: (R, L) of each task. capacity: (K, R) of a GPU of each kind.
    weight: (K, L) the load that a task adds to a GPU of each kind.
    kind, server: (G,). server_start: (N+1,) the first GPU of each server. server_w: (N,).
    clock, static, slope: (K, L). gang: a task's GPUs are in one server.
    """

    start: IntArray
    owner: IntArray
    demand: IntArray
    weight: FloatArray
    capacity: IntArray
    kind: IntArray
    server: IntArray
    server_start: IntArray
    server_w: FloatArray
    clock: FloatArray
    static: FloatArray
    slope: FloatArray
    gang: bool


def cluster_of(instance: Instance) -> Cluster:
    """Return the arrays of an instance; load is weighted by scarcity."""
    share = instance.scarcity / np.maximum(instance.capacity, 1)
    return Cluster(
        instance.entry_start, instance.entry_task, instance.demand, share @ instance.demand,
        instance.capacity, instance.gpu_kind, instance.gpu_server, instance.server_start,
        instance.server_w, instance.clock_mhz, instance.static_w, instance.slope, instance.gang
    )  # fmt: skip


@inner
def gpu_cost(g: int, extra: int, gpus: Gpus, cluster: Cluster) -> float:
    """Power of a GPU with task `extra` as well, -1 for none, W."""
    k, held = cluster.kind[g], gpus.held[g, : gpus.many[g]]
    clock, static, slope = cluster.clock[k], cluster.static[k], cluster.slope[k]
    top = clock[extra] if extra >= 0 else 0.0
    for ell in held:
        top = max(top, clock[ell])
    cost = static[extra] + slope[extra] * top if extra >= 0 else 0.0
    for ell in held:
        cost = max(cost, static[ell] + slope[ell] * top)
    return float(cost)


@inner
def put(g: int, task: int, gpus: Gpus, cluster: Cluster) -> None:
    """Put a share of a task on a GPU."""
    gpus.awake[cluster.server[g]] += gpus.many[g] == 0
    gpus.held[g, gpus.many[g]] = task
    gpus.many[g] += 1
    for r in range(len(cluster.demand)):
        gpus.left[g, r] -= cluster.demand[r, task]
    gpus.load[g] += cluster.weight[cluster.kind[g], task]
    gpus.cost[g] = gpu_cost(g, -1, gpus, cluster)


@inner
def occupied(place: IntArray, cluster: Cluster) -> Gpus:
    """Return the GPUs of a flat placement; entries of -1 are not placed yet."""
    count, servers = len(cluster.kind), len(cluster.server_w)
    gpus = Gpus(
        cluster.capacity[cluster.kind], np.zeros(count),
        np.zeros((count, MOST_RESIDENTS), dtype=np.int64), np.zeros(count, dtype=np.int64),
        np.zeros(count), np.zeros(servers, dtype=np.int64)
    )  # fmt: skip
    for m in range(len(place)):
        if place[m] >= 0:
            put(place[m], cluster.owner[m], gpus, cluster)
    return gpus


@inner
def fits(g: int, task: int, gpus: Gpus, demand: IntArray) -> bool:
    """Tell whether a GPU has room for a task."""
    room = gpus.many[g] < MOST_RESIDENTS - 1
    for r in range(len(demand)):
        room = room and demand[r, task] <= gpus.left[g, r]
    return bool(room)


@inner
def _cheapest_group(
    low: int, high: int, v: int, added: FloatArray, load: FloatArray, group: IntArray
) -> tuple[float, float]:
    """Return the `v` GPUs of a range that add least, the fullest of equal ones: power and load."""
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
def place_in_order(order: IntArray, cluster: Cluster, alike: bool, place: IntArray) -> bool:
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
            if fits(g, ell, gpus, cluster.demand):
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
            put(g, ell, gpus, cluster)
            place[start[ell] + m] = g
            touched = max(touched, cluster.server[g] + 1)
    return True
