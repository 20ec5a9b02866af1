"""Schedules from keys of jobs, such as their starts in a relaxation, and from given nodes."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from optgap.models.compiled import UP_TO, interpreted
from optgap.models.queueing import QueueingProblem, QueueingSolution
from optgap.models.queueing.arrays import FloatArray
from optgap.models.times import TOLERANCE_S, slack_s
from optgap.solvers.queueing.list_schedule import held_gpus
from optgap.solvers.queueing.online import online_of, serve_in_order

Held = list[tuple[int, int]]
"""(node, GPUs) pairs of a job."""
FEW, SHUFFLES = 20, 20
"""Streams of up to `FEW` jobs are served by so many random keys, too."""


def kept_patience(problem: QueueingProblem, solution: QueueingSolution) -> bool:
    """Tell whether every job starts before it leaves."""
    jobs, start = problem.jobs, solution.start_s
    return bool((start <= jobs.arrival_s + jobs.patience_s + slack_s(start)).all())


@dataclass
class Best:
    """The best schedule found in which every job starts before it leaves, and its objective, s."""

    problem: QueueingProblem
    solution: QueueingSolution | None = None
    value: float = math.inf

    def offer(self, solution: QueueingSolution) -> None:
        """Keep a schedule if it is better."""
        value = self.problem.value(solution.start_s)
        if value < self.value and kept_patience(self.problem, solution):
            self.solution, self.value = solution, value

    def met_by(self, bound: float) -> bool:
        """Tell whether a bound on the objective proves it optimal."""
        return bound >= self.value * (1 - 1e-7) - TOLERANCE_S


def list_schedule(problem: QueueingProblem, key: FloatArray) -> QueueingSolution:
    """Whenever GPUs are free, the waiting job with the least `key` that fits starts, by best fit.

    Parameters
    ----------
    key: one number per job, such as when it starts in a relaxation.
    """
    online = online_of(problem, key, hindsight=True)
    with interpreted(len(problem) <= UP_TO.queueing_jobs):
        serve_in_order(online, 2 * len(problem), False)
    held = held_gpus(online.truth)
    return QueueingSolution.of(problem, online.start, online.truth.at, online.node, held)


def simple_schedules(problem: QueueingProblem, seed: int) -> Iterator[QueueingSolution]:
    """List schedules by arrival, run time, work and GPUs, and by random keys."""
    jobs, rng = problem.jobs, np.random.default_rng(seed)
    keys = [jobs.arrival_s, jobs.duration_s, jobs.gpu_seconds, -jobs.duration_s]
    keys += [-jobs.gpus.astype(np.float64), jobs.arrival_s + jobs.duration_s]
    if len(jobs) <= FEW:
        keys += [rng.random(len(jobs)) for _ in range(SHUFFLES)]
    for key in keys:
        yield list_schedule(problem, key)


def settled(problem: QueueingProblem, order: list[int], held: list[Held]) -> QueueingSolution:
    """Return each job of a list as early as its nodes are free, these being given.

    If the list is in order of the starts of a schedule, no job starts later than in that one.
    """
    jobs, (_, g) = problem.jobs, problem.shape
    start = np.full(len(order), np.nan)
    placed: list[tuple[float, float, dict[int, int]]] = []
    for job in order:
        arrival, length = float(jobs.arrival_s[job]), float(jobs.duration_s[job])
        mine = dict(held[job])
        rivals = [item for item in placed if item[1] > arrival and mine.keys() & item[2].keys()]

        def fits(t: float, wanted: dict[int, int] = mine, others: object = rivals) -> bool:
            now = [used for s, e, used in others if s <= t < e]  # type: ignore[attr-defined]
            return all(sum(u.get(k, 0) for u in now) + n <= g for k, n in wanted.items())

        for t in sorted({arrival, *(e for _, e, _ in rivals)}):
            inside = [s for s, _, _ in rivals if t < s < t + length]
            if all(fits(x) for x in (t, *inside)):
                start[job] = t
                break
        placed.append((float(start[job]), float(start[job]) + length, mine))
    return QueueingSolution.on_nodes(problem, start, held)
