"""Good schedules with hindsight: lists of jobs and nodes, improved by annealing.

Where only the number of free GPUs counts some list gives an optimum: take an optimum's jobs by
start; none starts later in turn than there, as those before it have ended no later. A search begins
with the better of two schedules, by arrival and by run time with bookings, and changes it within
windows of the list: each job waits for the nodes that it has, unless a move lets it take others.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextvars import copy_context
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np

from optgap.models.errors import InputError
from optgap.models.limits import Limits
from optgap.models.queueing import QueueingProblem, QueueingSolution
from optgap.models.result import Outcome, Status, Termination
from optgap.models.times import slack_s
from optgap.models.work import WORK
from optgap.solvers.engines.annealing import anneal, draw
from optgap.solvers.queueing.list_annealing import (
    ListSearch,
    Moves,
    return_to_best,
    schedule,
    search_of,
    try_moves,
    wait_for_nodes,
)
from optgap.solvers.queueing.list_schedule import held_gpus, machine_of, stream_of
from optgap.solvers.queueing.parameters import RESERVE_AFTER_S
from optgap.solvers.queueing.replanning import planner_of, serve

TELL_EVERY_S = 0.1
SEEDS = 1000
"""Difference between the seeds of two starts."""
EVENTS = 256
"""Events that are served between two looks at the limits."""


MOVES = Moves(earlier=0.35, behind=0.30, anywhere=0.10, reach=40, doubt=0.25)
"""Rules of moves; `doubt` is a share of the mean duration."""


@dataclass(frozen=True)
class OfflineTuning:
    """Settings of the search for a schedule with hindsight.

    Parameters
    ----------
    starts: independent searches, side by side; the best of them counts.
    most_moves: lists tried per start, but no more than `job_moves` per job and `pair_moves` per
        pair, and fewer for more than `long_jobs` jobs, in proportion.
    hot, cold: temperatures at the beginning, by turns for the starts, and at the end, of the mean
        duration.
    hot_few, cold_few: the same where there are fewer than `enough` moves per job.
    window: places of a window, at least and at most.
    chunk: moves within one window; fewer where more than 10,000 jobs may have to be scheduled
        again.
    """

    starts: int = 4
    most_moves: int = 2_000_000
    job_moves: int = 5000
    pair_moves: int = 1000
    long_jobs: int = 2000
    hot: tuple[float, ...] = (0.5, 0.3, 0.1, 0.05)
    cold: float = 0.01
    hot_few: float = 0.02
    cold_few: float = 0.003
    enough: int = 500
    window: tuple[int, int] = (20, 60)
    chunk: int = 300

    def moves(self, count: int) -> int:
        """Moves per start for so many jobs."""
        most = min(self.job_moves * count, self.pair_moves * count * count)
        return min(most, int(self.most_moves * min(1.0, self.long_jobs / count)))


TUNING = OfflineTuning()


class Annealed(NamedTuple):
    """One search, the objective that it began with, its moves, and what stopped it, if anything."""

    search: ListSearch
    begun: float
    moves: int
    stopped: Termination | None

    @property
    def cost(self) -> float:
        """Cost of its best list."""
        return float(self.search.costs[1])


def offline(problem: QueueingProblem, *, limits: Limits, seed: int, moves: int = 0) -> Outcome:
    """Search for a schedule with knowledge of all jobs, from the result of an online policy.

    Parameters
    ----------
    moves: lists tried per start; 0 for the default.

    Raises
    ------
    InputError: for fewer than no moves.
    """
    if moves < 0:
        raise InputError("offline", "moves", moves, "a number of moves, or 0 for the default")
    searches: list[ListSearch] = []

    def tell() -> None:
        values = [float(problem.value(search.best.start)) for search in searches]
        limits.progress("annealing", min(values, default=None), None)

    moves = max(1, int((moves or TUNING.moves(len(problem))) * limits.effort))
    tasks = [
        partial(_searched, problem, moves, number, seed=seed, searches=searches)
        for number in range(TUNING.starts)
    ]
    tell()
    runs = _side_by_side(tasks, limits, tell)
    best = min(runs, key=lambda run: run.cost)
    stopped = next((run.stopped for run in runs if run.stopped is not None), None)
    info = {"moves": sum(run.moves for run in runs), "start": min(run.begun for run in runs)}
    return _outcome(problem, best.search, stopped, info)


def _searched(
    problem: QueueingProblem,
    moves: int,
    number: int,
    limits: Limits,
    *,
    seed: int,
    searches: list[ListSearch],
) -> Annealed:
    """Anneal from the better of two schedules until the moves are used up; adds to `searches`."""
    count, (nodes, g) = len(problem), problem.shape
    search = search_of(stream_of(problem), np.arange(count), nodes, seed + SEEDS * number)
    schedule(search, search.before)
    _take_served(problem, search, seed, limits)
    begun = float(problem.value(search.best.start))
    searches.append(search)
    return_to_best(search)
    wait_for_nodes(search)
    idle, plan = machine_of(nodes, g, count), search.plan
    schedule(search, idle)
    mean_s = float(problem.jobs.duration_s.mean())
    rules = MOVES._replace(doubt=MOVES.doubt * mean_s)
    least, most = TUNING.window

    def batch(tries: int, hot: float, cold: float) -> None:
        """Try moves within a window around some job that waits."""
        before = int(search.now.starts[0])
        places = np.flatnonzero(plan.start[plan.order] > search.stream.arrival[plan.order])
        near, wide, shift = (draw(search.random) for _ in range(3))
        centre = int(places[int(near * len(places))]) if len(places) else count // 2
        width = least + int(wide * (most + 1 - least))
        first = max(0, centre - int(shift * width))
        try_moves(search, idle, rules, first, min(count, first + width), (hot, cold), tries)
        limits.spend(WORK.queueing_start * (int(search.now.starts[0]) - before))

    heats = TUNING.hot[number % len(TUNING.hot)] * mean_s, TUNING.cold * mean_s
    if moves < TUNING.enough * count:
        heats = TUNING.hot_few * mean_s, TUNING.cold_few * mean_s
    chunk = max(1, TUNING.chunk // max(1, count // 10_000))
    done = anneal(batch, moves, heats, limits, chunk=chunk)
    return Annealed(search, begun, done, None if done == moves else limits.stop)


def _take_served(problem: QueueingProblem, search: ListSearch, seed: int, limits: Limits) -> None:
    """Schedule the jobs as bookings serve them, unless a limit comes first."""
    planner, more = planner_of(problem, seed, hindsight=True), True
    while more and limits.stop is None:
        more = serve(planner, None, RESERVE_AFTER_S, EVENTS)
        limits.spend(WORK.queueing_event * EVENTS)
    if not more:
        search.plan.start[:] = planner.online.start
        search.plan.node[:] = planner.online.node
        wait_for_nodes(search)
        schedule(search, search.before)


def _side_by_side(
    tasks: Sequence[Callable[[Limits], Annealed]], limits: Limits, tell: Callable[[], None]
) -> list[Annealed]:
    """Return what tasks come to, as many at once as there are cores; `tell` is called meanwhile.

    Each has a meter of its own, so that neither's work depends on how far the other is.
    """
    alone = [limits.alone() for _ in tasks]
    with ThreadPoolExecutor(max_workers=min(len(tasks), os.cpu_count() or 1)) as pool:
        futures = [
            pool.submit(copy_context().run, task, own)
            for task, own in zip(tasks, alone, strict=True)
        ]
        while wait(futures, timeout=TELL_EVERY_S).not_done:
            tell()
        found = [future.result() for future in futures]
    limits.spend(max(own.spent for own in alone))
    for own in alone:
        if own.cut is not None:
            limits.note(own.cut)
    return found


def _outcome(
    problem: QueueingProblem,
    search: ListSearch,
    stopped: Termination | None,
    info: dict[str, float],
) -> Outcome:
    """Return the best schedule, unless some job would have left before its start."""
    stream, best = search.stream, search.best
    termination = stopped or Termination.COMPLETED
    if (best.start > stream.latest + slack_s(best.start)).any():
        why = "no schedule found in which every job starts before it leaves"
        return Outcome(None, Status.NO_SOLUTION, termination, info=info, message=why)
    solution = QueueingSolution.of(
        problem, best.start.copy(), stream.at, best.node.copy(), held_gpus(stream)
    )
    claimed = problem.value(best.start)
    return Outcome(solution, Status.FEASIBLE, termination, claimed=claimed, info=info)
