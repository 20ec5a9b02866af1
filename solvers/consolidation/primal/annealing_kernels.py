"""Compiled loop: a placement annealed by moves and swaps of shares of tasks."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from optgap.models.compiled import compiled, inner
from optgap.solvers.consolidation.numerics import FloatArray, IntArray
from optgap.solvers.consolidation.primal.construction_kernels import MOST_RESIDENTS, gpu_cost


class Gpus(NamedTuple):
    """What GPUs hold.

    Parameters
    ----------
    left: (G, R) room. load: (G,) weighted. held, many: (G, most) and (G,) residents. cost: (G,) W.
    awake: (N,) GPUs in use of each server.
    """

    left: IntArray
    load: FloatArray
    held: IntArray
    many: IntArray
    cost: FloatArray
    awake: IntArray


class Costs(NamedTuple):
    """What they cost.

    Parameters
    ----------
    demand: (R, L). weight: (K, L) of a task's load on a GPU of a kind. kind, server: (G,).
    server_w: (N,). clock, static, slope: (K, L).
    """

    demand: IntArray
    weight: FloatArray
    kind: IntArray
    server: IntArray
    server_w: FloatArray
    clock: FloatArray
    static: FloatArray
    slope: FloatArray


@inner
def _measure(g: int, gpus: Gpus, costs: Costs) -> float:
    """Cost a GPU anew: by how much the power changes."""
    k = costs.kind[g]
    before = gpus.cost[g]
    gpus.cost[g] = gpu_cost(
        gpus.many[g], gpus.held[g], -1, -1, costs.clock[k], costs.static[k], costs.slope[k]
    )
    return float(gpus.cost[g] - before)


@inner
def _shift(g: int, task: int, sign: int, gpus: Gpus, costs: Costs) -> float:
    """Room and load with a task more (1) or less (-1): by how much the squared load changes."""
    for r in range(len(costs.demand)):
        gpus.left[g, r] -= sign * costs.demand[r, task]
    before = gpus.load[g]
    gpus.load[g] += sign * costs.weight[costs.kind[g], task]
    return float(gpus.load[g] ** 2 - before**2)


@inner
def _insert(g: int, task: int, gpus: Gpus, costs: Costs) -> tuple[float, float]:
    """Put a share on a GPU: by how much power and squared load change."""
    i = costs.server[g]
    power = 0.0
    if gpus.many[g] == 0:
        if gpus.awake[i] == 0:
            power += costs.server_w[i]
        gpus.awake[i] += 1
    gpus.held[g, gpus.many[g]] = task
    gpus.many[g] += 1
    squared = _shift(g, task, 1, gpus, costs)
    return power + _measure(g, gpus, costs), squared


@inner
def _remove(g: int, task: int, gpus: Gpus, costs: Costs) -> tuple[float, float]:
    """Take a share off a GPU: by how much power and squared load change."""
    slot = 0
    while gpus.held[g, slot] != task:
        slot += 1
    i = costs.server[g]
    power = 0.0
    gpus.many[g] -= 1
    gpus.held[g, slot] = gpus.held[g, gpus.many[g]]
    if gpus.many[g] == 0:
        gpus.awake[i] -= 1
        if gpus.awake[i] == 0:
            power -= costs.server_w[i]
    squared = _shift(g, task, -1, gpus, costs)
    return power + _measure(g, gpus, costs), squared


@inner
def _relocate(task: int, a: int, b: int, gpus: Gpus, costs: Costs) -> tuple[float, float]:
    """A share from one GPU to another."""
    out, less = _remove(a, task, gpus, costs)
    into, more = _insert(b, task, gpus, costs)
    return out + into, less + more


@inner
def _fits(g: int, task: int, instead: int, gpus: Gpus, demand: IntArray) -> bool:
    """Whether a GPU has room for a task, in place of another if that is not -1."""
    if instead < 0 and gpus.many[g] >= MOST_RESIDENTS - 1:
        return False
    for r in range(len(demand)):
        back = demand[r, instead] if instead >= 0 else 0
        if demand[r, task] > gpus.left[g, r] + back:
            return False
    return True


@inner
def _holds(place: IntArray, start: IntArray, task: int, gpu: int) -> bool:
    """Whether a share of the task is on the GPU."""
    found = False
    for m in range(start[task], start[task + 1]):
        found = found or place[m] == gpu
    return found


@inner
def _room_for_gang(
    task: int, v: int, low: int, high: int, gpus: Gpus, demand: IntArray,
    draw: np.random.Generator, chosen: IntArray,
) -> bool:  # fmt: skip
    """Draw `v` GPUs of a range that have room for a task."""
    found = 0
    for g in range(low, high):
        if _fits(g, task, -1, gpus, demand):
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
    task: int, a: int, place: IntArray, start: IntArray, server_start: IntArray, usable: int,
    gpus: Gpus, costs: Costs, chosen: IntArray, fill: float, heat: float,
    draw: np.random.Generator,
) -> float:  # fmt: skip
    """All GPUs of a task to another server, if that is accepted: by how much the power changes."""
    i, first = int(draw.integers(0, len(costs.server_w))), start[task]
    v, high = start[task + 1] - first, min(server_start[i + 1], usable)
    if costs.server[a] == i or server_start[i] >= usable:
        return 0.0
    if not _room_for_gang(task, v, server_start[i], high, gpus, costs.demand, draw, chosen):
        return 0.0
    power, squared = 0.0, 0.0
    for m in range(v):
        change = _relocate(task, place[first + m], chosen[m], gpus, costs)
        power, squared = power + change[0], squared + change[1]
    if not _accepts(power - fill * squared, heat, draw):
        for m in range(v):
            _relocate(task, chosen[m], place[first + m], gpus, costs)
        return 0.0
    place[first : first + v] = chosen[:v]
    return power


@inner
def _move_share(
    entry: int, swap: bool, together: bool, gang: bool, place: IntArray, start: IntArray,
    owner: IntArray, server_start: IntArray, usable: int, gpus: Gpus, costs: Costs, fill: float,
    heat: float, draw: np.random.Generator,
) -> float:  # fmt: skip
    """One share to another GPU, or in exchange for one there, if that is accepted: as above."""
    ell, a = int(owner[entry]), int(place[entry])
    i = costs.server[a]
    b = int(draw.integers(0, usable))
    if together:
        b = int(draw.integers(server_start[i], server_start[i + 1]))
    other = -1
    if swap:
        if gpus.many[b] == 0:
            return 0.0
        other = int(gpus.held[b, draw.integers(0, gpus.many[b])])
        wide = start[other + 1] - start[other] > 1
        across = gang and wide and i != costs.server[b]
        if other == ell or across or not _fits(a, other, ell, gpus, costs.demand):
            return 0.0
    if a == b or not _fits(b, ell, other, gpus, costs.demand):
        return 0.0
    if _holds(place, start, ell, b) or (other >= 0 and _holds(place, start, other, a)):
        return 0.0
    power, squared = _relocate(ell, a, b, gpus, costs)
    if other >= 0:
        change = _relocate(other, b, a, gpus, costs)
        power, squared = power + change[0], squared + change[1]
    if not _accepts(power - fill * squared, heat, draw):
        _relocate(ell, b, a, gpus, costs)
        if other >= 0:
            _relocate(other, a, b, gpus, costs)
        return 0.0
    place[entry] = b
    if other >= 0:
        for m in range(start[other], start[other + 1]):
            if place[m] == b:
                place[m] = a
                break
    return power


@compiled
def anneal(
    place: IntArray,
    start: IntArray,
    width: IntArray,
    demand: IntArray,
    capacity: IntArray,
    gpu_kind: IntArray,
    gpu_server: IntArray,
    server_start: IntArray,
    server_w: FloatArray,
    clock: FloatArray,
    static: FloatArray,
    slope: FloatArray,
    scarcity: FloatArray,
    gang: bool,
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
    """Moves and swaps; `place` ends as the cheapest placement met. Returns its power, W.

    What is annealed is power minus `fill` times the sum of squared loads, which pays for filling
    GPUs that are full and emptying those that are not. Only GPUs below `usable` are moved to.
    Stops at `target`. See `Instance` for the arrays.

    Parameters
    ----------
    gang_moves: of the steps for a task whose GPUs are in one server, those that move all of it.
    swaps: of the others, those in which two shares change places.
    """
    rows, tasks, count = len(demand), len(width), len(gpu_kind)
    weight = np.zeros((len(capacity), tasks))
    for k in range(len(capacity)):
        for r in range(rows):
            weight[k] += scarcity[r] * demand[r] / max(1, capacity[k, r])
    gpus = Gpus(
        capacity[gpu_kind], np.zeros(count), np.zeros((count, MOST_RESIDENTS), dtype=np.int64),
        np.zeros(count, dtype=np.int64), np.zeros(count), np.zeros(len(server_w), dtype=np.int64),
    )  # fmt: skip
    costs = Costs(demand, weight, gpu_kind, gpu_server, server_w, clock, static, slope)
    owner = np.zeros(start[tasks], dtype=np.int64)
    now = 0.0
    for ell in range(tasks):
        for m in range(start[ell], start[ell + 1]):
            owner[m] = ell
            now += _insert(place[m], ell, gpus, costs)[0]
    best, kept = now, place.copy()
    chosen = np.zeros(count, dtype=np.int64)
    for step in range(steps):
        if best <= target + 1e-9:
            break
        heat = hot * (cold / hot) ** (step / steps)
        entry = int(draw.integers(0, len(owner)))
        ell, a = int(owner[entry]), int(place[entry])
        kind = draw.random()
        together = gang and width[ell] > 1
        if together and kind < gang_moves:
            power = _move_gang(
                ell, a, place, start, server_start, usable, gpus, costs, chosen, fill, heat, draw
            )
        else:
            power = _move_share(
                entry, kind > 1 - swaps, together, gang, place, start, owner, server_start, usable,
                gpus, costs, fill, heat, draw,
            )  # fmt: skip
        now += power
        if now < best - 1e-9:
            best = now
            kept[:] = place
    place[:] = kept
    return best
