"""The head of the queue scheduled exactly at every event, and only what starts now started."""

from __future__ import annotations

import heapq
import math
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

import numpy as np

from optgap.models.errors import InputError, one_of
from optgap.models.limits import Limits
from optgap.models.queueing import QueueingProblem, QueueingSolution
from optgap.models.queueing.arrays import FloatArray, IntArray
from optgap.models.queueing.packing import Cluster
from optgap.models.result import Outcome, Status, Termination
from optgap.models.times import slack_s
from optgap.solvers.backends import cpsat
from optgap.solvers.queueing.branching import best_plan
from optgap.solvers.queueing.lists import Held

Solver = Literal["auto", "branch", "cp-sat"]
FEW = 10
"""Heads of up to so many jobs are planned by branch and bound."""
MOST = 16
"""Jobs that branch and bound is allowed to plan at all."""
PACE = 2_500_000
"""Partial plans that count as a second of effort; looking at one takes about 1 µs."""
TELL_EVERY = 16
"""Arrivals between two words on progress."""
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
    settled: object = None
    stuck: object = None
    overrun_s: float = math.inf
    solved: int = 0
    proven: int = 0
    room: dict[int, bool] = field(default_factory=dict)

    def __post_init__(self) -> None:
        stream, (_, g) = self.problem.jobs, self.problem.shape
        self.patient = stream.patient
        self.seconds = stream.estimate_s
        whole = stream.gpus // g + (2 * (stream.gpus % g) > g)
        self.widths: IntArray = np.stack([stream.gpus, whole], axis=1)
        self.gpus: list[int] = stream.gpus.tolist()
        self.began: FloatArray = np.zeros(len(self.problem))

    def fits(self, job: int) -> bool:
        """Whether a job can start now; asked again only once GPUs were taken or given back."""
        n = self.gpus[job]
        if n not in self.room:
            self.room[n] = self.cluster.fits(n)
        return self.room[n]

    def sight(self, jobs: list[int]) -> object:
        """What a plan for these jobs depends on, as long as no running job overruns."""
        return tuple(jobs), len(self.start), len(self.ends)

    def settle(self, jobs: list[int]) -> None:
        """Note that the last plan stands for these jobs, until a running job overruns."""
        self.settled = self.sight(jobs)
        running = np.array([job for _, job in self.ends], dtype=np.int64)
        planned = self.began[running] + self.seconds[running]
        self.overrun_s = float(planned.min(initial=math.inf))

    def stands(self, jobs: list[int]) -> bool:
        """Whether the last plan was for these jobs and the running ones, and starts none yet.

        Time that passes alone changes no plan: whatever starts next does so when a job ends.
        """
        return self.settled == self.sight(jobs) and self.overrun_s > self.now + slack_s(self.now)

    def begin(self, job: int) -> None:
        """Start a job that fits."""
        jobs = self.problem.jobs
        self.waiting.remove(job)
        self.start[job] = self.began[job] = self.now
        self.held[job] = self.cluster.start(job, self.gpus[job])
        self.room.clear()
        heapq.heappush(self.ends, (self.now + float(jobs.duration_s[job]), job))

    def happen(self, time: float, arrived: int) -> int:
        """Ends, arrivals and departures at the same time, the last of which is now; how many jobs
        have arrived."""
        jobs, until = self.problem.jobs, time + slack_s(time)
        self.now = time
        while self.ends and self.ends[0][0] <= until:
            self.now = self.ends[0][0]
            self.cluster.end(heapq.heappop(self.ends)[1])
            self.room.clear()
        while arrived < len(jobs) and jobs.arrival_s[arrived] <= until:
            self.now = max(self.now, float(jobs.arrival_s[arrived]))
            self.waiting.append(arrived)
            arrived += 1
        if not self.patient:
            leaves = jobs.arrival_s + jobs.patience_s
            self.waiting = [job for job in self.waiting if leaves[job] > until]
        return arrived

    def next_event(self, arrived: int) -> float:
        """When something happens next, s; infinite for never again."""
        jobs = self.problem.jobs
        times = [self.ends[0][0]] if self.ends else []
        if arrived < len(jobs):
            times.append(float(jobs.arrival_s[arrived]))
        if not self.patient:
            times += [float(jobs.arrival_s[j] + jobs.patience_s[j]) for j in self.waiting]
        return min(times, default=math.inf)


