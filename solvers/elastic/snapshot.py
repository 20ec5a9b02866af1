"""The decision at one event, exactly: a multiple-choice knapsack with two capacities (Eq. 18-19).

Each active job takes one configuration (n, f) or waits; GPUs and power are limited; the sum of
remaining times is minimal. Lagrangian prices λ (s per GPU) and μ (s per W) bound it, reduced
costs fix most jobs, and dynamic programming over the Pareto-optimal (GPUs, power, cost) states
of the others proves the optimum (`knapsack`). No solver is needed.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from optgap.models.compiled import interpreted
from optgap.models.elastic.arrays import Floats
from optgap.models.elastic.snapshot import Snapshot, Solved
from optgap.solvers.elastic import knapsack


@dataclass(frozen=True, slots=True)
class DecisionTuning:
    """Settings that work well, beside those that are given.

    Parameters
    ----------
    most_states: of one search, unless it is said how many. few_states: kept at a time while no good
        choice is known, the most promising.
    first_room: the least room of a first round, relative to the bound.
    growth: of the room from one round to the next.
    """

    most_states: int = 400_000
    few_states: int = 150
    first_room: float = 1e-7
    growth: float = 2.0


TUNING = DecisionTuning()


@interpreted(False)
def solve(
    snapshot: Snapshot, gap: float = 1e-9, most_states: int = TUNING.most_states, proof: bool = True
) -> Solved:
    """Return the optimum with proof, up to a relative gap, or soon a good choice and a bound."""
    return _Decision(snapshot, gap, most_states, proof).run()


class _Decision:
    """The state of `solve`: the best choice so far, and what is proven."""

    def __init__(self, snapshot: Snapshot, gap: float, most_states: int, proof: bool) -> None:
        c = snapshot.choices
        self.snapshot, self.gap, self.most_states = snapshot, gap, most_states
        self.proof = proof
        self.jobs = (snapshot.of_class, snapshot.remaining, c.first, c.time_s, c.gpus, c.watts)
        self.there = (snapshot.gpus, min(snapshot.limit_w, knapsack.NO_LIMIT), snapshot.wait_s)
        self.prices, start, self.best, value = knapsack.best_prices(*self.jobs, *self.there, gap)
        self.value = math.inf
        if math.isfinite(value):
            knapsack.improve(*self.jobs, self.best, *self.there)
            self.value = snapshot.objective(self.best)
        paid = float(self.prices[0]) * self.there[0] + float(self.prices[1]) * self.there[1]
        self.start = start - 1e-12 * (abs(start) + paid)
        self.bound = self.start
        self.states = 0

    def run(self) -> Solved:
        """Rounds of growing room that keep few states, then one with all."""
        if self.closed:
            return self.solved(True)
        all_prices = np.vstack([self.prices, knapsack.other_prices(*self.prices)])
        least = knapsack.least_costs(*self.jobs, all_prices, self.snapshot.wait_s)
        size = max(abs(self.start), 1e-9)
        room = 1e-4 * size
        if math.isfinite(self.value):
            room = max((self.value - self.start) / 1024, TUNING.first_room * size)
        narrow = True
        while True:
            found, complete = self.round(all_prices, least, room, narrow)
            if self.closed or (found and complete):
                return self.solved(True)
            if not narrow:  # all states do not fit, or there is no choice at all
                return self.solved(complete)
            room *= TUNING.growth
            known = self.value * (1 - self.gap / 4) - self.start
            if found or room >= known:
                if not self.proof:
                    return self.solved(False)
                narrow, room = False, known
            elif room > 1e3 * (size + 1.0):
                narrow = False

    def round(self, prices: Floats, least: Floats, room: float, narrow: bool) -> tuple[bool, bool]:
        """Return one dynamic program: whether it found a choice, and whether it looked at all."""
        size = len(self.snapshot.remaining)
        slack = self.gap * abs(self.start) / (4 * size)
        chosen, found, complete, wide = knapsack.core(
            *self.jobs, prices, least, self.start, room, slack, *self.there,
            TUNING.few_states if narrow else self.most_states, narrow,
        )  # fmt: skip
        self.states = max(self.states, wide)
        if found:
            value = self.snapshot.objective(chosen)
            if value < self.value:
                self.best, self.value = chosen, value
        if complete:
            reached = min(self.start + room, self.value) if found else self.start + room
            self.bound = max(self.bound, reached - size * slack - 1e-12 * abs(reached))
        return found, complete

    @property
    def closed(self) -> bool:
        """Whether the best choice is proven up to the gap."""
        known = math.isfinite(self.value)
        return known and self.value - self.bound <= self.gap * abs(self.value)

    def solved(self, proven: bool) -> Solved:
        """Return what is known."""
        pair = (float(self.prices[0]), float(self.prices[1]))
        if not math.isfinite(self.value):
            bound = math.inf if proven else self.bound
            return Solved(None, math.inf, bound, proven, self.states, pair)
        return Solved(self.best, self.value, min(self.bound, self.value), proven, self.states, pair)
