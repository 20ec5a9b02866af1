"""CP-SAT with a clock: optional intervals under cumulative GPU and NUMA capacity.

One optional interval per job and GPU count; at any time at most M GPUs and K jobs, which is
enough for concrete GPUs and domains, as both are interchangeable. A bound that is known (see
``patterns.py``) is a lower limit on the objective.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, ClassVar

from optgap.models.coscheduling import CoschedulingProblem
from optgap.solvers.coscheduling.integers import Integers, integers, minimise
from optgap.solvers.coscheduling.lists import Start, in_order
from optgap.solvers.coscheduling.patterns import classes


class Intervals:
    """The CP-SAT model of a problem; `model` is ready to be solved.

    Parameters
    ----------
    known: a proven bound on the objective, which the model is told.
    first: jobs that run already, and so start at time 0.
    """

    name: ClassVar[str] = "intervals"

    def __init__(
        self,
        problem: CoschedulingProblem,
        known: float,
        first: Sequence[int] = (),
    ) -> None:
        from ortools.sat.python import cp_model

        self.problem = problem
        self.first = tuple(first)
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
        cost = sum(self.data.costs[a, g] * x for a, g, x in self._terms())
        minimise(self.model, problem, self.data, cost, makespan=self.makespan, known=known)

    def _job(self, job: int) -> None:
        data, model, a = self.data, self.model, self.problem.jobs[job]
        release = data.releases[job]
        latest = 0 if job in self.first else data.horizon
        start = model.new_int_var(release, max(release, latest), f"start {job}")
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
        """Jobs of one application and release start in queue order."""
        last: dict[tuple[int, float], int] = {}
        for job, kind in enumerate(classes(self.problem)):
            if job in self.first:
                continue
            if kind in last:
                self.model.add(self.starts[last[kind]] <= self.starts[job])
            last[kind] = job

    def _terms(self) -> list[tuple[int, int, Any]]:
        """Return (application, GPU count, presence) of every interval."""
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

    def hint(self, starts: list[Start]) -> None:
        """Begin with this schedule."""
        for job, count, start in starts:
            ticks = (start - self.problem.epoch_s) / self.data.tick_s
            self.model.add_hint(self.starts[job], math.floor(ticks + 1e-6))
            for g, x in self.chosen[job].items():
                self.model.add_hint(x, g == count)

    def decode(self, solver: Any) -> list[Start]:
        """Return the schedule behind the values, each job moved as early as its place allows."""
        jobs = range(len(self.problem))
        counts = [
            next(g for g, x in self.chosen[job].items() if solver.boolean_value(x)) for job in jobs
        ]
        placed = {job: (solver.value(self.starts[job]), job not in self.first) for job in jobs}
        order = sorted(jobs, key=lambda job: (*placed[job], job))
        return in_order(self.problem, counts, order)
