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
from optgap.models.elastic import knapsack
from optgap.models.elastic.problem import ElasticProblem, Floats, Ints

MOST_STATES = 400_000
FEW_STATES = 150
"""Kept at a time while no good choice is known: the most promising."""
FIRST_ROOM = 1e-7
"""The least room of a first round, relative to the bound."""
GROWTH = 2.0
"""Of the room from one round to the next."""


@dataclass(frozen=True, eq=False)
class Choices:
    """The configurations of each class that no other beats in time, GPUs and power at once.

    Parameters
    ----------
    first: (C+1,) where each class begins in the arrays that follow.
    time_s, gpus, watts: (Z,) T_iter, n, and power as the limit counts it.
    count, clock: (Z,) indices into the problem's counts and clocks.
    """

    first: Ints
    time_s: Floats
    gpus: Ints
    watts: Floats
    count: Ints
    clock: Ints

    @classmethod
    def of(cls, problem: ElasticProblem) -> Choices:
        """Those of a problem's classes."""
        idle = problem.idle_w * problem.counts[None, :, None]
        counted = np.maximum(problem.power_w, idle)
        return cls.from_tables(problem.time_s, counted, problem.counts)

    @classmethod
    def from_tables(cls, time_s: Floats, watts: Floats, counts: Ints) -> Choices:
        """From (C, K, F) tables; infinite time where there is no configuration."""
        rows: list[tuple[float, int, float, int, int]] = []
        first = [0]
        for c in range(len(time_s)):
            k, f = np.nonzero(np.isfinite(time_s[c]))
            t, w, n = time_s[c, k, f], watts[c, k, f], counts[k]
            keep = undominated(t, n.astype(float), w)
            rows += zip(t[keep], n[keep], w[keep], k[keep], f[keep], strict=True)
            first.append(len(rows))
        columns = list(zip(*rows, strict=True))
        return cls(
            np.array(first, dtype=np.int64),
            np.array(columns[0], dtype=np.float64),
            np.array(columns[1], dtype=np.int64),
            np.array(columns[2], dtype=np.float64),
            np.array(columns[3], dtype=np.int64),
            np.array(columns[4], dtype=np.int64),
        )


def undominated(*criteria: Floats) -> Ints:
    """Indices of rows that no other row is at most in every criterion; the first of equals."""
    table = np.stack(criteria, axis=1)
    order = np.lexsort(table.T[::-1])
    kept: list[int] = []
    for i in order.tolist():
        if not any((table[j] <= table[i]).all() for j in kept):
            kept.append(i)
    return np.array(sorted(kept), dtype=np.int64)


@dataclass(frozen=True, eq=False)
class Snapshot:
    """One decision.

    Parameters
    ----------
    choices: configurations by class.
    of_class, remaining: (A,) class and iterations left of each job.
    gpus, limit_w: what is there.
    wait_s: H, what a job that waits counts for; infinite where all must run.
    """

    choices: Choices
    of_class: Ints
    remaining: Floats
    gpus: int
    limit_w: float
    wait_s: float

    def objective(self, chosen: Ints) -> float:
        """Σ remaining time of a choice (index into the choices, −1 to wait), s."""
        runs = chosen >= 0
        times = self.remaining[runs] * self.choices.time_s[chosen[runs]]
        waiting = int((~runs).sum())
        return math.fsum(times.tolist()) + (waiting * self.wait_s if waiting else 0.0)

    def feasible(self, chosen: Ints) -> bool:
        """Whether both capacities are kept, and nobody waits who must not."""
        held = chosen[chosen >= 0]
        watts = math.fsum(self.choices.watts[held].tolist())
        waits = (chosen < 0).any() and not math.isfinite(self.wait_s)
        gpus = int(self.choices.gpus[held].sum())
        return not waits and gpus <= self.gpus and watts <= self.limit_w * (1 + 1e-12)


@dataclass(frozen=True, eq=False)
class Solved:
    """What is known of a decision.

    Parameters
    ----------
    chosen: (A,) index into the choices, −1 to wait; None when nothing was found.
    objective, bound: s; equal up to the tolerance when `proven`.
    states: the most that were kept at a time.
    prices: λ in s per GPU and μ in s per W of the Lagrangian bound that it started from.
    """

    chosen: Ints | None
    objective: float
    bound: float
    proven: bool
    states: int = 0
    prices: tuple[float, float] = (0.0, 0.0)

    @property
    def gap(self) -> float:
        """(objective − bound)/bound."""
        return (self.objective - self.bound) / self.bound if self.bound > 0 else 0.0


def horizon(problem: ElasticProblem, of_class: Ints, remaining: Floats) -> float:
    """H: twice the longest that any of these jobs could take on any configuration, s.

    Twice, so that no job is as well off waiting as running.
    """
    slowest = np.where(np.isfinite(problem.time_s), problem.time_s, 0.0).max(axis=(1, 2))
    return 2 * float((remaining * slowest[of_class]).max())


@interpreted(False)
def solve(snapshot: Snapshot, gap: float = 1e-9, most_states: int = MOST_STATES) -> Solved:
    """The optimum with proof, up to a relative gap."""
    return _Search(snapshot, gap, most_states).run()


class _Search:
    """The state of `solve`: the best choice so far, and what is proven."""

    def __init__(self, snapshot: Snapshot, gap: float, most_states: int) -> None:
        c = snapshot.choices
        self.snapshot, self.gap, self.most_states = snapshot, gap, most_states
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
            room = max((self.value - self.start) / 1024, FIRST_ROOM * size)
        narrow = True
        while True:
            found, complete = self.round(all_prices, least, room, narrow)
            if self.closed or (found and complete):
                return self.solved(True)
            if not narrow:  # all states do not fit, or there is no choice at all
                return self.solved(complete)
            room *= GROWTH
            known = self.value * (1 - self.gap / 4) - self.start
            if found or room >= known:
                narrow, room = False, known
            elif room > 1e3 * (size + 1.0):
                narrow = False

    def round(self, prices: Floats, least: Floats, room: float, narrow: bool) -> tuple[bool, bool]:
        """One dynamic program: whether it found a choice, and whether it looked at all."""
        size = len(self.snapshot.remaining)
        slack = self.gap * abs(self.start) / (4 * size)
        chosen, found, complete, wide = knapsack.core(
            *self.jobs, prices, least, self.start, room, slack, *self.there,
            FEW_STATES if narrow else self.most_states, narrow,
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
        """What is known."""
        pair = (float(self.prices[0]), float(self.prices[1]))
        if not math.isfinite(self.value):
            bound = math.inf if proven else self.bound
            return Solved(None, math.inf, bound, proven, self.states, pair)
        return Solved(self.best, self.value, min(self.bound, self.value), proven, self.states, pair)
