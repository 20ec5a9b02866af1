"""The methods that only bound, and the order of bounds where no tree is grown."""

from __future__ import annotations

import numpy as np

from optgap.models.consolidation import ConsolidationProblem
from optgap.models.limits import Limits
from optgap.models.result import Outcome
from optgap.solvers.consolidation.bounds.level_counts import (
    CostLevels,
    closed_form_bound,
    cost_levels,
    counts_of,
    level_counts,
)
from optgap.solvers.consolidation.column_generation.relaxations import (
    BY_COLUMNS,
    rounded_counts,
    set_covering_bound,
)
from optgap.solvers.consolidation.config import DEFAULT, Params
from optgap.solvers.consolidation.incumbent import Incumbent
from optgap.solvers.consolidation.instance import instance_of
from optgap.solvers.consolidation.outcome import Bound, bound_only, closed
from optgap.solvers.consolidation.primal.annealing import anneal
from optgap.solvers.consolidation.primal.construction import construct


def column_bounds(
    incumbent: Incumbent, levels: CostLevels, bound: Bound, limits: Limits, params: Params = DEFAULT
) -> Bound:
    """Raise a bound while the gap is open: its counts by cutting stock, then by set covering.

    The incumbent's counts say how far each count is worth raising.
    """
    instance = incumbent.instance
    if incumbent.placement is not None and not closed(incumbent, bound):
        hoped = counts_of(instance, levels, incumbent.contents)
        own = limits.within(0.3 * limits.remaining)
        counts = rounded_counts(instance, levels, hoped, own, params)
        found = closed_form_bound(instance, levels, counts)
        bound = found if found.watts >= bound.watts else bound
    if not closed(incumbent, bound) and limits.stop is None:
        contents = incumbent.contents if instance.identical_servers else []
        own = limits.within(0.5 * limits.remaining)
        watts = set_covering_bound(instance, contents, own, params)
        bound = bound.raised(watts, BY_COLUMNS)
    return bound


def bound_area(problem: ConsolidationProblem, *, limits: Limits, seed: int) -> Outcome:
    """GPUs of each level counted in closed form."""
    instance = instance_of(problem)
    levels = cost_levels(instance)
    return bound_only(closed_form_bound(instance, levels, level_counts(instance, levels)), limits)


def bound_columns(problem: ConsolidationProblem, *, limits: Limits, seed: int) -> Outcome:
    """`column_bounds`, with a quick placement that says how far to raise counts."""
    instance = instance_of(problem, scaled="least")
    rng, incumbent = np.random.default_rng(seed), Incumbent(instance)
    construct(incumbent, limits, rng, 3)
    levels = cost_levels(instance)
    bound = closed_form_bound(instance, levels, level_counts(instance, levels))
    anneal(incumbent, limits.within(0.1 * limits.remaining), bound.watts, rng)
    return bound_only(column_bounds(incumbent, levels, bound, limits), limits)
