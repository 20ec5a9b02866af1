"""Bounds without a tree: counts by level, and a linear program over contents of a GPU.

`bound-area` and `bound-columns` only bound; `exact` uses `column_bound` where GPUs or servers
differ.
"""

from __future__ import annotations

from optgap.models.consolidation import ConsolidationProblem
from optgap.models.limits import Limits
from optgap.models.result import Outcome
from optgap.solvers.consolidation.bounds import (
    closed_form_bound,
    cost_levels,
    counts_fix_power,
    level_counts,
)
from optgap.solvers.consolidation.column_generation.generation import ColumnGeneration
from optgap.solvers.consolidation.config import DEFAULT
from optgap.solvers.consolidation.instance import Instance, instance_of
from optgap.solvers.consolidation.numerics import CountBox
from optgap.solvers.consolidation.outcome import Bound, bound_only

BY_COLUMNS = "linear program over contents of a GPU"


def bound_area(problem: ConsolidationProblem, *, limits: Limits, seed: int) -> Outcome:
    """GPUs of each level counted in closed form."""
    return bound_only(_closed_form(instance_of(problem)), limits)


def bound_columns(problem: ConsolidationProblem, *, limits: Limits, seed: int) -> Outcome:
    """Return the larger of `bound_area` and `column_bound`."""
    instance = instance_of(problem)
    bound = _closed_form(instance)
    return bound_only(bound.raised(column_bound(instance, [], limits), BY_COLUMNS), limits)


def _closed_form(instance: Instance) -> Bound:
    levels = cost_levels(instance)
    return closed_form_bound(instance, levels, level_counts(instance, levels))


def column_bound(instance: Instance, contents: list[list[int]], limits: Limits) -> float:
    """Return min Σ_S (cost of S)·λ_S and static power, W; only equal servers are counted.

    Where GPUs, servers or power lines differ, each GPU takes its share of a server's static power.

    Parameters
    ----------
    contents: residents of the GPUs of a placement, as the first columns.
    """
    levels, static_w = cost_levels(instance), None
    if counts_fix_power(instance, levels):
        counts = level_counts(instance, levels)
        low = (*counts, instance.servers_for(counts[0]))
    else:
        share = float((instance.server_w / instance.server_gpus).min())
        watts = instance.least_watts + share
        levels, static_w = cost_levels(instance, DEFAULT.bounds.column_levels, watts), 0.0
        low = (0,) * (len(levels.quanta) + 1)
    box = CountBox(low, (int(instance.width.sum()),) * len(low))
    generation = ColumnGeneration(instance, levels, box, 0, static_w=static_w)
    generation.master.add(contents)
    return generation.solve(limits).bound
