"""The event loop: a policy is asked at time 0 and whenever a job has ended."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from optgap.models.coscheduling import CoschedulingProblem, CoschedulingSolution, Run
from optgap.models.coscheduling.gpus import TOLERANCE, Node
from optgap.models.limits import Limits
from optgap.models.result import Outcome, Status, Termination


@dataclass(frozen=True, slots=True)
class State:
    """What a policy sees.

    Parameters
    ----------
    problem: the node, and the modes of every job.
    time_s: now.
    waiting: jobs that have not started, in queue order.
    running: jobs that run, in order of their end.
    free_gpus: GPUs that nobody holds.
    free_domains: how many more jobs may start.
    """

    problem: CoschedulingProblem
    time_s: float
    waiting: tuple[int, ...]
    running: tuple[int, ...]
    free_gpus: int
    free_domains: int


Action = Sequence[tuple[int, int]]
"""(job, GPU count) pairs to start now."""


def replay(
    problem: CoschedulingProblem,
    choose: Callable[[State], Action],
    limits: Limits,
    repeat: bool = False,
) -> Outcome:
    """Run a policy to the end of the queue; with `repeat`, ask again until it starts nothing.

    `choose` returns only what fits, and something whenever nothing runs.
    """
    node = Node(problem)
    waiting = list(range(len(problem)))
    ends: list[tuple[float, int]] = []
    runs: list[Run] = []
    now, asked, stopped = 0.0, 0, None
    while waiting:
        stopped = limits.stop
        if stopped is not None:
            break
        while waiting and node.free and node.domains:
            running = tuple(job for _, job in sorted(ends))
            state = State(problem, now, tuple(waiting), running, len(node.free), len(node.domains))
            action = choose(state)
            asked += 1
            for job, count in action:
                mode = problem.application(job).mode(count)
                if mode is None:
                    raise ValueError(f"job {job} has no mode on {count} GPUs")
                waiting.remove(job)
                runs.append(Run(job, now, now + mode.runtime_s, node.start(job, count)))
                heapq.heappush(ends, (now + mode.runtime_s, job))
            if not action or not repeat:
                break
        if waiting and not ends:
            raise ValueError("the policy starts nothing although nothing runs")
        if waiting:
            now = ends[0][0]
            while ends and ends[0][0] <= now + TOLERANCE * max(1.0, now):
                node.end(heapq.heappop(ends)[1])
    done = len(problem) - len(waiting)
    return Outcome(
        CoschedulingSolution.of(runs) if runs else None,
        Status.FEASIBLE if runs else Status.NO_SOLUTION,
        stopped or Termination.COMPLETED,
        info={"decisions": asked},
        message=f"stopped after {done} of {len(problem)} jobs" if waiting else "",
    )
