"""The bound of a time-indexed integer program on cells that are refined where it gains from them.

A dynamic discretisation (Boland, Hewitt, Marshall and Savelsbergh, Oper. Res. 65, 2017): on any
cells the program is a relaxation; its optimum tells where they are too coarse, and they are cut
there. Once they are nowhere, the optimum is a schedule of counted GPUs. Long streams are split in
time (`periods`), and the bounds of the periods add up.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import pairwise

import numpy as np

from optgap.models.errors import InputError
from optgap.models.limits import Limits
from optgap.models.queueing import QueueingProblem, QueueingSolution
from optgap.models.queueing.arrays import FloatArray
from optgap.models.result import Outcome, Status, Termination
from optgap.models.times import TOLERANCE_S
from optgap.solvers.backends import cpsat, solve
from optgap.solvers.backends.linear import Solved
from optgap.solvers.backends.safe import EPS, solver_slack
from optgap.solvers.queueing.areas import in_unit
from optgap.solvers.queueing.exact import bound_without_nodes
from optgap.solvers.queueing.incumbents import kept_patience, list_schedule
from optgap.solvers.queueing.offline import offline, polished
from optgap.solvers.queueing.periods import SAME_S, Period, Splitting, periods, reachable
from optgap.solvers.queueing.prices import best_bound
from optgap.solvers.queueing.step_program import Fineness, StepProgram
from optgap.solvers.queueing.widths import Width, widths

TOLERANCE = 1e-9
"""HiGHS's own, and what is taken off its bounds for it."""


@dataclass(frozen=True, slots=True)
class CellTuning:
    """What was found to work well.

    Parameters
    ----------
    width_s: of a cell at first, at most, s.
    fineness: of a job's starts.
    gap: relative, at which the program of a period is left for a finer one.
    weights: demands beside GPUs, at most.
    few, ends: jobs up to which every start is told apart from the outset, and rounds that they get,
        which are enough until nothing more can be proven.
    moments: starts that are possible at all, up to which all of them begin a cell.
    moves: times the square of the number of jobs, moves of a search, where that is less than it is
        given; five jobs have 120 orders.
    some: jobs up to which CP-SAT, with nodes ignored, may prove at once what the program would
        need many rounds for.
    proving: units of work that it is given.
    splitting: how periods are split at first.
    units: of work for all programs together.
    share: of what is left of them that a program may take at least; more where more is open.
    most: periods; where there are more, prices have the last word.
    """

    width_s: float = 600.0
    fineness: Fineness = field(default_factory=Fineness)
    gap: float = 1e-3
    weights: int = 3
    few: int = 30
    ends: int = 100
    moments: int = 1000
    moves: int = 1000
    some: int = 60
    proving: float = 6.0
    splitting: Splitting = field(default_factory=Splitting)
    units: float = 20.0
    share: float = 0.25
    most: int = 10


def time_indexed(
    problem: QueueingProblem,
    *,
    limits: Limits,
    seed: int,
    jobs: int = 200,
    rounds: int = 6,
    moves: int = 200_000,
) -> Outcome:
    """A bound from the time-indexed integer program, with the best schedule that was met.

    Parameters
    ----------
    jobs: arrivals of a period at most; periods are short where that costs next to nothing. The
        makespan has one period only; of longer streams it keeps the bound of areas.
    rounds: programs per period, each finer than the one before.
    moves: of the search for a schedule to start from, and of each that improves one, per start.

    Raises
    ------
    InputError: for periods of fewer than two jobs, or for no round or move.
    """
    for name, count, least in (("jobs", jobs, 2), ("rounds", rounds, 1), ("moves", moves, 1)):
        if count < least:
            raise InputError("time-indexed", name, count, f"at least {least}")
    search = _CellSearch(problem, limits, seed, jobs, rounds, moves)
    search.run()
    return search.outcome()


