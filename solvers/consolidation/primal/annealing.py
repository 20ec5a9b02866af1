"""Simulated annealing of the power of a placement, on any instance."""

from __future__ import annotations

import numpy as np

from optgap.models.clock import working_time
from optgap.models.limits import Limits
from optgap.solvers.consolidation.config import DEFAULT, AnnealingParams
from optgap.solvers.consolidation.incumbent import Incumbent
from optgap.solvers.consolidation.numerics import IntArray
from optgap.solvers.consolidation.primal.annealing_kernels import anneal as anneal_once
from optgap.solvers.consolidation.primal.gpu_state import MOST_RESIDENTS, cluster_of


def anneal(
    incumbent: Incumbent,
    limits: Limits,
    target: float,
    rng: np.random.Generator,
    params: AnnealingParams = DEFAULT.annealing,
) -> None:
    """Anneal the incumbent in longer and longer runs, to `target` W or until time is up."""
    instance = incumbent.instance
    if incumbent.placement is None or instance.tasks < 2:
        return
    if int(np.bincount(incumbent.flat).max()) >= MOST_RESIDENTS - 1:
        return
    watts, cluster = float(instance.watts.max()), cluster_of(instance)
    length = params.steps * int(instance.entry_start[-1])
    most: float = params.max_steps
    for _ in range(params.rounds):
        if limits.stop is not None or incumbent.watts <= target + 1e-9:
            return
        began, steps = working_time(), max(1, int(min(length, most)))
        entries = incumbent.flat
        hot = watts * float(np.exp(rng.uniform(*np.log(params.hot))))
        fill = watts * float(np.exp(rng.uniform(*np.log(params.fill))))
        anneal_once(
            entries, cluster, _usable(incumbent, entries), steps, hot, watts * params.cold, fill,
            params.gang_moves, params.swaps, target, rng,
        )  # fmt: skip
        incumbent.offer_flat(entries)
        length = int(params.growth * length)
        rate = steps / max(1e-6, working_time() - began)
        most = min(params.max_steps, rate * max(0.05, limits.remaining))


def _usable(incumbent: Incumbent, entries: IntArray) -> int:
    """GPUs that tasks may move to: those up to the last server in use, or all where they differ."""
    instance = incumbent.instance
    if not instance.identical_servers:
        return instance.gpus
    last = int(instance.gpu_server[int(entries.max())])
    return int(instance.server_start[last + 1])
