"""The decision at one event, exactly: a multiple-choice knapsack with two capacities (Eq. 18-19).

Each active job takes one configuration (n, f) or waits; GPUs and power are limited; the sum of
remaining times is minimal. Lagrangian prices λ (s per GPU) and μ (s per W) bound it, reduced
costs fix most jobs, and dynamic programming over the Pareto-optimal (GPUs, power, cost) states
of the others proves the optimum (`knapsack`). No solver is needed.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from optgap.models.compiled import interpreted
from optgap.models.elastic.arrays import Floats, Ints
from optgap.models.elastic.problem import ElasticProblem
from optgap.solvers.elastic import knapsack


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
        """Return the choices of a problem's classes."""
        return cls.from_tables(problem.time_s, problem.counted_w, problem.counts)

    @classmethod
    def from_tables(cls, time_s: Floats, watts: Floats, counts: Ints) -> Choices:
        """Return the choices of (C, K, F) tables; infinite time means no configuration."""
        parts = []
        for table, power in zip(time_s, watts, strict=True):
            k, f = np.nonzero(np.isfinite(table))
            t, w, n = table[k, f], power[k, f], counts[k]
            keep = undominated(t, n.astype(float), w)
            parts.append((t[keep], n[keep], w[keep], k[keep], f[keep]))
        first = np.cumsum([0, *(len(part[0]) for part in parts)])
        return cls(first, *map(np.concatenate, zip(*parts, strict=True)))

    def configurations(self, chosen: Ints) -> tuple[Ints, Ints]:
        """Return (A,) count and clock indices of a choice, −1 and 0 for jobs that wait."""
        runs = chosen >= 0
        return np.where(runs, self.count[chosen], -1), np.where(runs, self.clock[chosen], 0)


def undominated(*criteria: Floats) -> Ints:
    """Indices of rows that no other row is at most in every criterion; the first of equals."""
    table = np.stack(criteria, axis=1)
    order = np.lexsort(table.T[::-1])
    kept = np.empty(len(table), dtype=np.int64)
    low = np.empty_like(table)  # rows of `kept`
    count = 0
    for i in order.tolist():
        if not (low[:count] <= table[i]).all(axis=1).any():
            kept[count], low[count] = i, table[i]
            count += 1
    return np.sort(kept[:count])


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

    @classmethod
    def of(
        cls, problem: ElasticProblem, choices: Choices, of_class: Ints, remaining: Floats
    ) -> Snapshot:
        """Return all the problem's GPUs for these jobs; those that wait count for the `horizon`."""
        wait = horizon(problem, of_class, remaining)
        limit_w = problem.power_allowed_w
        return cls(choices, of_class, remaining, problem.gpus, limit_w, wait)

    @classmethod
    def of_worth(
        cls, problem: ElasticProblem, sizes: Sequence[int], value: Floats, *, gpus: Ints,
        watts: Floats,
    ) -> Snapshot:  # fmt: skip
        """Return what is worth most together: at most one configuration of each job, all may wait.

        Σ value is the most where Σ over all jobs of what each falls short of the dearest
        configuration of any is the least: that sum is the objective.

        Parameters
        ----------
        sizes: (A,) how many configurations each job has.
        value, gpus, watts: (Z,) of each configuration, job by job.
        """
        dearest, none = float(value.max()), np.zeros(0, np.int64)
        short = Choices(np.cumsum([0, *sizes]), dearest - value, gpus, watts, none, none)
        everyone, ones = np.arange(len(sizes)), np.ones(len(sizes))
        limit_w = problem.power_allowed_w
        return cls(short, everyone, ones, problem.gpus, limit_w, dearest)

    def objective(self, chosen: Ints) -> float:
        """Return Σ remaining time of a choice (index into the choices, −1 to wait), s."""
        runs = chosen >= 0
        times = self.remaining[runs] * self.choices.time_s[chosen[runs]]
        waiting = int((~runs).sum())
        return math.fsum(times.tolist()) + (waiting * self.wait_s if waiting else 0.0)


@dataclass(frozen=True, eq=False)
class Solved:
    """Solution of a decision, with a bound.

    Parameters
    ----------
    chosen: (A,) index into the choices, −1 to wait; None when nothing was found.
    objective, bound: s; equal up to the tolerance when `proven`.
    prices: λ in s per GPU and μ in s per W of the Lagrangian bound that it started from.
    """

    chosen: Ints | None
    objective: float
    bound: float
    proven: bool
    prices: tuple[float, float] = (0.0, 0.0)


def horizon(problem: ElasticProblem, of_class: Ints, remaining: Floats) -> float:
    """H: twice the longest that any of these jobs could take on any configuration, s.

    Twice, so that no job is as well off waiting as running.
    """
    slowest = np.where(np.isfinite(problem.time_s), problem.time_s, 0.0).max(axis=(1, 2))
    return 2 * float((remaining * slowest[of_class]).max())


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
def solve(snapshot: Snapshot, gap: float = 1e-9, most_states: int = TUNING.most_states) -> Solved:
    """Return the optimum with proof, up to a relative gap."""
    return _Decision(snapshot, gap, most_states).run()


class _Decision:
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
                narrow, room = False, known
            elif room > 1e3 * (size + 1.0):
                narrow = False

    def round(self, prices: Floats, least: Floats, room: float, narrow: bool) -> tuple[bool, bool]:
        """Return one dynamic program: whether it found a choice, and whether it looked at all."""
        size = len(self.snapshot.remaining)
        slack = self.gap * abs(self.start) / (4 * size)
        chosen, found, complete = knapsack.core(
            *self.jobs, prices, least, self.start, room, slack, *self.there,
            TUNING.few_states if narrow else self.most_states, narrow,
        )  # fmt: skip
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
            return Solved(None, math.inf, bound, proven, pair)
        return Solved(self.best, self.value, min(self.bound, self.value), proven, pair)
