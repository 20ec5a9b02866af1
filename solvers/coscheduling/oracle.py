"""The optimum by CP-SAT: optional intervals under cumulative GPU and NUMA capacity.

One optional interval per job and GPU count; at any time at most M GPUs and K jobs, which is
enough for concrete GPUs and domains, as both are interchangeable. The pattern bound (see
``patterns.py``) is part of the model as integer times per pattern, and its value a lower limit
on the objective.
"""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass
from typing import Any

import numpy as np

from optgap.models.coscheduling import CoschedulingProblem
from optgap.models.limits import Limits
from optgap.models.result import Outcome, Status, Termination
from optgap.solvers.backends import cpsat
from optgap.solvers.coscheduling.area import bound_area
from optgap.solvers.coscheduling.integers import Integers, integers
from optgap.solvers.coscheduling.lists import Start, best_of, in_order, solution_of, value_of
from optgap.solvers.coscheduling.patterns import Proof, patterns, prove

CLOSE = 3e-7
"""Relative distance of solution and bound that counts as proof."""


@dataclass(frozen=True, slots=True)
class Bounded:
    """A bound, who proved it, and the GPU counts that come with it."""

    bound: float
    by: str
    counts: list[int] | None


class Program:
    """The CP-SAT model of a problem; `model` is ready to be solved."""

    def __init__(
        self, problem: CoschedulingProblem, found: list[tuple[int, ...]] | None, known: float
    ) -> None:
        from ortools.sat.python import cp_model

        self.problem = problem
        self.data: Integers = integers(problem)
        self.model: Any = cp_model.CpModel()
        self.starts: list[Any] = []
        self.chosen: list[dict[int, Any]] = []
        self.makespan = self.model.new_int_var(0, self.data.horizon, "makespan")
        self.intervals: list[Any] = []
        self.demands: list[int] = []
        for job in range(len(problem)):
            self._job(job)
        self.model.add_cumulative(self.intervals, self.demands, problem.gpus)
        if problem.numa < len(problem):
            ones = [1] * len(self.intervals)
            self.model.add_cumulative(self.intervals, ones, problem.numa)
        self._alike()
        self._areas()
        if found is not None:
            self._patterns(found)
        self.objective = self._objective(known)
        self.model.minimize(self.objective)

    def _job(self, job: int) -> None:
        data, model, a = self.data, self.model, self.problem.jobs[job]
        start = model.new_int_var(0, data.horizon, f"start {job}")
        chosen = {}
        for mode in self.problem.applications[a].modes:
            length = data.ticks[a, mode.gpu_count]
            x = model.new_bool_var(f"job {job} on {mode.gpu_count}")
            chosen[mode.gpu_count] = x
            self.intervals.append(model.new_optional_fixed_size_interval_var(start, length, x, ""))
            self.demands.append(mode.gpu_count)
        model.add_exactly_one(chosen.values())
        length = sum(data.ticks[a, g] * x for g, x in chosen.items())
        model.add(start + length <= self.makespan)
        self.starts.append(start)
        self.chosen.append(chosen)

    def _alike(self) -> None:
        """Jobs of one application start in queue order."""
        last: dict[int, int] = {}
        for job, a in enumerate(self.problem.jobs):
            if a in last:
                self.model.add(self.starts[last[a]] <= self.starts[job])
            last[a] = job

    def _terms(self) -> list[tuple[int, int, Any]]:
        """(application, GPU count, presence) of every interval."""
        return [
            (a, g, x)
            for a, chosen in zip(self.problem.jobs, self.chosen, strict=True)
            for g, x in chosen.items()
        ]

    def _areas(self) -> None:
        data, terms = self.data, self._terms()
        for capacity, weigh in ((self.problem.gpus, True), (self.problem.numa, False)):
            used = sum((g if weigh else 1) * data.ticks[a, g] * x for a, g, x in terms)
            self.model.add(used <= capacity * self.makespan)

    def _patterns(self, found: list[tuple[int, ...]]) -> None:
        data, model = self.data, self.model
        times = [model.new_int_var(0, data.horizon, f"pattern {q}") for q in found]
        work: dict[int, list[Any]] = defaultdict(list)
        for a, g, x in self._terms():
            work[g].append(data.ticks[a, g] * x)
        for g, terms in work.items():
            held = [q.count(g) * t for t, q in zip(times, found, strict=True) if g in q]
            model.add(sum(held) >= sum(terms))
        model.add(sum(times) <= self.makespan)

    def _objective(self, known: float) -> Any:
        """The objective in integers, at least what is `known` of it."""
        data, goal, model = self.data, self.problem.objective.goal, self.model
        cost = sum(data.costs[a, g] * x for a, g, x in self._terms())
        energy = cost + data.idle * self.makespan
        if goal == "makespan":
            model.add(self.makespan >= self._known(known / data.tick_s))
            return self.makespan
        if goal == "energy":
            model.add(energy >= self._known(known / data.quantum_j))
            return energy
        most = sum(max(data.costs[a, g] for g in c) for a, c in self._counts())
        least = sum(min(data.costs[a, g] for g in c) for a, c in self._counts())
        most += data.idle * data.horizon
        total = model.new_int_var(min(least, 0), max(most, 1), "energy")
        model.add(total == energy)
        size = max(most, 1) * data.horizon
        product = model.new_int_var(min(least, 0) * data.horizon, size, "product")
        model.add_multiplication_equality(product, [total, self.makespan])
        model.add(product >= self._known(known / (data.quantum_j * data.tick_s)))
        return product

    def _known(self, value: float) -> int:
        """A bound in integers, lower by what rounding the data down may have taken away.

        Times that were rounded down shift whole schedules: nothing is known of those.
        """
        if not self.data.exact:
            return -cpsat.LARGEST
        lost = 2 * (len(self.problem) + 1)
        if self.problem.objective.goal == "edp":
            lost *= self.data.horizon
        return math.floor(value - 1e-6 * abs(value)) - lost

    def _counts(self) -> list[tuple[int, list[int]]]:
        return [(a, list(c)) for a, c in zip(self.problem.jobs, self.chosen, strict=True)]

    @property
    def unit(self) -> float:
        """What one of the objective's integers is worth."""
        data, goal = self.data, self.problem.objective.goal
        if goal == "makespan":
            return data.tick_s
        return data.quantum_j if goal == "energy" else data.quantum_j * data.tick_s

    def hint(self, starts: list[Start]) -> None:
        """Begin with this schedule."""
        for job, count, start in starts:
            self.model.add_hint(self.starts[job], math.floor(start / self.data.tick_s + 1e-6))
            for g, x in self.chosen[job].items():
                self.model.add_hint(x, g == count)

    def decode(self, solver: Any) -> list[Start]:
        """The schedule behind the values, each job moved as early as its place allows."""
        jobs = range(len(self.problem))
        counts = [
            next(g for g, x in self.chosen[job].items() if solver.boolean_value(x)) for job in jobs
        ]
        order = sorted(jobs, key=lambda job: (solver.value(self.starts[job]), job))
        return in_order(self.problem, counts, order)


