"""A good schedule with hindsight: what the work of each job is worth decides at every event.

The first schedules are those of the online policy `work-value`, which estimates the worth. The next
goes by what work is worth at the prices of the bound; restarts, places and moves are charged by the
simulation. At last the best schedule is varied at random and what is better kept: the worth of some
jobs' work, and the time over which a restart is spread.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from optgap.models.elastic import ElasticProblem, ElasticSolution
from optgap.models.elastic.arrays import Floats
from optgap.models.elastic.simulation.engine import simulate
from optgap.models.limits import Limits
from optgap.models.result import Outcome, Status, Termination
from optgap.models.spec import chosen
from optgap.models.work import ELASTIC
from optgap.solvers.elastic.exhaustive import TUNING as EXHAUSTIVE
from optgap.solvers.elastic.exhaustive import (
    chargeable,
    completions,
    exhaustive,
    searched,
)
from optgap.solvers.elastic.most_worth import EstimatedWorth, MostWorth, Worth
from optgap.solvers.elastic.parameters import ExhaustiveParams, OfflineParams
from optgap.solvers.elastic.prices import TUNING as PRICES
from optgap.solvers.elastic.prices import Bounded, bounded
from optgap.solvers.elastic.snapshot import Choices


@dataclass(frozen=True, slots=True)
class OfflineTuning:
    """Settings that work well, beside those that users set (`OfflineParams`).

    Parameters
    ----------
    gap: relative, up to which a decision is searched.
    powers: the first schedules are those of `work-value`, with such powers.
    change: most by which the logarithm of what a job's work is worth is varied at a time.
    spread_s: time over which a restart is spread, to begin with: what it has to pay off in.
    close: a schedule so little above the bound, relative, is not improved any more.
    floor: of the dearest work: what no job's work is worth less than, so that none waits for ever.
    bound_share: of what is left of a budget, for a bound.
    vary_share: of what is left, for varying the best schedule where a search for a bound follows.
    runs, most_runs: squared jobs times schedules, and schedules, unless it is said how many.
    """

    gap: float = 1e-3
    powers: tuple[float, ...] = (0.75, 0.85, 0.6)
    change: float = 0.6
    spread_s: float = 300.0
    close: float = 1e-6
    floor: float = 1e-6
    bound_share: float = 0.5
    vary_share: float = 0.4
    runs: int = 700_000
    most_runs: int = 300


TUNING = OfflineTuning()


@dataclass(frozen=True, eq=False)
class Tried:
    """A schedule, and by what it was made.

    Parameters
    ----------
    value: mean completion − submission, s.
    worth: of an iteration; factor: (J,) by which each job's is varied.
    spread_s: over how much time a restart is spread.
    """

    value: float
    worth: Worth
    factor: Floats
    spread_s: float
    solution: ElasticSolution


class ScheduleSearch:
    """Schedules of ever less mean completion time."""

    def __init__(self, problem: ElasticProblem, options: OfflineParams, limits: Limits) -> None:
        self.problem, self.options, self.limits = problem, options, limits
        self.choices = Choices.of(problem)
        self.best: Tried | None = None
        self.runs = 0

    def run(self, worth: Worth, spread_s: float, factor: Floats | float = 1.0) -> Tried | None:
        """Return the schedule that goes by this; None where the limits stop it."""
        factors = np.broadcast_to(np.asarray(factor, dtype=float), len(self.problem))
        policy = MostWorth(
            self.problem, self.choices, lambda state: worth(state) * factors[state.jobs],
            spread_s=spread_s, gap=TUNING.gap,
        )  # fmt: skip
        outcome = simulate(self.problem, policy, self.limits)
        if outcome.termination is not Termination.COMPLETED or outcome.solution is None:
            return None
        self.runs += 1
        self.limits.spend(ELASTIC.simulated(int(outcome.info["events"]), len(self.problem)))
        ends = completions(self.problem, outcome.solution)
        value = float((ends - self.problem.jobs.submit_s).mean())
        tried = Tried(value, worth, factors, spread_s, outcome.solution)
        if self.best is None or value < self.best.value:
            self.best = tried
            self.limits.progress("schedules", value, None)
        return tried

    def known(self, worth: Floats) -> Worth:
        """Return the worth of an iteration, from the worth of each job's whole work, (J,), s."""
        floor = TUNING.floor * float(worth.max())
        per_iteration = np.maximum(worth, floor) / self.problem.jobs.iterations
        return lambda state: np.asarray(per_iteration[state.jobs])

    def begin(self) -> None:
        """As `work-value`, with more and with less of a preference for short jobs."""
        for power in TUNING.powers:
            if self.limits.stop is None:
                worth = EstimatedWorth(self.problem, self.choices, power)
                self.run(worth, TUNING.spread_s)

    def by_prices(self, worth: Floats) -> None:
        """With what work is worth at the bound's prices."""
        if self.limits.stop is None:
            self.run(self.known(worth), TUNING.spread_s)

    def vary(self, rng: np.random.Generator, bound: float) -> None:
        """Random changes of the best schedule, kept where they are better."""
        size, options = len(self.problem), self.options
        most = options.runs or min(TUNING.most_runs, TUNING.runs // size**2)
        runs = round(most * self.limits.effort)
        while self.best is not None and self.runs < runs and self.limits.stop is None:
            best = self.best
            if best.value <= bound * (1 + TUNING.close):
                return
            share, change = size ** -rng.random(), TUNING.change * rng.random()
            changed = rng.random(size) < share
            changed[rng.integers(size)] = True
            noise = np.where(changed, rng.normal(0.0, change, size), 0.0)
            spread = best.spread_s * math.exp(rng.normal(0.0, change))
            self.run(best.worth, spread, best.factor * np.exp(noise))

    def outcome(self, proof: Bounded, ended: str) -> Outcome:
        """Return the best schedule and the bound; without one where the limits left no time for it.

        `ended` is how the search for the bound did before its end.
        """
        termination = self.limits.stop or Termination.COMPLETED
        info = {"runs": self.runs}
        if self.best is None:
            return Outcome(
                None, Status.BOUND_ONLY, termination, bound=proof.bound, bound_by=proof.by,
                info=info,
            )  # fmt: skip
        proven = proof.bound >= self.best.value * (1 - EXHAUSTIVE.gap)
        why = f"not proven optimal: {unproven(self.problem)}"
        return Outcome(
            self.best.solution, Status.OPTIMAL if proven else Status.FEASIBLE, termination,
            bound=proof.bound, bound_by=proof.by, claimed=self.best.value, info=info,
            message="" if proven else "; ".join(filter(None, (why, ended))),
        )  # fmt: skip


def unproven(problem: ElasticProblem) -> str:
    """Return why no method proves more."""
    if not problem.overhead.free:
        return "restarts cost time, and when a job changes its GPUs is bounded, not searched"
    if len(problem) > EXHAUSTIVE.most_jobs:
        return (
            f"{len(problem)} jobs are too many for exhaustive, which takes {EXHAUSTIVE.most_jobs}"
        )
    return f"exhaustive takes seconds for up to {EXHAUSTIVE.few} jobs, it may take minutes for more"


def offline(problem: ElasticProblem, *, limits: Limits, seed: int, **given: Any) -> Outcome:
    """Return the best schedule found, and a bound; `given` as in `OfflineParams`.

    Raises
    ------
    InputError: for a parameter out of range.
    """
    options = chosen(OfflineParams, given, "offline")
    search = ScheduleSearch(problem, options, limits)
    search.begin()
    share = limits.within(TUNING.bound_share * limits.remaining)
    made = None
    if search.best is not None and len(problem) <= PRICES.few:
        made = completions(problem, search.best.solution)
    proof = bounded(problem, share, rounds=options.rounds, ends_s=made)
    search.by_prices(proof.worth)
    charged = len(problem) <= EXHAUSTIVE.most_charged and chargeable(problem)
    if charged:
        search.limits = limits.within(TUNING.vary_share * limits.remaining)
    elif len(problem) <= EXHAUSTIVE.few:  # with restarts taken as free the optimum is soon known
        share = limits.within(TUNING.bound_share * limits.remaining)
        relaxed = exhaustive(problem, limits=share, seed=seed)
        proof = best_of(proof, relaxed)
    search.vary(np.random.default_rng(seed), proof.bound)
    search.limits, ended = limits, ""
    if charged and search.best is not None:
        ends_s = completions(problem, search.best.solution)
        found = math.fsum((ends_s - problem.jobs.submit_s).tolist())
        most = round(ExhaustiveParams.programs * limits.effort)
        known = searched(problem, limits, proof, found=found, most=most)
        proof, ended = best_of(proof, known), known.message
    return search.outcome(proof, ended)


def best_of(proof: Bounded, known: Outcome) -> Bounded:
    """Return the larger bound."""
    if known.bound is None or known.bound <= proof.bound:
        return proof
    return replace(proof, bound=known.bound, by=known.bound_by or proof.by)
