"""The bound of a time-indexed integer program on cells that are refined where it gains from them.

A dynamic discretisation (Boland, Hewitt, Marshall and Savelsbergh, Oper. Res. 65, 2017): on any
cells the program is a relaxation; its optimum tells where they are too coarse, and they are cut
there. Once they are nowhere, the optimum is a schedule of counted GPUs. Long streams are split in
time (`periods`), and the bounds of the periods add up.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from optgap.models.errors import InputError
from optgap.models.limits import Limits
from optgap.models.queueing import QueueingProblem
from optgap.models.queueing.arrays import FloatArray
from optgap.models.result import Outcome, Status, Termination
from optgap.models.times import TOLERANCE_S
from optgap.solvers.backends import solve
from optgap.solvers.backends.linear import Solved
from optgap.solvers.backends.safe import EPS, solver_slack
from optgap.solvers.queueing.areas import in_unit
from optgap.solvers.queueing.incumbents import Best, kept_patience, list_schedule
from optgap.solvers.queueing.offline import offline
from optgap.solvers.queueing.periods import SAME_S, Period, periods
from optgap.solvers.queueing.prices import best_bound
from optgap.solvers.queueing.step_program import Fineness, StepProgram
from optgap.solvers.queueing.widths import Width, widths

TOLERANCE = 1e-9
"""HiGHS's own, and what is taken off its bounds for it."""


@dataclass(frozen=True, slots=True)
class CellTuning:
    """Settings that work well.

    Parameters
    ----------
    width_s: of a cell at first, at most, s.
    fineness: of a job's starts.
    gap: relative, at which the program of a period is left for a finer one.
    weights: demands beside GPUs, at most.
    moves: times the square of the number of jobs, moves of a search, where that is less than it is
        given; five jobs have 120 orders.
    least: arrivals of a period.
    units: of work for all programs together.
    share: of what is left of them that a program may take at least; more where more is open.
    most: periods; where there are more, prices have the last word.
    """

    width_s: float = 600.0
    fineness: Fineness = field(default_factory=Fineness)
    gap: float = 1e-3
    weights: int = 3
    moves: int = 1000
    least: int = 20
    units: float = 20.0
    share: float = 0.25
    most: int = 30


TUNING = CellTuning()


