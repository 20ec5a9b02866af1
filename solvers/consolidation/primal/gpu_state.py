"""The state of GPUs in the compiled loops of construction and annealing.

A *share* of a task is what it takes of one of its GPUs.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from optgap.models.compiled import inner
from optgap.solvers.consolidation.instance import Instance
from optgap.solvers.consolidation.numerics import FloatArray, IntArray

MOST_RESIDENTS = 160
"""Tasks on one GPU at most, in these loops: the length of an array."""


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
    """The arrays of an instance; load is weighted by scarcity."""
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
def shift(g: int, task: int, sign: int, gpus: Gpus, cluster: Cluster) -> tuple[float, float]:
    """Put a share of a task on a GPU (sign 1), or take it off (sign -1).

    Returns the changes of power, W, and of the squared load.
    """
    if sign < 0:
        slot = 0
        while gpus.held[g, slot] != task:
            slot += 1
        gpus.many[g] -= 1
        gpus.held[g, slot] = gpus.held[g, gpus.many[g]]
    power = 0.0
    if gpus.many[g] == 0:  # before it comes, or now that it has left
        i = cluster.server[g]
        gpus.awake[i] += sign
        if gpus.awake[i] == max(sign, 0):
            power = sign * cluster.server_w[i]
    if sign > 0:
        gpus.held[g, gpus.many[g]] = task
        gpus.many[g] += 1
    for r in range(len(cluster.demand)):
        gpus.left[g, r] -= sign * cluster.demand[r, task]
    load, cost = gpus.load[g], gpus.cost[g]
    gpus.load[g] += sign * cluster.weight[cluster.kind[g], task]
    gpus.cost[g] = gpu_cost(g, -1, gpus, cluster)
    return float(power + (gpus.cost[g] - cost)), float(gpus.load[g] ** 2 - load**2)


@inner
def occupied(place: IntArray, cluster: Cluster) -> Gpus:
    """The GPUs of a flat placement; entries of -1 are not placed yet."""
    count, servers = len(cluster.kind), len(cluster.server_w)
    gpus = Gpus(
        cluster.capacity[cluster.kind], np.zeros(count),
        np.zeros((count, MOST_RESIDENTS), dtype=np.int64), np.zeros(count, dtype=np.int64),
        np.zeros(count), np.zeros(servers, dtype=np.int64)
    )  # fmt: skip
    for m in range(len(place)):
        if place[m] >= 0:
            shift(place[m], cluster.owner[m], 1, gpus, cluster)
    return gpus


@inner
def relocate(
    task: int, a: int, b: int, place: IntArray, gpus: Gpus, cluster: Cluster
) -> tuple[float, float]:
    """Move a share of a task from GPU a to GPU b; the changes of power, W, and squared load."""
    out, less = shift(a, task, -1, gpus, cluster)
    into, more = shift(b, task, 1, gpus, cluster)
    m = cluster.start[task]
    while place[m] != a:
        m += 1
    place[m] = b
    return out + into, less + more


@inner
def holds(place: IntArray, task: int, gpu: int, cluster: Cluster) -> bool:
    """Whether a share of the task is on the GPU."""
    found = False
    for m in range(cluster.start[task], cluster.start[task + 1]):
        found = found or place[m] == gpu
    return found


@inner
def fits(g: int, task: int, instead: int, gpus: Gpus, demand: IntArray) -> bool:
    """Whether a GPU has room for a task, in place of another if that is not -1."""
    if instead < 0 and gpus.many[g] >= MOST_RESIDENTS - 1:
        return False
    for r in range(len(demand)):
        back = demand[r, instead] if instead >= 0 else 0
        if demand[r, task] > gpus.left[g, r] + back:
            return False
    return True