def rolling(
    problem: QueueingProblem,
    *,
    limits: Limits,
    seed: int,
    head: int = 8,
    effort: float = 0.02,
    solver: Solver = "auto",
) -> Outcome:
    """At every event the first waiting jobs are scheduled for the problem's own objective.

    Running jobs keep their GPUs until their estimated ends; jobs that the plan starts now are
    started. Where the plan is not proven best within `effort`, the best one found is used. Where
    all of them fit at once, or none does, there is no plan.

    Parameters
    ----------
    head: how many waiting jobs are planned, by arrival; 0 for all.
    effort: of one plan at most, so that runs can be repeated: seconds of CP-SAT's deterministic
        time, or `PACE` partial plans each.
    solver: ``branch`` and bound, ``cp-sat``, or ``auto``: the former for up to `FEW` jobs.

    Raises
    ------
    InputError: for a parameter out of range.
    """
    if head < 0:
        raise InputError("rolling", "head", head, "a number of jobs, or 0 for all")
    if not 0 < effort < 1e6:
        raise InputError("rolling", "effort", effort, "a positive number of seconds")
    if solver not in get_args(Solver):
        raise InputError("rolling", "solver", solver, one_of(get_args(Solver)))
    if solver == "branch" and not 1 <= head <= MOST:
        raise InputError("rolling", "head", head, f"1 to {MOST} jobs with solver=branch")
    planner = _Planner(limits, seed, effort, solver)
    state, arrived = _State(problem, Cluster(problem)), 0
    termination = Termination.COMPLETED
    while (time := state.next_event(arrived)) < math.inf:
        if limits.stop is not None:
            termination = limits.stop
            break
        arrived = state.happen(time, arrived)
        if arrived % TELL_EVERY == 0:
            limits.progress(f"rolling: {len(state.start)} of {len(problem)} jobs", None, None)
        while state.waiting and _decide(state, head, planner):
            pass
    return _outcome(state, termination)


@dataclass(frozen=True)
class _Planner:
    """How plans are made; parameters as for `rolling`."""

    limits: Limits
    seed: int
    effort: float
    solver: Solver

    def plan(self, plan: Plan) -> tuple[IntArray | None, bool]:
        """Starts, None for none found, and whether they are proven best."""
        if self.solver == "branch" or (self.solver == "auto" and len(plan.jobs) <= FEW):
            return branched(plan, max(1000, int(self.effort * PACE)))
        return programmed(plan, self.effort, self.limits, self.seed)


def _decide(state: _State, head: int, planner: _Planner) -> bool:
    """Start what is to start now; whether to look again because all of the head has started."""
    gpus = state.gpus
    jobs = state.waiting[:head] if head else list(state.waiting)
    if state.stuck == state.sight(jobs) or state.stands(jobs):
        return False
    if not any(state.fits(job) for job in jobs):
        state.stuck = state.sight(jobs)
        return False
    chosen = jobs
    if not _all_fit(state, jobs):
        starts, proven = planner.plan(plan_of(state, jobs))
        state.solved += 1
        state.proven += proven
        now = [True] + [False] * (len(jobs) - 1) if starts is None else starts == 0
        chosen = [job for job, soon in zip(jobs, now, strict=True) if soon]
    before = len(state.start)
    for job in sorted(chosen, key=lambda job: (-gpus[job], job)):
        if state.fits(job):
            state.begin(job)
    started = len(state.start) - before
    if started == len(chosen):  # as planned; the rest of the plan is for later
        state.settle([job for job in jobs if job not in state.start])
    return started > 0


def _all_fit(state: _State, jobs: list[int]) -> bool:
    """Whether all of them can start now, the largest first."""
    if not all(state.fits(job) for job in jobs):
        return False
    gpus, fitting = state.gpus, []
    for job in sorted(jobs, key=lambda job: (-gpus[job], job)):
        if not state.cluster.fits(gpus[job]):
            break
        state.cluster.start(job, gpus[job])
        fitting.append(job)
    for job in fitting:
        state.cluster.end(job)
    return len(fitting) == len(jobs)


