"""Placements with given counts of GPUs by level: levels are fixed, and overload is repaired.

With equal GPUs and servers the power of a placement is fixed by how many GPUs cost each level or
more. So GPUs get their levels, tasks are placed where they overload least, and annealing lowers
what is too much. With memory alone two GPUs at a time then exchange tasks.
"""

from __future__ import annotations

import math

import numpy as np

from optgap.models.limits import Limits
from optgap.solvers.consolidation.bounds.level_counts import CostLevels, closed_form_w
from optgap.solvers.consolidation.branch_and_price.heuristic import SearchState
from optgap.solvers.consolidation.branch_and_price.node import Node
from optgap.solvers.consolidation.config import DEFAULT, OverloadParams
from optgap.solvers.consolidation.incumbent import Incumbent
from optgap.solvers.consolidation.instance import Instance
from optgap.solvers.consolidation.numerics import CLOSE, Counts, IntArray
from optgap.solvers.consolidation.primal.counts import (
    counts_by_cost,
    gpu_levels,
    one_fewer,
    richer_counts,
)
from optgap.solvers.consolidation.primal.exchange_kernels import exchange
from optgap.solvers.consolidation.primal.overload_kernels import fill_levels, repair


class OverloadRepair:
    """Looks for placements with given counts, and offers what it finds.

    Attributes
    ----------
    effort: times the steps of a first attempt.
    left: overload, in GPUs, that the attempts at the last counts came down to.
    """

    before_proof = True

    def __init__(
        self,
        instance: Instance,
        levels: CostLevels,
        rng: np.random.Generator,
        params: OverloadParams = DEFAULT.overload,
    ) -> None:
        self.instance, self.levels, self.rng, self.params = instance, levels, rng, params
        self.level: IntArray = levels.of.astype(np.int64)
        self.server_gpus = int(instance.server_gpus[0])
        self.memory_alone = len(instance.demand) - bool(instance.preplaced) == 1
        self.effort, self.left = params.effort, math.inf
        self._missed, self._tried = 0, 0
        self._hope = params.first_hope
        self._counts: Counts = ()
        self._nearest: tuple[float, IntArray, IntArray] | None = None

    def realise(self, state: SearchState, node: Node, counts: Counts, limits: Limits) -> None:
        """A few attempts; none once it has missed counts by far."""
        few = self._tried < self.params.most_counts and self._missed < self.params.most_missed
        if few:
            self._tried += 1
            self.attempt(state.incumbent, counts[:-1], limits)
            self._missed += self.left > self.params.missed

    def improve(self, state: SearchState, limits: Limits) -> None:
        """Attempts at counts that cost a share of the gap more than those of the best node."""
        known = state.incumbent.watts
        most = state.bound + self._hope * (known - state.bound)
        counts = richer_counts(self.instance, self.levels, state.best[0].near[:-1], most, self.rng)
        self.attempt(state.incumbent, counts, limits)
        better = state.incumbent.watts < known
        grown = min(self.params.most_hope, self._hope * self.params.hope_growth)
        self._hope = self.params.first_hope if better else grown

    def attempt(self, incumbent: Incumbent, counts: Counts, limits: Limits) -> bool:
        """Whether a placement with these counts of GPUs by level was found."""
        params, entries = self.params, self.instance.entry_task
        if counts != self._counts:
            self._counts, self._nearest = counts, None
        steps = min(params.most_steps, int(params.steps * self.effort * len(entries)))
        tries, self.left = float(params.attempts), math.inf
        while tries > 0:
            begun = self._begin(counts)
            if begun is None:
                return False
            place, cap, heats = begun
            left = self._attempt(place, cap, heats, steps)
            self.left = min(self.left, left)
            if left == 0.0:
                incumbent.offer_flat(place)
                return True
            if left < (params.near if self._nearest is None else self._nearest[0]):
                self._nearest = (left, place, cap)
            if limits.stop is not None:
                return False
            tries -= 1 if left >= params.hopeful * len(cap) else params.hopeful_cost
        return False

    def _begin(self, counts: Counts) -> tuple[IntArray, IntArray, tuple[float, float]] | None:
        """Near an earlier attempt, or tasks one by one: entries, levels of GPUs, and heats."""
        params, instance = self.params, self.instance
        if self._nearest is not None and self.rng.random() < params.warm_share:
            return self._nearest[1].copy(), self._nearest[2].copy(), params.warm_heats
        place: IntArray = np.zeros(int(instance.entry_start[-1]), dtype=np.int64)
        by_server = instance.gang and self.rng.random() < params.by_server
        for first in (True, False) if by_server else (False,):
            cap = gpu_levels(counts, self.server_gpus, first)
            if fill_levels(
                self._order(), instance.entry_start, instance.entry_task, instance.demand,
                instance.capacity[0], self.level, cap, self.server_gpus, instance.gang, place,
            ):  # fmt: skip
                return place, cap, params.heats
        return None

    def _attempt(
        self, place: IntArray, cap: IntArray, heats: tuple[float, float], steps: int
    ) -> float:
        """The overload, in GPUs, that is left; `place` is changed."""
        instance, params, left = self.instance, self.params, math.inf
        if self.memory_alone and not instance.gang:
            left = self._exchange(place, cap)
        if left > 0:
            hot = float(np.exp(self.rng.uniform(*np.log(heats))))
            left = repair(
                instance.entry_start, instance.entry_task, instance.demand, instance.capacity[0],
                self.level, cap, self.server_gpus, instance.gang, place, steps, hot, params.cold,
                params.gang_moves, params.swaps, self.rng,
            )  # fmt: skip
        if self.memory_alone and 0 < left < params.near:
            left = self._exchange(place, cap)
        return left

    def _exchange(self, place: IntArray, cap: IntArray) -> float:
        """The same by pairwise exchange; longer where it comes close."""
        instance, params, left = self.instance, self.params, math.inf
        for pairs in (min(params.most_pairs, params.pairs * len(cap)), params.most_pairs):
            left = exchange(
                instance.entry_start, instance.entry_task, instance.demand[0],
                int(instance.capacity[0, 0]), instance.preplaced, self.level, cap,
                self.server_gpus, instance.gang, place, pairs, params.noise, self.rng,
            )  # fmt: skip
            if not 0 < left < params.hopeful * len(cap):
                break
        return left

    def _order(self) -> IntArray:
        """Dearest first, wide before narrow, large before small.

        Where tasks of several GPUs stay in one server they all come first, about by size.
        """
        instance = self.instance
        sizes = (instance.demand / np.maximum(instance.capacity[0], 1)[:, None]).sum(axis=0)
        order = np.lexsort((-sizes, -instance.width, -self.levels.of)).astype(np.int64)
        if not instance.gang:
            return order
        wide = order[instance.width[order] > 1]
        noise = self.rng.uniform(self.params.least_order, 1.0, len(wide))
        whole = instance.width[wide] * np.sqrt(sizes[wide]) * noise
        wide = wide[np.argsort(-whole, kind="stable")]
        return np.concatenate([wide, order[instance.width[order] == 1]])


