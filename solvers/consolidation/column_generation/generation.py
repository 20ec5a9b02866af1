"""Column generation for a node of the tree, and all columns that a good placement can use.

Enumeration by reduced cost lists every column that a placement below a given power can use. For any
duals, bound + Σ_S (reduced cost of S)·λ_S is at most the power of every placement in the box. So no
placement below a power uses a column whose reduced cost is above the gap between bound and power.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from optgap.models.limits import Limits
from optgap.models.work import CONSOLIDATION
from optgap.solvers.consolidation.bounds import CostLevels
from optgap.solvers.consolidation.column_generation.dual_bound import dual_bound
from optgap.solvers.consolidation.column_generation.kernels import DEEPEST, all_columns
from optgap.solvers.consolidation.column_generation.master import (
    Duals,
    LpSolution,
    RestrictedMaster,
)
from optgap.solvers.consolidation.column_generation.pricing import Priced, Pricer
from optgap.solvers.consolidation.config import DEFAULT
from optgap.solvers.consolidation.instance import Instance
from optgap.solvers.consolidation.numerics import (
    BOUND_SAFETY,
    Column,
    CountBox,
    IntArray,
)
from optgap.solvers.consolidation.turns import affordable
from optgap.solvers.engines.column_generation import Pricing, generate

EXACT_GAP = 10 * BOUND_SAFETY
"""Relative gap between bound and value at which no column can be missing."""


@dataclass(frozen=True, eq=False)
class Relaxation(LpSolution):
    """The last restricted master of a node, which is where column generation came to.

    Its value is infinite and its duals are 0 where none was solved.

    Parameters
    ----------
    bound: lower bound on the optimum of the full master, W.
    """

    bound: float


class ColumnGeneration:
    """A restricted master and its pricing.

    Parameters
    ----------
    box: counts that are allowed at first. servers, static_w: see `RestrictedMaster`.

    Attributes
    ----------
    effort: factor on `PricingParams.max_nodes`; a tree that opens nodes again raises it.
    """

    _last: LpSolution
    _priced: Priced

    def __init__(
        self,
        instance: Instance,
        levels: CostLevels,
        box: CountBox,
        servers: int,
        *,
        static_w: float | None = None,
    ) -> None:
        self.instance, self.levels = instance, levels
        self.master = RestrictedMaster(instance, levels, box, servers, static_w=static_w)
        self.pricer = Pricer(instance, levels)
        self.effort = 1.0

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
        pricing, low = DEFAULT.pricing, self.master.box.low
        self._ends, self._certified = (stop_bound, stop_value, gap), certified
        self._most = int(pricing.heuristic_nodes if quick else self.effort * pricing.max_nodes)
        self._nodes = pricing.first_nodes
        tasks, levels = self.instance.tasks, len(low) - 1
        none = Duals.of_rows(np.zeros(tasks + levels + 1), tasks, levels)
        self._last = LpSolution(math.inf, none, np.array(low, dtype=np.float64), np.zeros(0))
        bound = generate(self, limits, bound=self.master.watts(low)).bound
        last, columns = self._last, len(self.master.columns)
        usage = np.pad(last.usage, (0, columns - len(last.usage)))  # where the last was cut short
        return Relaxation(last.value, last.duals, last.counts, usage, bound)

    def solve_master(self, limits: Limits) -> LpSolution | None:
        """Solve the restricted master."""
        found = self.master.solve(limits)
        self._last, self._proven = found or self._last, -math.inf
        return found

    def price(self, duals: Duals, limits: Limits) -> Pricing[Duals]:
        """Search for columns of negative reduced cost; none is added where the bound suffices."""
        priced = self.pricer.price(duals, self.master.assignment, self._nodes)
        limits.spend(priced.work)
        self._priced, self._proven = priced, dual_bound(duals, self.master, priced)
        done = self.closed(self._last.value, self._proven)
        return Pricing(self._proven, duals, 0 if done else self.master.add(priced.columns))

    def closed(self, value: float, bound: float) -> bool:
        """Tell whether a stopping rule of `solve` holds."""
        stop_bound, stop_value, gap = self._ends
        close = (self._proven if self._certified else bound) >= value * (1 - gap)
        return close or value <= stop_value or bound >= stop_bound

    def escalate(self, closed: bool, limits: Limits) -> bool:
        """Search longer, if the search left anything out."""
        growth = DEFAULT.pricing.nodes_growth
        if closed or self._priced.exact or self._nodes >= self._most:
            return False
        self._nodes = min(self._most, growth * self._nodes)
        return affordable(limits, growth * self._priced.work)


def enumerate_columns(
    generation: ColumnGeneration,
    duals: Duals,
    watts: float,
    most: int,
    *,
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
    bound = dual_bound(duals, master, Priced(gpu_prices, gpu_prices, [], True))
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
