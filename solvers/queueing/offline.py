"""Good schedules with hindsight: lists of jobs, nodes and rules, improved by annealing.

Where only the number of free GPUs counts some list gives an optimum: take an optimum's jobs by
start; none starts later in turn than there, as those before it have ended no later. Streams of up
to `Annealing.whole_jobs` jobs are annealed as a whole first, each job with a wished node and a rule
in case that node is full; then, as longer streams from the outset, within windows of the list,
each job waiting for the nodes that it has.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextvars import copy_context
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

import numpy as np

from optgap.models.errors import InputError
from optgap.models.limits import Limits
from optgap.models.queueing import QueueingProblem, QueueingSolution
from optgap.models.queueing.arrays import FloatArray, IntArray
from optgap.models.result import Outcome, Status, Termination
from optgap.models.times import slack_s
from optgap.models.work import WORK
from optgap.solvers.queueing.list_annealing import (
    ListSearch,
    Moves,
    anneal,
    return_to_best,
    schedule,
    search_of,
    wait_for_nodes,
    wish_for_nodes,
)
from optgap.solvers.queueing.list_schedule import (
    LEAST_EXTENSION,
    held_gpus,
    machine_of,
    stream_of,
)
from optgap.solvers.queueing.replanning import Effort, Planner, by_estimate, planner_of, serve

T = TypeVar("T")

TELL_EVERY_S = 0.1
SEEDS = 1000
"""By how much the seeds of two starts differ."""
EVENTS = 256
"""Events that are served between two looks at the limits."""


@dataclass(frozen=True)
class Annealing:
    """How a schedule with hindsight is looked for.

    Parameters
    ----------
    moves: lists tried per start; 0 for `many_moves`, or `alone_moves` where a stream of up to
        `long_jobs` jobs is annealed in windows only; fewer for longer ones, in proportion.
    pair_moves: moves per pair of jobs that are enough when `moves` is 0.
    starts: independent searches, side by side; the best of them counts.
    many_moves, alone_moves, long_jobs: see `moves`.
    plans, many_jobs: times that a stream of up to `many_jobs` jobs is re-planned per start, to
        begin with the best; fewer times if it is longer.
    brevity: the stream is re-planned once before with so many times fewer moves.
    plan_starts: jobs started on trial per plan at most, times the jobs of the stream.
    whole_jobs: streams of up to so many jobs are annealed as a whole first.
    whole_share: share of the moves that this takes.
    round_moves: moves of a round of annealing; every round starts from the best schedule so far.
    hot, cool, cold: the temperatures at which the first round begins, by turns for the starts; at
        which the last one does; and at which all of them end, of the mean duration.
    hot_windows: the first one in windows of the list, after that.
    hot_alone, cold_alone: the first and the last one where a stream of up to `long_jobs` jobs is
        annealed in windows only.
    window: places of a window, at least and at most.
    chunk: moves between two looks at the limits; a tenth of that within one window, and less where
        more than 10,000 jobs may have to be scheduled again.
    earlier, behind, anywhere, reach: see `Moves`.
    doubt: see `decode`, of the mean duration, in windows; in a whole list more is made up for.
    """

    moves: int = 0
    starts: int = 2
    many_moves: int = 1_000_000
    alone_moves: int = 4_000_000
    long_jobs: int = 2000
    pair_moves: int = 1000
    plans: int = 8
    brevity: int = 10
    many_jobs: int = 1000
    plan_starts: int = 100_000_000
    whole_jobs: int = 500
    whole_share: float = 0.8
    round_moves: int = 60_000
    hot: tuple[float, ...] = (0.5, 0.05)
    cool: float = 0.05
    cold: float = 0.003
    hot_windows: float = 0.02
    hot_alone: float = 0.3
    cold_alone: float = 0.01
    window: tuple[int, int] = (20, 60)
    chunk: int = 3000
    earlier: float = 0.35
    behind: float = 0.30
    anywhere: float = 0.10
    reach: int = 40
    doubt: float = 0.25

    def efforts(self, count: int) -> list[Effort]:
        """How much work goes into the plans of each time that a stream is re-planned.

        A little at first; then as much as for the policy, but less for very long streams.
        """
        usual = Effort()
        usual = usual._replace(starts=max(500, min(usual.starts, self.plan_starts // count)))
        many = max(1, min(self.plans, self.plans * self.many_jobs // count))
        if self.alone(count):  # what annealing from `hot_alone` leaves of a plan is little
            many = 1
        return [usual._replace(moves=usual.moves // self.brevity), *[usual] * many]

    def alone(self, count: int) -> bool:
        """Whether a stream is annealed in windows only, though not too long to begin hot."""
        return self.whole_jobs < count <= self.long_jobs

    def budget(self, count: int, effort: float) -> int:
        """Moves per start."""
        many = self.moves
        if not many:
            many = self.alone_moves if self.alone(count) else self.many_moves
            many = min(
                self.pair_moves * count * count, int(many * min(1.0, self.long_jobs / count))
            )
        return max(1, int(many * effort))


def offline(
    problem: QueueingProblem, *, limits: Limits, seed: int, moves: int = 0, starts: int = 2
) -> Outcome:
    """The best schedule found, from what serving it online comes to; knows all jobs beforehand.

    Parameters
    ----------
    moves, starts: see `Annealing`.

    Raises
    ------
    InputError: for fewer than no moves, or no start.
    """
    if moves < 0:
        raise InputError("offline", "moves", moves, "a number of moves, or 0 for the default")
    if starts < 1:
        raise InputError("offline", "starts", starts, "at least 1")
    settings = Annealing(moves=moves, starts=starts)
    limits.progress("re-planning", None, None)
    searches = _side_by_side(
        [partial(_begin, problem, settings, seed + SEEDS * k) for k in range(starts)],
        limits,
        lambda: limits.progress("re-planning", None, None),
    )
    return _annealed(problem, searches, settings, limits, seed)


def polished(
    problem: QueueingProblem, known: QueueingSolution, limits: Limits, seed: int, moves: int = 0
) -> Outcome:
    """The best schedule found from a known one that starts every job, annealed from `cool` on."""
    settings = Annealing(moves=moves, hot=(Annealing.cool,))
    stream, (nodes, _) = stream_of(problem), problem.shape
    searches = []
    for k in range(settings.starts):
        order = np.argsort(known.start_s, kind="stable")
        search = search_of(stream, order, nodes, LEAST_EXTENSION, seed + SEEDS * k)
        _take(search, known.start_s, known.held_node)
        searches.append(search)
    return _annealed(problem, searches, settings, limits, seed)


def _take(search: ListSearch, start: FloatArray, node: IntArray) -> None:
    """Schedule the jobs in this order and on these nodes."""
    search.plan.start[:] = start
    search.plan.node[:] = node
    wait_for_nodes(search)
    schedule(search, search.before)


def _annealed(
    problem: QueueingProblem,
    searches: list[ListSearch],
    settings: Annealing,
    limits: Limits,
    seed: int,
) -> Outcome:
    """The best schedule of some searches side by side."""
    begun = min(float(problem.value(search.best.start)) for search in searches)
    runs = [
        _AnnealedSearch(problem, search, settings, k, seed) for k, search in enumerate(searches)
    ]

    def tell() -> None:
        best = min(searches, key=lambda search: float(search.costs[1]))
        limits.progress("annealing", float(problem.value(best.best.start)), None)

    stops = _side_by_side([run.run for run in runs], limits, tell)
    best = min(runs, key=lambda run: float(run.search.costs[1]))
    stopped = next((stop for stop in stops if stop is not None), None)
    info: dict[str, float | int | str] = {"moves": sum(run.done for run in runs), "start": begun}
    return _outcome(problem, best.search, stopped, info)


def _begin(problem: QueueingProblem, settings: Annealing, seed: int, limits: Limits) -> ListSearch:
    """The best of some schedules made in the order of time.

    They serve jobs by arrival, by run time with bookings, and as re-planned. What a limit leaves
    unplanned is served by run time with bookings.
    """
    stream, (nodes, _), count = stream_of(problem), problem.shape, len(problem)
    search = search_of(stream, np.arange(count), nodes, LEAST_EXTENSION, seed)
    schedule(search, search.before)
    for k, effort in enumerate([None, *settings.efforts(count)]):
        if limits.stop is not None:
            break
        planner = planner_of(problem, seed + k, hindsight=True)
        if effort is not None:
            _serve(planner, effort, limits)
            by_estimate(planner.online)
        _serve(planner, Effort(jobs=0), limits)
        if np.isfinite(planner.online.start).all():
            _take(search, planner.online.start, planner.online.node)
    return search


def _serve(planner: Planner, effort: Effort, limits: Limits) -> None:
    """Serve a stream to its end, or until the limits."""
    more = True
    while more and limits.stop is None:
        before = int(planner.search.now.starts[0])
        more = serve(planner, effort, EVENTS)
        started = int(planner.search.now.starts[0]) - before
        limits.spend(WORK.queueing_event * EVENTS + WORK.queueing_start * started)


class _AnnealedSearch:
    """One search, from the best schedule that it is given."""

    def __init__(
        self,
        problem: QueueingProblem,
        search: ListSearch,
        settings: Annealing,
        number: int,
        seed: int,
    ) -> None:
        count, (nodes, g) = len(problem), problem.shape
        self.hot = settings.hot[number % len(settings.hot)]
        self.search, self.settings = search, settings
        self.rng = np.random.default_rng(seed + number)
        self.idle = machine_of(nodes, g, count)
        self.mean_s = float(problem.jobs.duration_s.mean())
        self.whole = settings.whole_share if count <= settings.whole_jobs else 0.0
        alone = settings.alone(count)
        self.hot_windows = settings.hot_alone if alone else settings.hot_windows
        self.cold = settings.cold_alone if alone else settings.cold
        self.done, self.round, self.waits = 0, 0, self.whole == 0.0
        self._enter()

    def _enter(self) -> None:
        """Go on from the best schedule: as a whole list with wishes, or in windows."""
        return_to_best(self.search)
        if self.waits:
            wait_for_nodes(self.search)
        else:
            wish_for_nodes(self.search, LEAST_EXTENSION)
        schedule(self.search, self.idle)

    def run(self, limits: Limits) -> Termination | None:
        """Until the moves are used up; returns what stopped them, if anything did."""
        budget = self.settings.budget(len(self.search.start), limits.effort)
        while self.done < budget:
            if limits.stop is not None:
                return limits.stop
            before = int(self.search.now.starts[0])
            self._chunk(self._heat(self.done / budget), budget)
            limits.spend(WORK.queueing_start * (int(self.search.now.starts[0]) - before))
        return None

    def _heat(self, spent: float) -> float:
        """The temperature now, s; enters the next round when it is its turn."""
        chosen = self.settings
        if self.waits:
            share = (spent - self.whole) / max(1.0 - self.whole, 1e-9)
        else:
            share = (self.done - self.round) / chosen.round_moves
            if spent >= self.whole or share >= 1.0:
                self.waits, self.round, share = spent >= self.whole, self.done, 0.0
                self._enter()
        hot = self.hot_windows
        if not self.waits:
            hot = self.hot * (chosen.cool / self.hot) ** min(spent / self.whole, 1.0)
        heat: float = hot * (self.cold / hot) ** min(share, 1.0)
        return heat * self.mean_s

    def _chunk(self, heat: float, budget: int) -> None:
        """Some moves within one window."""
        search, chosen = self.search, self.settings
        first, stop, count = 0, len(search.start), len(search.start)
        size, doubt = chosen.chunk, np.inf
        if self.waits:
            plan = search.plan
            places = np.flatnonzero(plan.start[plan.order] > search.stream.arrival[plan.order])
            centre = int(self.rng.choice(places)) if len(places) else count // 2
            width = int(self.rng.integers(chosen.window[0], chosen.window[1] + 1))
            first = max(0, centre - int(self.rng.integers(width)))
            stop = min(count, first + width)
            size, doubt = size // (10 * max(1, count // 10_000)), chosen.doubt * self.mean_s
        moves = Moves(chosen.earlier, chosen.behind, chosen.anywhere, chosen.reach, doubt)
        tries = min(max(1, size), budget - self.done)
        anneal(search, self.idle, moves, first, stop, (heat, heat), tries)
        self.done += tries


def _side_by_side(
    tasks: Sequence[Callable[[Limits], T]], limits: Limits, tell: Callable[[], None]
) -> list[T]:
    """What tasks come to, as many at once as there are cores; `tell` is called meanwhile.

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
    info: dict[str, float | int | str],
) -> Outcome:
    """The best schedule, unless some job would have left before its start."""
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
