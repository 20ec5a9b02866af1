"""Simulated annealing of the power of a placement, on any instance."""

from __future__ import annotations

import numpy as np

from optgap.models.compiled import compiled, inner
from optgap.models.limits import Limits
from optgap.models.work import CONSOLIDATION
from optgap.solvers.consolidation.config import DEFAULT
from optgap.solvers.consolidation.numerics import IntArray
from optgap.solvers.consolidation.outcome import Incumbent
from optgap.solvers.consolidation.primal.gpu_state import (
    MOST_RESIDENTS,
    Cluster,
    Gpus,
    cluster_of,
    fits,
    holds,
    occupied,
    relocate,
)

GANG_MOVES = 0.35
"""Share of the moves of a task in one server that take all of it to another server."""
SWAPS = 0.45
"""Share of the other moves that exchange two tasks' GPUs instead of moving one."""
SLICE = 200_000
"""Moves between two looks at the limits."""


def anneal(
    incumbent: Incumbent,
    limits: Limits,
    target: float,
    rng: np.random.Generator,
    rounds: int = DEFAULT.annealing.rounds,
) -> None:
    """Anneal the incumbent in longer and longer runs, to `target` W or until the limits end."""
    instance, params = incumbent.instance, DEFAULT.annealing
    if incumbent.placement is None or instance.tasks < 2:
        return
    if int(np.bincount(incumbent.flat).max()) >= MOST_RESIDENTS - 1:
        return
    watts, cluster = float(instance.watts.max()), cluster_of(instance)
    length = params.steps * int(instance.entry_start[-1])
    for _ in range(rounds):
        if limits.stop is not None or incumbent.watts <= target + 1e-9:
            return
        steps, entries = min(length, params.max_steps), incumbent.flat
        hot = watts * float(np.exp(rng.uniform(*np.log(params.hot))))
        fill = watts * float(np.exp(rng.uniform(*np.log(params.fill))))
        usable, best = _usable(incumbent, entries), entries.copy()
        least = np.inf
        for first in range(0, steps, SLICE):
            if first and (limits.stop is not None or least <= target + 1e-9):
                break
            last = min(steps, first + SLICE)
            least = _anneal(
                entries, best, least, cluster, usable, first, last, steps, hot,
                watts * params.cold, fill, target, rng
            )  # fmt: skip
            limits.spend(CONSOLIDATION.move * (last - first) * (2 + len(instance.demand)))
        incumbent.offer_flat(best)
        length = int(params.growth * length)


def _usable(incumbent: Incumbent, entries: IntArray) -> int:
    """GPUs that tasks may move to: those up to the last server in use, or all where they differ."""
    instance = incumbent.instance
    if not instance.identical_servers:
        return instance.gpus
    last = int(instance.gpu_server[int(entries.max())])
    return int(instance.server_start[last + 1])


@inner
def _move_gang(
    task: int, place: IntArray, usable: int, gpus: Gpus, cluster: Cluster, chosen: IntArray,
    fill: float, heat: float, draw: np.random.Generator
) -> float:  # fmt: skip
    """Move all shares of a task to another server if accepted; by how much the power changes."""
    i, first = int(draw.integers(0, len(cluster.server_w))), cluster.start[task]
    v, low = cluster.start[task + 1] - first, cluster.server_start[i]
    if cluster.server[place[first]] == i or low >= usable:
        return 0.0
    high = min(cluster.server_start[i + 1], usable)
    found = 0
    for g in range(low, high):
        if fits(g, task, -1, gpus, cluster.demand):
            chosen[found] = g
            found += 1
    if found < v:
        return 0.0
    for m in range(v):
        pick = m + draw.integers(0, found - m)
        chosen[m], chosen[pick] = chosen[pick], chosen[m]
    power, squared = 0.0, 0.0
    for m in range(v):
        here = place[first + m]
        change = relocate(task, here, chosen[m], place, gpus, cluster)
        power, squared = power + change[0], squared + change[1]
        chosen[v + m] = here
    worse = power - fill * squared
    if worse <= 0 or draw.random() < np.exp(-worse / heat):
        return power
    for m in range(v):
        relocate(task, chosen[m], chosen[v + m], place, gpus, cluster)
    return 0.0


@inner
def _move_share(
    entry: int, b: int, swap: bool, place: IntArray, gpus: Gpus, cluster: Cluster, fill: float,
    heat: float, draw: np.random.Generator
) -> float:  # fmt: skip
    """Move a share to GPU b, or swap it with one there, if accepted; the change of power."""
    ell, a = int(cluster.owner[entry]), int(place[entry])
    other = -1
    if swap:
        if gpus.many[b] == 0:
            return 0.0
        other = int(gpus.held[b, draw.integers(0, gpus.many[b])])
        wide = cluster.start[other + 1] - cluster.start[other] > 1
        across = cluster.gang and wide and cluster.server[a] != cluster.server[b]
        if other == ell or across or not fits(a, other, ell, gpus, cluster.demand):
            return 0.0
        if holds(place, other, a, cluster):
            return 0.0
    taken = a == b or holds(place, ell, b, cluster)
    if taken or not fits(b, ell, other, gpus, cluster.demand):
        return 0.0
    power, squared = relocate(ell, a, b, place, gpus, cluster)
    if other >= 0:
        change = relocate(other, b, a, place, gpus, cluster)
        power, squared = power + change[0], squared + change[1]
    worse = power - fill * squared
    if worse <= 0 or draw.random() < np.exp(-worse / heat):
        return power
    relocate(ell, b, a, place, gpus, cluster)
    if other >= 0:
        relocate(other, a, b, place, gpus, cluster)
    return 0.0


@compiled
def _anneal(
    place: IntArray,
    best: IntArray,
    least: float,
    cluster: Cluster,
    usable: int,
    first: int,
    last: int,
    steps: int,
    hot: float,
    cold: float,
    fill: float,
    target: float,
    draw: np.random.Generator,
) -> float:
    """Anneal `place` for moves `first` to `last` of `steps`; the least power met so far, W.

    The energy of a state is its power minus `fill` times the sum of squared loads, which rewards
    full and empty GPUs. Stops at `target` W.

    Parameters
    ----------
    place: the GPU of each share; changed. best, least: the placement of least power met, changed,
        and that power, W. usable: only GPUs below this number are moved to.
    hot, cold: first and last temperature, W. fill: W for the squared load of a full GPU.
    """
    gpus, owner, start = occupied(place, cluster), cluster.owner, cluster.start
    now = gpus.cost.sum() + cluster.server_w[gpus.awake > 0].sum()
    least = min(least, now)
    chosen = np.zeros(2 * len(cluster.kind), dtype=np.int64)
    for step in range(first, last):
        if least <= target + 1e-9:
            break
        heat = hot * (cold / hot) ** (step / steps)
        entry = int(draw.integers(0, len(owner)))
        ell, kind = int(owner[entry]), draw.random()
        together = cluster.gang and start[ell + 1] - start[ell] > 1
        if together and kind < GANG_MOVES:
            now += _move_gang(ell, place, usable, gpus, cluster, chosen, fill, heat, draw)
        else:
            b = int(draw.integers(0, usable))
            if together:
                i = cluster.server[place[entry]]
                b = int(draw.integers(cluster.server_start[i], cluster.server_start[i + 1]))
            now += _move_share(entry, b, kind > 1 - SWAPS, place, gpus, cluster, fill, heat, draw)
        if now < least - 1e-9:
            least = now
            best[:] = place
    return float(least)
