"""The optimum at one event: tasks that are present, some of which run already."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from optgap.models.consolidation import ConsolidationProblem
from optgap.models.limits import Limits
from optgap.models.result import Outcome
from optgap.solvers.consolidation.exact import Exact, exact
from optgap.solvers.consolidation.instance import Instance, instance_of
from optgap.solvers.consolidation.numerics import Placement


def solve(
    problem: ConsolidationProblem,
    stay: Sequence[tuple[int, ...] | None] | None,
    limits: Limits,
    seed: int,
) -> Outcome:
    """The placement of least power; what runs may move, and costs nothing when it does.

    Parameters
    ----------
    stay: the GPUs of each task where it runs, None for a newcomer: where the search begins. Without
        it, `exact` with all its threads.
    """
    if stay is None:
        return exact(problem, limits=limits, seed=seed)
    instance = instance_of(problem)
    run = Exact(instance, limits, seed, workers=2)
    run.incumbent.offer(completed(instance, stay))
    return run.run()


def completed(instance: Instance, stay: Sequence[tuple[int, ...] | None]) -> Placement | None:
    """Residents where they are, newcomers where they add least; None if that is infeasible."""
    placement: Placement = []
    for given in stay:
        gpus = given or least_added_place(instance, placement, len(placement))
        if gpus is None:
            return None
        placement.append(gpus)
    for g, tasks in instance.residents(placement).items():
        held = instance.demand[:, tasks].sum(axis=1)
        if (held > instance.capacity[int(instance.gpu_kind[g])]).any():
            return None
    return placement


def least_added_place(
    instance: Instance, placement: Placement, task: int
) -> tuple[int, ...] | None:
    """The GPUs with room where one more task adds the least power, the fullest of equal ones."""
    contents = instance.residents(placement)
    held = np.zeros((instance.gpus, len(instance.demand)), dtype=np.int64)
    for g, tasks in contents.items():
        held[g] = instance.demand[:, tasks].sum(axis=1)
    room = (held + instance.demand[:, task] <= instance.capacity[instance.gpu_kind]).all(axis=1)
    watts = np.array([instance.cost(g, contents.get(g, [])) for g in range(instance.gpus)])
    added = np.full(instance.gpus, np.inf)
    for g in np.flatnonzero(room).tolist():
        added[g] = instance.cost(g, [*contents.get(g, []), task]) - watts[g]
    awake = np.isin(instance.gpu_server, instance.gpu_server[list(contents)])
    share = np.where(awake, 0.0, instance.server_w[instance.gpu_server])
    order = np.lexsort((np.arange(instance.gpus), -held[:, 0], added + share))
    width = int(instance.width[task])
    best: dict[int, list[int]] = {}
    for g in order.tolist():
        if not np.isfinite(added[g]):
            return None
        own = best.setdefault(int(instance.gpu_server[g]) if instance.gang else 0, [])
        own.append(g)
        if len(own) == width:
            return tuple(sorted(own))
    return None
