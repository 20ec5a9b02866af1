"""Compiled loop of annealing. A *share* of a task is what it takes of one of its GPUs."""

from __future__ import annotations

import numpy as np

from optgap.models.compiled import compiled, inner
from optgap.solvers.consolidation.numerics import IntArray
from optgap.solvers.consolidation.primal.gpu_state import (
    Cluster,
    Gpus,
    asleep,
    fits,
    insert,
    relocate,
)


@inner
def _holds(place: IntArray, task: int, gpu: int, cluster: Cluster) -> bool:
    """Whether a share of the task is on the GPU."""
    found = False
    for m in range(cluster.start[task], cluster.start[task + 1]):
        found = found or place[m] == gpu
    return found


@inner
def _room_for_gang(
    task: int, v: int, low: int, high: int, gpus: Gpus, demand: IntArray,
    draw: np.random.Generator, chosen: IntArray,
) -> bool:  # fmt: skip
    """Draw `v` GPUs with room for a task from a range, into `chosen`; whether there are as many."""
    found = 0
    for g in range(low, high):
        if fits(g, task, -1, gpus, demand):
            chosen[found] = g
            found += 1
    if found < v:
        return False
    for m in range(v):
        pick = m + draw.integers(0, found - m)
        chosen[m], chosen[pick] = chosen[pick], chosen[m]
    return True


@inner
def _accepts(change: float, heat: float, draw: np.random.Generator) -> bool:
    return change <= 0 or draw.random() < np.exp(-change / heat)


@inner
def _move_gang(
    task: int, place: IntArray, usable: int, gpus: Gpus, cluster: Cluster, chosen: IntArray,
    fill: float, heat: float, draw: np.random.Generator,
) -> float:  # fmt: skip
    """Move all shares of a task to another server if accepted; by how much the power changes."""
    i, first = int(draw.integers(0, len(cluster.server_w))), cluster.start[task]
    v, low = cluster.start[task + 1] - first, cluster.server_start[i]
    if cluster.server[place[first]] == i or low >= usable:
        return 0.0
    high = min(cluster.server_start[i + 1], usable)
    if not _room_for_gang(task, v, low, high, gpus, cluster.demand, draw, chosen):
        return 0.0
    power, squared = 0.0, 0.0
    for m in range(v):
        change = relocate(task, place[first + m], chosen[m], gpus, cluster)
        power, squared = power + change[0], squared + change[1]
    if not _accepts(power - fill * squared, heat, draw):
        for m in range(v):
            relocate(task, chosen[m], place[first + m], gpus, cluster)
        return 0.0
    place[first : first + v] = chosen[:v]
    return power


@inner
def _partner(
    ell: int, a: int, b: int, place: IntArray, gpus: Gpus, cluster: Cluster,
    draw: np.random.Generator,
) -> int:  # fmt: skip
    """Draw a task on GPU b that may be swapped with `ell` on GPU a; -1 where it may not."""
    if gpus.many[b] == 0:
        return -1
    other = int(gpus.held[b, draw.integers(0, gpus.many[b])])
    wide = cluster.start[other + 1] - cluster.start[other] > 1
    across = cluster.gang and wide and cluster.server[a] != cluster.server[b]
    if other == ell or across or not fits(a, other, ell, gpus, cluster.demand):
        return -1
    return -1 if _holds(place, other, a, cluster) else other


@inner
def _move_share(
    entry: int, b: int, swap: bool, place: IntArray, gpus: Gpus, cluster: Cluster, fill: float,
    heat: float, draw: np.random.Generator,
) -> float:  # fmt: skip
    """Move a share to GPU b, or swap it with one there, if accepted; the change of power."""
    ell, a = int(cluster.owner[entry]), int(place[entry])
    other = -1
    if swap:
        other = _partner(ell, a, b, place, gpus, cluster, draw)
        if other < 0:
            return 0.0
    taken = a == b or _holds(place, ell, b, cluster)
    if taken or not fits(b, ell, other, gpus, cluster.demand):
        return 0.0
    power, squared = relocate(ell, a, b, gpus, cluster)
    if other >= 0:
        change = relocate(other, b, a, gpus, cluster)
        power, squared = power + change[0], squared + change[1]
    if not _accepts(power - fill * squared, heat, draw):
        relocate(ell, b, a, gpus, cluster)
        if other >= 0:
            relocate(other, a, b, gpus, cluster)
        return 0.0
    place[entry] = b
    if other >= 0:
        for m in range(cluster.start[other], cluster.start[other + 1]):
            if place[m] == b:
                place[m] = a
                break
    return power


@compiled
def anneal(
    place: IntArray,
    cluster: Cluster,
    usable: int,
    steps: int,
    hot: float,
    cold: float,
    fill: float,
    gang_moves: float,
    swaps: float,
    target: float,
    draw: np.random.Generator,
) -> float:
    """Anneal `place`, which ends as the placement of least power met; that power, W.

    The energy of a state is its power minus `fill` times the sum of squared loads, which rewards
    full and empty GPUs. Stops at `target` W.

    Parameters
    ----------
    place: the GPU of each share; changed. usable: only GPUs below this number are moved to.
    hot, cold: first and last temperature, W. fill: W for the squared load of a full GPU.
    gang_moves, swaps: see `AnnealingParams`.
    """
    gpus, owner, start = asleep(cluster), cluster.owner, cluster.start
    now = 0.0
    for m in range(len(place)):
        now += insert(place[m], owner[m], gpus, cluster)[0]
    best, kept = now, place.copy()
    chosen = np.zeros(len(cluster.kind), dtype=np.int64)
    for step in range(steps):
        if best <= target + 1e-9:
            break
        heat = hot * (cold / hot) ** (step / steps)
        entry = int(draw.integers(0, len(owner)))
        ell, kind = int(owner[entry]), draw.random()
        together = cluster.gang and start[ell + 1] - start[ell] > 1
        if together and kind < gang_moves:
            now += _move_gang(ell, place, usable, gpus, cluster, chosen, fill, heat, draw)
        else:
            b = int(draw.integers(0, usable))
            if together:
                i = cluster.server[place[entry]]
                b = int(draw.integers(cluster.server_start[i], cluster.server_start[i + 1]))
            now += _move_share(entry, b, kind > 1 - swaps, place, gpus, cluster, fill, heat, draw)
        if now < best - 1e-9:
            best = now
            kept[:] = place
    place[:] = kept
    return best
