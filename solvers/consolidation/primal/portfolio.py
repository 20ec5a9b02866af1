"""Which heuristics the tree is given: their turns follow the order of the list."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from optgap.solvers.consolidation.bounds.level_counts import CostLevels, cost_levels
from optgap.solvers.consolidation.branch_and_price.heuristic import PrimalHeuristic
from optgap.solvers.consolidation.config import DEFAULT, Params
from optgap.solvers.consolidation.instance import Instance
from optgap.solvers.consolidation.primal.diving import Diving
from optgap.solvers.consolidation.primal.gang_layout import GangLayout
from optgap.solvers.consolidation.primal.lns import ServerNeighbourhoods
from optgap.solvers.consolidation.primal.pairwise_exchange import PairwiseExchange
from optgap.solvers.consolidation.primal.residual_diving import ResidualDiving


def tree_heuristics(
    instance: Instance, levels: CostLevels, rng: np.random.Generator, params: Params = DEFAULT
) -> Sequence[PrimalHeuristic]:
    """For a whole problem."""
    seed = int(rng.integers(2**31))

    def sub_problem(part: Instance, own: CostLevels) -> Sequence[PrimalHeuristic]:
        exchange = PairwiseExchange(part, own, np.random.default_rng(seed), params.exchange)
        return (*((exchange,) if exchange.applies else ()), Diving(params.diving))

    many_levels = len(levels.quanta) > params.tree.decided_levels
    if not instance.gang:
        if instance.tasks > params.tree.decided_tasks and not many_levels:
            return (*sub_problem(instance, levels)[:-1], ResidualDiving(params))
        return sub_problem(instance, levels)
    servers = ServerNeighbourhoods(
        lambda part: sub_problem(part, cost_levels(part)), seed, params.lns
    )
    layout = GangLayout(instance, levels, sub_problem, seed, params.gang_layout)
    diving = Diving(params.diving)
    if not layout.applies:
        return (diving, servers)
    if instance.tasks <= params.tree.small_gangs:
        return (layout, layout, layout, diving, servers)
    return (*4 * [layout], servers, *4 * [layout], diving)
