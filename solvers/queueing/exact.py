"""The optimum by CP-SAT: one start per job, GPUs on nodes as optional intervals.

Every job is an interval under the capacity of the whole cluster. A job of n ≤ g GPUs is also an
optional interval on each node, exactly one of them present; a larger one is present on ⌊n/g⌋ nodes
with all their GPUs and on one more with the rest.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from optgap.models.errors import InputError
from optgap.models.limits import Limits
from optgap.models.queueing import QueueingProblem, QueueingSolution
from optgap.models.result import Outcome, Status
from optgap.solvers.backends import cpsat
from optgap.solvers.queueing.areas import in_unit
from optgap.solvers.queueing.incumbents import Best, Held, settled, simple_schedules
from optgap.solvers.queueing.prices import best_bound
from optgap.solvers.queueing.ticks import Ticks, ticks

MOST_JOBS = 2000


class Program:
    """The CP-SAT model of a problem; `model` is ready to be solved.

    Parameters
    ----------
    known_s: a bound on Σ wait, or on the makespan, s.
    most_s: the same of a schedule that is known, s; infinite without one.
    """

    def __init__(self, problem: QueueingProblem, known_s: float, most_s: float) -> None:
        from ortools.sat.python import cp_model

        self.problem = problem
        self.data: Ticks = ticks(problem)
        self.nodes, self.g = problem.shape
        self.spread = self.nodes > 1
        self.model: Any = cp_model.CpModel()
        self.starts: list[Any] = []
        self.intervals: list[Any] = []
        self.present: dict[tuple[int, int, int], Any] = {}
        self.on_node: list[list[tuple[Any, int]]] = [[] for _ in range(self.nodes)]
        for job in range(len(problem)):
            self._job(job, most_s)
        self._capacity()
        if self.spread:
            for job in range(len(problem)):
                self._nodes(job)
            for items in self.on_node:
                self.model.add_cumulative([x for x, _ in items], [n for _, n in items], self.g)
        self._alike()
        self.model.minimize(self._objective(known_s))

    def _job(self, job: int, most_s: float) -> None:
        data, arrival = self.data, self.data.arrival[job]
        latest = data.horizon
        if data.exact and math.isfinite(most_s):
            goal = self.problem.objective.goal
            most_s += data.allowance_s(goal)
            most = math.floor(most_s / data.tick_s * (1 + 1e-9) + 1e-6)
            makespan = goal == "makespan"
            latest = min(latest, most - data.duration[job] if makespan else arrival + most)
        patience = float(self.problem.jobs.patience_s[job])
        if math.isfinite(patience):
            latest = min(latest, arrival + math.floor(patience / data.tick_s + 1 - 1e-6))
        start = self.model.new_int_var(arrival, max(arrival, latest), f"start {job}")
        self.starts.append(start)
        length = data.duration[job]
        self.intervals.append(self.model.new_fixed_size_interval_var(start, length, f"job {job}"))

    def _capacity(self) -> None:
        """Add rows on all GPUs, and on jobs or whole nodes that cannot share a node."""
        gpus = self.problem.jobs.gpus
        self.model.add_cumulative(self.intervals, gpus.tolist(), self.problem.gpus)
        alone = gpus // self.g + (2 * (gpus % self.g) > self.g)
        if self.nodes > 1 and alone.any():
            chosen = np.flatnonzero(alone)
            intervals = [self.intervals[k] for k in chosen]
            self.model.add_cumulative(intervals, alone[chosen].tolist(), self.nodes)

    def _nodes(self, job: int) -> None:
        """Add variables for the nodes of a job."""
        n, length = int(self.problem.jobs.gpus[job]), self.data.duration[job]
        whole, rest = divmod(n, self.g)
        full: list[Any] = []
        part: list[Any] = []
        for k in range(self.nodes):
            for amount, into in ((self.g if whole else 0, full), (rest, part)):
                if not amount:
                    continue
                x = self.model.new_bool_var(f"job {job} on {k}")
                into.append(x)
                interval = self.model.new_optional_fixed_size_interval_var(
                    self.starts[job], length, x, ""
                )
                self.on_node[k].append((interval, amount))
                self.present[job, k, amount] = x
        if whole:
            self.model.add(sum(full) == whole)
        if rest:
            self.model.add_exactly_one(part)
        if whole and rest:
            for a, b in zip(full, part, strict=True):
                self.model.add_bool_or([a.negated(), b.negated()])

    def _alike(self) -> None:
        """Order equal jobs by arrival, and put the first job on the first nodes."""
        jobs = self.problem.jobs
        last: dict[tuple[int, int], int] = {}
        for job in range(len(self.problem)):
            if math.isfinite(jobs.patience_s[job]):
                continue
            key = (self.data.duration[job], int(jobs.gpus[job]))
            if key in last:
                self.model.add(self.starts[last[key]] <= self.starts[job])
            last[key] = job
        if self.spread:
            whole, rest = divmod(int(jobs.gpus[0]), self.g)
            for k in range(whole):
                self.model.add(self.present[0, k, self.g] == 1)
            if rest:
                self.model.add(self.present[0, whole, rest] == 1)

    def _objective(self, known_s: float) -> Any:
        data = self.data
        if self.problem.objective.goal == "makespan":
            total = self.model.new_int_var(0, data.horizon, "makespan")
            for start, length in zip(self.starts, data.duration, strict=True):
                self.model.add(start + length <= total)
        else:
            total = sum(self.starts) - sum(data.arrival)
        if data.exact:  # nothing is known of times that were rounded
            known_s -= data.allowance_s(self.problem.objective.goal)
            known = math.ceil(known_s / data.tick_s * (1 - 1e-9) - 1e-6)
            self.model.add(total >= max(0, known))
        return total

    def hint(self, solution: QueueingSolution) -> None:
        """Begin with this schedule."""
        origin = float(self.problem.jobs.arrival_s[0])
        for job, start in enumerate(self.starts):
            at = (float(solution.start_s[job]) - origin) / self.data.tick_s
            self.model.add_hint(start, math.floor(at + 1e-6))
        if not self.spread:
            return
        held = [dict(solution.nodes_of(job)) for job in range(len(self.problem))]
        for (job, node, amount), x in self.present.items():
            self.model.add_hint(x, held[job].get(node) == amount)

    def seconds(self, value: float) -> float:
        """Return a bound on the objective in ticks as one in s, on Σ wait or on the makespan.

        The objective is a whole number of ticks, so that a bound may be rounded up to one.
        """
        data, jobs = self.data, self.problem.jobs
        found = max(0, math.ceil(value - 1e-6)) * data.tick_s
        if self.problem.objective.goal == "makespan" or data.exact:
            return found - data.allowance_s(self.problem.objective.goal)
        # starts were rounded down by as much as they like, arrivals by what is counted here
        arrival = (jobs.arrival_s - jobs.arrival_s[0]).tolist()
        return found - math.fsum(
            a - t * data.tick_s for a, t in zip(arrival, data.arrival, strict=True)
        )

    def decode(self, solver: Any) -> QueueingSolution:
        """Return the schedule behind the values, with every job as early as its nodes allow."""
        jobs = range(len(self.problem))
        held: list[Held] = [[] for _ in jobs]
        for (job, node, amount), x in self.present.items():
            if solver.boolean_value(x):
                held[job].append((node, amount))
        if not self.spread:
            held = [[(0, int(n))] for n in self.problem.jobs.gpus]
        order = sorted(jobs, key=lambda job: (solver.value(self.starts[job]), job))
        return settled(self.problem, order, held)


def exact(problem: QueueingProblem, *, limits: Limits, seed: int) -> Outcome:
    """Return the schedule of least objective, with proof; stopped early, the best one and a bound.

    Raises
    ------
    InputError: for more than `MOST_JOBS` jobs.
    """
    from ortools.sat.python import cp_model

    if len(problem) > MOST_JOBS:
        raise InputError("exact", "jobs", len(problem), f"at most {MOST_JOBS} jobs")
    best = Best(problem)
    for solution in simple_schedules(problem, seed):
        best.offer(solution)
    known, by = best_bound(problem, limits)
    known = max(0.0, known)
    program = Program(problem, known, _total(problem, best.value))
    if best.solution is not None:
        program.hint(best.solution)
    answer = cpsat.run(
        program.model,
        limits,
        seed=seed,
        scale=lambda value: in_unit(problem, program.seconds(value)),
        settings=linearised,
    )
    if answer.status == cp_model.INFEASIBLE and best.solution is None:
        return Outcome(None, Status.INFEASIBLE, bound_by=cpsat.solver_name())
    if answer.status in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        best.offer(program.decode(answer.solver))
    if answer.bound is not None and program.seconds(answer.bound) > known:
        known, by = program.seconds(answer.bound), cpsat.solver_name()
    bound = in_unit(problem, known)
    termination = cpsat.terminated(answer.status, limits)
    if best.solution is None:
        return Outcome(None, Status.BOUND_ONLY, termination, bound=bound, bound_by=by)
    proven = answer.status == cp_model.OPTIMAL and best.met_by(bound)
    return Outcome(
        best.solution,
        Status.OPTIMAL if proven else Status.FEASIBLE,
        termination,
        claimed=best.value,
        bound=min(bound, best.value),
        bound_by=by,
        message="" if proven or program.data.exact else "proven for times rounded down",
    )


def _total(problem: QueueingProblem, value: float) -> float:
    """Return Σ wait, or the makespan, from the objective, s."""
    goal, count = problem.objective.goal, len(problem)
    if goal == "makespan":
        return value
    wait = value if goal == "mean_wait" else value - float(problem.jobs.duration_s.mean())
    return max(0.0, wait * count) * (1 + 1e-9)


def linearised(parameters: Any) -> None:
    """Keep all of the model in CP-SAT's linear relaxation.

    Times that are not whole have ranges of millions of ticks: one worker spent more than 25 s
    on six jobs without the relaxation, and 0.01 s with it; twelve jobs take 0.04 to 0.94 s for 0.06
    to 1.24 s.
    """
    parameters.linearization_level = 2
