"""Event loop: a policy is asked at time 0 and whenever a job has come or ended."""

from __future__ import annotations

import heapq
from bisect import insort
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from optgap.models.coscheduling import CoschedulingProblem, CoschedulingSolution, JobRun
from optgap.models.coscheduling.gpus import Node
from optgap.models.limits import Limits
from optgap.models.result import Outcome, Status, Termination
from optgap.models.times import slack_s


@dataclass(frozen=True, slots=True)
class CoschedulingState:
    """Node and jobs, as a policy sees them.

    Parameters
    ----------
    problem: the node, and the modes of every job.
    time_s: current time, s.
    waiting: jobs that have arrived and not started, in queue order.
    running: running jobs, in order of their end.
    free_gpus: number of idle GPUs.
    free_domains: number of further jobs that may start.
    started: start (s) and GPU count of each job in `running`, in that order.
    """

    problem: CoschedulingProblem
    time_s: float
    waiting: tuple[int, ...]
    running: tuple[int, ...]
    free_gpus: int
    free_domains: int
    started: tuple[tuple[float, int], ...] = ()


Action = Sequence[tuple[int, int]]
"""Pairs (job, GPU count) to start now."""


def replay(
    problem: CoschedulingProblem,
    choose: Callable[[CoschedulingState], Action],
    limits: Limits,
) -> Outcome:
    """Run a policy to the end of the queue.

    `choose` returns only what fits, and something whenever nothing runs.
    """
    clock = _Clock(problem)
    asked, stopped = 0, None
    while clock.left:
        stopped = limits.stop
        if stopped is not None:
            break
        if clock.waiting and clock.node.free and clock.node.domains:
            asked += 1
            for job, count in choose(clock.state):
                clock.start(job, count)
        clock.proceed()
    runs, done = clock.runs, len(clock.runs)
    return Outcome(
        CoschedulingSolution.of(runs) if runs else None,
        Status.FEASIBLE if runs else Status.NO_SOLUTION,
        stopped or Termination.COMPLETED,
        info={"decisions": asked},
        message=f"stopped after {done} of {len(problem)} jobs" if clock.left else "",
    )


class _Clock:
    """Clock with the waiting, running and future jobs."""

    def __init__(self, problem: CoschedulingProblem) -> None:
        self.problem = problem
        self.node = Node(problem)
        self.now = 0.0
        self.ends: list[tuple[float, int]] = []
        self.runs: list[JobRun] = []
        self.begun: dict[int, tuple[float, int]] = {}
        self.coming = sorted((problem.release_s(job), job) for job in range(len(problem)))
        self.coming.reverse()
        self.waiting: list[int] = []
        self._happen(0.0)

    @property
    def left(self) -> int:
        """Number of jobs that have not started."""
        return len(self.waiting) + len(self.coming)

    @property
    def state(self) -> CoschedulingState:
        """State that a policy sees now."""
        running = tuple(job for _, job in sorted(self.ends))
        started = tuple(self.begun[job] for job in running)
        free, places = len(self.node.free), len(self.node.domains)
        return CoschedulingState(
            self.problem, self.now, tuple(self.waiting), running, free, places, started
        )

    def start(self, job: int, count: int) -> None:
        """Start a waiting job now."""
        end = self.now + self.problem.mode(job, count).runtime_s
        self.waiting.remove(job)
        self.begun[job] = (self.now, count)
        self.runs.append(JobRun(job, self.now, end, self.node.start(job, count)))
        heapq.heappush(self.ends, (end, job))

    def proceed(self) -> None:
        """Go to the next end or arrival, if any job is left to start."""
        if not self.left:
            return
        if self.waiting and not self.ends:
            raise ValueError("the policy starts nothing although nothing runs")
        ends = [self.ends[0][0]] if self.ends else []
        arrivals = [self.coming[-1][0]] if self.coming else []
        self._happen(min(ends + arrivals))

    def _happen(self, time: float) -> None:
        """Process the ends and arrivals up to `time`, which becomes the current time."""
        self.now = max(self.now, time)
        until = self.now + slack_s(self.now)
        while self.ends and self.ends[0][0] <= until:
            end, job = heapq.heappop(self.ends)
            self.now = max(self.now, end)
            self.node.end(job)
        while self.coming and self.coming[-1][0] <= until:
            release, job = self.coming.pop()
            self.now = max(self.now, release)
            insort(self.waiting, job)
