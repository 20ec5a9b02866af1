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

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from optgap.heuristics.custom import Arrived, Own, by_clock, whole
from optgap.heuristics.queueing.engine import served
from optgap.models.compiled import python_of
from optgap.models.limits import Limits
from optgap.models.queueing import QueueingProblem
from optgap.models.queueing.packing import Cluster
from optgap.models.result import Outcome, Termination
from optgap.models.times import shown as in_words
from optgap.solvers.queueing.online import (
    RUNNING,
    WAITING,
    book,
    happen,
    next_event,
    online_of,
    unqueue,
)

HAPPEN = python_of(happen)
"""What happens in the built-in policies' event loop, interpreted by Python as the policy is."""


@dataclass(frozen=True)
class QueueingState:
    """Cluster and jobs, as a policy sees them.

    Parameters
    ----------
    problem: the cluster and the jobs that have arrived; a fair policy reads `estimate_s` rather
        than `duration_s`.
    time_s: current time, s.
    waiting: jobs that have arrived and not started, by arrival.
    running: running jobs, with their start times, s.
    cluster: `free` GPUs per node; the policy may change its copy to try placements.
    """

    problem: QueueingProblem
    time_s: float
    waiting: tuple[int, ...]
    running: Mapping[int, float]
    cluster: Cluster

    @property
    def free_gpus(self) -> int:
        """Number of GPUs that no job holds."""
        return int(self.cluster.free.sum())

    def wait_s(self, job: int) -> float:
        """Return how long a job has waited, s."""
        return self.time_s - float(self.problem.jobs.arrival_s[job])

    def fits(self, *jobs: int) -> bool:
        """Tell whether these jobs can be placed one after another, in this order."""
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
    shown: QueueingProblem | None = None,
) -> Outcome:
    """Run a policy from outside the package.

    Parameters
    ----------
    policy: a class that is made with `policy_params` and has ``place(state)``; or a function
        ``place(state)``, which gets `policy_params` by keyword.
    shown: the problem by its own clock, which the policy sees; `problem` without it.

    Raises
    ------
    InputError: naming the policy, the time and what was wrong, for an answer that is no list of
        waiting jobs or does not fit, and for a policy that raises.
    """
    own = Own(policy, policy_params, "place(state)")
    known, late_s = by_clock(problem, shown)
    arrived = Arrived(known, problem.jobs.arrival_s)

    def choose(state: QueueingState) -> list[int]:
        now, cluster = state.time_s + late_s, state.cluster.copy()
        where = f"at {in_words(now)} s"
        running = {job: start + late_s for job, start in state.running.items()}
        so_far = arrived.at(state.time_s)
        seen = QueueingState(so_far, now, state.waiting, running, cluster)
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
    problem: QueueingProblem, choose: Callable[[QueueingState], list[int]], limits: Limits
) -> Outcome:
    """Ask a policy at every event, repeatedly until it starts no more jobs."""
    online, cluster = online_of(problem), Cluster(problem)
    cluster.free, cluster.level = online.free, online.level  # one and the same
    tally, at, stopped = online.tally, online.truth.at, Termination.COMPLETED
    while (time := next_event(online)) < math.inf:
        if limits.stop is not None:
            stopped = limits.stop
            break
        now, started = float(HAPPEN(online, time)), True
        while started and tally[WAITING] > 0:
            running = {j: float(online.start[j]) for j in online.running[: tally[RUNNING]].tolist()}
            waiting = tuple(online.queue[: tally[WAITING]].tolist())
            chosen = choose(QueueingState(problem, now, waiting, running, cluster))
            for job in chosen:
                unqueue(online, job)
                cluster.start(job, int(problem.jobs.gpus[job]))
                online.node[at[job] : at[job + 1]] = [node for node, _ in cluster.held.pop(job)]
                book(online, job, now)
            started = bool(chosen)
    return served(problem, online, stopped, {}, why="not started")
