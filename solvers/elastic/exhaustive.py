"""The optimum of a few jobs with free restarts: every order of events, a linear program for each.

Prefixes of orders are extended best first (``orders.py`` has the programs). Jobs that come when all
before them are done for sure are searched by themselves. The bound never rests on a solver's
tolerances, and *optimal* means: proven to within `Tuning.gap` of the mean completion time. Where
starts take time, ``charged.py`` searches for a bound.
"""

from __future__ import annotations

import heapq
import itertools
import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from optgap.models.elastic import ElasticProblem, ElasticSolution
from optgap.models.elastic.simulation.engine import simulate
from optgap.models.elastic.simulation.most_worth import EstimatedWorth, MostWorth
from optgap.models.elastic.snapshot import Choices
from optgap.models.errors import InputError, NoQuote
from optgap.models.limits import Limits
from optgap.models.result import Outcome, Status, Termination
from optgap.models.spec import chosen
from optgap.solvers.backends.safe import outwards
from optgap.solvers.elastic.area import bound_area
from optgap.solvers.elastic.charged import TUNING as CHARGED
from optgap.solvers.elastic.charged import chargeable, completions, searched
from optgap.solvers.elastic.joint import Step, Tables, by_worth, ends, listed, order_of, waited
from optgap.solvers.elastic.orders import Orders
from optgap.solvers.elastic.parameters import ExhaustiveParams
from optgap.solvers.elastic.prefixes import ROUNDING, Events, Prefixes, following, one_by_one
from optgap.solvers.elastic.prices import bounded, one_machine
from optgap.solvers.elastic.snapshot import solve


@dataclass(frozen=True, slots=True)
class Tuning:
    """What was found to work well, beside what can be set (`ExhaustiveParams`).

    Parameters
    ----------
    few: jobs up to which the search takes seconds; with more the bound by prices comes first, in a
        share of a time limit.
    most_jobs: more orders than these have are not gone through in any time.
    gap: a schedule proven to so much of the mean completion time is called optimal.
    power, spread_s, states: of the schedule of `work-value` that a bound with starts charged begins
        with.
    """

    few: int = 6
    most_jobs: int = 12
    gap: float = 5e-7
    power: float = 0.75
    spread_s: float = 300.0
    states: int = 3000


TUNING = Tuning()


def bounds(problem: ElasticProblem) -> bool:
    """Whether the relaxation with free restarts can be searched."""
    return len(problem) <= TUNING.most_jobs and problem.cap != "energy"


def fits(problem: ElasticProblem) -> bool:
    """Whether the optimum can be searched: as `bounds`, and restarts are free."""
    return bounds(problem) and problem.overhead.free


class Search:
    """Every order of events of some jobs, best first, from the best list schedule on.

    Attributes
    ----------
    best: the best schedule found, times since the first of the jobs was submitted.
    found: Σ (completion − submission) of it, s.
    stopped: why it ended before its end, or None.
    """

    def __init__(self, problem: ElasticProblem, limits: Limits) -> None:
        self.limits = limits
        self.tables = Tables(problem)
        self.prefixes = Prefixes(self.tables, limits)
        self.orders = Orders(self.tables, limits)
        self.first = dominated(problem)
        self.best = listed(self.tables)
        self.found = waited(self.tables, self.best)
        least = outwards(self.tables.fastest_s.tolist())
        self.heap: list[tuple[float, int, Events]] = [(least, 0, ())]
        self.counter = itertools.count(1)
        self.left_out = math.inf  # the least value of orders that were not pursued
        self.stopped: Termination | None = None

    @property
    def cut(self) -> float:
        """Σ (completion − submission) from which on an order is not worth pursuing, s."""
        return self.found * (1 - TUNING.gap)

    @property
    def proven(self) -> float:
        """A bound on Σ (completion − submission), s."""
        open_ = self.heap[0][0] if self.heap else math.inf
        return min(self.left_out, open_, self.found)

    @property
    def trouble(self) -> str:
        """What went wrong with a linear program."""
        return self.prefixes.trouble or self.orders.trouble

    def run(self) -> None:
        """Until nothing better is left, or the limits say stop."""
        self._improve()
        while self.stopped is None and self.heap and self.heap[0][0] < self.cut:
            self.stopped = self.limits.stop
            if self.stopped is None:
                self._expand()

    def _improve(self) -> None:
        """From the best order to one that goes by what work is worth there, and so on."""
        seen: set[Events] = set()
        steps = self.best
        while self.limits.stop is None:
            events = order_of(self.tables, ends(self.tables, steps))
            if events in seen:
                return
            seen.add(events)
            known = self.orders.solve(events, math.inf)
            if known is None or known.steps is None:
                self.orders.trouble = ""  # it is only left out here
                return
            self._offer(list(known.steps))
            steps = by_worth(self.tables, known.worth)
            self._offer(steps)

    def _expand(self) -> None:
        """The best open prefix by one event; it stays open where its children are not known."""
        value, _, events = self.heap[0]
        children = []
        for child in following(events, self.tables.submit_s, self.first):
            proven = self._value(child)
            if proven is None:
                self.stopped = Termination.ERROR if self.trouble else self.prefixes.stopped
                self.stopped = self.stopped or self.orders.stopped
                return
            children.append((max(proven, value), child))
        heapq.heappop(self.heap)
        for proven, child in children:
            if proven < self.cut and len(child) < 2 * self.tables.size - 1:
                # deeper first among equals
                heapq.heappush(self.heap, (proven, -next(self.counter), child))
            else:
                self.left_out = min(self.left_out, proven)

    def _value(self, events: Events) -> float | None:
        """What is proven of a prefix; infinite for an order that is impossible."""
        value = self.prefixes.value(events, self.cut)
        if value is None or value >= self.cut or len(events) < 2 * self.tables.size - 1:
            return value
        known = self.orders.solve(events, self.cut)
        if known is None:
            return None if self.orders.trouble or self.orders.stopped else math.inf
        if known.steps is not None:
            self._offer(list(known.steps))
        return max(value, known.value)

    def _offer(self, steps: list[Step]) -> None:
        found = waited(self.tables, steps)
        if found < self.found:
            self.best, self.found = steps, found
            self.limits.progress("orders", found, self.proven)


