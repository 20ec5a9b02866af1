"""Bounds by column generation alone: cutting stock for GPUs, set covering for power."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from optgap.models.limits import Limits
from optgap.solvers.consolidation.bounds.level_counts import CostLevels, cost_levels, falling
from optgap.solvers.consolidation.bounds.martello_toth import gpus_needed
from optgap.solvers.consolidation.column_generation.generation import ColumnGeneration, Relaxation
from optgap.solvers.consolidation.column_generation.space import CountBox
from optgap.solvers.consolidation.config import DEFAULT, Params
from optgap.solvers.consolidation.instance import Instance
from optgap.solvers.consolidation.numerics import QUANTUM_W, Counts, IntArray

BY_COLUMNS = "linear program over contents of a GPU"


def set_covering_bound(
    instance: Instance, contents: list[list[int]], limits: Limits, params: Params = DEFAULT
) -> float:
    """min Σ_S (cost of S + a GPU's share of a server's static power)·λ_S, W; servers are ignored.

    Parameters
    ----------
    contents: residents of the GPUs of a placement, as the first columns.
    """
    share = float((instance.server_w / instance.server_gpus).min())
    watts = instance.least_watts + share
    levels = cost_levels(instance, params.bounds.column_levels, watts)
    return _unrestricted(instance, levels, contents, limits, params).bound


def cutting_stock_bound(
    instance: Instance,
    tasks: IntArray,
    limits: Limits,
    params: Params = DEFAULT,
    *,
    stop_bound: float = math.inf,
    stop_value: float = -math.inf,
) -> float:
    """Cutting stock: a fractional lower bound min Σ λ_S on the GPUs that `tasks` need.

    Parameters
    ----------
    stop_bound, stop_value: see `ColumnGeneration.solve`, in GPUs.
    """
    part = replace(
        instance,
        width=instance.width[tasks],
        demand=np.ascontiguousarray(instance.demand[:, tasks]),
    )
    one = CostLevels((round(1 / QUANTUM_W),), np.zeros(len(tasks), dtype=np.int64), True)
    return _unrestricted(part, one, [], limits, params, stop_bound, stop_value).bound


def cutting_stock_count(
    instance: Instance, tasks: IntArray, hoped: int, limits: Limits, params: Params = DEFAULT
) -> int:
    """A lower bound on the GPUs that `tasks` need: the cutting stock bound rounded up.

    Parameters
    ----------
    hoped: the count of a known placement: once it is proven necessary, the work is done.
    """
    quick = gpus_needed(instance, tasks)
    if quick >= hoped:
        return quick
    bound = cutting_stock_bound(
        instance, tasks, limits, params, stop_bound=hoped - 1 + 1e-4, stop_value=quick + 1e-9
    )
    return max(quick, math.ceil(bound - 1e-5))


def rounded_counts(
    instance: Instance, levels: CostLevels, hoped: Counts, limits: Limits, params: Params = DEFAULT
) -> Counts:
    """(Q,) lower bounds on the GPUs of each level or more, by `cutting_stock_count`."""
    return falling(
        [
            cutting_stock_count(instance, levels.above(q), hoped[q], limits, params)
            for q in range(len(levels.quanta))
        ]
    )


def _unrestricted(
    instance: Instance,
    levels: CostLevels,
    contents: list[list[int]],
    limits: Limits,
    params: Params,
    stop_bound: float = math.inf,
    stop_value: float = -math.inf,
) -> Relaxation:
    """Column generation without servers' static power, for any counts of GPUs."""
    gpus = int(instance.width.sum())
    counts = len(levels.quanta) + 1
    box = CountBox((0,) * counts, (gpus,) * counts)
    generation = ColumnGeneration(instance, levels, box, 0, 0.0, params)
    generation.master.add(contents)
    return generation.solve(limits, stop_bound=stop_bound, stop_value=stop_value)
