"""The primal heuristics of a tree, in the order of their turns."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from optgap.solvers.consolidation.bounds.level_counts import CostLevels
from optgap.solvers.consolidation.branch_and_price.heuristic import PrimalHeuristic
from optgap.solvers.consolidation.config import DEFAULT, Params
from optgap.solvers.consolidation.instance import Instance
from optgap.solvers.consolidation.primal.diving import Diving
from optgap.solvers.consolidation.primal.gang_layout import GangLayout
from optgap.solvers.consolidation.primal.lns import ServerNeighbourhoods
from optgap.solvers.consolidation.primal.pairwise_exchange import PairwiseExchange
from optgap.solvers.consolidation.primal.server_diving import ServerDiving


def tree_heuristics(
    instance: Instance, levels: CostLevels, rng: np.random.Generator, params: Params = DEFAULT
) -> Sequence[PrimalHeuristic]:
    """The heuristics for an instance; one that stands there several times has more turns."""
    seed = int(rng.integers(2**31))

    def anywhere(part: Instance, own: CostLevels) -> Sequence[PrimalHeuristic]:
        """Where a task's GPUs may be in any servers."""
        exchange = PairwiseExchange(part, own, np.random.default_rng(seed), params.exchange)
        return (*((exchange,) if exchange.applies else ()), Diving(params))

    if not instance.gang:
        return anywhere(instance, levels)
    made = GangLayout(instance, levels, seed, params)
    layout = (made,) if made.applies else ()
    diving = ServerDiving(params)
    servers = ServerNeighbourhoods(
        lambda part, own: (diving,) if part.gang else anywhere(part, own), seed, params.lns
    )
    return (*4 * layout, servers, *4 * layout, diving)
