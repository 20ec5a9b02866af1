"""The placement of least power, in these phases, each only while a gap is open and there is time:

1. the closed-form bound (`bounds.level_counts`) and a construction (`primal.construction`);
2. better placements, filled GPU by GPU (`large_scale`);
3. where GPUs and servers are identical and tasks have one power line, branch-and-price to the end
   (`branch_and_price.tree`); elsewhere annealing and the bounds of `bounding.column_bounds`;
4. elsewhere, the compact model on CP-SAT to the end (`formulations.compact`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

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
from optgap.solvers.consolidation.branch_and_price.tree import BY_TREE, PrimalHeuristic, Tree
from optgap.solvers.consolidation.config import DEFAULT, Params
from optgap.solvers.consolidation.formulations.compact import solve_compact
from optgap.solvers.consolidation.instance import Instance, instance_of
from optgap.solvers.consolidation.large_scale import fill_gpus
from optgap.solvers.consolidation.outcome import Bound, Incumbent, closed, outcome
from optgap.solvers.consolidation.primal.annealing import anneal
from optgap.solvers.consolidation.primal.construction import complete, construct
from optgap.solvers.consolidation.primal.diving import Diving
from optgap.solvers.consolidation.primal.server_diving import ServerDiving
from optgap.solvers.consolidation.turns import turn


def exact(problem: ConsolidationProblem, *, limits: Limits, seed: int, workers: int = 1) -> Outcome:
    """Return the placement of least power, proven optimal unless the limits end the search.

    Parameters
    ----------
    workers: CP-SAT's threads. With more than one another run may find another placement.
    """
    return Exact(instance_of(problem), limits, seed, workers).run()


def tree_heuristic(instance: Instance, params: Params = DEFAULT) -> PrimalHeuristic:
    """Return the dives that find the placements of a tree."""
    return ServerDiving(params.diving) if instance.gang else Diving(params.diving)


def repack(
    problem: ConsolidationProblem,
    stay: Sequence[tuple[int, ...] | None] | None,
    limits: Limits,
    seed: int,
) -> Outcome:
    """`exact` at one event of an online policy: what runs may move, and costs nothing when it does.

    Parameters
    ----------
    stay: the GPUs of each task where it runs, None for a newcomer: where the search begins.
    """
    if stay is None:
        return exact(problem, limits=limits, seed=seed)
    run = Exact(instance_of(problem), limits, seed)
    given = complete(run.instance, stay)
    if given is not None:
        run.incumbent.offer_flat(given)
    return run.run()


class Exact:
    """One run.

    Attributes
    ----------
    bound: the best lower bound so far. levels: cost levels of a GPU.
    by_counts: whether counts by level fix the power, and a tree may be grown.
    too_large: whether the compact model is too large to be built.
    """

    def __init__(
        self, instance: Instance, limits: Limits, seed: int, workers: int = 1,
        params: Params = DEFAULT
    ) -> None:  # fmt: skip
        self.instance, self.limits, self.seed, self.workers = instance, limits, seed, workers
        self.params, self.rng = params, np.random.default_rng(seed)
        self.incumbent = Incumbent(instance)
        small = instance.tasks <= params.tree.tasks
        self.levels = cost_levels(instance, params.tree.tasks if small else params.bounds.levels)
        counts = level_counts(instance, self.levels, params.bounds)
        self.bound: Bound = closed_form_bound(instance, self.levels, counts)
        self.by_counts = small and counts_fix_power(instance, self.levels)
        self.termination: Termination | None = None
        self.too_large = False

    @property
    def done(self) -> bool:
        """Whether the gap is closed, or the limits have ended."""
        return closed(self.incumbent, self.bound) or self.limits.stop is not None

    def run(self) -> Outcome:
        """The phases named at the top of this module."""
        construct(self.incumbent, self.limits, self.rng)
        fill_gpus(
            self.incumbent, 0.0, self.limits, self.rng, self.params.exact.fillings, self.params
        )
        if self.by_counts and self.incumbent.placement is not None:
            self._branch()
        else:
            if not self.done:
                own, params = self._part(0.25), self.params.annealing
                if self.instance.tasks <= self.params.exact.few_tasks:
                    params = replace(params, rounds=1)
                anneal(self.incumbent, own, self.bound.watts, self.rng, params)
            if not self.done and self.instance.tasks <= self.params.bounds.column_tasks:
                own = self._part(0.4)
                self.bound = column_bounds(self.incumbent, self.bound, own, self.params)
            if not self.done and self._compact():
                return Outcome(None, Status.INFEASIBLE, Termination.COMPLETED)
        return self._outcome()

    def _outcome(self) -> Outcome:
        ended = self.limits.stop or self.termination or Termination.COMPLETED
        found = outcome(self.incumbent, self.bound, ended)
        if self.too_large and found.status is not Status.OPTIMAL:
            found = replace(found, message="not proven: too large for the compact model")
        return found

    def _part(self, share: float) -> Limits:
        """Limits for a phase that may take a share of the work that is left; others go on."""
        return turn(self.limits, share * self.limits.remaining)

    def _branch(self) -> None:
        """Grow a tree; undecided nodes are opened again with higher limits until none is left."""
        if self.done:
            return
        tree = Tree(
            self.instance, self.levels, self.bound.counts, self.incumbent,
            tree_heuristic(self.instance, self.params), self.seed, self.params
        )  # fmt: skip
        more = True
        while more:
            tree.run(self.limits)
            self.bound = self.bound.raised(min(tree.bound, self.incumbent.watts), BY_TREE)
            more = not self.done and (tree.open or tree.reopen())

    def _compact(self) -> bool:
        """Solve the compact model, or anneal where it is too large; whether it is infeasible."""
        most = self.params.exact.compact_literals
        answer = solve_compact(
            self.incumbent, self.bound, self.limits, self.workers, self.seed, most
        )
        self.too_large = answer is None
        if answer is None:
            anneal(self.incumbent, self.limits, self.bound.watts, self.rng)
            return False
        self.bound, self.termination = answer.bound, answer.termination
        return answer.infeasible
