"""The loop: solve the restricted master, price, add columns until none is missing.

Enumeration by reduced cost lists every column that a placement below a given power can use. For any
duals, bound + Σ_S (reduced cost of S)·λ_S is at most the power of every placement in the box. So no
placement below a power uses a column whose reduced cost is above the gap between bound and power.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from optgap.models.limits import Limits
from optgap.models.work import CONSOLIDATION
from optgap.solvers.consolidation.bounds import CostLevels
from optgap.solvers.consolidation.column_generation.dual_bound import Duals, dual_bound
from optgap.solvers.consolidation.column_generation.kernels import DEEPEST, all_columns
from optgap.solvers.consolidation.column_generation.master import RestrictedMaster
from optgap.solvers.consolidation.column_generation.pricing import Priced, Pricer
from optgap.solvers.consolidation.config import DEFAULT
from optgap.solvers.consolidation.instance import Instance
from optgap.solvers.consolidation.numerics import (
    BOUND_SAFETY,
    Column,
    CountBox,
    FloatArray,
    IntArray,
)
from optgap.solvers.consolidation.turns import affordable

EXACT_GAP = 10 * BOUND_SAFETY
"""Relative gap between bound and value at which no column can be missing."""


@dataclass(frozen=True, eq=False)
class Relaxation:
    """The linear relaxation of a node, as far as column generation came.

    Parameters
    ----------
    value: optimum of the last restricted master, W; infinite where none was solved.
    bound: lower bound on the optimum of the full master, W.
    counts: (Q+1,) N and Z, and usage: (columns,) λ, of the last restricted master.
    duals: its dual values; None where none was solved.
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
    box: counts that are allowed at first. servers, static_w: see `RestrictedMaster`.

    Attributes
    ----------
    effort: factor on `PricingParams.max_nodes`; a tree that opens nodes again raises it.
    """

    def __init__(
        self,
        instance: Instance,
        levels: CostLevels,
        box: CountBox,
        servers: int,
        static_w: float | None = None,
    ) -> None:
        self.instance, self.levels = instance, levels
        self.master = RestrictedMaster(instance, levels, box, servers, static_w)
        self.pricer = Pricer(instance, levels)
        self.effort = 1.0
        self._width = instance.width.astype(np.float64)

    def solve(
        self,
        limits: Limits,
        *,
        stop_bound: float = math.inf,
        stop_value: float = -math.inf,
        gap: float = EXACT_GAP,
        quick: bool = False,
        certified: bool = False,
    ) -> Relaxation:
        """Generate columns until value and bound agree, or one of the stopping rules holds.

        Where columns are fixed in the master (`RestrictedMaster.fix`), the bound is that of the
        program without them.

        Parameters
        ----------
        stop_bound: stop once the bound is at least this, W: the node is pruned.
        stop_value: stop once the value is at most this, W: the bound cannot get above it.
        gap: stop once the relative gap between value and bound is at most this.
        quick: cut searches short (`PricingParams.heuristic_nodes`): for heuristics.
        certified: stop by `gap` only where the *last* duals prove the bound, so that columns can
            be enumerated by them.
        """
        pricing, master = DEFAULT.pricing, self.master
        most_nodes = pricing.heuristic_nodes if quick else int(self.effort * pricing.max_nodes)
        nodes, best = pricing.first_nodes, master.watts(master.box.low)
        low = np.array(master.box.low, dtype=np.float64)
        last = Relaxation(math.inf, best, low, np.zeros(len(master.columns)))
        while True:
            found = master.solve(limits)
            if found is None:  # time is up: where the program before it ended
                missing = len(master.columns) - len(last.usage)
                return replace(last, usage=np.pad(last.usage, (0, missing)))
            last = Relaxation(found.value, best, found.counts, found.usage, found.duals)
            if found.value <= stop_value:
                return last
            priced = self.pricer.price(found.duals, master.assignment, nodes)
            limits.spend(priced.work)
            bound = self.bound(found.duals, priced)
            best = max(best, bound)
            last = replace(last, bound=best)
            if best >= stop_bound or limits.stop is not None:
                return last
            ended = (bound if certified else best) >= found.value * (1 - gap)
            if not ended and not master.add(priced.columns):
                longer = pricing.nodes_growth * priced.work
                ended = priced.exact or nodes >= most_nodes or not affordable(limits, longer)
                nodes = min(most_nodes, pricing.nodes_growth * nodes)
            if ended:
                return last

    def bound(self, duals: Duals, priced: Priced) -> float:
        """Return the lower bound that the duals prove for the master's box and assignment, W."""
        master = self.master
        return dual_bound(
            duals, self._width, master.prices, master.server_gpus, master.box, priced.gpu_prices,
            priced.upper
        )  # fmt: skip


def enumerate_columns(
    generation: ColumnGeneration,
    duals: Duals,
    watts: float,
    most: int,
    limits: Limits,
    effort: float = 1.0,
) -> list[Column] | None:
    """Return all columns that a placement in the master's box for at most `watts` can use.

    None where there are more than `most`, or the search takes too long. The master must have no
    task assigned to a server.

    Parameters
    ----------
    effort: factor on the nodes that the search may take.
    """
    master, pricer = generation.master, generation.pricer
    gpu_prices = duals.gpu_prices[pricer.task_levels]
    bound = generation.bound(duals, Priced(gpu_prices, gpu_prices, [], True))
    slip = 2 * pricer.tolerance  # how negative a reduced cost may be where pricing has ended
    gap = watts - bound + slip * master.box.high[0]
    knapsack = pricer.knapsack(duals, master.assignment)
    found: IntArray = np.zeros(
        (most, min(DEEPEST, _most_tasks(pricer.demand, pricer.limit))), np.int64
    )
    size, beyond = np.zeros(most, dtype=np.int64), np.zeros(most)
    share = limits.remaining / CONSOLIDATION.node
    nodes = int(min(effort * DEFAULT.pricing.all_nodes, share))
    if not affordable(limits, CONSOLIDATION.node * nodes):
        return None
    number, ended, taken = all_columns(knapsack, gpu_prices - gap, found, size, beyond, nodes)
    limits.spend(CONSOLIDATION.node * taken)
    reduced = gap - beyond[:number]
    if not ended or (reduced < -slip).any():  # a column was missing: the duals prove no bound
        return None
    return [
        tuple(sorted(pricer.order[found[k, : size[k]]].tolist()))
        for k in np.argsort(reduced, kind="stable").tolist()
    ]


def _most_tasks(demand: IntArray, limit: IntArray) -> int:
    """Return an upper limit on the tasks that fit one GPU; at least 1."""
    smallest = np.cumsum(np.sort(demand, axis=1), axis=1)
    return max(1, int((smallest <= limit[:, None]).sum(axis=1).min()))