class _CellSearch:
    """What is known: the bound of each period, and the best schedule."""

    def __init__(
        self,
        problem: QueueingProblem,
        limits: Limits,
        seed: int,
        jobs: int,
        rounds: int,
        moves: int,
    ) -> None:
        self.problem, self.limits, self.seed, self.jobs = problem, limits, seed, jobs
        self.rounds = max(1, round(rounds * limits.effort))
        self.tuning = CellTuning()
        self.moves = min(moves, self.tuning.moves * len(problem) ** 2)
        if len(problem) <= self.tuning.few:
            self.tuning = replace(self.tuning, fineness=Fineness(reach_s=np.inf), gap=0.0)
            self.rounds = self.tuning.ends
        self.makespan = problem.objective.goal == "makespan"
        self.closed, self.by = best_bound(problem, limits)
        many = 1 if self.makespan else -(-len(problem) // jobs)
        self.programs = many <= self.tuning.most * limits.effort
        self.solution: QueueingSolution | None = None
        self.value = np.inf
        self.infeasible = False
        self.start = self._begin()
        if len(problem) <= self.tuning.some:
            self._ignore_nodes()
        splitting = replace(self.tuning.splitting, most=jobs)
        whole = self.makespan
        self.periods = periods(problem, self.start, splitting, self.tuning.width_s, whole)
        moments = reachable(problem.jobs.arrival_s, problem.jobs.duration_s, self.tuning.moments)
        for period in self.periods:
            period.cut(moments)
            period.exact = len(moments) > 0
        self.weights = _chosen(problem, self.tuning.weights)
        self.key = self.start.copy()

    def _begin(self) -> FloatArray:
        """Start times of a good schedule of counted GPUs, s."""
        problem = self.problem
        counted = replace(problem, placement="count")
        self.patient = False
        start: FloatArray | None = None
        both = problem.placement == "node" and self.programs
        for each in [problem, counted] if both else [problem]:
            found = offline(each, limits=self.limits, seed=self.seed, moves=self.moves).solution
            if found is not None:
                start, self.patient = np.asarray(found.start_s), True
                if each is problem:
                    self._offer(found)
        return list_schedule(counted, problem.jobs.arrival_s).start_s if start is None else start

    def _ignore_nodes(self) -> None:
        """Let CP-SAT prove what it can of counted GPUs."""
        limits = self.limits.within(self.tuning.proving * self.limits.effort)
        proven = bound_without_nodes(self.problem, limits, self.seed, self.closed, self.value)
        if proven > self.closed:
            self.closed, self.by = proven, f"{cpsat.solver_name()}, nodes ignored"

    def _begin_from(self, counted: QueueingSolution) -> None:
        """Start the programs from a schedule of counted GPUs if it is better."""
        start = np.asarray(counted.start_s)
        if self.problem.value(start) < self.problem.value(self.start):
            self.start = start

    def _offer(self, solution: QueueingSolution) -> None:
        """Keep a schedule if it is better, and within everyone's patience."""
        value = self.problem.value(solution.start_s)
        if value < self.value and kept_patience(self.problem, solution):
            self.solution, self.value = solution, value

    # -- the periods --------------------------------------------------------------------------

    def run(self) -> None:
        """Each period in every round, for a share of the work that is left."""
        if self._proven or not self.programs or (self.makespan and len(self.problem) > self.jobs):
            return
        units = self.limits.within(self.tuning.units * self.limits.effort)
        for period in self.periods:
            period.settled = self._open(period) <= 0
        done = 0
        while done < self.rounds and units.stop is None and not self.infeasible:
            left = sorted((each for each in self.periods if not each.settled), key=self._open)
            for k, period in enumerate(left):
                share = self._open(period) / sum(self._open(other) for other in left[k:])
                share = max(share, self.tuning.share)
                self._improve(period, units.within(share * units.remaining))
            done += 1
            if done == 1 and self.rounds > 1:
                self._polish()
            if not left and not self._merge():
                break
        self._polish()

    def _polish(self) -> None:
        """Look for a better schedule, where it is not known to be best."""
        if self.solution is None or self._proven or self.limits.stop is not None:
            return
        found = polished(self.problem, self.solution, self.limits, self.seed, self.moves).solution
        if found is not None:
            self._offer(found)
            if self.problem.placement == "count":
                self._begin_from(found)

    def _merge(self) -> bool:
        """Make one of two neighbours, where most is open; whether there are any that are small."""
        arrival = self.problem.jobs.arrival_s
        pairs = [
            (self._open(one) + self._open(other), k)
            for k, (one, other) in enumerate(pairwise(self.periods))
            if ((arrival >= one.begin) & (arrival < other.end)).sum() <= self.jobs
        ]
        most, k = max(pairs, default=(0.0, 0))
        if most <= TOLERANCE_S:
            return False
        self.periods[k : k + 2] = [self.periods[k].joined(self.periods[k + 1], self.problem)]
        return True

    def _open(self, period: Period) -> float:
        """What is open in a period, s."""
        if self.makespan:
            return self.problem.aimed_at("makespan").value(self.start) - self.bound
        return period.waited(self.problem.jobs.arrival_s, self.start) - period.bound

    @property
    def bound(self) -> float:
        """Proven so far on Σ wait, or on the makespan, s."""
        return max(self.closed, sum(period.bound for period in self.periods))

    def _improve(self, period: Period, limits: Limits) -> None:
        """Solve the program of a period, and cut its cells where that was too coarse."""
        if limits.stop is not None:
            return
        program = StepProgram(
            self.problem, period, self.weights, self.tuning.fineness, max(0.0, self.closed)
        )
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
        done = period.finest or self.tuning.gap == 0
        period.settled = (done and not more) or self._open(period) <= TOLERANCE_S
        period.finest = not more

    def _solve(self, program: StepProgram, period: Period, limits: Limits) -> Solved:
        others = sum(other.bound for other in self.periods if other is not period)
        shown = None if self.solution is None else self.value

        def tell(phase: str, incumbent: float | None, bound: float | None) -> None:
            best = max(self.bound, others + (bound or 0.0))
            self.limits.progress("time-indexed program", shown, in_unit(self.problem, best))

        return solve(
            program.model,
            backend="highs",
            limits=limits.telling(tell),
            start=program.point(self.start) if self.patient else None,
            gap=0.0 if period.finest else self.tuning.gap,
            seed=self.seed,
            tolerance=TOLERANCE,
            presolve=False,  # slower with it on the five programs it was measured on
        )

    def _slack(self, program: StepProgram) -> float:
        """What tolerances and the rounding of times and sums may add to a bound, s."""
        period, model = program.period, program.model
        count = len(period.jobs)
        later = count * (SAME_S + 4 * EPS * (abs(period.end) + 1))  # no start is later by more
        times = later if self.makespan else count * later
        sums = EPS * model.variables * (abs(model.offset) + abs(period.end))
        return times + sums + solver_slack(model, TOLERANCE)

    def _decode(self, program: StepProgram, values: FloatArray) -> bool:
        """List schedules in order of the program's starts; whether they cut the period's cells."""
        for step, start in zip(program.steps, program.starts(values).tolist(), strict=True):
            if self.problem.jobs.arrival_s[step.job] >= program.period.begin:
                self.key[step.job] = start
        counted = replace(self.problem, placement="count")
        schedule = list_schedule(counted, self.key)
        self._offer(list_schedule(self.problem, self.key))
        if kept_patience(counted, schedule):
            self._begin_from(schedule)
        start = schedule.start_s
        some, period = program.period.jobs, program.period
        return period.cut(start[some], start[some] + self.problem.jobs.duration_s[some])

    @property
    def _proven(self) -> bool:
        """Whether bound and schedule meet."""
        return in_unit(self.problem, self.bound) >= self.value * (1 - 1e-7) - TOLERANCE_S

    # -- what it came to ----------------------------------------------------------------------

    def outcome(self) -> Outcome:
        """Bound and schedule, optimal where they meet."""
        stopped = self.limits.stop or Termination.COMPLETED
        if self.infeasible and self.solution is None:
            return Outcome(None, Status.INFEASIBLE, bound_by=self.by)
        bound = in_unit(self.problem, self.bound)
        info = {"periods": len(self.periods), "cells": sum(len(p.times) for p in self.periods)}
        if self.solution is None:
            return Outcome(
                None, Status.BOUND_ONLY, stopped, bound=bound, bound_by=self.by, info=info
            )
        return Outcome(
            self.solution,
            Status.OPTIMAL if self._proven else Status.FEASIBLE,
            stopped,
            claimed=self.value,
            bound=bound,
            bound_by=self.by,
            info=info,
        )


def _chosen(problem: QueueingProblem, most: int) -> list[Width]:
    """GPUs, and the demands that weigh the stream most."""
    first, *others = widths(problem)
    length = problem.jobs.duration_s
    others.sort(key=lambda width: -float((width[0] * length).sum() / width[1]))
    return [first, *others[:most]]
