"""Base of policies by the worth of each job's work, online and with hindsight."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from optgap.models.elastic import ElasticProblem
from optgap.models.elastic.arrays import Floats
from optgap.models.elastic.simulation.protocol import Decision, ElasticState, Settings
from optgap.solvers.elastic.snapshot import Choices, Snapshot, solve

STATES = 3000
"""Largest number of states in the search of one decision, which then need not be the best."""
Worth = Callable[[ElasticState], Floats]
"""(A,) what an iteration of each active job is worth now, in the same unit for all."""


class MostWorth:
    """At every event the configurations that together do most worth of work, restarts taken off.

    Parameters
    ----------
    spread_s: a restart takes its share of so much time, or of what is left of the job if that is
        less, off what a new GPU count is worth.
    gap: relative, up to which a decision is searched.
    """

    def __init__(
        self,
        problem: ElasticProblem,
        choices: Choices,
        worth: Worth,
        *,
        spread_s: float,
        gap: float,
    ) -> None:
        self.settings = Settings(switch_off=True)
        self.problem, self.choices, self.worth = problem, choices, worth
        self.spread_s, self.gap = spread_s, gap
        self.start_s = np.array([problem.overhead.seconds(int(n)) for n in problem.counts])
        self.of_class = [
            np.arange(first, last)
            for first, last in zip(choices.first[:-1], choices.first[1:], strict=True)
        ]

    def decide(self, state: ElasticState) -> Decision:
        """Return the most worth of work per second that fits."""
        choices = self.choices
        parts = [self.of_class[c] for c in state.of_class.tolist()]
        which, sizes = np.concatenate(parts), [len(part) for part in parts]
        of = np.repeat(np.arange(len(parts)), sizes)
        time_s, count = choices.time_s[which], choices.count[which]
        value = self.worth(state)[of] / time_s
        if not self.problem.overhead.free:
            spread = np.minimum(self.spread_s, state.remaining[of] * time_s)
            lost = self.start_s[count] / np.maximum(self.start_s[count] + spread, 1e-9)
            value = value * np.where(count == state.count[of], 1.0, 1.0 - lost)
        gpus, watts = choices.gpus[which], choices.watts[which]
        snapshot = Snapshot.of_worth(self.problem, sizes, value, gpus=gpus, watts=watts)
        found = solve(snapshot, self.gap / len(parts), STATES)
        assert found.chosen is not None  # all may wait
        picked = np.where(found.chosen >= 0, which[found.chosen], -1)
        return Decision(*choices.configurations(picked))


class EstimatedWorth:
    """Worth of an iteration by present knowledge: (R · c)^power / R with R iterations left.

    c is what an iteration costs, in job-seconds, where A jobs are there: the least of
    T_iter · (1 + A · share) over the configurations, a share being that of the cluster's GPUs
    and of the power limit, on average.
    """

    def __init__(self, problem: ElasticProblem, choices: Choices, power: float) -> None:
        self.choices, self.power = choices, power
        shares = [choices.gpus / problem.gpus]
        if math.isfinite(problem.power_allowed_w):
            shares.append(choices.watts / problem.power_allowed_w)
        self.share = np.mean(shares, axis=0)

    def __call__(self, state: ElasticState) -> Floats:
        cost = self.choices.time_s * (1 + len(state.jobs) * self.share)
        least = np.minimum.reduceat(cost, self.choices.first[:-1])[state.of_class]
        left = state.remaining
        return np.asarray((left * least) ** self.power / left)
