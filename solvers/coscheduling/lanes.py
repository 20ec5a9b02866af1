"""At most two jobs at a time: the optimum without a clock.

Let two lanes hold the jobs, A and B, and let W_A(≥u) be the run time of the jobs of lane A on u
GPUs or more. There is a schedule of makespan C if and only if

    W_A(≥u) + W_B(≥M+1−u) ≤ C   for u = 1, …, M,

because two jobs on g ≥ u and h ≥ M+1−u GPUs cannot run together; and because lane A from the
most GPUs to the fewest, beside lane B from the fewest to the most, then breaks nothing
(``docs/coscheduling-bounds.md`` has the proof). What is left to decide is a GPU count and a lane
per job, or how many of equal jobs have them.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from typing import Any, ClassVar

from optgap.models.coscheduling import CoschedulingProblem
from optgap.solvers.coscheduling.integers import Integers, integers, minimise
from optgap.solvers.coscheduling.lists import Start, in_order

FINE = 1e7
"""Ticks per second where run times are no decimals: this model does not mind large numbers."""


def two_at_most(problem: CoschedulingProblem) -> bool:
    """Tell whether never more than two jobs run, and all of them may start at time 0."""
    counts = [app.modes[0].gpu_count for app in map(problem.application, range(len(problem)))]
    least = min(counts)
    return min(problem.numa, len(problem), problem.gpus // least) <= 2 and not problem.releases


class Lanes:
    """The CP-SAT model of a problem; `model` is ready to be solved.

    Parameters
    ----------
    known: a proven bound on the objective, which the model is told.
    """

    name: ClassVar[str] = "two lanes"

    def __init__(self, problem: CoschedulingProblem, known: float) -> None:
        from ortools.sat.python import cp_model

        self.problem = problem
        self.data: Integers = integers(problem, FINE)
        self.model: Any = cp_model.CpModel()
        self.makespan = self.model.new_int_var(0, self.data.horizon, "makespan")
        self.number: dict[tuple[int, int, int], Any] = {}
        for a, jobs in Counter(problem.jobs).items():
            self._application(a, jobs)
        self._capacity()
        cost = sum(self.data.costs[a, g] * n for (a, g, _), n in self.number.items())
        minimise(self.model, problem, self.data, cost, makespan=self.makespan, known=known)

    def _application(self, a: int, jobs: int) -> None:
        """Add variables: how many jobs of application `a` run on g GPUs in each lane."""
        lanes = (0, 1) if self.problem.numa > 1 else (0,)
        mine = []
        for mode in self.problem.applications[a].modes:
            for lane in lanes:
                if lane and mode.gpu_count == self.problem.gpus:
                    continue  # alone on the node: the lane does not matter
                key = (a, mode.gpu_count, lane)
                self.number[key] = self.model.new_int_var(0, jobs, f"{key}")
                mine.append(self.number[key])
        self.model.add(sum(mine) == jobs)

    def _capacity(self) -> None:
        """Add the inequality above for the u at which lane A changes; those between are weaker."""
        gpus = self.problem.gpus
        for u in sorted({g for _, g, _ in self.number} | {gpus}):
            terms = [
                self.data.ticks[a, g] * n
                for (a, g, lane), n in self.number.items()
                if g >= (gpus + 1 - u if lane else u)
            ]
            self.model.add(sum(terms) <= self.makespan)

    def hint(self, starts: list[Start]) -> None:
        """Begin with this schedule: each job in the lane that has been free for longer."""
        number: Counter[tuple[int, int, int]] = Counter()
        ends = [0.0, 0.0]
        for job, count, start in sorted(starts, key=lambda item: (item[2], item[0])):
            lane = 0 if ends[0] <= ends[1] or self.problem.numa == 1 else 1
            ends[lane] = start + self.problem.mode(job, count).runtime_s
            if count == self.problem.gpus:
                lane = 0
            number[self.problem.jobs[job], count, lane] += 1
        for key, variable in self.number.items():
            self.model.add_hint(variable, number[key])

    def decode(self, solver: Any) -> list[Start]:
        """Return the schedule behind the values: lane A as it comes, lane B ending with it."""
        waiting = defaultdict(list)
        for job, a in enumerate(self.problem.jobs):
            waiting[a].append(job)
        lanes: tuple[list[tuple[int, int]], list[tuple[int, int]]] = ([], [])
        for (a, g, lane), variable in self.number.items():
            lanes[lane].extend((g, waiting[a].pop(0)) for _ in range(solver.value(variable)))
        return two_lanes(self.problem, *lanes)


def two_lanes(
    problem: CoschedulingProblem, first: list[tuple[int, int]], second: list[tuple[int, int]]
) -> list[Start]:
    """Return the schedule of two lanes of (GPU count, job): A by falling GPU count, B rising.

    Lane B begins as late as it can without ending after C, the least that the inequalities
    above allow.
    """
    thresholds = {g for g, _ in (*first, *second)} | {problem.gpus}
    length = {(g, job): problem.mode(job, g).runtime_s for g, job in (*first, *second)}
    makespan = max(
        math.fsum(length[item] for item in first if item[0] >= u)
        + math.fsum(length[item] for item in second if item[0] >= problem.gpus + 1 - u)
        for u in thresholds
    )
    counts = {job: g for g, job in (*first, *second)}
    starts: dict[int, float] = {}
    now = 0.0
    for item in sorted(first, key=lambda item: (-item[0], item[1])):
        starts[item[1]] = now
        now += length[item]
    now = makespan
    for item in sorted(second, key=lambda item: (-item[0], item[1])):
        now -= length[item]
        starts[item[1]] = now
    order = sorted(starts, key=lambda job: (starts[job], job))
    return in_order(problem, [counts[job] for job in range(len(problem))], order)
