"""Compiled loops: tasks onto GPUs whose levels are given, until none holds more than it may."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from optgap.models.compiled import compiled, inner
from optgap.solvers.consolidation.numerics import FloatArray, IntArray

FITS = 1e-12
"""Overload below any quantum of memory or utilisation, as a share of a limit."""


class Tasks(NamedTuple):
    """What is placed on what.

    Parameters
    ----------
    start: (L+1,) the first entry of each task in a flat placement. owner: the task of each entry.
    demand, limit: (R, L) and (R,). level: (L,) of each task's cost.
    server_gpus: of a server. gang: a task's GPUs are in one server.
    """

    start: IntArray
    owner: IntArray
    demand: IntArray
    limit: IntArray
    level: IntArray
    server_gpus: int
    gang: bool


@inner
def overload(load: IntArray, limit: IntArray) -> float:
    """What a GPU holds beyond its limits, in shares of them."""
    total = 0.0
    for r in range(len(limit)):
        if load[r] > limit[r]:
            total += (load[r] - limit[r]) / max(1, limit[r])
    return total


@inner
def _added(load: IntArray, task: int, tasks: Tasks) -> tuple[float, float]:
    """What a task adds to a GPU's overload, and the mean share that is filled without it."""
    more, filled = 0.0, 0.0
    for r in range(len(tasks.limit)):
        limit = tasks.limit[r]
        held = load[r] + tasks.demand[r, task]
        if held > limit:
            more += (held - max(load[r], limit)) / max(1, limit)
        filled += load[r] / max(1, limit) / len(tasks.limit)
    return more, filled


@inner
def shift(load: IntArray, demand: IntArray, task: int, sign: int) -> None:
    """Add a task to a GPU's load (1), or take it away (-1)."""
    for r in range(len(load)):
        load[r] += sign * demand[r, task]


@inner
def loads(gpus: int, owner: IntArray, demand: IntArray, place: IntArray) -> IntArray:
    """(G, R) what each GPU holds."""
    load = np.zeros((gpus, len(demand)), dtype=np.int64)
    for m in range(len(owner)):
        shift(load[place[m]], demand, owner[m], 1)
    return load


@inner
def holds(place: IntArray, start: IntArray, task: int, gpu: int) -> bool:
    """Whether a share of the task is on the GPU."""
    found = False
    for m in range(start[task], start[task + 1]):
        found = found or place[m] == gpu
    return found


@inner
def _tightest(
    task: int, low: int, high: int, cap: IntArray, load: IntArray, tasks: Tasks, group: IntArray
) -> float:
    """The GPUs of a range where a task adds least overload, then the fullest: how bad they are."""
    total, v = 0.0, tasks.start[task + 1] - tasks.start[task]
    for found in range(v):
        pick, least = -1, 1e300
        for g in range(low, high):
            taken = cap[g] < tasks.level[task]
            for k in range(found):
                taken = taken or group[k] == g
            if taken:
                continue
            more, filled = _added(load[g], task, tasks)
            worse = more * 1e3 + (cap[g] - tasks.level[task]) * 2.0 - filled
            if worse < least:
                pick, least = g, worse
        if pick < 0:
            return 1e300
        group[found] = pick
        total += least
    return total


@compiled
def fill_levels(
    order: IntArray,
    start: IntArray,
    owner: IntArray,
    demand: IntArray,
    limit: IntArray,
    level: IntArray,
    cap: IntArray,
    server_gpus: int,
    gang: bool,
    place: IntArray,
) -> bool:
    """Each task where it overloads least, tightest first; False where levels leave it no place.

    Parameters
    ----------
    order: of tasks.
    cap: (G,) the highest level a GPU may take, -1 for one that sleeps.
    place: receives the GPU of each entry. See `Tasks` for the others.
    """
    tasks = Tasks(start, owner, demand, limit, level, server_gpus, gang)
    gpus = len(cap)
    load = np.zeros((gpus, len(limit)), dtype=np.int64)
    group, chosen = np.zeros(gpus, dtype=np.int64), np.zeros(gpus, dtype=np.int64)
    for ell in order:
        v = start[ell + 1] - start[ell]
        size = server_gpus if gang and v > 1 else gpus
        best = 1e299
        for low in range(0, gpus, size):
            worse = _tightest(ell, low, min(gpus, low + size), cap, load, tasks, group)
            if worse < best:
                best = worse
                chosen[:v] = group[:v]
        if best >= 1e299:
            return False
        for m in range(v):
            place[start[ell] + m] = chosen[m]
            shift(load[chosen[m]], demand, ell, 1)
    return True


@inner
def _transfer(task: int, a: int, b: int, load: IntArray, over: FloatArray, tasks: Tasks) -> float:
    """A share from one GPU to another: by how much the overload changes."""
    before = over[a] + over[b]
    shift(load[a], tasks.demand, task, -1)
    shift(load[b], tasks.demand, task, 1)
    over[a], over[b] = overload(load[a], tasks.limit), overload(load[b], tasks.limit)
    return float(over[a] + over[b] - before)


