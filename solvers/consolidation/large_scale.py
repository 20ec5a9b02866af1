"""Filling: each GPU gets the set of tasks that fills it best, the dearest level first.

What a placement costs above the closed-form bound is capacity that stays free on its GPUs. Where
many tasks are left to choose from, some set nearly fills a GPU; so GPUs are filled one by one by a
beam search for such a set, and dozens of placements are made with other weights of the capacities.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from optgap.models.compiled import compiled, inner
from optgap.models.consolidation import ConsolidationProblem
from optgap.models.limits import Limits
from optgap.models.result import Outcome, Termination
from optgap.models.work import CONSOLIDATION
from optgap.solvers.consolidation.bounds import (
    CostLevels,
    closed_form_bound,
    cost_levels,
    level_counts,
)
from optgap.solvers.consolidation.config import DEFAULT
from optgap.solvers.consolidation.instance import Instance, instance_of
from optgap.solvers.consolidation.numerics import FloatArray, IntArray
from optgap.solvers.consolidation.outcome import Incumbent, outcome
from optgap.solvers.consolidation.primal.construction import construct
from optgap.solvers.consolidation.primal.iterated_greedy import improve

DEEPEST = 64
"""Most tasks in one set: the length of an array."""
FIRST_POWER = 6.0
"""Exponent of scarcity in the first placement."""
FULL = 1e-4
"""Weighted room of a GPU, as a share, that is not worth searching on for."""


def filling(
    problem: ConsolidationProblem,
    *,
    limits: Limits,
    seed: int,
) -> Outcome:
    """Return the best of many fillings, with the closed-form bound."""
    instance, own = instance_of(problem), DEFAULT.large_scale
    rng = np.random.default_rng(seed)
    levels = cost_levels(instance, own.bound_levels)
    bound = closed_form_bound(instance, levels, level_counts(instance, levels))
    incumbent = Incumbent(instance)
    fill_gpus(incumbent, bound.watts, limits, rng, tries=round(own.fillings * limits.effort))
    if incumbent.placement is None:
        construct(incumbent, limits, rng, 2)
        improve(incumbent, limits, bound.watts, rng)
    limits.progress("search", incumbent.watts, bound.watts)
    return outcome(incumbent, bound, limits.stop or Termination.COMPLETED)


def fill_gpus(
    incumbent: Incumbent,
    target: float,
    limits: Limits,
    rng: np.random.Generator,
    *,
    tries: int,
) -> None:
    """Offer `tries` fillings to the incumbent, until one has a power of `target` W.

    Does nothing where GPUs or servers differ, or a task is wider than a server.
    """
    instance, own = incumbent.instance, DEFAULT.large_scale
    if not instance.identical_servers or int(instance.width.max()) > int(instance.server_gpus[0]):
        return
    exact = cost_levels(instance)
    merged = cost_levels(instance, max(4, instance.tasks // own.level_tasks))
    ways = (exact, merged) if exact.exact else (merged,)
    for k in range(tries):
        if incumbent.watts <= target * (1 + 1e-9) or (k and limits.stop is not None):
            return
        power = FIRST_POWER if k == 0 else float(rng.uniform(*own.power))
        breadth = own.breadths[k // len(ways) % len(own.breadths)]
        limits.spend(CONSOLIDATION.filled * int(instance.entry_start[-1]))
        place = _filled(instance, ways[k % len(ways)], power, breadth)
        if place is not None:
            incumbent.offer_flat(place)


def _filled(
    instance: Instance, levels: CostLevels, power: float, breadth: tuple[int, ...]
) -> IntArray | None:
    """Return one placement, or None; a capacity row weighs its demand over capacity to `power`."""
    limit = np.maximum(instance.capacity[0], 1)
    scarcity = (instance.demand * instance.width).sum(axis=1) / limit
    shares: FloatArray = (scarcity / max(1e-300, float(scarcity.max()))) ** power
    shares /= max(1e-300, float(shares.sum()))
    weight = (instance.demand / limit[:, None] * shares[:, None]).sum(axis=0)
    order: IntArray = np.lexsort((-weight, -instance.width, -levels.of))
    key: Any = np.stack([levels.of[order], instance.width[order]])
    first = np.flatnonzero(np.append(True, (key[:, 1:] != key[:, :-1]).any(axis=0)))
    place = np.zeros(int(instance.entry_start[-1]), dtype=np.int64)
    left: IntArray = np.tile(instance.capacity[0], (instance.gpus, 1))
    filling = Filling(
        order, instance.demand, weight, instance.entry_start, left, np.ones(instance.gpus),
        shares / limit, np.array(breadth, dtype=np.int64), FULL, place
    )  # fmt: skip
    done = fill(
        filling, np.append(first, len(order)), instance.width[order][first],
        levels.of[order][first], int(instance.server_gpus[0])
    )  # fmt: skip
    return place if done else None


class Filling(NamedTuple):
    """Tasks and the state of the GPUs.

    Parameters
    ----------
    items: (L,) tasks in classes of one level and one width, falling in weight within a class.
    demand, weight: (R, L) and (L,) of each task. start: (L+1,) the first entry of each task.
    left: (G, R) capacity left. space: (G,) its weight, exactly 1 for an empty GPU.
    scale: (R,) the weight of a unit of each capacity.
    breadth, full: one of `LargeScaleParams.breadths`, and `FULL`.
    place: receives the GPU of each entry.
    """

    items: IntArray
    demand: IntArray
    weight: FloatArray
    start: IntArray
    left: IntArray
    space: FloatArray
    scale: FloatArray
    breadth: IntArray
    full: float
    place: IntArray


@inner
def _first_below(low: int, high: int, room: float, filling: Filling) -> int:
    """Return the first of `items[low:high]`, sorted by falling weight, that fits into `room`."""
    while low < high:
        middle = (low + high) // 2
        if filling.weight[filling.items[middle]] > room:
            low = middle + 1
        else:
            high = middle
    return low


@inner
def _first_fitting(low: int, high: int, room: IntArray, filling: Filling) -> int:
    """Return the first of `items[low:high]` that fits `room`; `high` where none does."""
    for j in range(low, high):
        fits = True
        for r in range(len(room)):
            if filling.demand[r, filling.items[j]] > room[r]:
                fits = False
                break
        if fits:
            return j
    return high


@inner
def _weight(room: IntArray, filling: Filling) -> float:
    """Return the weight of some capacity."""
    total = 0.0
    for r in range(len(room)):
        total += filling.scale[r] * room[r]
    return total


@inner
def best_set(low: int, high: int, room: IntArray, filling: Filling, picked: IntArray) -> int:
    """Search for the heaviest set of `items[low:high]` that fits `room`; how many are `picked`.

    Parameters
    ----------
    room: (R,) capacity left; on an empty GPU the first task that fits must be in the set.
    picked: (DEEPEST,) receives positions in `items`, ascending.
    """
    items, weight, breadth = filling.items, filling.weight, filling.breadth
    space = _weight(room, filling)
    empty = space >= 1 - 1e-12
    chosen, tried = np.zeros(DEEPEST, dtype=np.int64), np.zeros(DEEPEST + 1, dtype=np.int64)
    cursor, earned = np.zeros(DEEPEST + 1, dtype=np.int64), np.zeros(DEEPEST + 1)
    left = np.empty((DEEPEST + 1, len(room)), dtype=np.int64)
    for r in range(len(room)):
        left[0, r] = room[r]
    best, size, depth = 0.0, 0, 0
    cursor[0] = _first_below(low, high, space * (1 + 1e-12), filling)
    while depth >= 0:
        most = 1 if empty and depth == 0 else breadth[min(depth, len(breadth) - 1)]
        j = high
        if tried[depth] < most and depth < DEEPEST:
            j = _first_fitting(cursor[depth], high, left[depth], filling)
        if j == high:
            depth -= 1
            continue
        item = items[j]
        chosen[depth] = j
        tried[depth] += 1
        cursor[depth] = j + 1
        # of tasks of equal weight one is tried
        while cursor[depth] < high and weight[items[cursor[depth]]] == weight[item]:
            cursor[depth] += 1
        for r in range(len(room)):
            left[depth + 1, r] = left[depth, r] - filling.demand[r, item]
        earned[depth + 1] = earned[depth] + weight[item]
        depth += 1
        if earned[depth] > best + 1e-12:
            best, size = earned[depth], depth
            for k in range(depth):
                picked[k] = chosen[k]
            if space - best <= filling.full:
                return size
        tried[depth] = 0
        cursor[depth] = _first_below(j + 1, high, space - earned[depth] + 1e-12, filling)
    return size


@inner
def _fill_group(group: IntArray, low: int, high: int, filling: Filling, picked: IntArray) -> int:
    """Put the set of `items[low:high]` that fills a group of GPUs best on all of them; its size.

    Every task of the set takes a share of each of the GPUs, and is removed from `items`.
    """
    items, left = filling.items, filling.left
    room = np.empty(left.shape[1], dtype=np.int64)
    for r in range(len(room)):
        room[r] = left[group[0], r]
        for g in group:
            room[r] = min(room[r], left[g, r])
    size = best_set(low, high, room, filling, picked)
    for k in range(size):
        item = items[picked[k]]
        for m in range(len(group)):
            g = group[m]
            filling.place[filling.start[item] + m] = g
            for r in range(len(room)):
                left[g, r] -= filling.demand[r, item]
            filling.space[g] = _weight(left[g], filling)
    for k in range(size - 1, -1, -1):  # picked rises
        high -= 1
        for j in range(picked[k], high):
            items[j] = items[j + 1]
    return size


@compiled
def fill(
    filling: Filling,
    class_start: IntArray,
    class_width: IntArray,
    class_level: IntArray,
    server_gpus: int,
) -> bool:
    """Place level by level, the dearest first: on awake GPUs, then on servers woken one by one.

    Within a level the widest tasks come first; v GPUs of a server that tasks of v GPUs share, those
    with the most room, are filled together. Whether all tasks were placed.

    Parameters
    ----------
    class_start: (C+1,) classes of `items` from dear to cheap, within a level from wide to narrow.
    class_width, class_level: (C,).
    """
    classes, space, first = len(class_width), filling.space, 0
    end, group = np.empty(classes, dtype=np.int64), np.empty(server_gpus, dtype=np.int64)
    picked = np.zeros(DEEPEST, dtype=np.int64)
    while first < classes:
        after, waiting = first, 0
        while after < classes and class_level[after] == class_level[first]:
            end[after] = class_start[after + 1]
            waiting += end[after] - class_start[after]
            after += 1
        server = 0
        while waiting > 0:
            if server == len(space):
                return False
            for c in range(first, after):
                v = class_width[c]
                for _ in range(2 * (server_gpus // v)):
                    if end[c] == class_start[c]:
                        break
                    for m in range(server_gpus):  # by room, falling
                        at = m
                        while at > 0 and space[group[at - 1]] < space[server + m]:
                            group[at] = group[at - 1]
                            at -= 1
                        group[at] = server + m
                    if space[group[v - 1]] < filling.weight[filling.items[end[c] - 1]]:
                        break
                    size = _fill_group(group[:v], class_start[c], end[c], filling, picked)
                    if size == 0:
                        break
                    end[c] -= size
                    waiting -= size
            server += server_gpus
        first = after
    return True
