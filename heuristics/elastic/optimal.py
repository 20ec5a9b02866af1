"""Exact optimum of Eq. 18-19 at every event, with the knowledge of that time.

The optimum ignores restarts and the future. A waiting job counts for twice the longest remaining
time of any job, so that as many as possible run. Profiles are exact and free, as in the paper's
comparison with pre-profiled data. Σ remaining time, Eq. 18 as printed, favours the jobs that have
longest to go. Σ slowdown divides each remaining time by the least that the job could have; the
remaining work then cancels, as it does in PowerFlow's priorities.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from optgap.models.elastic import ElasticProblem
from optgap.models.elastic.simulation.engine import simulate
from optgap.models.elastic.simulation.protocol import Decision, ElasticState, Settings
from optgap.models.limits import Limits
from optgap.models.result import Outcome
from optgap.solvers.elastic.snapshot import Choices, Snapshot, solve

GAP = 1e-4
"""Relative gap at which a decision counts as proven."""
MOST_STATES = 60_000
"""Largest number of states of one decision; beyond it, the best state so far decides."""


def optimal(problem: ElasticProblem, *, limits: Limits, seed: int) -> Outcome:
    """Minimise Σ remaining time at each event."""
    return _run(problem, limits, by_slowdown=False)


def optimal_slowdown(problem: ElasticProblem, *, limits: Limits, seed: int) -> Outcome:
    """Minimise Σ slowdown at each event."""
    return _run(problem, limits, by_slowdown=True)


def _run(problem: ElasticProblem, limits: Limits, by_slowdown: bool) -> Outcome:
    policy = Optimal(problem, by_slowdown)
    outcome = simulate(problem, policy, limits)
    return replace(outcome, info={**outcome.info, "unproven_decisions": policy.unproven})


class Optimal:
    """Optimum of the current state as a policy of the engine."""

    def __init__(self, problem: ElasticProblem, by_slowdown: bool) -> None:
        self.problem, self.by_slowdown = problem, by_slowdown
        self.settings = Settings(making="least", switch_off=True)
        self.choices = Choices.of(problem)
        self.unproven = 0
        # (C,) least time per iteration
        self.fastest = np.where(np.isfinite(problem.time_s), problem.time_s, np.inf).min(
            axis=(1, 2)
        )

    def decide(self, state: ElasticState) -> Decision:
        """Solve the decision within the budget of states; a proof may then be missing."""
        weight = 1 / self.fastest[state.of_class] if self.by_slowdown else state.remaining
        snapshot = Snapshot.of(state.problem, self.choices, state.of_class, weight)
        solved = solve(snapshot, GAP, MOST_STATES)
        self.unproven += not solved.proven
        if solved.chosen is None:
            raise ValueError(f"no decision at {state.time_s} s")
        return Decision(*self.choices.configurations(solved.chosen))
