"""The optimum of a few jobs with free restarts: every order of events, a linear program for each.

Prefixes of orders are extended best first (``orders.py`` has the programs). Jobs that come when all
before them are done for sure are searched by themselves. The bound never rests on a solver's
tolerances, and *optimal* means: proven to within `GAP` of the mean completion time.
"""

from __future__ import annotations

import heapq
import itertools
import math

import numpy as np

from optgap.models.elastic import ElasticProblem, ElasticSolution
from optgap.models.errors import InputError, NoQuote
from optgap.models.limits import Limits
from optgap.models.result import Outcome, Status, Termination
from optgap.solvers.backends.safe import outwards
from optgap.solvers.elastic.area import bound_area
from optgap.solvers.elastic.joint import Step, Tables, completions, listed
from optgap.solvers.elastic.orders import Node, Orders

MOST_JOBS = 6
MOST_CONFIGURATIONS = 40
"""Per class: more, and a joint one takes too long to find."""
GAP = 5e-7
"""Relative to the mean completion time: a schedule proven to so much is called optimal."""
ROUNDING = 1e-12
"""Relative: more than rounding makes of rates and sums of times."""


def bounds(problem: ElasticProblem) -> bool:
    """Whether the relaxation with free restarts can be searched."""
    if len(problem) > MOST_JOBS or problem.cap == "energy":
        return False
    return max(_count(problem, int(c)) for c in problem.jobs.of_class) <= MOST_CONFIGURATIONS


def fits(problem: ElasticProblem) -> bool:
    """Whether the optimum can be searched: as `bounds`, and restarts are free."""
    return bounds(problem) and problem.overhead.free


def _count(problem: ElasticProblem, c: int) -> int:
    return int(np.isfinite(problem.time_s[c]).sum())


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
        self.orders = Orders(self.tables, limits)
        self.submitted = math.fsum(self.tables.submit_s.tolist())
        self.best = listed(self.tables)
        self.found = completions(self.tables, self.best) - self.submitted
        least = outwards([*self.tables.submit_s.tolist(), *self.tables.fastest_s.tolist()])
        self.heap: list[tuple[float, int, Node]] = [(least, 0, Node((), least, None))]
        self.counter = itertools.count(1)
        self.left_out = math.inf  # the least value of orders that were not pursued
        self.stopped: Termination | None = None

    @property
    def cut(self) -> float:
        """Σ completions from which on an order is not worth pursuing, s."""
        return self.submitted + self.found * (1 - GAP)

    @property
    def proven(self) -> float:
        """A bound on Σ (completion − submission), s."""
        open_ = self.heap[0][0] if self.heap else math.inf
        return min(outwards([min(self.left_out, open_), -self.submitted]), self.found)

    def run(self) -> None:
        """Until nothing better is left, or the limits say stop."""
        while self.heap and self.heap[0][0] < self.cut:
            self.stopped = self.limits.stop
            if self.stopped is None:
                self._expand()
            if self.stopped is not None:
                return

    def _expand(self) -> None:
        """The best open prefix by one event; it stays open where its children are not known."""
        value, _, node = self.heap[0]
        children = []
        for events in self.orders.children(node.events):
            child = self.orders.solve(events, self.cut)
            self.stopped = Termination.ERROR if self.orders.trouble else self.orders.stopped
            if self.stopped is not None:
                return
            if child is None:
                continue
            children.append(child)
            if child.steps is not None:
                self._offer(list(child.steps))
        heapq.heappop(self.heap)
        for child in children:
            proven = max(child.value, value)
            if child.steps is None and proven < self.cut:
                # deeper first among equals
                heapq.heappush(self.heap, (proven, -next(self.counter), child))
            else:
                self.left_out = min(self.left_out, proven)

    def _offer(self, steps: list[Step]) -> None:
        found = completions(self.tables, steps) - self.submitted
        if found < self.found:
            self.best, self.found = steps, found
            self.limits.progress("orders", found, self.proven)


def exhaustive(problem: ElasticProblem, *, limits: Limits, seed: int) -> Outcome:
    """The optimum, with proof; where restarts cost time, a bound: that of free restarts.

    Stopped early, the best schedule so far and what is proven by then.

    Raises
    ------
    InputError: for more than six jobs, too many configurations, or an energy budget.
    """
    if not bounds(problem):
        found = NoQuote(f"{len(problem)} jobs, cap {problem.cap}")
        expected = (
            f"at most {MOST_JOBS} jobs of at most {MOST_CONFIGURATIONS} configurations, "
            "no energy budget"
        )
        raise InputError("exhaustive", "", found, expected)
    searches = [Search(problem.subset(jobs), limits) for jobs in apart(problem)]
    for part in searches:
        part.run()
    return _outcome(problem, searches, limits, seed)


def apart(problem: ElasticProblem) -> list[list[int]]:
    """The jobs in groups that share no time in some optimal schedule: see `orders.latest`."""
    tables = Tables(problem)
    groups: list[list[int]] = [[]]
    end = 0.0
    for j, submit in enumerate(tables.submit_s.tolist()):
        if submit >= end * (1 + 1e-12) and groups[-1]:
            groups.append([])
        groups[-1].append(j)
        end = max(end, submit) + float(tables.fastest_s[j])
    return groups


def _outcome(problem: ElasticProblem, searches: list[Search], limits: Limits, seed: int) -> Outcome:
    proof = outwards([part.proven for part in searches]) / len(problem) * (1 - ROUNDING)
    programs = sum(part.orders.programs for part in searches)
    by = "orders of events, LP" if programs else "every job alone"
    stopped = next((part.stopped for part in searches if part.stopped is not None), None)
    area = bound_area(problem, limits=limits, seed=seed)
    if area.bound is not None and area.bound > proof and stopped is not None:
        proof, by = area.bound, area.bound_by or by
    termination = stopped or Termination.COMPLETED
    info = {"programs": programs, "groups": len(searches)}
    trouble = next(filter(None, (part.orders.trouble for part in searches)), "")
    if not problem.overhead.free:
        return Outcome(
            None, Status.BOUND_ONLY, termination, bound=proof, bound_by=by, info=info,
            message="; ".join(filter(None, (trouble, "restarts taken as free: a bound"))),
        )  # fmt: skip
    rows: list[tuple[int, float, float, int, int, int, int]] = []
    for part, jobs in zip(searches, apart(problem), strict=True):
        rows += [(jobs[row[0]], *row[1:]) for row in part.tables.segments(part.best)]
    status = Status.OPTIMAL if stopped is None else Status.FEASIBLE
    return Outcome(
        ElasticSolution.of(rows, switch_off=True), status, termination, bound=proof, bound_by=by,
        info=info, message=trouble,
    )  # fmt: skip
