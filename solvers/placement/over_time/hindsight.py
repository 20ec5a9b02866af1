"""A schedule of little energy for somebody who knows when tasks will leave; none is ever moved.

Tasks are put, in some order, where each adds least over its whole life; then what some nodes run at
some moment is taken off and put back, again and again (`search_kernels`). Every task starts when it
is submitted, or where there is a queue as soon as the first pass finds room for it: later moves
leave starts as they are.
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
from optgap.models.spec import chosen
from optgap.models.times import freed_s
from optgap.solvers.placement.over_time.book_kernels import (
    Book,
    Case,
    ease_all,
    insert_all,
    place_all,
)
from optgap.solvers.placement.over_time.bounding import bound_over_time
from optgap.solvers.placement.over_time.parameters import TUNING, HindsightParams
from optgap.solvers.placement.over_time.search_kernels import Moves, anneal


class Search:
    """Schedules of one problem.

    Attributes
    ----------
    best_j: what the best schedule so far adds to the empty cluster.
    node, mask: (T,) that one.
    ease: λ of `eased` at first. hurried: whether some tasks went to the first node with room.
    """

    def __init__(
        self, problem: PlacementProblem, limits: Limits, seed: int, ease: float = 0.0
    ) -> None:
        self.problem, self.limits, self.ease = problem, limits, ease
        self.rng = np.random.default_rng(seed)
        self.case = case_of(problem)
        self.book = empty_book(problem, self.case)
        self.like = np.array(problem.cluster.type_of)
        self.best_j, self.hurried = math.inf, False
        self.node, self.mask = self.book.node.copy(), self.book.mask.copy()

    @property
    def missing(self) -> int:
        """How many rows of tasks have no place in the best schedule."""
        return int((self.node < 0).sum())

    def construct(self, order: IntArray) -> None:
        """Put the tasks, in this order, where each adds least; once it is time, where it fits."""
        assert self.problem.over_time is not None
        done, waits = 0, self.problem.over_time.waits
        late = self.limits.stop is not None
        ease_all(self.case, self.book, self.ease)
        began_s = self.limits.elapsed
        while done < len(order):
            end = min(len(order), done + TUNING.placed_at_once)
            at = place_all(self.case, self.book, order, done, end, self.like, waits, late)
            if at < end:
                self.book = roomier(self.book)
            done = at
            self.limits.progress(f"task {done} of {len(order)}", None, None)
            each_s = (self.limits.elapsed - began_s) / max(done, 1)
            left_s = TUNING.hurried * each_s * (len(order) - done) + TUNING.kept_s * len(order)
            late = late or self.limits.stop is not None or self.limits.remaining < left_s
        self.hurried = self.hurried or late
        self.keep()

    def keep(self) -> None:
        """Take the schedule as it is for the best, if it is."""
        missing = int((self.book.node < 0).sum())
        joules = beyond_empty_j(self.problem, self.solution_of(self.book))
        if (missing, joules) < (self.missing, self.best_j):
            self.best_j = joules
            self.node[:], self.mask[:] = self.book.node, self.book.mask

    def anneal(self, moves: int, hot_j: float, cold_j: float, choice: Moves) -> int:
        """So many moves, from one temperature to another; how many there was time for.

        With a time limit it is cold once that is reached, however many moves are left. What is
        in use counts in full (`eased`) for the last fifth.
        """
        done, now, time_s = 0, 0.0, self.limits.remaining
        kept_s = TUNING.kept_s * len(self.node)
        while done < moves and self.limits.stop is None and self.limits.remaining > kept_s:
            step = min(TUNING.moves_at_once, max(1, moves // TUNING.chunks), moves - done)
            if math.isfinite(time_s):  # first few, then as many as there is time for
                spent_s = max(time_s - self.limits.remaining, 1e-9)
                fit = done * (self.limits.remaining - kept_s) / spent_s
                fit = fit if done else TUNING.first_moves
                step = min(step, max(1, int(fit)))
            ease_all(self.case, self.book, self.ease * max(0.0, 1.0 - now / TUNING.eased_share))
            hot = hot_j * (cold_j / hot_j) ** now
            now = (done + step) / moves
            if math.isfinite(time_s):
                now = min(1.0, max(now, 1.0 - self.limits.remaining / time_s))
            cold = hot_j * (cold_j / hot_j) ** now
            anneal(self.case, self.book, choice, step, hot, cold, self.rng)
            done += step
            self.keep()
            if (self.book.rows + 2 > 0.8 * np.diff(self.book.first)).any():
                self.book = roomier(self.book)
            self.limits.progress("annealing", self.objective, None)
        return done

    @property
    def objective(self) -> float:
        """Energy of the best schedule, J."""
        return empty_j(self.problem) + self.best_j

    def solution_of(self, of: Book | None = None) -> PlacementSolution:
        """The best schedule, or the one in a book."""
        node, mask = (self.node, self.mask) if of is None else (of.node, of.mask)
        return PlacementSolution.of_arrays(node.copy(), mask.copy(), self.case.start_s)


def empty_j(problem: PlacementProblem) -> float:
    """What the empty cluster draws over the horizon, J."""
    assert problem.over_time is not None
    rest = rest_values(problem)
    return float((rest.cpu_w + rest.gpu_w).sum()) * problem.over_time.horizon_s


def beyond_empty_j(problem: PlacementProblem, solution: PlacementSolution) -> float:
    """What a schedule draws beyond that, J."""
    return problem.evaluate(solution).objective - empty_j(problem)


def case_of(problem: PlacementProblem) -> Case:
    """The problem as arrays, every task to start when it is submitted."""
    tasks, cluster = problem.tasks, problem.cluster
    submit, lasting = np.array(tasks.submit_s), np.array(problem.lasting_s)
    specs = tuple(dict.fromkeys(tasks.gpu_specs))
    place = {spec: k for k, spec in enumerate(specs)}
    most = max(1, int(cluster.gpus.max()))
    return Case(
        submit,
        lasting,
        submit.copy(),
        freed_s(submit, submit + lasting),
        np.array(tasks.cpu_milli),
        np.array(tasks.memory_mib),
        np.array(tasks.num_gpu),
        np.array(tasks.gpu_milli),
        np.flatnonzero(tasks.first)[tasks.gang],
        np.array(tasks.parts),
        np.array([place[spec] for spec in tasks.gpu_specs], dtype=np.int64),
        accepts(specs, model_names(problem)),
        node_table(problem, np.arange(len(cluster))),
        np.zeros(1),
        np.zeros(most),
        np.zeros(most, dtype=np.bool_),
    )


def empty_book(problem: PlacementProblem, case: Case) -> Book:
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
    """The same with half as much room again for nodes that need it."""
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


def moves_for(problem: PlacementProblem, case: Case, params: HindsightParams) -> Moves:
    """What annealing chooses from."""
    most = max(params.tasks, int(problem.tasks.parts.max()))
    whole, nodes = np.zeros(most, dtype=np.int64), len(problem.cluster)
    return Moves(
        params.nodes,
        max(params.blinks, 1 - params.looks / nodes),
        np.cumsum(case.lasting_s),
        np.array(problem.cluster.type_of),
        whole,
        whole.copy(),
        whole.copy(),
        np.zeros(most),
        np.zeros(nodes, dtype=np.bool_),
    )


def constructed(problem: PlacementProblem, limits: Limits, seed: int, ease: float) -> Search:
    """The longest tasks first; in order of submission, where that leaves some without a place."""
    search = Search(problem, limits, seed, ease)
    search.construct(np.argsort(-problem.lasting_s, kind="stable"))
    if search.missing == 0:
        return search
    other = Search(problem, limits, seed, ease)
    other.construct(np.arange(len(problem.tasks)))
    return min(search, other, key=lambda one: (one.missing, one.best_j))


def long_rows(problem: PlacementProblem) -> IntArray:
    """The rows of the longest tasks, which run `Tuning.long_share`; none where that is no help.

    That is where there are few tasks, or many nodes, and where tasks may wait: starts of some
    depend on the others then.
    """
    assert problem.over_time is not None
    lasts = np.sort(problem.lasting_s)[::-1]
    few = len(lasts) < TUNING.long_from or len(problem.cluster) > TUNING.most_eased
    if few or problem.over_time.waits:
        return np.zeros(0, dtype=np.int64)
    least = lasts[np.searchsorted(np.cumsum(lasts), TUNING.long_share * lasts.sum())]
    found = np.flatnonzero(problem.lasting_s >= least)
    return found if 4 * len(found) <= len(lasts) else found[:0]


def long_first(
    problem: PlacementProblem,
    rows: IntArray,
    limits: Limits,
    seed: int,
    params: HindsightParams,
    moves: int,
    ease: float,
) -> Search | None:
    """The long tasks annealed alone, then the others where each adds least; None without room."""
    part = limits.within(limits.remaining / 2) if math.isfinite(limits.remaining) else limits
    alone = constructed(problem.subset(rows.tolist()), part, seed, ease)
    if alone.missing:
        return None
    mean = max(alone.best_j, 1.0) / len(rows)
    choice = moves_for(alone.problem, alone.case, params)
    alone.anneal(TUNING.long_moves * moves, params.hot * mean, params.cold * mean, choice)
    search = Search(problem, limits, seed)
    needed = 2 * np.bincount(alone.node, minlength=len(problem.cluster)) + 3
    if (needed > np.diff(search.book.first)).any():
        return None
    insert_all(search.case, search.book, rows, alone.node, alone.mask)
    if (search.book.rows + 2 > 0.8 * np.diff(search.book.first)).any():
        search.book = roomier(search.book)
    rest = np.setdiff1d(np.arange(len(problem.tasks)), rows)
    search.construct(rest[np.argsort(-problem.lasting_s[rest], kind="stable")])
    return None if search.missing else search


def unfit(problem: PlacementProblem) -> tuple[str, object, str] | None:
    """Field, what it is, and what it would have to be, for a problem that this is no method for."""
    assert problem.over_time is not None
    if problem.objective.goal != "energy":
        return "objective.goal", problem.objective.goal, "energy"
    return None


def hindsight(
    problem: PlacementProblem,
    *,
    limits: Limits,
    seed: int,
    found: dict[str, Any] | None = None,
    **given: Any,
) -> Outcome:
    """A schedule of all tasks that never moves one, and the bound of ``bound-over-time`` beside it.

    Parameters
    ----------
    found: as for `bound_over_time`.
    given: as in `HindsightParams`.

    Raises
    ------
    InputError: for a parameter out of range, and for another goal than energy.
    """
    trouble = unfit(problem)
    if trouble is not None:
        field, found_there, expected = trouble
        raise InputError("hindsight", f"field {field}", found_there, expected)
    params = chosen(HindsightParams, given, "hindsight")
    timed = math.isfinite(limits.remaining)
    part = limits.within(params.proof * limits.remaining) if timed else limits
    bound = bound_over_time(problem, limits=part, seed=seed, found=found)
    if bound.status is Status.INFEASIBLE:
        return bound
    count = len(problem.tasks)
    moves = params.moves or max(TUNING.least_moves, min(TUNING.most_moves, count))
    cells = count * len(problem.cluster)
    with interpreted(moves <= TUNING.least_moves and cells <= TUNING.few_cells):
        few = len(problem.cluster) <= TUNING.most_eased
        ease = params.ease if params.ease >= 0 else TUNING.ease * few
        rows = long_rows(problem)
        staged = long_first(problem, rows, limits, seed, params, moves, ease) if rows.size else None
        search = staged or constructed(problem, limits, seed, ease)
        first, warm = search.objective, TUNING.warm if staged else 1.0
        mean = max(search.best_j, 1.0) / count
        choice = moves_for(problem, search.case, params)
        done = search.anneal(moves, warm * params.hot * mean, warm * params.cold * mean, choice)
    cut = search.hurried or done < moves  # before the limit, to keep it
    stop = limits.stop or (Termination.TIME_LIMIT if cut else Termination.COMPLETED)
    if search.missing:
        lost = int((search.node[problem.tasks.first] < 0).sum())
        message = f"no room found for {lost} of {problem.tasks.count} tasks"
        return replace(bound, termination=stop, message=message)
    info = {**bound.info, "constructed_j": first, "moves": done}
    return Outcome(
        search.solution_of(),
        Status.FEASIBLE,
        stop,
        bound=bound.bound,
        bound_by=bound.bound_by,
        info=info,
        message="; ".join(
            filter(None, (bound.message, "moves no task; the bound beside it lets tasks move"))
        ),
    )
