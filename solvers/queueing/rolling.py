"""The head of the queue scheduled by CP-SAT at every event, and only what starts now started."""

from __future__ import annotations

import heapq
import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from optgap.models.errors import InputError
from optgap.models.limits import Limits
from optgap.models.queueing import QueueingProblem, QueueingSolution
from optgap.models.queueing.packing import Cluster
from optgap.models.result import Outcome, Status, Termination
from optgap.solvers.backends import cpsat
from optgap.solvers.queueing.lists import Held

COARSE_S = 10**9
"""Longest horizon of a plan, s: what lies beyond is as good as never."""


@dataclass
class _State:
    """What is known now."""

    problem: QueueingProblem
    cluster: Cluster
    now: float = 0.0
    waiting: list[int] = field(default_factory=list)
    ends: list[tuple[float, int]] = field(default_factory=list)
    start: dict[int, float] = field(default_factory=dict)
    held: dict[int, Held] = field(default_factory=dict)
    solved: int = 0
    proven: int = 0

    def begin(self, job: int) -> None:
        """Start a job that fits."""
        jobs = self.problem.jobs
        self.waiting.remove(job)
        self.start[job] = self.now
        self.held[job] = self.cluster.start(job, int(jobs.gpus[job]))
        heapq.heappush(self.ends, (self.now + float(jobs.duration_s[job]), job))

    def happen(self, arrived: int) -> int:
        """Ends, arrivals and departures up to now; how many jobs have arrived."""
        jobs = self.problem.jobs
        while self.ends and self.ends[0][0] <= self.now:
            self.cluster.end(heapq.heappop(self.ends)[1])
        while arrived < len(jobs) and jobs.arrival_s[arrived] <= self.now:
            self.waiting.append(arrived)
            arrived += 1
        leaves = jobs.arrival_s + jobs.patience_s if not jobs.patient else None
        if leaves is not None:
            self.waiting = [job for job in self.waiting if leaves[job] > self.now]
        return arrived

    def next_event(self, arrived: int) -> float:
        """When something happens next, s; infinite for never again."""
        jobs = self.problem.jobs
        times = [self.ends[0][0]] if self.ends else []
        if arrived < len(jobs):
            times.append(float(jobs.arrival_s[arrived]))
        if not jobs.patient:
            times += [float(jobs.arrival_s[j] + jobs.patience_s[j]) for j in self.waiting]
        return min(times, default=math.inf)


def rolling(
    problem: QueueingProblem,
    *,
    limits: Limits,
    seed: int,
    head: int = 8,
    effort: float = 0.02,
) -> Outcome:
    """At every event the first waiting jobs are scheduled for the problem's own objective.

    Running jobs keep their GPUs until their estimated ends; jobs that the plan starts now are
    started. Where the plan is not proven best within `effort`, the best one found is used. Where
    all of them fit at once, they are started without a plan.

    Parameters
    ----------
    head: how many waiting jobs are planned, by arrival; 0 for all.
    effort: of one plan at most, in CP-SAT's deterministic time, so that runs can be repeated;
        0.02 are some 10 ms for most plans and 0.2 s for the hardest.

    Raises
    ------
    InputError: for a parameter out of range.
    """
    if head < 0:
        raise InputError("rolling", "head", head, "a number of jobs, or 0 for all")
    if not 0 < effort < 1e6:
        raise InputError("rolling", "effort", effort, "a positive number of seconds")
    state, arrived = _State(problem, Cluster(problem)), 0
    termination = Termination.COMPLETED
    while (now := state.next_event(arrived)) < math.inf:
        if limits.stop is not None:
            termination = limits.stop
            break
        state.now = now
        arrived = state.happen(arrived)
        limits.progress(f"rolling: {len(state.start)} of {len(problem)} jobs", None, None)
        while state.waiting and _decide(state, head, effort, limits, seed):
            pass
    return _outcome(state, termination)


