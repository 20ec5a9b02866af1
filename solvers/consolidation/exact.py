"""The placement of least power: `exact`, and `columns`, which is column generation alone.

`exact` runs these phases, each only while a gap is open and there is time:

1. the closed-form bound (`bounds.level_counts`) and a construction (`primal.construction`);
2. better placements: GPU by GPU (`large_scale`), then by pairwise exchange;
3. where GPUs and servers are identical and tasks have one power line, branch-and-price to the end
   (`branch_and_price.tree`); elsewhere annealing and the bounds of `bounding.column_bounds`;
4. elsewhere, the compact model on CP-SAT to the end (`formulations.compact`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from optgap.models.consolidation import ConsolidationProblem
from optgap.models.errors import InputError
from optgap.models.limits import Limits
from optgap.models.result import Outcome, Status, Termination
from optgap.solvers.consolidation.bounding import column_bounds
from optgap.solvers.consolidation.bounds.level_counts import (
    closed_form_bound,
    cost_levels,
    counts_fix_power,
    level_counts,
)
from optgap.solvers.consolidation.branch_and_price.heuristic import PrimalHeuristic
from optgap.solvers.consolidation.branch_and_price.tree import BY_TREE, Tree
from optgap.solvers.consolidation.config import DEFAULT, Params
from optgap.solvers.consolidation.formulations.compact import solve_compact
from optgap.solvers.consolidation.incumbent import Incumbent
from optgap.solvers.consolidation.instance import Instance, instance_of
from optgap.solvers.consolidation.large_scale import fill_gpus
from optgap.solvers.consolidation.outcome import Bound, closed, outcome
from optgap.solvers.consolidation.primal.annealing import anneal
from optgap.solvers.consolidation.primal.construction import construct
from optgap.solvers.consolidation.primal.diving import Diving
from optgap.solvers.consolidation.primal.pairwise_exchange import (
    PairwiseExchange,
    exchange_cheapest,
)
from optgap.solvers.consolidation.primal.portfolio import tree_heuristics
from optgap.solvers.consolidation.primal.server_diving import ServerDiving


def exact(problem: ConsolidationProblem, *, limits: Limits, seed: int, workers: int = 0) -> Outcome:
    """The placement of least power, proven optimal where there is time for it.

    Parameters
    ----------
    workers: CP-SAT's threads; 0 for one per core, and no fewer than eight, which search in
        different ways.
    """
    return Exact(instance_of(problem), limits, seed, workers).run()


def columns(
    problem: ConsolidationProblem, *, limits: Limits, seed: int, dives: int = 20, nodes: int = 3000
) -> Outcome:
    """Column generation for the bound, diving for placements, and branch-and-price on top.

    A tree is grown where GPUs and servers are identical and tasks have one power line; elsewhere
    there are the bounds of `bounding.column_bounds` alone.

    Parameters
    ----------
    dives: dives at each vector of counts that the tree comes to, randomised after the first.
    nodes: most nodes of branch-and-price; 0 for none.

    Raises
    ------
    InputError: for a negative number of either.
    """
    for name, value in (("dives", dives), ("nodes", nodes)):
        if value < 0:
            raise InputError("columns", name, value, "a number of at least 0")
    return Exact(instance_of(problem), limits, seed).run_columns(dives, nodes)


class Exact:
    """One run of either method.

    Attributes
    ----------
    bound: the best lower bound so far. levels: cost levels of a GPU.
    by_counts: whether counts by level fix the power. branches: whether a tree is grown.
    too_large: whether the compact model is too large to be built.
    """

    def __init__(
        self, instance: Instance, limits: Limits, seed: int, workers: int = 0,
        params: Params = DEFAULT
    ) -> None:  # fmt: skip
        self.instance, self.limits, self.seed, self.workers = instance, limits, seed, workers
        self.params, self.rng = params, np.random.default_rng(seed)
        self.incumbent = Incumbent(instance)
        small = instance.tasks <= params.tree.tasks
        self.levels = cost_levels(instance, params.tree.tasks if small else params.bounds.levels)
        counts = level_counts(instance, self.levels, params.bounds)
        self.bound: Bound = closed_form_bound(instance, self.levels, counts)
        self.by_counts = counts_fix_power(instance, self.levels)
        self.branches = small and self.by_counts
        self.termination: Termination | None = None
        self.too_large = False

    @property
    def done(self) -> bool:
        """Whether the gap is closed, or time is up."""
        return closed(self.incumbent, self.bound) or self.limits.stop is not None

    def run(self) -> Outcome:
        """`exact`: the phases named at the top of this module."""
        construct(self.incumbent, self.limits, self.rng)
        self.branches = self.branches and self.incumbent.placement is not None
        self._before()
        if not self.done and self.branches:
            self._branch()
        elif not self.done:
            anneal(self.incumbent, self._share(), self.bound.watts, self.rng)
            self._progress("search")
            if not self.done and self.instance.tasks <= self.params.bounds.column_tasks:
                self._bound_by_columns(self.limits.within(0.4 * self.limits.remaining))
        if not self.done and self._compact(self.limits):
            return Outcome(None, Status.INFEASIBLE, Termination.COMPLETED)
        return self._outcome()

    def run_columns(self, dives: int, nodes: int) -> Outcome:
        """`columns`: branch-and-price with dives as its only heuristic, then the column bounds."""
        construct(self.incumbent, self.limits, self.rng)
        if not self.done:
            few = self.limits.within(0.1 * self.limits.remaining)
            anneal(self.incumbent, few, self.bound.watts, self.rng)
        if not self.done and self.branches and nodes and self.incumbent.placement is not None:
            own = replace(self.params, diving=replace(self.params.diving, dives_per_counts=dives))
            dive = ServerDiving(own) if self.instance.gang else Diving(own)
            tree = self._tree([dive] if dives else [])
            while not self.done and (tree.open or tree.reopen()) and tree.nodes < nodes:
                tree.run(self.limits, nodes - tree.nodes)
                self._raise(tree)
        if not self.done:
            self._bound_by_columns(self.limits)
        return self._outcome()

    def _outcome(self) -> Outcome:
        ended = self.limits.stop or self.termination or Termination.COMPLETED
        found = outcome(self.incumbent, self.bound, ended)
        if self.too_large and found.status is not Status.OPTIMAL:
            found = replace(found, message="not proven: too large for the compact model")
        return found

    def _progress(self, phase: str) -> None:
        self.limits.progress(phase, self.incumbent.watts, self.bound.watts)

    def _share(self, seconds: float = math.inf) -> Limits:
        """Limits for a search before a proof: at most a share of the time left."""
        most = self.params.exact.search_share * self.limits.remaining
        return self.limits.within(min(seconds, most))

    def _before(self) -> None:
        """Phase 2: fill GPU by GPU, and exchange pairwise where memory is the only capacity."""
        own = self.params.exact
        fill_gpus(self.incumbent, 0.0, self.limits, self.rng, own.fillings, self.params)
        if self.by_counts and self.incumbent.placement is not None and not self.done:
            exchanger = PairwiseExchange(self.instance, self.levels, self.rng, self.params.exchange)
            if exchanger.applies:
                seconds = own.exchange_s * self.instance.tasks / 100
                exchange_cheapest(
                    exchanger, self.bound.counts, self.incumbent, self._share(seconds)
                )
        self._progress("counts by level")

    def _branch(self) -> None:
        """Phase 3: the tree; its undecided nodes are opened again with higher limits."""
        tree = self._tree(tree_heuristics(self.instance, self.levels, self.rng, self.params))
        while not self.done and (tree.open or tree.reopen()):
            tree.run(self.limits)
            self._raise(tree)
        self._raise(tree)

    def _tree(self, heuristics: Sequence[PrimalHeuristic]) -> Tree:
        return Tree(
            self.instance, self.levels, self.bound.counts, self.incumbent, heuristics, self.seed,
            self.params
        )  # fmt: skip

    def _raise(self, tree: Tree) -> None:
        self.bound = self.bound.raised(min(tree.bound, self.incumbent.watts), BY_TREE)

    def _bound_by_columns(self, limits: Limits) -> None:
        """`column_bounds`, with as many cost levels as counts are bounded one by one for."""
        bounds = self.params.bounds
        levels = cost_levels(self.instance, bounds.levels)
        counts = level_counts(self.instance, levels, bounds)
        known = closed_form_bound(self.instance, levels, counts)
        known = known.raised(self.bound.watts, self.bound.by)
        self.bound = column_bounds(self.incumbent, levels, known, limits, self.params)

    def _compact(self, limits: Limits) -> bool:
        """Phase 4, or annealing where the model is too large; whether no placement exists."""
        most = self.params.exact.compact_literals
        answer = solve_compact(self.incumbent, self.bound, limits, self.workers, self.seed, most)
        self.too_large = answer is None
        if answer is None:
            anneal(self.incumbent, limits, self.bound.watts, self.rng)
            return False
        self.bound, self.termination = answer.bound, answer.termination
        return answer.infeasible
