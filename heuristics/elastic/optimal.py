"""Every event decided optimally with what is known then: the exact optimum of Eq. 18-19.

Restarts and the future are left aside. A job that waits counts for twice the longest remaining
time of any, so that as many as possible run. Profiles are exact and free, as in the paper's
comparison with pre-profiled data. Σ remaining time, Eq. 18 as printed, gives most to the jobs
that have longest to go; Σ slowdown has each remaining time over the least that the job could
have, in which the work left cancels as it does in PowerFlow's priorities.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from optgap.heuristics.elastic.budget import within_budget
from optgap.heuristics.elastic.parameters import OptimalParams, OptimalSlowdownParams
from optgap.models.elastic import ElasticProblem
from optgap.models.elastic.simulation.engine import simulate
from optgap.models.elastic.simulation.protocol import Decision, Settings, State
from optgap.models.elastic.snapshot import Choices, Snapshot
from optgap.models.errors import InputError
from optgap.models.limits import Limits
from optgap.models.result import Outcome
from optgap.models.spec import chosen
from optgap.solvers.elastic.snapshot import solve

MOST_STATES = 60_000
"""Of one decision; one that needs more is taken as far as it is proven, and counted."""


@within_budget
def optimal(problem: ElasticProblem, *, limits: Limits, seed: int, **given: Any) -> Outcome:
    """The best decision at each event; `given` as in `OptimalParams`.

    Raises
    ------
    InputError: for a parameter out of range.
    """
    options = chosen(OptimalParams, given, "optimal")
    return _run(problem, limits, options, options.objective)


@within_budget
def optimal_slowdown(
    problem: ElasticProblem, *, limits: Limits, seed: int, **given: Any
) -> Outcome:
    """`optimal` with ``objective=slowdown``; `given` as in `OptimalSlowdownParams`."""
    return _run(problem, limits, OptimalSlowdownParams(**given), "slowdown")


def _run(
    problem: ElasticProblem,
    limits: Limits,
    options: OptimalParams | OptimalSlowdownParams,
    objective: str,
) -> Outcome:
    if not 0 <= options.gap < 1:
        raise InputError("optimal", "gap", options.gap, "a number from 0 to 1")
    policy = Optimal(problem, options.switch_off, options.gap, objective)
    outcome = simulate(problem, policy, limits)
    info = {**outcome.info, "unproven_decisions": policy.unproven}
    return replace(outcome, info=info)


class Optimal:
    """The snapshot optimum as a policy of the engine."""

    def __init__(
        self,
        problem: ElasticProblem,
        switch_off: bool,
        gap: float,
        objective: str = "jct",
    ) -> None:
        self.problem, self.gap, self.objective = problem, gap, objective
        self.settings = Settings(making="least", switch_off=switch_off)
        self.choices = Choices.of(problem)
        self.limit_w = problem.power_allowed_w
        self.unproven = 0
        # (C,) least time per iteration
        self.fastest = np.where(np.isfinite(problem.time_s), problem.time_s, np.inf).min(
            axis=(1, 2)
        )

    def decide(self, state: State) -> Decision:
        """Solve the decision; a proof that takes too long is not waited for."""
        weight = state.remaining
        if self.objective == "slowdown":
            weight = 1 / self.fastest[state.of_class]
        snapshot = Snapshot.of(self.choices, state.problem, state.of_class, weight, self.limit_w)
        solved = solve(snapshot, self.gap, MOST_STATES)
        self.unproven += not solved.proven
        if solved.chosen is None:
            raise ValueError(f"no decision at {state.time_s} s")
        return Decision(*self.choices.configurations(solved.chosen))
