"""A policy of your own, run through an event loop of the same rules as the built-in ones.

A policy is a class with a method ``place(state)``, or just such a function. It is asked whenever a
job has arrived, ended or left, and returns the jobs to start now, in order:

>>> def widest(state):
...     "Whatever fits, the jobs with the most GPUs first."
...     gpus, chosen = state.problem.jobs.gpus, []
...     for job in sorted(state.waiting, key=lambda job: -gpus[job]):
...         if state.fits(*chosen, job):
...             chosen.append(job)
...     return chosen

>>> from optgap.models.limits import Limits
>>> from optgap.models.queueing.presets import mixed
>>> problem = mixed(seed=1, size=50)
>>> outcome = run(problem, limits=Limits(), seed=0, policy=widest)
>>> problem.check(outcome.solution)
[]
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from optgap.heuristics.custom import Arrived, Own, whole
from optgap.models.limits import Limits
from optgap.models.queueing import QueueingProblem, QueueingSolution
from optgap.models.queueing.packing import Cluster
from optgap.models.result import Outcome, Status, Termination
from optgap.models.times import shown, slack_s


@dataclass(frozen=True)
class State:
    """What a policy sees.

    Parameters
    ----------
    problem: the cluster and the jobs that have arrived; a policy that plays fair looks at
        `estimate_s` rather than `duration_s`.
    time_s: now.
    waiting: jobs that have arrived and not started, by arrival.
    running: jobs that run, with the time each started, s.
    cluster: `free` GPUs per node; a policy has a copy, which it may try things on.
    """

    problem: QueueingProblem
    time_s: float
    waiting: tuple[int, ...]
    running: Mapping[int, float]
    cluster: Cluster

    @property
    def free_gpus(self) -> int:
        """GPUs that nobody holds."""
        return int(self.cluster.free.sum())

    def wait_s(self, job: int) -> float:
        """How long a job has waited, s."""
        return self.time_s - float(self.problem.jobs.arrival_s[job])

    def fits(self, *jobs: int) -> bool:
        """Whether these jobs can be placed one after another, in this order."""
        placed, good = [], True
        for job in jobs:
            n = int(self.problem.jobs.gpus[job])
            good = self.cluster.fits(n)
            if not good:
                break
            self.cluster.start(-1 - job, n)
            placed.append(job)
        for job in placed:
            self.cluster.end(-1 - job)
        return good


def run(
    problem: QueueingProblem,
    *,
    limits: Limits,
    seed: int,
    policy: Any,
    policy_params: Mapping[str, Any] | None = None,
) -> Outcome:
    """Run a policy from outside the package.

    Parameters
    ----------
    policy: a class that is made with `policy_params` and has ``place(state)``; or a function
        ``place(state)``, which gets `policy_params` by keyword.

    Raises
    ------
    InputError: naming the policy, the time and what was wrong, for an answer that is no list of
        waiting jobs or does not fit, and for a policy that raises.
    """
    own = Own(policy, policy_params, "place(state)")
    arrived = Arrived(problem, problem.jobs.arrival_s)

    def choose(state: State) -> list[int]:
        where = f"at {shown(state.time_s)} s"
        seen = replace(state, problem=arrived.at(state.time_s), cluster=state.cluster.copy())
        answer = own.ask_for_list(where, "jobs to start", seen)
        for job in answer:
            if not whole(job) or job not in state.waiting:
                raise own.wrong(where, job, "a job that waits")
        if len(set(answer)) < len(answer):
            raise own.wrong(where, answer, "each job once")
        if not state.fits(*answer):
            raise own.wrong(where, answer, "jobs that can be placed in this order")
        return [int(job) for job in answer]

    return replay(problem, choose, limits)


def replay(
    problem: QueueingProblem, choose: Callable[[State], list[int]], limits: Limits
) -> Outcome:
    """Ask a policy at every event, again until it starts nothing more."""
    jobs, cluster = problem.jobs, Cluster(problem)
    leaves = (jobs.arrival_s + jobs.patience_s).tolist()
    events = sorted({*jobs.arrival_s.tolist(), *(x for x in leaves if x < math.inf)}, reverse=True)
    ends: list[tuple[float, int]] = []
    waiting: list[int] = []
    start: dict[int, float] = {}
    held: list[list[tuple[int, int]]] = [[] for _ in range(len(problem))]
    arrived, termination = 0, Termination.COMPLETED
    while events or ends:
        if limits.stop is not None:
            termination = limits.stop
            break
        now = min([*events[-1:], *(end for end, _ in ends[:1])])
        until = now + slack_s(now)  # what happens at the same time, the last of it is now
        while events and events[-1] <= until:
            now = max(now, events.pop())
        while ends and ends[0][0] <= until:
            now = max(now, ends[0][0])
            cluster.end(heapq.heappop(ends)[1])
        while arrived < len(jobs) and jobs.arrival_s[arrived] <= until:
            waiting.append(arrived)
            arrived += 1
        waiting = [job for job in waiting if leaves[job] > until]
        while waiting:
            running = {job: start[job] for _, job in ends}
            chosen = choose(State(problem, now, tuple(waiting), running, cluster))
            for job in chosen:
                waiting.remove(job)
                start[job] = now
                held[job] = cluster.start(job, int(jobs.gpus[job]))
                heapq.heappush(ends, (now + float(jobs.duration_s[job]), job))
            if not chosen:
                break
    times = np.array([start.get(job, math.nan) for job in range(len(problem))])
    missing = len(problem) - len(start)
    if not start:
        return Outcome(None, Status.NO_SOLUTION, termination)
    return Outcome(
        QueueingSolution.on_nodes(problem, times, held),
        Status.FEASIBLE,
        termination,
        claimed=problem.value(times, np.isfinite(times)),
        message=f"{missing} jobs not started" if missing else "",
    )