def repair_cheapest(
    repairer: OverloadRepair, counts: Counts, incumbent: Incumbent, limits: Limits
) -> None:
    """Offer what is found with the cheapest counts on, until it is no better.

    First one more GPU of every level until a placement is found, then fewer of some; then all
    counts in order of cost, with more effort each time.

    Parameters
    ----------
    counts: (Q,) that no placement has less of.
    """
    instance, levels = repairer.instance, repairer.levels
    floor = closed_form_w(instance, levels, counts)
    most, near = limits.remaining, repairer.params.near_per_gpu * counts[0]
    found = counts if repairer.attempt(incumbent, counts, limits) else None
    while found is None and repairer.left < near and limits.remaining > 0.3 * most:
        found = counts if repairer.attempt(incumbent, counts, limits) else None
        if math.isinf(most):
            break
    for more in range(1, instance.gpus):
        trial = tuple(min(instance.gpus, count + more) for count in counts)
        dear = closed_form_w(instance, levels, trial) >= incumbent.watts * (1 - CLOSE)
        if found is not None or limits.stop is not None or dear:
            break
        found = trial if repairer.attempt(incumbent, trial, limits) else None
    while found is not None and limits.stop is None:
        fewer = one_fewer(instance, levels, found, counts)
        found = next((one for one in fewer if repairer.attempt(incumbent, one, limits)), None)
    while (
        limits.stop is None
        and incumbent.watts > floor * (1 + CLOSE)
        and repairer.effort < repairer.params.most_effort
    ):
        for watts, trial in counts_by_cost(instance, levels, counts, repairer.params.vectors):
            if watts >= incumbent.watts * (1 - CLOSE) or limits.stop is not None:
                break
            if repairer.attempt(incumbent, trial, limits):
                break
        repairer.effort *= 2.0
