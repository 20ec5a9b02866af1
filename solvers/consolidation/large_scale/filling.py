"""Filling: each GPU gets the set of tasks that fills it best, the dearest level first.

What a placement costs above the closed-form bound is capacity that stays free on its GPUs. Where
many tasks are left to choose from, some set nearly fills a GPU; so GPUs are filled one by one by a
beam search for such a set, and dozens of placements are made with other weights of the capacities.
"""

from __future__ import annotations

from typing import Any

import numpy as np

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
from optgap.solvers.consolidation.incumbent import Incumbent
from optgap.solvers.consolidation.instance import Instance, instance_of
from optgap.solvers.consolidation.large_scale.kernels import fill
from optgap.solvers.consolidation.numerics import FloatArray, IntArray
from optgap.solvers.consolidation.outcome import outcome
from optgap.solvers.consolidation.primal.annealing import anneal
from optgap.solvers.consolidation.primal.construction import construct


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
        np.array(breadth, dtype=np.int64), full, instance.entry_start, place,
    )  # fmt: skip
    return place if done else None
