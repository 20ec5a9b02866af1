"""A schedule of little energy for somebody who knows when tasks will leave; none is ever moved.

Tasks are put, in some order, where each adds least over its whole life; then what some nodes run at
some moment is taken off and put back, again and again (`search_kernels`). Tasks that find no room
are left out, as few as can be.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np

from optgap.models.compiled import interpreted
from optgap.models.errors import InputError
from optgap.models.limits import Limits
from optgap.models.placement import PlacementProblem, PlacementSolution
from optgap.models.placement.arrays import IntArray
from optgap.models.placement.kernels import accepts, model_names, node_table
from optgap.models.placement.timeline import rest_values
from optgap.models.result import Outcome, Status, Termination
from optgap.models.times import freed_s
from optgap.models.work import WORK
from optgap.solvers.engines.annealing import anneal, random_of
from optgap.solvers.placement.over_time.book_kernels import (
    Book,
    Moves,
    TimedTasks,
    insert,
    place_all,
)
from optgap.solvers.placement.over_time.bounding import bound_over_time
from optgap.solvers.placement.over_time.parameters import TUNING
from optgap.solvers.placement.over_time.search_kernels import try_moves

MOST_NAMED = 5
"""Tasks left out that a message names."""
UNMOVED = "moves no task; the bound beside it lets tasks move"


class HindsightSearch:
    """Schedules of one problem.

    Attributes
    ----------
    best_j: what the best schedule so far adds to the empty cluster.
    node, mask: (T,) that one.
    """

    def __init__(self, problem: PlacementProblem, limits: Limits, seed: int) -> None:
        self.problem, self.limits = problem, limits
        self.random = random_of(seed)
        self.case = case_of(problem)
        self.book = empty_book(problem, self.case)
        self.choice = moves_for(problem, self.case)
        self.best_j = math.inf
        self.node, self.mask = self.book.node.copy(), self.book.mask.copy()

    @property
    def missing(self) -> int:
        """Number of tasks without a place in the best schedule."""
        return int((self.node < 0).sum())

    def construct(self, order: IntArray) -> bool:
        """Put the tasks, in this order, where each adds least; whether the limits let it end."""
        done = 0
        while done < len(order):
            if self.limits.stop is not None:
                return False
            end = min(len(order), done + TUNING.placed_at_once)
            at = place_all(self.case, self.book, self.choice, order, done, end, self.random)
            self.limits.spend(WORK.placed_row * (at - done) * int(self.book.rows.sum()))
            if at < end:
                self.book = roomier(self.book)
            done = at
            self.limits.progress(f"task {done} of {len(order)}", None, None)
        self.keep()
        return True

    def keep(self) -> None:
        """Take the schedule as it is for the best, if it is."""
        missing = int((self.book.node < 0).sum())
        joules = beyond_empty_j(self.problem, self.solution_of(self.book))
        if (missing, joules) < (self.missing, self.best_j):
            self.best_j = joules
            self.node[:], self.mask[:] = self.book.node, self.book.mask

    def anneal(self, moves: int, mean_j: float) -> int:
        """So many moves, at temperatures from `TUNING`'s; how many the limits let it make."""
        share = min(1.0, TUNING.looks / len(self.book.rows))

        def batch(count: int, hot_j: float, cold_j: float) -> None:
            try_moves(self.case, self.book, self.choice, count, hot_j, cold_j, self.random)
            self.limits.spend(WORK.moved_row * count * share * int(self.book.rows.sum()))
            self.keep()
            if (self.book.rows + 2 > 0.8 * np.diff(self.book.first)).any():
                self.book = roomier(self.book)
            self.limits.progress("annealing", self.objective, None)

        heats = TUNING.hot * mean_j, TUNING.cold * mean_j
        chunk = max(1, moves // TUNING.chunks)
        return anneal(batch, moves, heats, self.limits, chunk=chunk)

    @property
    def objective(self) -> float:
        """Energy of the best schedule, J."""
        return empty_j(self.problem) + self.best_j

    def solution_of(self, of: Book | None = None) -> PlacementSolution:
        """Return the best schedule, or the one in a book."""
        node, mask = (self.node, self.mask) if of is None else (of.node, of.mask)
        return PlacementSolution.of_arrays(node.copy(), mask.copy(), self.case.start_s)


def empty_j(problem: PlacementProblem) -> float:
    """Return what the empty cluster draws over the horizon, J."""
    assert problem.over_time is not None
    rest = rest_values(problem)
    return float((rest.cpu_w + rest.gpu_w).sum()) * problem.over_time.horizon_s


def beyond_empty_j(problem: PlacementProblem, solution: PlacementSolution) -> float:
    """Return what a schedule draws beyond that, J."""
    return problem.evaluate(solution).objective - empty_j(problem)


def case_of(problem: PlacementProblem) -> TimedTasks:
    """Return the problem as arrays, every task to start when it is submitted."""
    tasks, cluster = problem.tasks, problem.cluster
    submit, lasting = np.array(tasks.submit_s), np.array(problem.lasting_s)
    specs = tuple(dict.fromkeys(tasks.gpu_specs))
    place = {spec: k for k, spec in enumerate(specs)}
    most = max(1, int(cluster.gpus.max()))
    return TimedTasks(
        submit,
        lasting,
        freed_s(submit, submit + lasting),
        np.array(tasks.cpu_milli),
        np.array(tasks.memory_mib),
        np.array(tasks.num_gpu),
        np.array(tasks.gpu_milli),
        np.array([place[spec] for spec in tasks.gpu_specs], dtype=np.int64),
        accepts(specs, model_names(problem)),
        node_table(problem, np.arange(len(cluster))),
        np.zeros(most),
        np.zeros(most, dtype=np.bool_),
    )


def empty_book(problem: PlacementProblem, case: TimedTasks) -> Book:
    """Nothing runs anywhere."""
    nodes, tasks = len(case.nodes), len(case.start_s)
    room = 1 + 2 * min(tasks, 4 + 3 * tasks // nodes)
    first = room * np.arange(nodes + 1)
    size = int(first[-1])
    whole, real = np.zeros(size, dtype=np.int64), np.zeros(size)
    book = Book(
        first,
        np.ones(nodes, dtype=np.int64),
        real - np.inf,
        whole - 1,
        whole.copy(),
        whole.copy(),
        whole.copy(),
        np.zeros((size, len(case.room)), dtype=np.int64),
        real,
        np.full(tasks, -1, dtype=np.int64),
        np.zeros(tasks, dtype=np.int64),
    )
    book.cpu_w[first[:-1]] = rest_values(problem).cpu_w
    return book


def roomier(book: Book) -> Book:
    """Return the same with half as much room again for nodes that need it."""
    room = np.diff(book.first)
    tight = book.rows + 2 > 0.8 * room
    first = np.concatenate([[0], np.cumsum(np.where(tight, 2 * room + 2, room))])
    at = np.concatenate([np.arange(a, a + n) for a, n in zip(first, book.rows, strict=False)])
    was = np.concatenate([np.arange(a, a + n) for a, n in zip(book.first, book.rows, strict=False)])

    def moved(column: Any) -> Any:
        made = np.zeros((int(first[-1]), *column.shape[1:]), dtype=column.dtype)
        made[at] = column[was]
        return made

    columns = [moved(column) for column in book[2:9]]
    return Book._make([first, book.rows, *columns, book.node, book.mask])


def moves_for(problem: PlacementProblem, case: TimedTasks) -> Moves:
    """Return what annealing chooses from."""
    whole, nodes = np.zeros(TUNING.tasks, dtype=np.int64), len(problem.cluster)
    return Moves(
        TUNING.nodes,
        max(TUNING.blinks, 1 - TUNING.looks / nodes),
        np.cumsum(case.lasting_s),
        np.array(problem.cluster.type_of),
        whole,
        whole.copy(),
        whole.copy(),
        np.zeros(TUNING.tasks),
        np.zeros(nodes, dtype=np.bool_),
    )


def constructed(problem: PlacementProblem, limits: Limits, seed: int) -> HindsightSearch | None:
    """Place the longest tasks first, or in order of submission if that leaves some unplaced.

    None where the limits stop it before every task has been tried.
    """
    search = HindsightSearch(problem, limits, seed)
    if not search.construct(np.argsort(-problem.lasting_s, kind="stable")):
        return None
    if search.missing == 0:
        return search
    other = HindsightSearch(problem, limits, seed)
    if not other.construct(np.arange(len(problem.tasks))):
        return search
    return min(search, other, key=lambda one: (one.missing, one.best_j))


def long_rows(problem: PlacementProblem) -> IntArray:
    """Return the rows of the longest tasks, which run `long_share`; none where that is no help.

    That is where there are few tasks, or many nodes.
    """
    lasts = np.sort(problem.lasting_s)[::-1]
    if len(lasts) < TUNING.long_from or len(problem.cluster) > TUNING.long_nodes:
        return np.zeros(0, dtype=np.int64)
    least = lasts[np.searchsorted(np.cumsum(lasts), TUNING.long_share * lasts.sum())]
    found = np.flatnonzero(problem.lasting_s >= least)
    return found if 4 * len(found) <= len(lasts) else found[:0]


def long_first(
    problem: PlacementProblem,
    rows: IntArray,
    limits: Limits,
    seed: int,
    *,
    moves: int,
) -> HindsightSearch | None:
    """Anneal the long tasks alone, then add the others at least cost; None without room."""
    part = limits.within(limits.remaining / 2)
    alone = constructed(problem.subset(rows.tolist()), part, seed)
    if alone is None or alone.missing:
        return None
    mean = max(alone.best_j, 1.0) / len(rows)
    alone.anneal(TUNING.long_moves * moves, mean)
    search = HindsightSearch(problem, limits, seed)
    needed = 2 * np.bincount(alone.node, minlength=len(problem.cluster)) + 3
    if (needed > np.diff(search.book.first)).any():
        return None
    for k, n, mask in zip(rows.tolist(), alone.node.tolist(), alone.mask.tolist(), strict=True):
        insert(search.case, search.book, k, n, mask)
    if (search.book.rows + 2 > 0.8 * np.diff(search.book.first)).any():
        search.book = roomier(search.book)
    rest = np.setdiff1d(np.arange(len(problem.tasks)), rows)
    whole = search.construct(rest[np.argsort(-problem.lasting_s[rest], kind="stable")])
    return search if whole and not search.missing else None


def hindsight(
    problem: PlacementProblem,
    *,
    limits: Limits,
    seed: int,
    moves: int = 0,
    found: dict[str, Any] | None = None,
) -> Outcome:
    """Return a schedule that never moves a task, and the bound of ``bound-over-time`` beside it.

    It runs all tasks, or where some find no room, as many as it can.

    Parameters
    ----------
    moves: that annealing tries; 0 for one per task, within `TUNING`'s least and most.
    found: as for `bound_over_time`.

    Raises
    ------
    InputError: for another goal than energy.
    """
    if problem.objective.goal != "energy":
        raise InputError("hindsight", "field objective.goal", problem.objective.goal, "energy")
    part = limits.within(TUNING.proof * limits.remaining)
    bound = bound_over_time(problem, limits=part, seed=seed, found=found)
    if bound.status is Status.INFEASIBLE:
        return bound
    count = len(problem.tasks)
    moves = moves or max(TUNING.least_moves, min(TUNING.most_moves, count))
    moves = max(1, round(moves * limits.effort))
    cells = count * len(problem.cluster)
    with interpreted(moves <= TUNING.least_moves and cells <= TUNING.few_cells):
        rows = long_rows(problem)
        staged = long_first(problem, rows, limits, seed, moves=moves) if rows.size else None
        search = staged or constructed(problem, limits, seed)
        if search is None:
            stop = limits.stop or Termination.WORK_LIMIT
            return replace(bound, termination=stop, message="stopped before any schedule")
        first, warm = search.objective, TUNING.warm if staged else 1.0
        mean = max(search.best_j, 1.0) / count
        done = search.anneal(moves, warm * mean)
    return Outcome(
        search.solution_of(),
        Status.FEASIBLE,
        limits.stop or bound.termination,
        bound=bound.bound,
        bound_by=bound.bound_by,
        info={**bound.info, "constructed_j": first, "moves": done},
        message="; ".join(filter(None, (bound.message, left_out(problem, search.node), UNMOVED))),
    )


def left_out(problem: PlacementProblem, node: IntArray) -> str:
    """Return which tasks a schedule leaves out; "" where there are none."""
    lost = np.flatnonzero(node < 0)
    if not lost.size:
        return ""
    named = ", ".join(problem.subjects[k] for k in lost[:MOST_NAMED].tolist())
    more = f" and {len(lost) - MOST_NAMED} more" if len(lost) > MOST_NAMED else ""
    return f"no room found for {len(lost)} of {len(node)} tasks: {named}{more}"