def _decide(state: _State, head: int, effort: float, limits: Limits, seed: int) -> bool:
    """Start what is to start now; whether to look again because all of the head has started."""
    gpus = state.problem.jobs.gpus
    jobs = state.waiting[:head] if head else list(state.waiting)
    if not any(state.cluster.fits(int(gpus[job])) for job in jobs):
        return False
    if not _all_fit(state, jobs):
        state.solved += 1
        jobs = _planned(state, jobs, effort, limits, seed)
    before = len(state.start)
    for job in sorted(jobs, key=lambda job: (-gpus[job], job)):
        if state.cluster.fits(int(gpus[job])):
            state.begin(job)
    return len(state.start) > before


def _all_fit(state: _State, jobs: list[int]) -> bool:
    """Whether all of them can start now, the largest first."""
    gpus, fitting = state.problem.jobs.gpus, []
    for job in sorted(jobs, key=lambda job: (-gpus[job], job)):
        if not state.cluster.fits(int(gpus[job])):
            break
        state.cluster.start(job, int(gpus[job]))
        fitting.append(job)
    for job in fitting:
        state.cluster.end(job)
    return len(fitting) == len(jobs)


def _planned(state: _State, jobs: list[int], effort: float, limits: Limits, seed: int) -> list[int]:
    """Those of the jobs that the best plan found starts now."""
    from ortools.sat.python import cp_model

    program = cp_model.CpModel()
    stream, g = state.problem.jobs, state.problem.shape[1]
    lengths = {job: max(1, math.ceil(stream.estimate_s[job])) for job in jobs}
    busy = [
        (max(1, math.ceil(state.start[job] + float(stream.estimate_s[job]) - state.now)), job)
        for _, job in state.ends
    ]
    horizon = min(COARSE_S, max((end for end, _ in busy), default=0) + sum(lengths.values()))
    starts = {job: program.new_int_var(0, horizon, "") for job in jobs}
    intervals = [program.new_fixed_size_interval_var(starts[j], lengths[j], "") for j in jobs]
    intervals += [program.new_fixed_size_interval_var(0, end, "") for end, _ in busy]
    everyone = [*jobs, *(job for _, job in busy)]
    demands = [int(stream.gpus[job]) for job in everyone]
    program.add_cumulative(intervals, demands, state.problem.gpus)
    whole = [n // g + (2 * (n % g) > g) for n in demands]
    program.add_cumulative(intervals, whole, state.problem.shape[0])
    for job in jobs:
        if not state.cluster.fits(int(stream.gpus[job])):  # fragmented: not before one ends
            program.add(starts[job] >= min((end for end, _ in busy), default=0))
    total = sum(starts.values())
    if state.problem.objective.goal == "makespan":
        last = program.new_int_var(0, horizon, "")
        for job in jobs:
            program.add(starts[job] + lengths[job] <= last)
        program.minimize(last * (len(jobs) + 1) + total)
    else:
        program.minimize(total)

    def settings(parameters: Any) -> None:
        parameters.max_deterministic_time = effort
        parameters.linearization_level = 0  # such small plans are not worth a linear program
        parameters.symmetry_level = 0
        parameters.cp_model_probing_level = 0

    answer = cpsat.run(program, limits, workers=1, seed=seed, settings=settings)
    state.proven += answer.status == cp_model.OPTIMAL
    if answer.status not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        return jobs[:1]
    return [job for job in jobs if answer.solver.value(starts[job]) == 0]


def _outcome(state: _State, termination: Termination) -> Outcome:
    problem, count = state.problem, len(state.problem)
    info = {"plans": state.solved, "plans_proven": state.proven}
    if not state.start:
        return Outcome(None, Status.NO_SOLUTION, termination, info=info)
    start = np.array([state.start.get(job, math.nan) for job in range(count)])
    held = [state.held.get(job, []) for job in range(count)]
    missing = count - len(state.start)
    return Outcome(
        QueueingSolution.of(
            problem,
            start,
            np.concatenate([[0], np.cumsum([len(pairs) for pairs in held])]),
            np.array([node for pairs in held for node, _ in pairs], dtype=np.int64),
            np.array([gpus for pairs in held for _, gpus in pairs], dtype=np.int64),
        ),
        Status.FEASIBLE,
        termination,
        claimed=problem.value(start, np.isfinite(start)),
        info=info,
        message=f"{missing} jobs not started" if missing else "",
    )
