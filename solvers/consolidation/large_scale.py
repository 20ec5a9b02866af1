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
from optgap.solvers.consolidation.bounds.level_counts import (
    CostLevels,
    closed_form_bound,
    cost_levels,
    level_counts,
)
from optgap.solvers.consolidation.config import DEFAULT, Params
from optgap.solvers.consolidation.instance import Instance, instance_of
from optgap.solvers.consolidation.numerics import BoolArray, FloatArray, IntArray
from optgap.solvers.consolidation.outcome import Incumbent, outcome
from optgap.solvers.consolidation.primal.annealing import anneal
from optgap.solvers.consolidation.primal.construction import construct

DEEPEST = 64
"""Most tasks in one set: the length of an array."""


def filling(
    problem: ConsolidationProblem,
    *,
    limits: Limits,
    seed: int,
    tries: int = 60,
    params: Params = DEFAULT,
) -> Outcome:
    """The best of many fillings, with the closed-form bound.

    Parameters
    ----------
    tries: number of placements that are made.
    """
    instance, own = instance_of(problem), params.large_scale
    rng = np.random.default_rng(seed)
    levels = cost_levels(instance, own.bound_levels)
    bound = closed_form_bound(instance, levels, level_counts(instance, levels, params.bounds))
    incumbent = Incumbent(instance)
    fill_gpus(incumbent, bound.watts, limits, rng, tries, params)
    if incumbent.placement is None:
        construct(incumbent, limits, rng, 2)
        half = limits.within(0.5 * limits.remaining)
        anneal(incumbent, half, bound.watts, rng, params.annealing)
    limits.progress("search", incumbent.watts, bound.watts)
    return outcome(incumbent, bound, limits.stop or Termination.COMPLETED)


