"""Construction: tasks placed greedily in orders by power and size, later ones randomised."""

from __future__ import annotations

import numpy as np

from optgap.models.limits import Limits
from optgap.solvers.consolidation.incumbent import Incumbent
from optgap.solvers.consolidation.primal.construction_kernels import construct as construct_one
from optgap.solvers.consolidation.primal.gpu_state import cluster_of


def construct(
    incumbent: Incumbent, limits: Limits, rng: np.random.Generator, tries: int = 8
) -> None:
    """Offer greedy placements to the incumbent; the first is made whatever the limits.

    Parameters
    ----------
    tries: orders that are tried; from the fourth on sizes are multiplied by factors from 0.7 to 1.
    """
    instance = incumbent.instance
    cluster = cluster_of(instance)
    scale = np.maximum(instance.max_capacity[:, None], 1)
    sizes = (instance.demand / scale * instance.scarcity[:, None]).sum(axis=0)
    tallest, watts = instance.largest_share, instance.least_watts
    for k in range(tries):
        if incumbent.placement is not None and limits.stop is not None:
            return
        noise = 1.0 if k < 3 else rng.uniform(0.7, 1.0, instance.tasks)
        keys = [(-sizes * noise, -watts), (-tallest * noise, -watts), (-watts, -sizes * noise)]
        wide = -instance.width if k % 2 == 0 else np.zeros(instance.tasks)
        entries = np.zeros(int(instance.entry_start[-1]), dtype=np.int64)
        order = np.lexsort((*keys[k % 3], wide))
        if construct_one(order, cluster, instance.identical_servers, entries):
            incumbent.offer_flat(entries)