def time_indexed(
    problem: QueueingProblem,
    *,
    limits: Limits,
    seed: int,
    jobs: int = 70,
    rounds: int = 6,
    moves: int = 500_000,
) -> Outcome:
    """Return a bound from the time-indexed integer program, with the best schedule that was met.

    Parameters
    ----------
    jobs: arrivals of a period at most; a period ends where the least work is left over. The
        makespan has no periods: it keeps the bound of areas.
    rounds: programs per period, each finer than the one before.
    moves: of the search for a schedule to start from, per start.

    Raises
    ------
    InputError: for periods of fewer than two jobs, or for no round or move.
    """
    for name, count, least in (("jobs", jobs, 2), ("rounds", rounds, 1), ("moves", moves, 1)):
        if count < least:
            raise InputError("time-indexed", name, count, f"at least {least}")
    closed, by = best_bound(problem, limits)
    search = _CellSearch(problem, limits, seed, closed, by, Best(problem))
    if problem.objective.goal != "makespan":
        search.programs = -(-len(problem) // jobs) <= TUNING.most * limits.effort
    search.begin(min(moves, TUNING.moves * len(problem) ** 2))
    if search.programs:
        search.run(jobs, max(1, round(rounds * limits.effort)))
    return search.outcome()


@dataclass
class _CellSearch:
    """Present knowledge: the bound of each period, and the best schedule.

    Parameters
    ----------
    closed, by: a bound on Σ wait, or on the makespan, that needs no program, s; and who proved it.
    programs: whether programs are solved.
    patient: whether `start` is within everyone's patience.
    start: of a good schedule of counted GPUs, s.
    """

    problem: QueueingProblem
    limits: Limits
    seed: int
    closed: float
    by: str
    best: Best
    programs: bool = False
    infeasible: bool = False
    patient: bool = False
    start: FloatArray = field(default_factory=lambda: np.zeros(0))
    periods: list[Period] = field(default_factory=list)

    def begin(self, moves: int) -> None:
        """Look for good schedules, with nodes and of counted GPUs."""
        self.counted = replace(self.problem, placement="count")
        self.start = list_schedule(self.counted, self.problem.jobs.arrival_s).start_s
        both = self.programs and self.problem.placement == "node"
        for each in [self.problem, self.counted] if both else [self.problem]:
            found = offline(each, limits=self.limits, seed=self.seed, moves=moves).solution
            if found is not None:
                self.start, self.patient = found.start_s, True
                if each is self.problem:
                    self.best.offer(found)

    # -- the periods --------------------------------------------------------------------------

    def run(self, jobs: int, rounds: int) -> None:
        """Solve each period in every round, for a share of the work that is left."""
        self.periods = periods(self.problem, self.start, TUNING.least, jobs, width_s=TUNING.width_s)
        self.weights, self.key = _chosen(self.problem), self.start.copy()
        if self.proven:
            return
        units = self.limits.within(TUNING.units * self.limits.effort)
        for _ in range(rounds):
            left = [each for each in self.periods if not each.settled and self._open(each) > 0]
            left.sort(key=self._open)
            for k, period in enumerate(left):
                share = self._open(period) / sum(self._open(other) for other in left[k:])
                share = max(share, TUNING.share)
                self._improve(period, units.within(share * units.remaining))
            if not left or units.stop is not None or self.infeasible:
                break

    def _open(self, period: Period) -> float:
        """Return what is open in a period, s."""
        return period.waited(self.problem.jobs.arrival_s, self.start) - period.bound

    @property
    def bound(self) -> float:
        """Proven so far on Σ wait, or on the makespan, s."""
        return max(self.closed, sum(period.bound for period in self.periods))

    def _improve(self, period: Period, limits: Limits) -> None:
        """Solve the program of a period, and cut its cells where that was too coarse."""
        if limits.stop is not None:
            return
        program = StepProgram(self.problem, period, self.weights, TUNING.fineness)
        solved = self._solve(program, period, limits)
        if solved.status is Status.INFEASIBLE:
            self.infeasible = True
            return
        if solved.bound is not None:
            proven = solved.bound - self._slack(program)
            period.bound = max(period.bound, proven)
            if self.bound > self.closed:
                self.by = f"time-indexed program, {solved.solver}"
        if solved.values is None or solved.status is not Status.OPTIMAL:
            period.settled = solved.termination is Termination.ERROR
            return
        more = program.refine(solved.values)
        more |= self._decode(program, solved.values)
        period.settled = not more or self._open(period) <= TOLERANCE_S

    def _solve(self, program: StepProgram, period: Period, limits: Limits) -> Solved:
        others = sum(other.bound for other in self.periods if other is not period)
        shown = None if self.best.solution is None else self.best.value

        def tell(phase: str, incumbent: float | None, bound: float | None) -> None:
            best = max(self.bound, others + (bound or 0.0))
            self.limits.progress("time-indexed program", shown, in_unit(self.problem, best))

        return solve(
            program.model,
            backend="highs",
            limits=limits.telling(tell),
            start=program.point(self.start) if self.patient else None,
            gap=TUNING.gap,
            seed=self.seed,
            tolerance=TOLERANCE,
            presolve=False,  # slower with it on the five programs it was measured on
        )

    def _slack(self, program: StepProgram) -> float:
        """Return what tolerances and the rounding of times and sums may add to a bound, s."""
        period, model = program.period, program.model
        count = len(period.jobs)
        later = count * (SAME_S + 4 * EPS * (abs(period.end) + 1))  # no start is later by more
        sums = EPS * model.variables * (abs(model.offset) + abs(period.end))
        return count * later + sums + solver_slack(model, TOLERANCE)

    def _decode(self, program: StepProgram, values: FloatArray) -> bool:
        """List schedules in order of the program's starts; whether they cut the period's cells."""
        for step, start in zip(program.steps, program.starts(values).tolist(), strict=True):
            if self.problem.jobs.arrival_s[step.job] >= program.period.begin:
                self.key[step.job] = start
        schedule = list_schedule(self.counted, self.key)
        self.best.offer(list_schedule(self.problem, self.key))
        start = schedule.start_s
        better = self.problem.value(start) < self.problem.value(self.start)
        if better and kept_patience(self.counted, schedule):
            self.start = start
        some, period = program.period.jobs, program.period
        return period.cut(start[some], start[some] + self.problem.jobs.duration_s[some])

    # -- what it came to ----------------------------------------------------------------------

    @property
    def proven(self) -> bool:
        """Whether bound and schedule meet."""
        return self.best.met_by(in_unit(self.problem, self.bound))

    def outcome(self) -> Outcome:
        """Bound and schedule, optimal where they meet."""
        solution, stopped = self.best.solution, self.limits.stop or Termination.COMPLETED
        if self.infeasible and solution is None:
            return Outcome(None, Status.INFEASIBLE, bound_by=self.by)
        status = Status.OPTIMAL if self.proven else Status.FEASIBLE
        return Outcome(
            solution,
            Status.BOUND_ONLY if solution is None else status,
            stopped,
            claimed=None if solution is None else self.best.value,
            bound=in_unit(self.problem, self.bound),
            bound_by=self.by,
            info={"periods": len(self.periods), "cells": sum(len(p.times) for p in self.periods)},
        )


def _chosen(problem: QueueingProblem) -> list[Width]:
    """GPUs, and the demands that weigh the stream most."""
    first, *others = widths(problem)
    length = problem.jobs.duration_s
    others.sort(key=lambda width: -float((width[0] * length).sum() / width[1]))
    return [first, *others[: TUNING.weights]]
