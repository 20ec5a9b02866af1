"""The optimum: bounds, lists of jobs, and the CP-SAT model that the problem's shape allows.

Where never more than two jobs run and all wait at time 0, a model without a clock is exact (see
``lanes.py``); otherwise the one with intervals (``intervals.py``) searches, led by the pattern
bound.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from optgap.models.coscheduling import CoschedulingObjective, CoschedulingProblem
from optgap.models.coscheduling.gpus import placed
from optgap.models.limits import Limits
from optgap.models.result import Outcome, Status, Termination
from optgap.solvers.backends import cpsat
from optgap.solvers.coscheduling.area import bound_area
from optgap.solvers.coscheduling.intervals import Intervals
from optgap.solvers.coscheduling.lanes import Lanes, two_at_most
from optgap.solvers.coscheduling.lists import Start, annealed, in_order, listed, value_of
from optgap.solvers.coscheduling.patterns import patterns, prove
from optgap.solvers.coscheduling.product import least_product

CLOSE = 3e-7
"""Relative distance of solution and bound that counts as proof."""
FEW = 10
"""Up to so many jobs CP-SAT needs no better start than lists."""


@dataclass(frozen=True, slots=True)
class Bounded:
    """A bound, who proved it, and the GPU counts that come with it."""

    bound: float
    by: str
    counts: list[int] | None = None


@dataclass(frozen=True, slots=True)
class Found:
    """The best schedule, the best bound, and how the search ended.

    Parameters
    ----------
    starts: (job, GPU count, start in s) of every job.
    value: its objective.
    led: the bound.
    proven: whether the schedule is proven best.
    """

    starts: list[Start]
    value: float
    led: Bounded
    termination: Termination
    proven: bool


def oracle(problem: CoschedulingProblem, *, limits: Limits, seed: int, workers: int = 1) -> Outcome:
    """Return the schedule of least objective, with proof; stopped early, the best one and a bound.

    Parameters
    ----------
    workers: CP-SAT's threads; with more than one, which of several optima is found, or how far a
        search got that was stopped, cannot be repeated.
    """
    return _outcome(problem, best_schedule(problem, limits, seed, workers))


def intervals(problem: CoschedulingProblem, *, limits: Limits, seed: int) -> Outcome:
    """Return the same by CP-SAT with optional intervals alone: the reference, not the method."""
    fastest = [problem.application(job).fastest.gpu_count for job in range(len(problem))]
    start = in_order(problem, fastest, range(len(problem)))
    program = Intervals(problem, 0.0)
    return _outcome(problem, _searched(program, start, Bounded(0.0, "nothing"), limits, seed=seed))


def _outcome(problem: CoschedulingProblem, found: Found) -> Outcome:
    value, led = found.value, found.led
    ended = not found.proven and found.termination is Termination.COMPLETED
    price = problem.objective.goal == "edp"
    why = "proven at the prices of time tried" if price else "proven for times rounded down"
    return Outcome(
        placed(problem, found.starts),
        Status.OPTIMAL if found.proven else Status.FEASIBLE,
        found.termination,
        claimed=value,
        bound=min(led.bound, value) if led.bound <= value * (1 + CLOSE) else led.bound,
        bound_by=led.by,
        message=why if ended else "",
    )


def best_schedule(
    problem: CoschedulingProblem,
    limits: Limits,
    seed: int,
    workers: int = 1,
    *,
    first: Sequence[int] = (),
) -> Found:
    """Return what `oracle` finds; the jobs of `first` run already: they start at time 0."""
    if problem.objective.goal == "edp":
        return _best_product(problem, limits, seed, workers, first=first)
    led = _bounded(problem, limits, seed)
    fastest = [problem.application(job).fastest.gpu_count for job in range(len(problem))]
    lists = [listed(problem, counts, first) for counts in (fastest, led.counts) if counts]
    best = min(lists, key=lambda starts: value_of(problem, starts))
    enough, lanes = led.bound * (1 + CLOSE), two_at_most(problem) and not first
    if not lanes and len(problem) > FEW:
        rng, part = np.random.default_rng(seed), limits.within(0.5 * limits.remaining)
        best = annealed(problem, best, rng, part, enough=enough, first=first)
    value = value_of(problem, best)
    limits.progress("lists of jobs", value, led.bound)
    if value <= enough:
        return Found(best, value, led, Termination.COMPLETED, True)
    program = Lanes(problem, led.bound) if lanes else Intervals(problem, led.bound, first)
    return _searched(program, best, led, limits, seed=seed, workers=workers)


def _best_product(
    problem: CoschedulingProblem, limits: Limits, seed: int, workers: int, *, first: Sequence[int]
) -> Found:
    """Energy times makespan: the best schedule at any of several prices of time."""
    best: list[Start] | None = None
    by = ""

    def solved(part: CoschedulingProblem) -> tuple[float, float, float]:
        nonlocal best, by
        # a search that does not end leaves work for the other prices
        share = limits.within(max(0.2 * limits.remaining, 0.05))
        found = best_schedule(part, share, seed, workers, first=first)
        if best is None or value_of(problem, found.starts) < value_of(problem, best):
            best = found.starts
            limits.progress("prices of time", value_of(problem, best), None)
        by = found.led.by
        makespan = max(
            start - part.epoch_s + problem.mode(job, count).runtime_s
            for job, count, start in found.starts
        )
        energy = value_of(replace(part, objective=CoschedulingObjective("energy")), found.starts)
        return min(found.led.bound, found.value), energy, makespan

    proved = least_product(problem, limits, solved)
    area = bound_area(problem, limits=limits, seed=seed).bound or 0.0
    assert best is not None
    led = Bounded(max(area, proved or 0.0), f"prices of time: {by}")
    value = value_of(problem, best)
    proven = value <= led.bound * (1 + CLOSE)
    termination = Termination.COMPLETED if proven else limits.stop or Termination.COMPLETED
    return Found(best, value, led, termination, proven)


def _searched(
    program: Lanes | Intervals,
    best: list[Start],
    led: Bounded,
    limits: Limits,
    *,
    seed: int = 0,
    workers: int = 1,
) -> Found:
    """Run CP-SAT until a schedule meets the bound, it proves more, or time is up."""
    from ortools.sat.python import cp_model

    problem, value = program.problem, value_of(program.problem, best)
    goal, unit = problem.objective.goal, program.data.unit(problem.objective.goal)
    program.hint(best)

    def enough(solution: Any) -> bool:
        nonlocal best, value
        later = program.decode(solution)
        reached = value_of(problem, later)
        if reached < value:
            best, value = later, reached
        return value <= led.bound * (1 + CLOSE)

    answer = cpsat.run(
        program.model,
        limits,
        workers=workers,
        seed=seed,
        scale=lambda number: number * unit,
        enough=enough,
    )
    if answer.bound is not None:
        proved = answer.bound * unit
        proved -= program.data.error(goal, value)
        if proved > led.bound:
            led = Bounded(proved, f"{program.name}, {cpsat.solver_name()}")
    proven = value <= led.bound * (1 + CLOSE)
    if answer.status == cp_model.OPTIMAL or proven:
        return Found(best, value, led, Termination.COMPLETED, proven)
    return Found(best, value, led, cpsat.terminated(answer.status, limits), False)


def _bounded(problem: CoschedulingProblem, limits: Limits, seed: int) -> Bounded:
    allowed = patterns(problem)
    area = bound_area(problem, limits=limits, seed=seed).bound or 0.0
    proof = None if allowed is None else prove(problem, allowed, limits, seed=seed)
    if proof is None:
        return Bounded(area, "areas in closed form")
    by = f"patterns of GPU counts, {proof.solver}"
    return Bounded(max(proof.bound, area), by, proof.counts)
