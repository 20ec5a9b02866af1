"""The decision at one event: which jobs run now, on how many GPUs and at which clock (Eq. 18-19).

A multiple-choice knapsack with two capacities, GPUs and power. Solved in `optgap.solvers.elastic`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from optgap.models.elastic.arrays import Floats, Ints
from optgap.models.elastic.problem import ElasticProblem


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
        cls,
        choices: Choices,
        problem: ElasticProblem,
        of_class: Ints,
        remaining: Floats,
        limit_w: float,
    ) -> Snapshot:
        """Return all the problem's GPUs for these jobs; those that wait count for the `horizon`."""
        wait = horizon(problem, of_class, remaining)
        limit = limit_w if math.isfinite(limit_w) else math.inf
        return cls(choices, of_class, remaining, problem.gpus, limit, wait)

    @classmethod
    def of_worth(
        cls,
        there: tuple[int, float],
        sizes: Sequence[int],
        value: Floats,
        gpus: Ints,
        watts: Floats,
    ) -> Snapshot:
        """Return what is worth most together: at most one configuration of each job, all may wait.

        Σ value is the most where Σ over all jobs of what each falls short of the dearest
        configuration of any is the least: that sum is the objective.

        Parameters
        ----------
        there: GPUs and W.
        sizes: (A,) how many configurations each job has.
        value, gpus, watts: (Z,) of each configuration, job by job.
        """
        dearest, none = float(value.max()), np.zeros(0, np.int64)
        short = Choices(np.cumsum([0, *sizes]), dearest - value, gpus, watts, none, none)
        everyone, ones = np.arange(len(sizes)), np.ones(len(sizes))
        return cls(short, everyone, ones, *there, dearest)

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
    states: the most that were kept at a time.
    prices: λ in s per GPU and μ in s per W of the Lagrangian bound that it started from.
    """

    chosen: Ints | None
    objective: float
    bound: float
    proven: bool
    states: int = 0
    prices: tuple[float, float] = (0.0, 0.0)


Solve = Callable[[Snapshot, float, int], Solved]
"""The optimum to a relative gap, with so many states at the most."""


def horizon(problem: ElasticProblem, of_class: Ints, remaining: Floats) -> float:
    """H: twice the longest that any of these jobs could take on any configuration, s.

    Twice, so that no job is as well off waiting as running.
    """
    slowest = np.where(np.isfinite(problem.time_s), problem.time_s, 0.0).max(axis=(1, 2))
    return 2 * float((remaining * slowest[of_class]).max())