def fill_gpus(
    incumbent: Incumbent,
    target: float,
    limits: Limits,
    rng: np.random.Generator,
    tries: int,
    params: Params = DEFAULT,
) -> None:
    """Offer `tries` fillings to the incumbent, until one has a power of `target` W.

    Does nothing where GPUs or servers differ, or a task is wider than a server.
    """
    instance, own = incumbent.instance, params.large_scale
    if not instance.identical_servers or int(instance.width.max()) > int(instance.server_gpus[0]):
        return
    exact = cost_levels(instance, params.bounds.levels)
    ways = [cost_levels(instance, max(4, instance.tasks // few)) for few in own.level_tasks]
    ways = [exact, *ways] if exact.exact else ways
    for k in range(tries):
        if incumbent.watts <= target * (1 + 1e-9) or (k and limits.stop is not None):
            return
        power = own.first_power if k == 0 else float(rng.uniform(*own.power))
        breadth = own.breadths[int(rng.integers(len(own.breadths)))]
        place = _filled(instance, ways[k % len(ways)], power, breadth, own.full)
        if place is not None:
            incumbent.offer_flat(place)


def _filled(
    instance: Instance, levels: CostLevels, power: float, breadth: tuple[int, ...], full: float
) -> IntArray | None:
    """One placement, or None; a capacity row's weight is its demand over capacity to `power`."""
    limit = np.maximum(instance.capacity[0], 1)
    scarcity = (instance.demand * instance.width).sum(axis=1) / limit
    shares: FloatArray = (scarcity / max(1e-300, float(scarcity.max()))) ** power
    shares /= max(1e-300, float(shares.sum()))
    weight = (instance.demand / limit[:, None] * shares[:, None]).sum(axis=0)
    order = np.lexsort((-weight, -instance.width, -levels.of))
    key: Any = np.stack([levels.of[order], instance.width[order]])
    first = np.flatnonzero(np.append(True, (key[:, 1:] != key[:, :-1]).any(axis=0)))
    place = np.zeros(int(instance.entry_start[-1]), dtype=np.int64)
    done = fill(
        order.astype(np.int64), np.append(first, len(order)).astype(np.int64),
        instance.width[order][first], levels.of[order][first].astype(np.int64), instance.demand,
        instance.capacity[0], weight, shares, int(instance.server_gpus[0]), len(instance.server_w),
        np.array(breadth, dtype=np.int64), full, instance.entry_start, place
    )  # fmt: skip
    return place if done else None


@inner
def first_below(items: IntArray, low: int, high: int, weight: FloatArray, room: float) -> int:
    """The first of `items[low:high]`, which fall in weight, that is no heavier than `room`."""
    while low < high:
        middle = (low + high) // 2
        if weight[items[middle]] > room:
            low = middle + 1
        else:
            high = middle
    return low


@inner
def best_set(
    items: IntArray,
    low: int,
    high: int,
    demand: IntArray,
    weight: FloatArray,
    room: IntArray,
    space: float,
    forced: bool,
    breadth: IntArray,
    full: float,
    left: IntArray,
    picked: IntArray,
) -> int:
    """Search for the heaviest set of `items[low:high]` that fits `room`; how many are `picked`.

    Parameters
    ----------
    items: tasks, falling in weight within the range. weight: (L,).
    room: (R,) capacity left. space: its weight, which no set that fits exceeds.
    forced: the first task that fits must be in the set.
    breadth: how many tasks are tried in the first, second, … place; the last holds for all later.
    full: weight left at which the search ends.
    left: (DEEPEST+1, R), working space. picked: receives positions in `items`, ascending.
    """
    count = len(room)
    chosen = np.zeros(DEEPEST, dtype=np.int64)
    cursor = np.zeros(DEEPEST + 1, dtype=np.int64)
    tried = np.zeros(DEEPEST + 1, dtype=np.int64)
    earned = np.zeros(DEEPEST + 1)
    for r in range(count):
        left[0, r] = room[r]
    best, size, depth = 0.0, 0, 0
    cursor[0] = first_below(items, low, high, weight, space * (1 + 1e-12))
    while depth >= 0:
        most = breadth[min(depth, len(breadth) - 1)]
        if forced and depth == 0:
            most = 1
        j = cursor[depth]
        found = False
        if tried[depth] < most and depth < DEEPEST:
            while j < high:
                fits = True
                for r in range(count):
                    if demand[r, items[j]] > left[depth, r]:
                        fits = False
                        break
                if fits:
                    found = True
                    break
                j += 1
        if not found:
            depth -= 1
            continue
        item = items[j]
        chosen[depth] = j
        cursor[depth] = j + 1
        tried[depth] += 1
        # of tasks of equal weight one is tried
        while cursor[depth] < high and weight[items[cursor[depth]]] == weight[item]:
            cursor[depth] += 1
        earned[depth + 1] = earned[depth] + weight[item]
        for r in range(count):
            left[depth + 1, r] = left[depth, r] - demand[r, item]
        depth += 1
        if earned[depth] > best + 1e-12:
            best, size = earned[depth], depth
            for k in range(depth):
                picked[k] = chosen[k]
            if space - best <= full:
                return size
        tried[depth] = 0
        low_next = first_below(items, j + 1, high, weight, space - earned[depth] + 1e-12)
        cursor[depth] = low_next
    return size


class Fleet(NamedTuple):
    """The state of the GPUs.

    Parameters
    ----------
    left: (G, R) capacity left. space: (G,) its weight. fresh: (G,) bool, whether a GPU is empty.
    limit, shares: (R,) capacity of a GPU, and weights of the rows. server_gpus: GPUs of a server.
    """

    left: IntArray
    space: FloatArray
    fresh: BoolArray
    limit: IntArray
    shares: FloatArray
    server_gpus: int


@inner
def _weighted(room: IntArray, fleet: Fleet) -> float:
    return float((fleet.shares * room / np.maximum(1, fleet.limit)).sum())


@inner
def _emptiest(server: int, count: int, fleet: Fleet, group: IntArray) -> None:
    """Collect the `count` GPUs of a server with the most room into `group`, the emptiest first."""
    low = server * fleet.server_gpus
    order = np.argsort(-fleet.space[low : low + fleet.server_gpus], kind="mergesort")
    group[:count] = low + order[:count]


@inner
def _fill_group(
    group: IntArray, items: IntArray, low: int, high: int, demand: IntArray, weight: FloatArray,
    breadth: IntArray, full: float, fleet: Fleet, start: IntArray, place: IntArray, work: IntArray,
    picked: IntArray
) -> int:  # fmt: skip
    """Put the set of `items[low:high]` that fills a group of GPUs best on all of them; its size.

    Every task of the set takes a share of each of the GPUs, and is removed from `items`.
    """
    room, forced = fleet.limit.copy(), True
    for g in group:
        forced = forced and fleet.fresh[g]
        for r in range(len(room)):
            room[r] = min(room[r], fleet.left[g, r])
    size = best_set(
        items, low, high, demand, weight, room, _weighted(room, fleet), forced, breadth, full, work,
        picked
    )  # fmt: skip
    for k in range(size):
        item = items[picked[k]]
        for m in range(len(group)):
            g = group[m]
            place[start[item] + m] = g
            fleet.fresh[g] = False
            for r in range(len(room)):
                fleet.left[g, r] -= demand[r, item]
            fleet.space[g] = _weighted(fleet.left[g], fleet)
    for k in range(size - 1, -1, -1):  # picked rises
        for j in range(picked[k], high - 1):
            items[j] = items[j + 1]
        high -= 1
    return size


@compiled
def fill(
    items: IntArray,
    class_start: IntArray,
    class_width: IntArray,
    class_level: IntArray,
    demand: IntArray,
    limit: IntArray,
    weight: FloatArray,
    shares: FloatArray,
    server_gpus: int,
    servers: int,
    breadth: IntArray,
    full: float,
    start: IntArray,
    place: IntArray,
) -> bool:
    """Place level by level, the dearest first: on awake GPUs, then on servers woken one by one.

    Within a level the widest tasks come first; v GPUs of a server that tasks of v GPUs share are
    filled together. Whether all tasks were placed.

    Parameters
    ----------
    items: (L,) tasks in classes of one level and one width, falling in weight within a class.
    class_start: (C+1,) classes from dear to cheap, within a level from wide to narrow.
    class_width, class_level: (C,).
    weight: (L,) Σ shares·demand/limit. breadth, full: see `best_set`.
    start, place: the first entry of each task; receives the GPU of each entry.
    """
    gpus, classes, end = servers * server_gpus, len(class_width), class_start[1:].copy()
    fleet = Fleet(
        np.zeros((gpus, len(limit)), dtype=np.int64) + limit, np.ones(gpus),
        np.ones(gpus, dtype=np.bool_), limit, shares, server_gpus
    )  # fmt: skip
    work = np.zeros((DEEPEST + 1, len(limit)), dtype=np.int64)
    picked, group = np.zeros(DEEPEST, dtype=np.int64), np.zeros(server_gpus, dtype=np.int64)
    first = 0
    while first < classes:
        after = first
        while after < classes and class_level[after] == class_level[first]:
            after += 1
        i = 0
        while (end[first:after] - class_start[first:after]).sum() > 0:
            if i >= servers:
                return False
            for c in range(first, after):
                v = class_width[c]
                for _ in range(2 * (server_gpus // v)):
                    if end[c] == class_start[c]:
                        break
                    _emptiest(i, v, fleet, group)
                    if fleet.space[group[v - 1]] < weight[items[end[c] - 1]]:
                        break
                    size = _fill_group(
                        group[:v], items, class_start[c], end[c], demand, weight, breadth, full,
                        fleet, start, place, work, picked
                    )  # fmt: skip
                    if size == 0:
                        break
                    end[c] -= size
            i += 1
        first = after
    return True
