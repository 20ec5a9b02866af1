"""Iterated greedy (Ruiz and Stützle, EJOR 177, 2007): tasks are taken out and placed again.

It works on any instance: what is taken out is all of some GPUs, all of some GPUs of one server, or
a few tasks, and `construction` places it. A placement that is a little worse may be gone on from.
"""

from __future__ import annotations

import numpy as np

from optgap.models.limits import Limits
from optgap.models.work import CONSOLIDATION
from optgap.solvers.consolidation.config import DEFAULT
from optgap.solvers.consolidation.instance import Instance
from optgap.solvers.consolidation.numerics import IntArray
from optgap.solvers.consolidation.outcome import Incumbent
from optgap.solvers.consolidation.primal.construction import (
    MOST_RESIDENTS,
    cluster_of,
    place_in_order,
    sizes_of,
)
from optgap.solvers.engines.annealing import walk

TEMPERATURE = 1e-3
"""Of a step that makes a placement worse, as a multiple of the first placement's power."""
TASKS_ALONE = 0.3
"""Share of the steps that take out tasks wherever they are."""
WIDEST_FIRST = 0.7
"""Share of the steps that place tasks of several GPUs first."""


def improve(incumbent: Incumbent, limits: Limits, target: float, rng: np.random.Generator) -> None:
    """Better the incumbent, to `target` W or until the limits or the steps end."""
    instance, place = incumbent.instance, incumbent.flat
    if instance.tasks < 2 or not place.size or np.bincount(place).max() >= MOST_RESIDENTS - 1:
        return
    cluster, heat = cluster_of(instance), TEMPERATURE * incumbent.watts

    def neighbour(place: IntArray) -> tuple[IntArray, float] | None:
        gone = _taken_out(instance, place, rng)
        trial = np.where(np.isin(instance.entry_task, gone), -1, place)
        order = _order(instance, gone, rng)
        limits.spend(CONSOLIDATION.rebuilt * (40 + len(place)))
        if not place_in_order(order, cluster, instance.identical_servers, trial):
            return None
        return trial, instance.total_flat(trial)

    steps = round(limits.effort * DEFAULT.exact.steps * instance.tasks)
    best, _ = walk(
        place, incumbent.watts, neighbour, limits,
        tries=steps, heats=(heat, heat), rng=rng, enough=target + 1e-9,
    )  # fmt: skip
    incumbent.offer_flat(best)


def _taken_out(instance: Instance, place: IntArray, rng: np.random.Generator) -> IntArray:
    """Some tasks."""
    if rng.random() < TASKS_ALONE:
        return rng.choice(instance.tasks, min(instance.tasks, int(rng.integers(1, 6))), False)
    used = np.unique(place)
    gpus = rng.choice(used, min(len(used), int(rng.integers(1, 5))), False)
    if rng.random() < 0.5:
        server = instance.gpu_server
        gpus = used[server[used] == server[gpus[0]]][: int(rng.integers(1, 9))]
    return np.unique(instance.entry_task[np.isin(place, gpus)])


def _order(instance: Instance, tasks: IntArray, rng: np.random.Generator) -> IntArray:
    """Return an order by size, power or largest share with some noise, or at random."""
    keys = (
        sizes_of(instance),
        instance.least_watts,
        instance.largest_share,
        np.ones(instance.tasks),
    )
    key = keys[int(rng.integers(4))][tasks] * rng.uniform(0.6, 1.0, len(tasks))
    order = tasks[np.argsort(-key)]
    if rng.random() < WIDEST_FIRST:
        order = order[np.argsort(-instance.width[order], kind="stable")]
    return order
