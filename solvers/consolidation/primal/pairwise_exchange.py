"""Pairwise exchange: a placement with given counts by level, where memory is the only capacity.

Counts fix how many GPUs have each level. Tasks are placed on GPUs of sufficient level where they
overload least; then pairs of GPUs exchange tasks until none is overloaded. With several capacity
rows, or tasks that must be in one server, it finds nothing that dives do not.
"""

from __future__ import annotations

import numpy as np

from optgap.models.limits import Limits
from optgap.solvers.consolidation.bounds.level_counts import CostLevels, closed_form_w
from optgap.solvers.consolidation.branch_and_price.heuristic import SearchState
from optgap.solvers.consolidation.branch_and_price.node import Node
from optgap.solvers.consolidation.config import DEFAULT, ExchangeParams
from optgap.solvers.consolidation.incumbent import Incumbent
from optgap.solvers.consolidation.instance import Instance
from optgap.solvers.consolidation.numerics import CLOSE, Counts, IntArray
from optgap.solvers.consolidation.primal.counts import (
    TargetPower,
    gpu_levels,
    one_fewer,
    richer_counts,
)
from optgap.solvers.consolidation.primal.exchange_kernels import Tasks, exchange, fill_levels


class PairwiseExchange:
    """Looks for placements with given counts. `order`: tasks in order of placement."""

    before_proof = True

    def __init__(
        self,
        instance: Instance,
        levels: CostLevels,
        rng: np.random.Generator,
        params: ExchangeParams = DEFAULT.exchange,
    ) -> None:
        self.instance, self.levels, self.rng, self.params = instance, levels, rng, params
        self.tasks = Tasks(
            instance.entry_start, instance.entry_task, np.ascontiguousarray(instance.demand[0]),
            int(instance.capacity[0, 0]), levels.of.astype(np.int64), instance.preplaced,
        )  # fmt: skip
        free = np.arange(instance.tasks) >= instance.preplaced
        self.order: IntArray = np.lexsort((-instance.demand[0], -instance.width, -levels.of, free))
        self.target = TargetPower()

    @property
    def applies(self) -> bool:
        """Whether memory is the only capacity, and a task's GPUs may be in any servers."""
        rows = len(self.instance.demand) - bool(self.instance.preplaced)
        return rows == 1 and not self.instance.gang

    def realise(self, state: SearchState, node: Node, counts: Counts, limits: Limits) -> None:
        """One attempt at the counts."""
        self.attempt(state.incumbent, counts[:-1], limits)

    def improve(self, state: SearchState, limits: Limits) -> None:
        """One attempt at higher counts than the best node's."""
        known, most = state.incumbent.watts, self.target.watts(state)
        counts = richer_counts(
            self.instance, self.levels, state.best[0].rounded[:-1], most, self.rng
        )
        self.attempt(state.incumbent, counts, limits)
        self.target.learn(state.incumbent.watts < known)

    def attempt(self, incumbent: Incumbent, counts: Counts, limits: Limits) -> bool:
        """Look for a placement with these counts of GPUs by level; whether one was found."""
        params, cap = self.params, gpu_levels(counts, int(self.instance.server_gpus[0]))
        place: IntArray = np.zeros(int(self.instance.entry_start[-1]), dtype=np.int64)
        if not fill_levels(self.order, self.tasks, cap, place):
            return False
        for pairs in (min(params.max_pairs, params.pairs * len(cap)), params.max_pairs):
            left = exchange(self.tasks, cap, place, pairs, params.noise, self.rng)
            if left == 0.0:
                incumbent.offer_flat(place)
                return True
            if limits.stop is not None or left >= params.promising * len(cap):
                break
        return False


def exchange_cheapest(
    exchanger: PairwiseExchange, counts: Counts, incumbent: Incumbent, limits: Limits
) -> None:
    """Raise all counts until a placement is found, then lower them level by level.

    Parameters
    ----------
    counts: (Q,) proven lower bounds on the counts.
    """
    instance, levels = exchanger.instance, exchanger.levels
    found: Counts | None = None
    for more in range(instance.gpus):
        trial = tuple(min(instance.gpus, count + more) for count in counts)
        dear = closed_form_w(instance, levels, trial) >= incumbent.watts * (1 - CLOSE)
        if found is not None or limits.stop is not None or dear:
            break
        found = trial if exchanger.attempt(incumbent, trial, limits) else None
    while found is not None and limits.stop is None:
        fewer = one_fewer(instance, levels, found, counts)
        found = next((one for one in fewer if exchanger.attempt(incumbent, one, limits)), None)
