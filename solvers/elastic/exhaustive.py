"""Every order of events of a few jobs, best first, a linear program for each: optimum or bound.

Prefixes of orders are extended best first; each has a linear program of joint configurations
(``orders.py``). Where starts are free, the program of a whole order has a schedule, and the least
of all is the optimum: *optimal* means proven to within `TUNING.gap` of the mean
completion time. Where starts take time, a start is a configuration that does no work, and a job
pays for the share of its work that it does on each GPU count; an order is divided further by
whether a job uses a count, which then takes a whole start. That bounds every schedule, and the
search ends at the best schedule known. No bound rests on a solver's tolerances.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from optgap.models.elastic import ElasticProblem, ElasticSolution
from optgap.models.elastic.arrays import Floats
from optgap.models.errors import InputError, NoQuote
from optgap.models.limits import Limits
from optgap.models.result import Outcome, Status, Termination
from optgap.models.shown import counted
from optgap.models.spec import chosen
from optgap.solvers.backends.safe import outwards
from optgap.solvers.elastic.area import SAFE, closed_form
from optgap.solvers.elastic.joint import Step, Tables, by_worth, waited
from optgap.solvers.elastic.lagrangian import starts_s
from optgap.solvers.elastic.orders import (
    ROUNDING,
    Events,
    Orders,
    Use,
    Uses,
    following,
    one_by_one,
)
from optgap.solvers.elastic.parameters import ExhaustiveParams
from optgap.solvers.elastic.prices import Bounded, bounded
from optgap.solvers.engines.best_first import BestFirst


@dataclass(frozen=True, slots=True)
class ExhaustiveTuning:
    """Values that were found to work well, beside what can be set (`ExhaustiveParams`).

    Parameters
    ----------
    few: jobs up to which the search takes seconds.
    most_jobs: more orders than these have are not gone through in any time.
    most_charged: jobs that are searched where starts take time, as a program of twelve
        takes a second; more are bounded by prices only.
    least_start_s: where a start takes less, it is not charged.
    prices_share: of a budget, for the bound by prices.
    gap: a schedule proven to so much of the mean completion time is called optimal.
    """

    few: int = 6
    most_jobs: int = 12
    most_charged: int = 8
    least_start_s: float = 1e-3
    prices_share: float = 0.2
    gap: float = 5e-7


TUNING = ExhaustiveTuning()

BY = "orders of events, LP"
BY_STARTED = "orders of events and starts, LP"


def bounds(problem: ElasticProblem) -> bool:
    """Tell whether orders of events can be searched."""
    return len(problem) <= TUNING.most_jobs


def fits(problem: ElasticProblem) -> bool:
    """Tell whether the optimum can be searched: as `bounds`, and restarts are free."""
    return bounds(problem) and problem.overhead.free


def chargeable(problem: ElasticProblem) -> bool:
    """Tell whether starts take long enough to be charged."""
    return bool(starts_s(problem).min() >= TUNING.least_start_s)


class Node(NamedTuple):
    """An open node.

    Parameters
    ----------
    bound: s. events: a prefix or an order of events.
    uses: what is decided. use: what is decided next. solved: whether its program was solved.
    """

    bound: float
    events: Events = ()
    uses: Uses = ()
    use: Use | None = None
    solved: bool = False


class OrderSearch:
    """Every order of events of some jobs, best first.

    Parameters
    ----------
    charged: whether starts are charged; then there is only a bound.
    found: Σ (completion − submission) of the best schedule known, s; infinite for none.
    most: programs that are solved at most.

    Attributes
    ----------
    best: the best schedule found, times since the first of the jobs was submitted; without starts.
    found: Σ (completion − submission) of the best schedule, found or known, s.
    stopped: why the search ended before its end, or None.
    spent: whether it ended because `most` programs were solved.
    """

    def __init__(
        self,
        problem: ElasticProblem,
        limits: Limits,
        charged: bool = False,
        *,
        found: float = math.inf,
        most: float = math.inf,
    ) -> None:
        self.limits, self.most = limits, most
        self.tables = tables = Tables(problem, starts_s(problem) if charged else None)
        self.orders = Orders(tables, limits)
        self.first = dominated(problem, charged)
        self.best = [] if charged else by_worth(tables, tables.fastest_s)
        if charged:
            self.found = min(found, one_by_one(tables)[1] * (1 + ROUNDING))
        else:
            self.found = waited(tables, self.best)
        self.left_out = math.inf  # the least value of orders that are not divided further
        self.stopped: Termination | None = None
        self.spent = False
        root = Node(outwards(tables.fastest_s.tolist()))
        self.search = BestFirst([root], self._expand, lambda: min(self.cut, self.left_out))

    @property
    def cut(self) -> float:
        """Σ (completion − submission) from which on an order is not worth pursuing, s."""
        return self.found * (1 - TUNING.gap)

    @property
    def proven(self) -> float:
        """A bound on Σ (completion − submission), s."""
        return min(self.search.bound, self.found)

    def run(self) -> None:
        """Until nothing better is left, or the limits say stop."""
        stopped = self.search.run(self.limits)
        self.stopped = self.stopped or stopped

    def _expand(self, node: Node) -> list[Node] | None:
        """Solve a node's program, or divide the node if that is done.

        With starts charged no order has a schedule, and the value of one that is not divided
        further is the most that can be proven.
        """
        bound, events, uses, use, solved = node
        if solved and use is not None:
            return [Node(bound, events, (*uses, (use, so))) for so in (False, True)]
        if solved:
            after = following(events, self.tables.submit_s, self.first)
            return [Node(bound, child, uses) for child in reversed(after)]
        if self.orders.programs >= self.most:
            self.spent = True
            return None
        known = self.orders.solve(events, self.cut, uses)
        if known is None:
            self.stopped = Termination.ERROR if self.orders.trouble else self.orders.stopped
            return None
        bound = max(bound, known.value)
        if known.steps is not None:
            self._offer(list(known.steps))
        if len(events) == 2 * self.tables.size - 1 and known.use is None:
            if self.tables.charged:
                self.left_out = min(self.left_out, bound)
            self.search.prune(bound)
            return []
        return [Node(bound, events, uses, known.use, True)]

    def _offer(self, steps: list[Step]) -> None:
        found = waited(self.tables, steps)
        if found < self.found:
            self.best, self.found = steps, found
            self.limits.progress("orders", found, self.proven)


def dominated(problem: ElasticProblem, charged: bool = False) -> list[set[int]]:
    """Return, for each job, the jobs that complete before it in some optimal schedule.

    With free starts these are of the same class, submitted no later and have no more to do: where
    such a job completes later, the two can change places from some moment on so that it does not.
    Where starts are charged only jobs alike in all of that can, from the beginning on.
    """
    jobs, before = problem.jobs, np.arange(len(problem))
    first: list[set[int]] = []
    for j in range(len(problem)):
        same = jobs.of_class == jobs.of_class[j]
        alike = (jobs.submit_s == jobs.submit_s[j]) & (jobs.iterations == jobs.iterations[j])
        less = (jobs.submit_s <= jobs.submit_s[j]) & (jobs.iterations <= jobs.iterations[j])
        found = same & np.where(alike, before < j, less & (not charged))
        first.append(set(np.flatnonzero(found).tolist()))
    return first


def completions(problem: ElasticProblem, solution: ElasticSolution) -> Floats:
    """Return (J,) the last end of each job, s."""
    found = np.zeros(len(problem))
    np.maximum.at(found, solution.job, solution.end_s)
    return found


def exhaustive(problem: ElasticProblem, *, limits: Limits, seed: int, **given: Any) -> Outcome:
    """Prove the optimum, or a bound if restarts take time; `given` is as in `ExhaustiveParams`.

    Stopped early, the best schedule so far and what is proven by then.

    Raises
    ------
    InputError: for more than `TUNING.most_jobs` jobs, and a parameter out of range.
    """
    options = chosen(ExhaustiveParams, given, "exhaustive")
    if not bounds(problem):
        found, expected = NoQuote(f"{len(problem)} jobs"), f"at most {TUNING.most_jobs} jobs"
        raise InputError("exhaustive", "", found, expected)
    if chargeable(problem):
        prices = bounded(problem, limits.within(TUNING.prices_share * limits.remaining))
        most = round(options.programs * limits.effort)
        return searched(problem, limits, prices, found=math.inf, most=most)
    search = OrderSearch(problem, limits)
    search.run()
    return _outcome(problem, search)


def searched(
    problem: ElasticProblem, limits: Limits, prices: Bounded, *, found: float, most: int
) -> Outcome:
    """Return what a search with starts charged proves, and prices where these prove more.

    Parameters
    ----------
    found: Σ (completion − submission) of the best schedule known, s; infinite for none.
    prices: the bound by prices.
    most: programs that are solved at most.
    """
    bound, by, message = prices.bound, prices.by, ""
    stopped, programs = prices.stopped, 0
    if len(problem) <= TUNING.most_charged:
        search = OrderSearch(problem, limits, True, found=found, most=most)
        search.run()
        stopped, programs = search.stopped, search.orders.programs
        proven = outwards([search.proven]) / len(problem) * (1 - ROUNDING)
        bound, by = max((bound, by), (proven, BY_STARTED), key=lambda known: known[0])
        message = search.orders.trouble
        if search.spent:
            message = (
                f"the bound's search ended after {counted(most, 'program')}; more may prove more"
            )
    return Outcome(
        None, Status.BOUND_ONLY, stopped or Termination.COMPLETED, bound=bound, bound_by=by,
        info={"programs": programs}, message=message,
    )  # fmt: skip


def _outcome(problem: ElasticProblem, search: OrderSearch) -> Outcome:
    """Return what a search with free starts found: *optimal* if its bound is within the gap."""
    proof = outwards([search.proven]) / len(problem) * (1 - ROUNDING)
    programs, stopped = search.orders.programs, search.stopped
    by = BY if programs else "every job alone"
    if stopped is not None:
        proof, by = max((proof, by), closed_form(problem), key=lambda known: known[0])
        proof *= 1 - SAFE
    termination, info = stopped or Termination.COMPLETED, {"programs": programs}
    if not problem.overhead.free:
        trouble = "; ".join(filter(None, (search.orders.trouble, "restarts taken as free")))
        return Outcome(
            None, Status.BOUND_ONLY, termination, bound=proof, bound_by=by, info=info,
            message=trouble,
        )  # fmt: skip
    solution = ElasticSolution.of(search.tables.segments(search.best), switch_off=True)
    closed = stopped is None and search.proven >= search.cut
    return Outcome(
        solution, Status.OPTIMAL if closed else Status.FEASIBLE, termination, bound=proof,
        bound_by=by, info=info, message=search.orders.trouble,
    )  # fmt: skip