def dominated(problem: ElasticProblem) -> list[set[int]]:
    """By job, those that complete before it in some optimal schedule.

    They are of the same class, submitted no later and have no more to do: where such a job
    completes later, the two can change places from some moment on so that it does not.
    """
    jobs = problem.jobs
    first: list[set[int]] = []
    for j in range(len(problem)):
        same = (jobs.of_class == jobs.of_class[j]) & (jobs.submit_s <= jobs.submit_s[j])
        same &= jobs.iterations <= jobs.iterations[j]
        alike = (jobs.submit_s == jobs.submit_s[j]) & (jobs.iterations == jobs.iterations[j])
        same &= ~alike | (np.arange(len(problem)) < j)
        first.append(set(np.flatnonzero(same).tolist()))
    return first


def exhaustive(problem: ElasticProblem, *, limits: Limits, seed: int, **given: Any) -> Outcome:
    """The optimum, with proof; where restarts cost time, a bound; `given` as in `ExhaustiveParams`.

    Stopped early, the best schedule so far and what is proven by then.

    Raises
    ------
    InputError: for more than `Tuning.most_jobs` jobs, an energy budget, and a parameter out of
        range.
    """
    options = chosen(ExhaustiveParams, given, "exhaustive")
    if not bounds(problem):
        found = NoQuote(f"{len(problem)} jobs, cap {problem.cap}")
        expected = f"at most {TUNING.most_jobs} jobs, no energy budget"
        raise InputError("exhaustive", "", found, expected)
    groups = apart(problem)
    if chargeable(problem):
        return _charged(problem, groups, limits, options.programs)
    few = max(map(len, groups)) <= TUNING.few
    area = bound_area(problem, limits=limits, seed=seed)
    floor, by = area.bound or 0.0, area.bound_by or ""
    if not few:
        prices = bounded(problem, limits.within(CHARGED.prices_share * limits.remaining))
        floor, by = prices.bound, prices.by
    searches = [Search(problem.subset(jobs), limits) for jobs in groups]
    for part in searches:
        part.run()
    return _outcome(problem, searches, groups, (floor, by))


def _charged(
    problem: ElasticProblem, groups: list[list[int]], limits: Limits, most: int
) -> Outcome:
    """A bound: by prices, and by a search of what is better than a schedule of `work-value`."""
    share = limits.within(CHARGED.prices_share * limits.remaining)
    prices = bounded(problem, share, order=one_machine(problem, share))
    choices = Choices.of(problem)
    worth = EstimatedWorth(problem, choices, TUNING.power)
    spread_s, gap, states = TUNING.spread_s, TUNING.gap, TUNING.states
    policy = MostWorth(problem, choices, worth, solve, spread_s, gap, states)
    made = simulate(problem, policy, limits)
    bound, by = prices.bound, prices.by
    termination, message, programs = limits.stop or Termination.COMPLETED, "", 0
    if made.termination is Termination.COMPLETED and made.solution is not None:
        ends_s = completions(problem, made.solution)
        known = searched(problem, limits, groups, ends_s, prices, most)
        if known.bound > bound:
            bound, by = known.bound, known.bound_by
        termination, message = known.stopped or termination, known.message
        programs = known.programs
    return Outcome(
        None, Status.BOUND_ONLY, termination, bound=bound, bound_by=by,
        info={"programs": programs, "groups": len(groups)}, message=message,
    )  # fmt: skip


def apart(problem: ElasticProblem) -> list[list[int]]:
    """The jobs in groups that share no time in some optimal schedule: see `one_by_one`."""
    tables = Tables(problem)
    groups = [[0]]
    for j, end in enumerate(one_by_one(tables)[:-1], start=1):
        if tables.submit_s[j] >= end * (1 + ROUNDING):
            groups.append([])
        groups[-1].append(j)
    return groups


def _outcome(
    problem: ElasticProblem,
    searches: list[Search],
    groups: list[list[int]],
    floor: tuple[float, str],
) -> Outcome:
    proof = outwards([part.proven for part in searches]) / len(problem) * (1 - ROUNDING)
    programs = sum(part.orders.programs + part.prefixes.programs for part in searches)
    by = "orders of events, LP" if programs else "every job alone"
    stopped = next((part.stopped for part in searches if part.stopped is not None), None)
    if stopped is not None and floor[0] > proof:
        proof, by = floor
    termination = stopped or Termination.COMPLETED
    info = {"programs": programs, "groups": len(searches)}
    trouble = next(filter(None, (part.trouble for part in searches)), "")
    if not problem.overhead.free:
        return Outcome(
            None, Status.BOUND_ONLY, termination, bound=proof, bound_by=by, info=info,
            message="; ".join(filter(None, (trouble, "restarts taken as free"))),
        )  # fmt: skip
    rows: list[tuple[int, float, float, int, int, int, int]] = []
    for part, jobs in zip(searches, groups, strict=True):
        rows += [(jobs[row[0]], *row[1:]) for row in part.tables.segments(part.best)]
    status = Status.OPTIMAL if stopped is None else Status.FEASIBLE
    return Outcome(
        ElasticSolution.of(rows, switch_off=True), status, termination, bound=proof, bound_by=by,
        info=info, message=trouble,
    )  # fmt: skip
