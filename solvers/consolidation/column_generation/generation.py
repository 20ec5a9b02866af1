"""The pricing loop: solve the restricted master, price, add columns, until none is missing."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from optgap.models.clock import working_time
from optgap.models.limits import Limits
from optgap.solvers.consolidation.bounds.level_counts import CostLevels
from optgap.solvers.consolidation.column_generation.dual_bound import Duals, dual_bound
from optgap.solvers.consolidation.column_generation.master import RestrictedMaster
from optgap.solvers.consolidation.column_generation.pricing import Priced, Pricer
from optgap.solvers.consolidation.column_generation.space import CountBox
from optgap.solvers.consolidation.config import DEFAULT, Params
from optgap.solvers.consolidation.instance import Instance
from optgap.solvers.consolidation.numerics import BOUND_SAFETY, FloatArray

EXACT_GAP = 10 * BOUND_SAFETY
"""Relative gap between bound and value at which no column can be missing."""


@dataclass(frozen=True, eq=False)
class Relaxation:
    """Where column generation ended.

    Parameters
    ----------
    value: of the restricted master, W; infinite where none was solved.
    bound: no more than the value of the full one, W.
    counts: (Q+1,) N and Z. usage: (columns,) λ.
    duals: of the last restricted master.
    """

    value: float
    bound: float
    counts: FloatArray
    usage: FloatArray
    duals: Duals | None = None


class ColumnGeneration:
    """A restricted master and its pricing.

    Parameters
    ----------
    box: counts that are allowed. servers: see `RestrictedMaster`.
    """

    def __init__(
        self,
        instance: Instance,
        levels: CostLevels,
        box: CountBox,
        servers: int,
        static_w: float | None = None,
        params: Params = DEFAULT,
    ) -> None:
        self.instance, self.levels, self.params = instance, levels, params
        self.master = RestrictedMaster(instance, levels, box, servers, static_w, params.master)
        self.pricer = Pricer(instance, levels, params.pricing)
        self._width = instance.width.astype(np.float64)

    def solve(
        self,
        limits: Limits,
        *,
        enough: float = math.inf,
        hopeless: float = -math.inf,
        gap: float = EXACT_GAP,
        quick: bool = False,
        certified: bool = False,
    ) -> Relaxation:
        """Generate until the bound is within `gap` or `enough`, or the value is `hopeless`.

        The value is what the bound can reach at most. With columns fixed in the master, the bound
        is that of the program without.

        Parameters
        ----------
        quick: searches for columns are cut short; what is left out may be worth something.
        certified: it is not the end before the last duals prove the bound, not earlier ones: then
            columns can be enumerated by them.
        """
        pricing, master = self.params.pricing, self.master
        most_nodes = pricing.heuristic_nodes if quick else pricing.max_nodes
        nodes, best = pricing.first_nodes, master.watts(master.box.low)
        low = np.array(master.box.low, dtype=np.float64)
        last = Relaxation(math.inf, best, low, np.zeros(len(master.columns)))
        while True:
            found = master.solve(limits)
            if found is None:  # time is up: where the program before it ended
                missing = len(master.columns) - len(last.usage)
                return replace(last, usage=np.pad(last.usage, (0, missing)))
            last = Relaxation(found.value, best, found.counts, found.usage, found.duals)
            if found.value <= hopeless:
                return last
            began = working_time()
            priced = self.pricer.price(found.duals, master.assignment, nodes)
            longer = pricing.nodes_growth * (working_time() - began)
            bound = self.bound(found.duals, priced)
            best = max(best, bound)
            last = replace(last, bound=best)
            if best >= enough or limits.stop is not None:
                return last
            ended = (bound if certified else best) >= found.value * (1 - gap)
            if not ended and not master.add(priced.columns):
                ended = priced.exact or nodes >= most_nodes or longer > limits.remaining
                nodes = min(most_nodes, pricing.nodes_growth * nodes)
            if ended:
                if not master.raise_penalty(found.surplus):
                    return last
                nodes = pricing.first_nodes

    def bound(self, duals: Duals, priced: Priced) -> float:
        """What the duals prove of the master's box and assignment, W."""
        master = self.master
        return dual_bound(
            duals, self._width, master.prices, master.server_gpus, master.box, priced.rents,
            priced.worth,
        )  # fmt: skip
