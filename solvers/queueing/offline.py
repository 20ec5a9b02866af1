"""Good schedules with hindsight: lists of jobs that start in turn, improved by annealing.

Some list gives an optimum where only the number of free GPUs counts: take an optimum's jobs by
start; none starts later in turn than there, as those before it have ended no later.
"""

from __future__ import annotations

import numpy as np

from optgap.models.errors import InputError
from optgap.models.limits import Limits
from optgap.models.queueing import QueueingProblem, QueueingSolution
from optgap.models.queueing.arrays import FloatArray, IntArray
from optgap.models.queueing.packing import Cluster
from optgap.models.result import Outcome, Status, Termination
from optgap.models.times import slack_s
from optgap.solvers.queueing.annealing import anneal, in_turn

MOST_JOBS = 20_000
CHUNK_JOBS = 400_000
"""Jobs looked at between two looks at the limits, about 0.1 s."""
WARM, COLD = 0.2, 0.002
"""First and last temperature, of the mean duration."""


def offline(
    problem: QueueingProblem, *, limits: Limits, seed: int, moves: int = 100_000
) -> Outcome:
    """The best list found, from the best of some greedy ones; knows all jobs beforehand.

    Parameters
    ----------
    moves: lists tried.

    Raises
    ------
    InputError: for more than `MOST_JOBS` jobs, or fewer than one move.
    """
    if len(problem) > MOST_JOBS:
        raise InputError("offline", "jobs", len(problem), f"at most {MOST_JOBS} jobs")
    if moves < 1:
        raise InputError("offline", "moves", moves, "at least 1")
    search = _Search(problem)
    begun = search.begin()
    done = 0
    rng = np.random.default_rng(seed)
    heats = COLD * (WARM / COLD) ** np.linspace(1, 0, moves) * problem.jobs.duration_s.mean()
    chunk = max(1, CHUNK_JOBS // len(problem))
    while done < moves and limits.stop is None:
        search.improve(heats[done : done + chunk], int(rng.integers(2**31)))
        done = min(moves, done + chunk)
        limits.progress("annealing", search.value(), None)
    return search.outcome(limits.stop if done < moves else None, {"moves": done, "start": begun})


class _Search:
    """The list now, and the best one so far."""

    def __init__(self, problem: QueueingProblem) -> None:
        stream, self.problem, self.shape = problem.jobs, problem, problem.shape
        g = self.shape[1]
        latest = stream.arrival_s + stream.patience_s
        self.jobs = np.stack([stream.arrival_s, stream.duration_s, latest], axis=1)
        self.gpus = stream.gpus.copy()
        self.at = np.concatenate([[0], np.cumsum(-(-stream.gpus // g))]).astype(np.int64)
        self.held = np.zeros((2, int(self.at[-1])), dtype=np.int64)
        self.start = np.zeros(len(problem))
        self.makespan = problem.objective.goal == "makespan"
        self.costs = np.full(2, np.inf)

    def begin(self) -> float:
        """Take the best greedy list; returns its objective."""
        jobs = self.problem.jobs
        keys = [jobs.arrival_s, jobs.duration_s, jobs.gpu_seconds, -jobs.gpus, -jobs.duration_s]
        lists = [
            np.arange(len(self.problem)),
            *(greedy(self.problem, np.asarray(key, dtype=np.float64)) for key in keys),
        ]
        costs = [self.cost(order) for order in lists]
        self.order = lists[int(np.argmin(costs))]
        self.best = self.order.copy()
        self.costs[:] = min(costs)
        return self.value()

    def cost(self, order: IntArray) -> float:
        """Of one list; its schedule is left in `start` and `held`."""
        return in_turn(
            order, self.jobs, self.gpus, self.shape, self.at, self.start, self.held,
            self.makespan, np.inf,
        )  # fmt: skip

    def improve(self, heats: FloatArray, seed: int) -> None:
        """So many moves at these temperatures."""
        anneal(
            self.order, self.best, self.costs, heats, seed, self.jobs, self.gpus, self.shape,
            self.at, self.held, self.makespan,
        )  # fmt: skip

    def value(self) -> float:
        """The objective of the best list."""
        self.cost(self.best)
        return self.problem.value(self.start)

    def outcome(self, stopped: Termination | None, info: dict[str, float | int | str]) -> Outcome:
        """The best schedule, unless some job would have left before its start."""
        value = self.value()
        termination = stopped or Termination.COMPLETED
        if (self.start > self.jobs[:, 2] + slack_s(self.start)).any():
            why = "no schedule found in which every job starts before it leaves"
            return Outcome(None, Status.NO_SOLUTION, termination, info=info, message=why)
        solution = QueueingSolution.of(
            self.problem, self.start, self.at, self.held[0], self.held[1]
        )
        return Outcome(solution, Status.FEASIBLE, termination, claimed=value, info=info)


def greedy(problem: QueueingProblem, key: FloatArray) -> IntArray:
    """The jobs by start if, whenever GPUs are free, the least key that fits starts."""
    import heapq
    from bisect import insort

    jobs, cluster = problem.jobs, Cluster(problem)
    ends: list[tuple[float, int]] = []
    waiting: list[tuple[float, int]] = []
    order: list[int] = []
    arrived, count = 0, len(problem)
    while len(order) < count:
        coming = jobs.arrival_s[arrived] if arrived < count else np.inf
        now = min(coming, ends[0][0] if ends else np.inf)
        until = now + slack_s(now)
        while ends and ends[0][0] <= until:
            cluster.end(heapq.heappop(ends)[1])
        while arrived < count and jobs.arrival_s[arrived] <= until:
            insort(waiting, (float(key[arrived]), arrived))
            arrived += 1
        left, refused = [], np.inf
        for item in waiting:
            n = int(jobs.gpus[item[1]])
            if n < refused and cluster.fits(n):
                cluster.start(item[1], n)
                heapq.heappush(ends, (now + float(jobs.duration_s[item[1]]), item[1]))
                order.append(item[1])
            else:  # nothing as large fits now, either
                refused = min(refused, n)
                left.append(item)
        waiting = left
    return np.array(order, dtype=np.int64)
