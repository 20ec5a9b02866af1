"""Bounds without a tree: counts by level, cutting stock for GPUs, set covering for power.

`bound-area` and `bound-columns` only bound; `exact` uses `column_bounds` where GPUs or servers
differ.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from optgap.models.consolidation import ConsolidationProblem
from optgap.models.limits import Limits
from optgap.models.result import Outcome
from optgap.solvers.consolidation.bounds import (
    CostLevels,
    closed_form_bound,
    cost_levels,
    counts_of,
    falling,
    gpus_needed,
    level_counts,
)
from optgap.solvers.consolidation.column_generation.generation import ColumnGeneration
from optgap.solvers.consolidation.config import DEFAULT
from optgap.solvers.consolidation.instance import Instance, instance_of
from optgap.solvers.consolidation.numerics import QUANTUM_W, CountBox, Counts, IntArray
from optgap.solvers.consolidation.outcome import Bound, Incumbent, bound_only, closed
from optgap.solvers.consolidation.primal.annealing import anneal
from optgap.solvers.consolidation.primal.construction import construct


def bound_area(problem: ConsolidationProblem, *, limits: Limits, seed: int) -> Outcome:
    """GPUs of each level counted in closed form."""
    return bound_only(_closed_form(instance_of(problem)), limits)


def bound_columns(problem: ConsolidationProblem, *, limits: Limits, seed: int) -> Outcome:
    """`column_bounds`, with a quick placement that says how far to raise counts."""
    instance = instance_of(problem, scaled=True)
    rng, incumbent = np.random.default_rng(seed), Incumbent(instance)
    construct(incumbent, limits, rng, 3)
    bound = _closed_form(instance)
    anneal(incumbent, limits.within(0.1 * limits.remaining), bound.watts, rng)
    return bound_only(column_bounds(incumbent, bound, limits), limits)


def _closed_form(instance: Instance) -> Bound:
    levels = cost_levels(instance)
    return closed_form_bound(instance, levels, level_counts(instance, levels))


def column_bounds(incumbent: Incumbent, bound: Bound, limits: Limits) -> Bound:
    """Raise a bound while the gap is open: counts by cutting stock, then set covering.

    The incumbent's counts say how far each count is worth raising.
    """
    instance = incumbent.instance
    if incumbent.placement is not None and not closed(incumbent, bound):
        levels = cost_levels(instance)
        hoped = counts_of(instance, levels, incumbent.contents)
        own = limits.within(0.3 * limits.remaining)
        counts = rounded_counts(instance, levels, hoped, own)
        found = closed_form_bound(instance, levels, counts)
        bound = found if found.watts >= bound.watts else bound
    if not closed(incumbent, bound) and limits.stop is None:
        contents = incumbent.contents if instance.identical_servers else []
        own = limits.within(0.5 * limits.remaining)
        watts = set_covering_bound(instance, contents, own)
        bound = bound.raised(watts, "linear program over contents of a GPU")
    return bound


def set_covering_bound(instance: Instance, contents: list[list[int]], limits: Limits) -> float:
    """min Σ_S (cost of S + a GPU's share of a server's static power)·λ_S, W; servers are ignored.

    Parameters
    ----------
    contents: residents of the GPUs of a placement, as the first columns.
    """
    share = float((instance.server_w / instance.server_gpus).min())
    levels = cost_levels(instance, DEFAULT.bounds.column_levels, instance.least_watts + share)
    generation = _unrestricted(instance, levels)
    generation.master.add(contents)
    return generation.solve(limits).bound


def rounded_counts(instance: Instance, levels: CostLevels, hoped: Counts, limits: Limits) -> Counts:
    """(Q,) lower bounds on the GPUs of each level or more, by `cutting_stock_count`."""
    return falling(
        [
            cutting_stock_count(instance, levels.above(q), hoped[q], limits)
            for q in range(len(levels.quanta))
        ]
    )


def cutting_stock_count(instance: Instance, tasks: IntArray, hoped: int, limits: Limits) -> int:
    """A lower bound on the GPUs that `tasks` need: the cutting stock bound rounded up.

    Parameters
    ----------
    hoped: the count of a known placement: once it is proven necessary, the work is done.
    """
    quick = gpus_needed(instance, tasks)
    if quick >= hoped:
        return quick
    bound = cutting_stock_bound(
        instance, tasks, limits, stop_bound=hoped - 1 + 1e-4, stop_value=quick + 1e-9
    )
    return max(quick, math.ceil(bound - 1e-5))


def cutting_stock_bound(
    instance: Instance,
    tasks: IntArray,
    limits: Limits,
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
    generation = _unrestricted(part, one)
    return generation.solve(limits, stop_bound=stop_bound, stop_value=stop_value).bound


def _unrestricted(instance: Instance, levels: CostLevels) -> ColumnGeneration:
    """Column generation without servers' static power, for any counts of GPUs."""
    gpus, counts = int(instance.width.sum()), len(levels.quanta) + 1
    box = CountBox((0,) * counts, (gpus,) * counts)
    return ColumnGeneration(instance, levels, box, 0, 0.0)