@dataclass(frozen=True)
class Plan:
    """Jobs to schedule beside running ones, in whole seconds from now.

    Parameters
    ----------
    jobs: length, GPUs, whole nodes and the first second to start at, per job, shape (J, 4).
    busy: end, GPUs and whole nodes per running job, shape (R, 3).
    gpus, nodes: of the cluster.
    makespan: the goal is the last end rather than the sum of starts.
    """

    jobs: IntArray
    busy: IntArray
    gpus: int
    nodes: int
    makespan: bool

    def cost(self, starts: IntArray) -> int:
        """What the plan is to make small: Σ start, or the last end and then Σ start."""
        last = int((starts + self.jobs[:, 0]).max()) if self.makespan else 0
        return int(starts.sum()) + (len(starts) + 1) * last


def plan_of(state: _State, jobs: list[int]) -> Plan:
    """What is to be planned now; whoever fits nowhere for fragments starts after the next end."""
    nodes, _ = state.problem.shape
    running = np.array([job for _, job in state.ends], dtype=np.int64)
    until = state.began[running] + state.seconds[running] - state.now
    busy = np.empty((len(running), 3), dtype=np.int64)
    seconds = np.ceil(until - slack_s(until))
    busy[:, 0], busy[:, 1:] = np.maximum(1, seconds), state.widths[running]
    soon = int(busy[:, 0].min(initial=2**62)) if len(running) else 0
    rows = np.zeros((len(jobs), 4), dtype=np.int64)
    rows[:, 0] = np.maximum(1, np.ceil(state.seconds[jobs]))
    rows[:, 1:3] = state.widths[jobs]
    rows[:, 3] = [0 if state.fits(job) else soon for job in jobs]
    makespan = state.problem.objective.goal == "makespan"
    return Plan(rows, busy, state.problem.gpus, nodes, makespan)


def branched(plan: Plan, most: int) -> tuple[IntArray, bool]:
    """Starts of the best plan by branch and bound, and whether it is proven."""
    busy = plan.busy[np.argsort(plan.busy[:, 0], kind="stable")]
    freed = np.cumsum(busy[:, 1:], axis=0)
    held = busy[:, 1:].sum(axis=0)
    profile = np.vstack([[plan.gpus, plan.nodes] - held, [plan.gpus, plan.nodes] - held + freed])
    ends = np.concatenate([[0], busy[:, 0]])
    starts, _, looked = best_plan(plan.jobs, profile, ends, plan.makespan, most)
    return starts, looked < most


def programmed(
    plan: Plan, effort: float, limits: Limits, seed: int
) -> tuple[IntArray | None, bool]:
    """Starts of the best plan that CP-SAT finds, None for none, and whether it is proven."""
    from ortools.sat.python import cp_model

    program = cp_model.CpModel()
    lengths, demands = plan.jobs[:, 0].tolist(), plan.jobs[:, 1].tolist()
    ends = plan.busy[:, 0].tolist()
    horizon = min(COARSE_S, max(ends, default=0) + sum(lengths))
    starts = [program.new_int_var(ready, horizon, "") for ready in plan.jobs[:, 3].tolist()]
    intervals = [
        program.new_fixed_size_interval_var(start, length, "")
        for start, length in zip(starts, lengths, strict=True)
    ]
    intervals += [program.new_fixed_size_interval_var(0, end, "") for end in ends]
    program.add_cumulative(intervals, demands + plan.busy[:, 1].tolist(), plan.gpus)
    whole = plan.jobs[:, 2].tolist() + plan.busy[:, 2].tolist()
    program.add_cumulative(intervals, whole, plan.nodes)
    total = sum(starts)
    if plan.makespan:
        last = program.new_int_var(0, 2 * horizon, "")
        for start, length in zip(starts, lengths, strict=True):
            program.add(start + length <= last)
        program.minimize(last * (len(starts) + 1) + total)
    else:
        program.minimize(total)

    def settings(parameters: Any) -> None:
        parameters.max_deterministic_time = effort
        parameters.linearization_level = 0  # such small plans are not worth a linear program
        parameters.symmetry_level = 0
        parameters.cp_model_probing_level = 0

    answer = cpsat.run(program, limits, workers=1, seed=seed, settings=settings)
    if answer.status not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        return None, False
    found = np.array([answer.solver.value(start) for start in starts], dtype=np.int64)
    return found, answer.status == cp_model.OPTIMAL


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
