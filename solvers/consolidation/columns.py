"""Set covering over what one GPU may hold: column generation, dives, branch-and-price."""

from __future__ import annotations

import numpy as np

from optgap.models.consolidation import ConsolidationProblem
from optgap.models.errors import InputError
from optgap.models.limits import Limits
from optgap.models.result import Outcome, Termination
from optgap.solvers.consolidation.bounding import column_bounds
from optgap.solvers.consolidation.bounds.level_counts import (
    CostLevels,
    closed_form_bound,
    cost_levels,
    counts_fix_power,
    level_counts,
)
from optgap.solvers.consolidation.branch_and_price.tree import BY_TREE, Tree
from optgap.solvers.consolidation.config import DEFAULT
from optgap.solvers.consolidation.config.primal import DivingParams
from optgap.solvers.consolidation.incumbent import Incumbent
from optgap.solvers.consolidation.instance import instance_of
from optgap.solvers.consolidation.outcome import Bound, closed, outcome
from optgap.solvers.consolidation.primal.annealing import anneal
from optgap.solvers.consolidation.primal.construction import construct
from optgap.solvers.consolidation.primal.diving import Diving


def columns(
    problem: ConsolidationProblem,
    *,
    limits: Limits,
    seed: int,
    dives: int = 20,
    nodes: int = 3000,
) -> Outcome:
    """Columns give the bound, dives the placement, and branch-and-price closes what is between.

    The tree is grown where GPUs and servers are equal and tasks have one power line; elsewhere the
    bounds of the root are all there is.

    Parameters
    ----------
    dives: tried at each vector of counts that the tree comes to, each with other choices.
    nodes: of branch-and-price at most; 0 for none.

    Raises
    ------
    InputError: for a negative number of either.
    """
    for name, value in (("dives", dives), ("nodes", nodes)):
        if value < 0:
            raise InputError("columns", name, value, "a number of at least 0")
    instance, rng = instance_of(problem), np.random.default_rng(seed)
    incumbent = Incumbent(instance)
    construct(incumbent, limits, rng)
    levels = cost_levels(instance, DEFAULT.tree.tasks)
    levels = levels if counts_fix_power(instance, levels) else cost_levels(instance)
    bound = closed_form_bound(instance, levels, level_counts(instance, levels))
    if not closed(incumbent, bound) and limits.stop is None:
        anneal(incumbent, limits.within(0.1 * limits.remaining), bound.watts, rng)
    grows = counts_fix_power(instance, levels) and incumbent.placement is not None and nodes
    if grows and not closed(incumbent, bound):
        bound = _branch(incumbent, levels, bound, limits, seed, dives, nodes)
    if not closed(incumbent, bound) and limits.stop is None:
        merged = cost_levels(instance)
        known = closed_form_bound(instance, merged, level_counts(instance, merged))
        known = known.raised(bound.watts, bound.by)
        bound = column_bounds(incumbent, merged, known, limits, seed)
    return outcome(incumbent, bound, limits.stop or Termination.COMPLETED)


def _branch(
    incumbent: Incumbent,
    levels: CostLevels,
    bound: Bound,
    limits: Limits,
    seed: int,
    dives: int,
    nodes: int,
) -> Bound:
    """Branch-and-price with no other heuristic than dives."""
    heuristics = [Diving(DivingParams(at_counts=dives))] if dives else []
    tree = Tree(incumbent.instance, levels, bound.counts, incumbent, heuristics, seed)
    while (tree.open or tree.reopen()) and limits.stop is None and tree.nodes < nodes:
        tree.run(limits, nodes - tree.nodes)
    return bound.raised(min(tree.bound, incumbent.watts), BY_TREE)