def oracle(problem: CoschedulingProblem, *, limits: Limits, seed: int, workers: int = 0) -> Outcome:
    """The schedule of least objective, with proof; stopped early, the best one and a bound.

    Parameters
    ----------
    workers: CP-SAT's threads; 0 for one per core, and no fewer than eight, which search in
        different ways.
    """
    found = patterns(problem)
    led = _bounded(problem, found, limits, seed)
    rng = np.random.default_rng(seed)
    fastest = [problem.application(job).fastest.gpu_count for job in range(len(problem))]
    choices = [fastest, *([led.counts] if led.counts is not None else [])]
    best = min(
        (best_of(problem, counts, rng, limits) for counts in choices),
        key=lambda starts: value_of(problem, starts),
    )
    value = value_of(problem, best)
    limits.progress("lists of jobs", value, led.bound)
    if value <= led.bound * (1 + CLOSE):
        return _outcome(problem, best, led, Termination.COMPLETED, True)
    program = Program(problem, found, led.bound)
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
        workers=workers or max(8, cpsat.cores()),
        seed=seed,
        scale=lambda number: number * program.unit,
        enough=enough,
    )
    from ortools.sat.python import cp_model

    if answer.bound is not None and answer.bound * program.unit > led.bound:
        led = Bounded(answer.bound * program.unit, f"{led.by}, {cpsat.solver_name()}", led.counts)
    proven = answer.status == cp_model.OPTIMAL or value <= led.bound * (1 + CLOSE)
    termination = Termination.COMPLETED if proven else cpsat.terminated(answer.status, limits)
    return _outcome(problem, best, led, termination, proven)


def _bounded(
    problem: CoschedulingProblem, found: list[tuple[int, ...]] | None, limits: Limits, seed: int
) -> Bounded:
    area = Bounded(
        bound_area(problem, limits=limits, seed=seed).bound or 0.0, "areas in closed form", None
    )
    proof: Proof | None = None if found is None else prove(problem, found, limits, seed=seed)
    if proof is None:
        return area
    by = f"patterns of GPU counts, {proof.solver}"
    return Bounded(max(proof.bound, area.bound), by, proof.counts)


def _outcome(
    problem: CoschedulingProblem,
    best: list[Start],
    led: Bounded,
    termination: Termination,
    proven: bool,
) -> Outcome:
    value = value_of(problem, best)
    return Outcome(
        solution_of(problem, best),
        Status.OPTIMAL if proven else Status.FEASIBLE,
        termination,
        claimed=value,
        bound=min(led.bound, value) if led.bound <= value * (1 + CLOSE) else led.bound,
        bound_by=led.by,
    )
