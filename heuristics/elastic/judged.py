"""Every decision of Algorithm 1 beside the proven optimum of the same decision (Eq. 18-19)."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from optgap.heuristics.elastic.parameters import PowerFlowParams
from optgap.heuristics.elastic.powerflow import PowerFlow
from optgap.heuristics.elastic.predictions import Known
from optgap.models.elastic import ElasticProblem
from optgap.models.elastic.arrays import Floats, Ints
from optgap.models.elastic.simulation.engine import simulate
from optgap.models.elastic.simulation.protocol import Decision, Settings, State
from optgap.models.elastic.snapshot import Choices, Snapshot, Solve, Solved
from optgap.models.limits import Limits

MOST_STATES = 400_000
"""Of one optimum."""


@dataclass(frozen=True)
class Judged:
    """One decision of Algorithm 1 beside its optimum.

    Parameters
    ----------
    time_s, jobs: when, and how many jobs are active.
    value, best, bound: Σ remaining time (or Σ slowdown) of what was decided, of the best choice
        found, and what is proven, s.
    proven: whether best − bound is within the gap asked for.
    off: how far `best`, worked out anew from the problem's own tables, is from `best`, relative;
        infinite where the choice breaks a limit or is below the bound worked out anew; None
        where it was not checked.
    """

    time_s: float
    jobs: int
    value: float
    best: float
    bound: float
    proven: bool
    off: float | None = None

    @property
    def gap(self) -> float:
        """Decided over best, less 1."""
        return self.value / self.best - 1


class Judge(PowerFlow):
    """PowerFlow, strict and with known profiles, whose decisions are judged as they are taken."""

    def __init__(
        self,
        problem: ElasticProblem,
        limits: Limits,
        exact: Solve,
        gap: float,
        slowdown: bool,
        checked: int,
    ) -> None:
        settings = Settings(making="least", switch_off=True)
        limit = problem.power_limit_w
        super().__init__(problem, settings, Known(problem), limit, PowerFlowParams())
        self.limits, self.exact = limits, exact
        self.gap, self.slowdown, self.checked = gap, slowdown, checked
        self.choices = Choices.of(problem)
        self.fastest = problem.time_s.min(axis=(1, 2))
        self.found: list[Judged] = []

    def decide(self, state: State) -> Decision:
        """As PowerFlow does."""
        answer = super().decide(state)
        if self.limits.stop is None:
            self.found.append(self.judge(state, answer))
        return answer

    def judge(self, state: State, answer: Decision) -> Judged:
        """One decision."""
        problem, c = state.problem, state.of_class
        weight = 1 / self.fastest[c] if self.slowdown else state.remaining
        snapshot = Snapshot.of(self.choices, problem, c, weight, self.limit_w)
        wait = snapshot.wait_s
        value = _value(problem, c, weight, answer.count, answer.clock, wait)
        best = self.exact(snapshot, self.gap, MOST_STATES)
        off = None
        if self.checked and len(self.found) % self.checked == 0:
            off = self.recomputed(best, c, weight, wait)
        return Judged(state.time_s, len(c), value, best.objective, best.bound, best.proven, off)

    def recomputed(self, solved: Solved, of_class: Ints, weight: Floats, wait: float) -> float:
        """`Judged.off`, from the tables of the problem: nothing is left out as beaten there."""
        problem, prices = self.problem, solved.prices
        if solved.chosen is None:
            return math.inf
        count, clock = self.choices.configurations(solved.chosen)
        runs = count >= 0
        used = int(problem.counts[count[runs]].sum())
        counted = np.maximum(problem.power_w, problem.idle_w * problem.counts[None, :, None])
        watts = math.fsum(counted[of_class[runs], count[runs], clock[runs]].tolist())
        priced = prices[0] * problem.counts[None, :, None] + prices[1] * counted
        least = [
            min(wait, float((w * problem.time_s[c] + priced[c]).min()))
            for c, w in zip(of_class.tolist(), weight.tolist(), strict=True)
        ]
        paid = prices[0] * problem.gpus
        if prices[1] > 0:
            paid += prices[1] * self.limit_w
        value = _value(problem, of_class, weight, count, clock, wait)
        kept = used <= problem.gpus and watts <= self.limit_w * (1 + 1e-9)
        above = math.fsum(least) - paid <= value * (1 + 1e-9)
        return abs(value / solved.objective - 1) if kept and above else math.inf


def _value(
    problem: ElasticProblem, of_class: Ints, weight: Floats, count: Ints, clock: Ints, wait: float
) -> float:
    """Σ over the jobs of weight × T_iter, those that wait at `wait`."""
    times = np.where(count >= 0, weight * problem.time_s[of_class, count, clock], wait)
    return math.fsum(times.tolist())


def judged(
    problem: ElasticProblem,
    limits: Limits,
    exact: Solve,
    gap: float = 1e-6,
    *,
    slowdown: bool = False,
    checked: int = 0,
) -> list[Judged]:
    """Algorithm 1 (strict, known profiles) beside the optimum at every event of a problem.

    Parameters
    ----------
    exact: what finds the optima.
    gap: relative, to which the optima are proven.
    slowdown: Σ of each remaining time over the least that the job could have, instead of Eq. 18.
    checked: one optimum in so many is worked out anew from the problem's tables; 0 for none.
    """
    judge = Judge(problem, limits, exact, gap, slowdown, checked)
    simulate(problem, judge, Limits())
    return judge.found
