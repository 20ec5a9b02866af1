"""Simulated annealing of power, on any instance: moves and swaps of single tasks."""

from __future__ import annotations

import numpy as np

from optgap.models.clock import working_time
from optgap.models.limits import Limits
from optgap.solvers.consolidation.config import DEFAULT, AnnealingParams
from optgap.solvers.consolidation.incumbent import Incumbent
from optgap.solvers.consolidation.numerics import IntArray
from optgap.solvers.consolidation.primal.annealing_kernels import anneal as anneal_once
from optgap.solvers.consolidation.primal.construction_kernels import MOST_RESIDENTS


def anneal(
    incumbent: Incumbent,
    limits: Limits,
    seconds: float,
    target: float,
    rng: np.random.Generator,
    params: AnnealingParams = DEFAULT.annealing,
) -> None:
    """Anneal the incumbent again and again, until `target` W, the limits or so many seconds."""
    instance, own = incumbent.instance, limits.within(seconds)
    if incumbent.placement is None or instance.tasks < 2:
        return
    if int(np.bincount(incumbent.flat).max()) >= MOST_RESIDENTS - 1:
        return
    watts = float(instance.watts.max())
    length = params.steps * int(instance.entry_start[-1])
    most: float = params.most_steps
    while own.stop is None and incumbent.watts > target + 1e-9:
        began, steps = working_time(), max(1, int(min(length, most)))
        entries = incumbent.flat
        hot = watts * float(np.exp(rng.uniform(*np.log(params.hot))))
        fill = watts * float(np.exp(rng.uniform(*np.log(params.fill))))
        anneal_once(
            entries, instance.entry_start, instance.width, instance.demand, instance.capacity,
            instance.gpu_kind, instance.gpu_server, instance.server_start, instance.server_w,
            instance.clock_mhz, instance.static_w, instance.slope, instance.scarcity,
            instance.gang, _usable(incumbent, entries), steps, hot, watts * params.cold, fill,
            params.gang_moves, params.swaps, target, rng,
        )  # fmt: skip
        incumbent.offer_flat(entries)
        length = int(params.growth * length)
        rate = steps / max(1e-6, working_time() - began)
        most = min(params.most_steps, rate * max(params.least_s, own.remaining))


def _usable(incumbent: Incumbent, entries: IntArray) -> int:
    """GPUs up to the last server in use; all of them where they differ."""
    instance = incumbent.instance
    if not instance.identical_servers:
        return instance.gpus
    last = int(instance.gpu_server[int(entries.max())])
    return int(instance.server_start[last + 1])
