"""The placement of least power: heuristics, branch-and-price, and the compact model."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from optgap.models.clock import working_time
from optgap.models.consolidation import ConsolidationProblem
from optgap.models.limits import Limits
from optgap.models.result import Outcome, Status, Termination
from optgap.solvers.consolidation.bounding import column_bounds
from optgap.solvers.consolidation.bounds.level_counts import (
    closed_form_bound,
    cost_levels,
    counts_fix_power,
    level_counts,
)
from optgap.solvers.consolidation.bounds.server_assignment import server_assignment_bound
from optgap.solvers.consolidation.branch_and_price.heuristic import PrimalHeuristic
from optgap.solvers.consolidation.branch_and_price.tree import BY_TREE, Tree
from optgap.solvers.consolidation.config import DEFAULT, Params
from optgap.solvers.consolidation.formulations.compact import solve_compact
from optgap.solvers.consolidation.incumbent import Incumbent
from optgap.solvers.consolidation.instance import Instance, instance_of
from optgap.solvers.consolidation.large_scale.filling import fill_gpus
from optgap.solvers.consolidation.outcome import Bound, closed, outcome
from optgap.solvers.consolidation.primal.annealing import anneal
from optgap.solvers.consolidation.primal.construction import construct
from optgap.solvers.consolidation.primal.overload_repair import OverloadRepair, repair_cheapest
from optgap.solvers.consolidation.primal.portfolio import tree_heuristics


def exact(problem: ConsolidationProblem, *, limits: Limits, seed: int, workers: int = 0) -> Outcome:
    """The placement of least power, with proof where there is time for one.

    Parameters
    ----------
    workers: CP-SAT's threads; 0 for one per core, and no fewer than eight, which search in
        different ways.
    """
    return Exact(instance_of(problem), limits, seed, workers).run()


class Exact:
    """One run.

    Attributes
    ----------
    bound: the best that is proven.
    """

    def __init__(
        self, instance: Instance, limits: Limits, seed: int, workers: int = 0,
        params: Params = DEFAULT,
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

    @property
    def done(self) -> bool:
        """Whether no gap is open, or time is up."""
        return closed(self.incumbent, self.bound) or self.limits.stop is not None

    def run(self) -> Outcome:
        """Each step only while a gap is open and there is time."""
        construct(self.incumbent, self.limits, self.rng, params=self.params.construction)
        self.branches = self.branches and self.incumbent.placement is not None
        self._before()
        if not self.done and self.branches:
            self._branch()
        elif not self.done:
            self._without_tree()
        if not self.done and self._compact(self.limits):
            return Outcome(None, Status.INFEASIBLE, Termination.COMPLETED)
        termination = self.limits.stop or self.termination or Termination.COMPLETED
        return outcome(self.incumbent, self.bound, termination)

    def _progress(self, phase: str) -> None:
        self.limits.progress(phase, self.incumbent.watts, self.bound.watts)

    def _seconds(self, per_hundred: float) -> float:
        """For a search, from seconds per 100 tasks; no more than a share of what is left."""
        seconds = per_hundred * self.instance.tasks / 100
        return min(seconds, self.params.exact.search_share * self.limits.remaining)

    def _before(self) -> None:
        """Placements GPU by GPU, with given counts, and annealed where far from the bound."""
        own = self.params.exact
        fill_gpus(self.incumbent, 0.0, self.limits, self.rng, own.fillings, self.params)
        many = len(self.levels.quanta) > self.params.tree.decided_levels
        if self.branches and many:
            for most in own.merged_levels:
                self._repair(most, own.merged_s)
        elif self.by_counts:
            alone = len(self.instance.demand) == 1
            most = own.long_memory if alone else own.long
            long = self.instance.tasks > most and (alone or self.instance.gang)
            self._repair(None, own.repair_long_s if long else own.repair_s)
        far = self.incumbent.watts > self.bound.watts * (1 + own.far)
        if self.branches and self.instance.gang and far:
            seconds = self._seconds(own.far_s)
            anneal(self.incumbent, self.limits, seconds, self.bound.watts, self.rng)
        self._progress("counts by level")

    def _repair(self, most_levels: int | None, per_hundred: float) -> None:
        """Placements with the cheapest counts, by all levels or by merged ones."""
        if self.done or self.incumbent.placement is None:
            return
        levels, counts = self.levels, self.bound.counts
        if most_levels is not None:
            levels = cost_levels(self.instance, most_levels)
            counts = level_counts(self.instance, levels, self.params.bounds)
        repairer = OverloadRepair(self.instance, levels, self.rng, self.params.overload)
        repairer.effort = 1.0
        own = self.limits.within(self._seconds(per_hundred))
        repair_cheapest(repairer, counts, self.incumbent, own)

    def _branch(self) -> None:
        """Branch-and-price, and turns of the compact model where that may end sooner.

        The compact model has a turn as well whenever nodes are left that were not decided: they are
        gone back to with more patience.
        """
        own, instance = self.params.exact, self.instance
        tree = Tree(
            instance, self.levels, self.bound.counts, self.incumbent, self._heuristics(), self.seed,
            self.params,
        )  # fmt: skip
        gpus = tree.root.box.high[-1] * int(instance.server_gpus[0])
        tiny = gpus <= own.compact_gpus and instance.tasks <= own.compact_tasks
        by_turns = tiny and instance.gang and len(instance.demand) == 1
        turn = own.turn_s if by_turns else math.inf
        while not self.done and (tree.open or tree.reopen()):
            began = working_time()
            tree.run(self.limits.within(turn))
            self._raise(tree)
            if not self.done:
                seconds = own.compact_turn * turn if by_turns else working_time() - began
                self._compact(self.limits.within(seconds))
            turn *= own.turn_growth
        self._raise(tree)

    def _raise(self, tree: Tree) -> None:
        self.bound = self.bound.raised(min(tree.bound, self.incumbent.watts), BY_TREE)

    def _heuristics(self) -> Sequence[PrimalHeuristic]:
        return tree_heuristics(self.instance, self.levels, self.rng, self.params)

    def _without_tree(self) -> None:
        """Servers by level, annealing and columns: where counts do not fix the power."""
        own, bounds = self.params.exact, self.params.bounds
        levels = cost_levels(self.instance, bounds.levels)
        counts = level_counts(self.instance, levels, bounds)
        share = self.limits.within(min(bounds.server_s, 0.5 * self.limits.remaining))
        found = server_assignment_bound(
            self.instance, levels, counts, share, watts=self.incumbent.watts, seed=self.seed
        )
        if found.watts > self.bound.watts:
            self.bound = found
        self._progress("servers by level")
        if not self.done:
            seconds = self._seconds(own.anneal_s * min(1.0, 2000 / self.instance.tasks))
            anneal(self.incumbent, self.limits, seconds, self.bound.watts, self.rng)
            self._progress("search")
        if not self.done and self.instance.tasks <= bounds.column_tasks:
            limits = self.limits.within(0.4 * self.limits.remaining)
            known = closed_form_bound(self.instance, levels, counts).raised(
                self.bound.watts, self.bound.by
            )
            self.bound = column_bounds(
                self.incumbent, levels, known, limits, self.seed, self.params
            )

    def _compact(self, limits: Limits) -> bool:
        """The compact model, or annealing where it is too large; whether nothing is feasible."""
        most = self.params.exact.compact_literals
        answer = solve_compact(self.incumbent, self.bound, limits, self.workers, self.seed, most)
        if answer is None:
            if not self.branches:
                seconds = self._seconds(6 * self.params.exact.anneal_s)
                anneal(self.incumbent, limits, seconds, self.bound.watts, self.rng)
            return False
        self.bound, self.termination = answer.bound, answer.termination
        return answer.infeasible
