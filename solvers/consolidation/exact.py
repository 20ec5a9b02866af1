"""The placement of least power, in these phases, each only while a gap is open and there is time:

1. the closed-form bound (`bounds.level_counts`) and a construction (`primal.construction`);
2. better placements: GPU by GPU (`large_scale`), then by pairwise exchange;
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
    CostLevels,
    closed_form_bound,
    closed_form_w,
    cost_levels,
    counts_fix_power,
    level_counts,
)
from optgap.solvers.consolidation.branch_and_price.tree import BY_TREE, PrimalHeuristic, Tree
from optgap.solvers.consolidation.config import DEFAULT, Params
from optgap.solvers.consolidation.formulations.compact import solve_compact
from optgap.solvers.consolidation.instance import Instance, instance_of
from optgap.solvers.consolidation.large_scale import fill_gpus
from optgap.solvers.consolidation.numerics import Counts
from optgap.solvers.consolidation.outcome import Bound, Incumbent, closed, outcome
from optgap.solvers.consolidation.primal.annealing import anneal
from optgap.solvers.consolidation.primal.construction import complete, construct
from optgap.solvers.consolidation.primal.diving import Diving
from optgap.solvers.consolidation.primal.gang_layout import GangLayout
from optgap.solvers.consolidation.primal.lns import ServerNeighbourhoods
from optgap.solvers.consolidation.primal.pairwise_exchange import PairwiseExchange
from optgap.solvers.consolidation.primal.server_diving import ServerDiving


def exact(problem: ConsolidationProblem, *, limits: Limits, seed: int, workers: int = 0) -> Outcome:
    """The placement of least power, proven optimal where there is time for it.

    Parameters
    ----------
    workers: CP-SAT's threads; 0 for one per core, and no fewer than eight, which search in
        different ways.
    """
    return Exact(instance_of(problem), limits, seed, workers).run()


def tree_heuristics(
    instance: Instance, levels: CostLevels, rng: np.random.Generator, params: Params = DEFAULT
) -> Sequence[PrimalHeuristic]:
    """The heuristics of a tree in order; one that is listed repeatedly has more turns."""
    seed = int(rng.integers(2**31))

    def anywhere(part: Instance, own: CostLevels) -> Sequence[PrimalHeuristic]:
        """Where a task's GPUs may be in any servers."""
        exchange = PairwiseExchange(part, own, np.random.default_rng(seed), params.exchange)
        return (*((exchange,) if exchange.applies else ()), Diving(params.diving))

    if not instance.gang:
        return anywhere(instance, levels)
    made = GangLayout(instance, levels, seed, params)
    layout = (made,) if made.applies else ()
    diving = ServerDiving(params.diving)
    servers = ServerNeighbourhoods(
        lambda part, own: (diving,) if part.gang else anywhere(part, own), seed, params.lns
    )
    return (*4 * layout, servers, *4 * layout, diving)


def repack(
    problem: ConsolidationProblem,
    stay: Sequence[tuple[int, ...] | None] | None,
    limits: Limits,
    seed: int,
) -> Outcome:
    """`exact` at one event of an online policy: what runs may move, and costs nothing when it does.

    Parameters
    ----------
    stay: the GPUs of each task where it runs, None for a newcomer: where the search begins. Without
        it, `exact` with all its threads.
    """
    if stay is None:
        return exact(problem, limits=limits, seed=seed)
    run = Exact(instance_of(problem), limits, seed, workers=2)
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
        self.by_counts = small and counts_fix_power(instance, self.levels)
        self.termination: Termination | None = None
        self.too_large = False

    @property
    def done(self) -> bool:
        """Whether the gap is closed, or time is up."""
        return closed(self.incumbent, self.bound) or self.limits.stop is not None

    def run(self) -> Outcome:
        """The phases named at the top of this module."""
        construct(self.incumbent, self.limits, self.rng)
        fill_gpus(
            self.incumbent, 0.0, self.limits, self.rng, self.params.exact.fillings, self.params
        )
        if self.by_counts and self.incumbent.placement is not None:
            self._exchange()
            self._branch()
        else:
            if not self.done:
                own = self._part(self.params.exact.search_share)
                anneal(self.incumbent, own, self.bound.watts, self.rng)
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
        """Limits for a phase that may take a share of the time that is left."""
        return self.limits.within(share * self.limits.remaining)

    def _exchange(self) -> None:
        """Where memory is the only capacity: raise counts until they are realised, then lower."""
        exchanger = PairwiseExchange(self.instance, self.levels, self.rng, self.params.exchange)
        least = counts = self.bound.counts
        while exchanger.applies and not self._realised(exchanger, counts):
            counts = tuple(count + 1 for count in counts)
            if counts[0] > self.instance.gpus or self.done:
                return
        for q in np.argsort(-self.levels.steps_w).tolist() if exchanger.applies else ():
            while counts[q] > max(least[q], *counts[q + 1 : q + 2], 0):
                fewer = (*counts[:q], counts[q] - 1, *counts[q + 1 :])
                if not self._realised(exchanger, fewer):
                    break
                counts = fewer
        self.limits.progress("counts by level", self.incumbent.watts, self.bound.watts)

    def _realised(self, exchanger: PairwiseExchange, counts: Counts) -> bool:
        """Whether pairwise exchange finds a better placement with these counts."""
        better = closed_form_w(self.instance, self.levels, counts) < self.incumbent.watts
        return better and not self.done and exchanger.attempt(self.incumbent, counts)

    def _branch(self) -> None:
        """Grow a tree; undecided nodes are opened again with higher limits until none is left."""
        if self.done:
            return
        heuristics = tree_heuristics(self.instance, self.levels, self.rng, self.params)
        tree = Tree(
            self.instance, self.levels, self.bound.counts, self.incumbent, heuristics, self.seed,
            self.params
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
