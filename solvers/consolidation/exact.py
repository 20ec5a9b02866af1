"""The placement of least power, in these phases, each only while a gap is open and there is time:

1. the closed-form bound (`bounds`) and a construction (`primal.construction`);
2. better placements, filled GPU by GPU (`large_scale`);
3. where GPUs and servers are identical and tasks have one power line, branch-and-price to the end
   (`branch_and_price.tree`);
4. elsewhere iterated greedy, the bound by `bounding.column_bound`, and unless there are too many
   the integer program over all sets of tasks that fit a GPU (`covering`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from optgap.models.consolidation import ConsolidationProblem
from optgap.models.limits import Limits
from optgap.models.result import Outcome, Status, Termination
from optgap.solvers.consolidation.bounding import BY_COLUMNS, column_bound
from optgap.solvers.consolidation.bounds import (
    closed_form_bound,
    cost_levels,
    counts_fix_power,
    level_counts,
)
from optgap.solvers.consolidation.branch_and_price.tree import BY_TREE, Tree
from optgap.solvers.consolidation.config import DEFAULT
from optgap.solvers.consolidation.covering import solve_covering
from optgap.solvers.consolidation.instance import Instance, instance_of
from optgap.solvers.consolidation.large_scale import fill_gpus
from optgap.solvers.consolidation.outcome import Bound, Incumbent, closed, outcome
from optgap.solvers.consolidation.primal.construction import complete, construct
from optgap.solvers.consolidation.primal.diving import Diving
from optgap.solvers.consolidation.primal.iterated_greedy import improve
from optgap.solvers.consolidation.turns import turn


def exact(problem: ConsolidationProblem, *, limits: Limits, seed: int) -> Outcome:
    """Return the placement of least power, proven optimal unless the limits end the search."""
    return Exact(instance_of(problem), limits, seed).run()


def repack(
    problem: ConsolidationProblem,
    stay: Sequence[tuple[int, ...] | None] | None,
    limits: Limits,
    seed: int,
) -> Outcome:
    """Solve `exact` at one event of an online policy; running tasks may migrate at no cost.

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
    """

    def __init__(self, instance: Instance, limits: Limits, seed: int) -> None:
        self.instance, self.limits, self.seed = instance, limits, seed
        self.rng = np.random.default_rng(seed)
        self.incumbent = Incumbent(instance)
        small = instance.tasks <= DEFAULT.tree.tasks
        self.levels = cost_levels(instance, DEFAULT.tree.tasks if small else DEFAULT.bounds.levels)
        counts = level_counts(instance, self.levels)
        self.bound: Bound = closed_form_bound(instance, self.levels, counts)
        self.by_counts = small and counts_fix_power(instance, self.levels)

    @property
    def done(self) -> bool:
        """Whether the gap is closed, or the limits have ended."""
        return closed(self.incumbent, self.bound) or self.limits.stop is not None

    def run(self) -> Outcome:
        """Return the phases named at the top of this module."""
        construct(self.incumbent, self.limits, self.rng)
        fill_gpus(self.incumbent, 0.0, self.limits, self.rng, tries=DEFAULT.exact.fillings)
        if self.done:
            return self._outcome()
        if self.by_counts and self.incumbent.placement is not None:
            self._branch()
            return self._outcome()
        return self._without_tree()

    def _outcome(self, termination: Termination = Termination.COMPLETED) -> Outcome:
        return outcome(self.incumbent, self.bound, self.limits.stop or termination)

    def _part(self, share: float) -> Limits:
        """Limits for a phase that may take a share of the work that is left; others go on."""
        return turn(self.limits, share * self.limits.remaining)

    def _branch(self) -> None:
        """Grow a tree; undecided nodes are opened again with higher limits until none is left."""
        tree = Tree(
            self.instance, self.levels, self.bound.counts, self.incumbent,
            heuristic=Diving(), seed=self.seed,
        )  # fmt: skip
        more = True
        while more:
            tree.run(self.limits)
            self.bound = self.bound.raised(min(tree.bound, self.incumbent.watts), BY_TREE)
            more = not self.done and (tree.open or tree.reopen())

    def _without_tree(self) -> Outcome:
        """Better placement and bound, and solve the covering program if it is not too large."""
        floor = self.bound
        improve(self.incumbent, self._part(0.25), floor.watts, self.rng)
        if not self.done and self.instance.tasks <= DEFAULT.bounds.column_tasks:
            contents = self.incumbent.contents if self.instance.identical_servers else []
            watts = column_bound(self.instance, contents, self._part(0.4))
            self.bound = floor.raised(watts, BY_COLUMNS)
        if self.done:
            return self._outcome()
        answer = solve_covering(self.incumbent, floor, self.limits, self.seed)
        if answer is None:
            found = self._outcome()
            return replace(found, message="not proven: too many sets of tasks fit a GPU")
        if answer.infeasible:
            return Outcome(None, Status.INFEASIBLE, Termination.COMPLETED)
        self.bound = self.bound.raised(answer.bound.watts, answer.bound.by)
        return self._outcome(answer.termination)