@inner
def _elsewhere(
    task: int, tasks: Tasks, cap: IntArray, place: IntArray, swap: bool,
    draw: np.random.Generator, group: IntArray,
) -> int:  # fmt: skip
    """GPUs of another server for a task of several, drawn: any of -1, or those of a task that
    changes places with it; -2 where there are none."""
    lo, v = tasks.start[task], tasks.start[task + 1] - tasks.start[task]
    home, found, other = place[lo] // tasks.server_gpus, 0, -1
    if swap:
        other = tasks.owner[draw.integers(0, len(tasks.owner))]
        first = tasks.start[other]
        if tasks.start[other + 1] - first != v or place[first] // tasks.server_gpus == home:
            return -2
        for m in range(v):
            if cap[place[lo + m]] < tasks.level[other] or cap[place[first + m]] < tasks.level[task]:
                return -2
            group[m] = place[first + m]
        found = v
    else:
        i = draw.integers(0, len(cap) // tasks.server_gpus)
        for g in range(i * tasks.server_gpus, (i + 1) * tasks.server_gpus):
            if i != home and cap[g] >= tasks.level[task]:
                group[found] = g
                found += 1
        if found < v:
            return -2
    for m in range(v):
        pick = m + draw.integers(0, found - m)
        group[m], group[pick] = group[pick], group[m]
    return int(other)


@inner
def _move_gang(
    task: int, other: int, sign: int, group: IntArray, place: IntArray, load: IntArray,
    over: FloatArray, tasks: Tasks,
) -> float:  # fmt: skip
    """A task of several GPUs onto a group (1), another back in its place if not -1; or undone (-1).

    By how much the overload changes.
    """
    change, lo = 0.0, tasks.start[task]
    for m in range(tasks.start[task + 1] - lo):
        a, b = (place[lo + m], group[m]) if sign > 0 else (group[m], place[lo + m])
        change += _transfer(task, a, b, load, over, tasks)
        if other >= 0:
            change += _transfer(other, b, a, load, over, tasks)
    return change


@inner
def _may_swap(
    task: int, other: int, a: int, b: int, cap: IntArray, place: IntArray, tasks: Tasks
) -> bool:
    """Whether `other`, on GPU b, may come to GPU a."""
    across = a // tasks.server_gpus != b // tasks.server_gpus
    wide = tasks.start[other + 1] - tasks.start[other] > 1
    if other == task or cap[a] < tasks.level[other] or (tasks.gang and wide and across):
        return False
    return not holds(place, tasks.start, other, a)


@compiled
def repair(
    start: IntArray,
    owner: IntArray,
    demand: IntArray,
    limit: IntArray,
    level: IntArray,
    cap: IntArray,
    server_gpus: int,
    gang: bool,
    place: IntArray,
    steps: int,
    hot: float,
    cold: float,
    gang_moves: float,
    swaps: float,
    draw: np.random.Generator,
) -> float:
    """Moves and swaps that lower the overload; what is left at the end, 0 if everything fits.

    Parameters
    ----------
    gang_moves: of the steps for a task whose GPUs are in one server, those that take it to another.
    swaps: of all steps, those in which two shares change places. See `fill_levels` for the others.
    """
    tasks = Tasks(start, owner, demand, limit, level, server_gpus, gang)
    gpus = len(cap)
    load, over = loads(gpus, owner, demand, place), np.zeros(gpus)
    for g in range(gpus):
        over[g] = overload(load[g], limit)
    now, group = over.sum(), np.zeros(gpus, dtype=np.int64)
    for step in range(steps):
        if now <= FITS:
            now = over.sum()  # sums of floats drift: only what is counted afresh ends the search
            if now <= FITS:
                return 0.0
        heat = hot * (cold / hot) ** (step / steps)
        entry = int(draw.integers(0, len(owner)))
        ell, a = owner[entry], place[entry]
        lo, v = start[ell], start[ell + 1] - start[ell]
        kind = draw.random()
        if gang and v > 1 and kind < gang_moves:
            other = _elsewhere(ell, tasks, cap, place, kind < gang_moves / 2, draw, group)
            if other < -1:
                continue
            change = _move_gang(ell, other, 1, group, place, load, over, tasks)
            if change > 0 and draw.random() >= np.exp(-change / heat):
                _move_gang(ell, other, -1, group, place, load, over, tasks)
                continue
            for m in range(v):
                if other >= 0:
                    place[start[other] + m] = place[lo + m]
                place[lo + m] = group[m]
            now += change
            continue
        other, reverse, b = -1, 0, int(draw.integers(0, gpus))
        if kind > 1 - swaps:
            reverse = int(draw.integers(0, len(owner)))
            other, b = owner[reverse], place[reverse]
            if not _may_swap(ell, other, a, b, cap, place, tasks):
                continue
        elif gang and v > 1:
            b = int(a // server_gpus * server_gpus + draw.integers(0, server_gpus))
        across = gang and v > 1 and a // server_gpus != b // server_gpus
        if a == b or cap[b] < level[ell] or across or (v > 1 and holds(place, start, ell, b)):
            continue
        change = _transfer(ell, a, b, load, over, tasks)
        if other >= 0:
            change += _transfer(other, b, a, load, over, tasks)
        if change > 0 and draw.random() >= np.exp(-change / heat):
            _transfer(ell, b, a, load, over, tasks)
            if other >= 0:
                _transfer(other, a, b, load, over, tasks)
            continue
        place[entry] = b
        if other >= 0:
            place[reverse] = a
        now += change
    return 0.0 if over.sum() <= FITS else float(over.sum())
