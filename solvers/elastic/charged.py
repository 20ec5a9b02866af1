"""What schedules cost at least where every start takes time: orders of events, and counts used.

Prefixes of orders are extended best first, as with free restarts, and a whole order gets a program
of joint configurations, starts being configurations that do no work. It is then divided further: a
job uses a GPU count or it does not, at all or in one interval. Each count used is started on once,
and what is used from interval to interval says how many starts there are at least. The proof is in
``docs/elastic-bounds.md``.
"""

from __future__ import annotations

import heapq
import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from optgap.models.elastic import ElasticProblem, ElasticSolution
from optgap.models.elastic.arrays import Floats
from optgap.models.limits import Limits
from optgap.models.result import Termination
from optgap.solvers.backends.safe import outwards
from optgap.solvers.elastic.joint import Tables
from optgap.solvers.elastic.prefixes import ROUNDING, Events, following, one_by_one_started
from optgap.solvers.elastic.prices import Bounded, ByCompletion, bounded, one_machine
from optgap.solvers.elastic.restarts import starts_s
from optgap.solvers.elastic.uses import ANY, Charged, Relaxed, Use, Uses, fewest, starts_of


@dataclass(frozen=True, slots=True)
class Tuning:
    """What was found to work well, beside what can be set (`ExhaustiveParams`).

    Parameters
    ----------
    jobs: of a group; more are bounded by prices only, as a program of twelve takes a second.
    prices_share: of a time limit, for the bound by prices.
    least_start_s: where a start takes less, it is not charged.
    short: units of time; less is not worth a decision.
    unpaid: starts, and units of time for them; less is not worth a decision.
    """

    jobs: int = 8
    prices_share: float = 0.2
    least_start_s: float = 1e-3
    short: float = 1e-6
    unpaid: float = 1e-3


TUNING = Tuning()

Node = tuple[float, int, Events, Uses, Use | None, bool]
"""What is proven of it, which breaks ties, a prefix or an order, what to divide it by, and whether
its program was solved."""


class Search:
    """Every order of events of some jobs, and what they use, best first.

    Parameters
    ----------
    found: Σ (completion − submission) of the best schedule known, s; infinite for none.
    most: programs that are solved at most.
    prices: a bound on the same jobs.

    Attributes
    ----------
    stopped: why it ended before its end, or None.
    spent: it ended because `most` programs were solved.
    """

    def __init__(
        self,
        problem: ElasticProblem,
        limits: Limits,
        found: float,
        most: int,
        prices: ByCompletion | None = None,
    ) -> None:
        self.limits, self.most, self.prices = limits, most, prices
        self.tables = tables = Tables(problem, starts_s(problem))
        self.programs = Charged(tables, limits)
        serial = math.fsum([*one_by_one_started(tables), *(-tables.submit_s).tolist()])
        self.found = min(found, serial * (1 + ROUNDING))
        self.submit_s = problem.jobs.submit_s
        self.submitted = math.fsum(self.submit_s.tolist())
        if prices is not None:
            self.windows = prices.windows(self.found + self.submitted)
        self.first = twins(problem)
        self.heap: list[Node] = [(0.0, 0, (), (), None, False)]
        self.counter = itertools.count(1)
        self.left_out = math.inf
        self.stopped: Termination | None = None
        self.spent = False

    @property
    def proven(self) -> float:
        """A bound on Σ (completion − submission), s."""
        open_ = self.heap[0][0] if self.heap else math.inf
        return min(self.left_out, open_, self.found)

    def run(self) -> None:
        """Until nothing better than what was found is left, or the limits say stop."""
        while self.stopped is None and self.heap and self.heap[0][0] < self.found:
            self.stopped = self.limits.stop
            if self.programs.programs >= self.most:
                self.spent = True
                return
            if self.stopped is None:
                self._look()

    def _look(self) -> None:
        """Solve the best open node's program, or divide it if that is done."""
        value, _, events, uses, use, solved = self.heap[0]
        whole = len(events) == 2 * self.tables.size - 1
        if not solved:
            known = self._known(events, uses, value)
            if known is None:  # it stays open
                trouble = Termination.ERROR if self.programs.trouble else None
                self.stopped = trouble or self.programs.stopped
                return
            heapq.heappop(self.heap)
            value, use = known
            if whole and use is None:
                self.left_out = min(self.left_out, value)
            else:
                self._open(value, events, uses, use, True)
            return
        heapq.heappop(self.heap)
        if use is not None:
            for so in (True, False):
                self._open(value, events, (*uses, (use, so)), None, False)
            return
        for child in following(events, self.tables.submit_s, self.first):
            self._open(max(value, self._priced(child)), child, uses, None, False)

    def _open(
        self, value: float, events: Events, uses: Uses, use: Use | None, solved: bool
    ) -> None:
        """One more open node, unless it is no better than what was found."""
        if value < self.found:
            # deeper first among equals
            node = (value, -next(self.counter), events, uses, use, solved)
            heapq.heappush(self.heap, node)
        else:
            self.left_out = min(self.left_out, value)

    def _priced(self, events: Events) -> float:
        """What the bound by prices says of a prefix."""
        if self.prices is None:
            return 0.0
        submit_s, (low, high) = self.submit_s, self.windows
        low, high = np.maximum(low, submit_s), high.copy()
        now, arrived = float(submit_s[0]), 1
        for event in events:
            if event < 0:
                now, arrived = max(now, float(submit_s[arrived])), arrived + 1
            else:
                now = low[event] = max(now, float(low[event]))
        left = [j for j in range(len(low)) if j not in events]
        low[left] = np.maximum(low[left], now)
        until = float(high[left].min(initial=math.inf))
        if arrived < len(submit_s):
            until = min(until, float(submit_s[arrived]))
        for event in reversed(events):
            if event < 0:
                arrived -= 1
                until = min(until, float(submit_s[arrived]))
            else:
                until = high[event] = min(until, float(high[event]))
        if (low > high).any():
            return math.inf
        return self.prices.least(low, high) - self.submitted

    def _known(self, events: Events, uses: Uses, least: float) -> tuple[float, Use | None] | None:
        """What is proven, and by what to divide it."""
        if not uses:
            value = self.programs.value(events, self.found)
            if value is None:
                return None
            least = max(least, value)
        if least >= self.found or len(events) < 2 * self.tables.size - 1:
            return least, None
        known = self.programs.relaxed(events, uses, self.found)
        if known is None:
            return None
        least = max(least, known.value)
        return least, None if least >= self.found else self._next(known, dict(uses))

    def _next(self, known: Relaxed, uses: dict[Use, bool]) -> Use | None:
        """By what to divide: the count whose start is paid for least, or else an interval's."""
        unpaid = self.programs.start_s * (1 - known.started)
        unpaid[known.held.sum(axis=0) <= TUNING.short] = 0.0
        for j, n, at in uses:
            if at == ANY:
                unpaid[j, n] = 0.0
        j, n = divmod(int(unpaid.argmax()), unpaid.shape[1])
        if unpaid[j, n] > TUNING.unpaid * self.programs.unit:
            return j, n, ANY
        return self._interval(known, uses)

    def _interval(self, known: Relaxed, uses: dict[Use, bool]) -> Use | None:
        """Of the jobs that start more often than is paid for, what raises that, or is used most."""
        many, best, use = len(known.held), (False, TUNING.short), None
        for j in range(self.tables.size):
            visits = [set(np.flatnonzero(held[j] > TUNING.short).tolist()) for held in known.held]
            if fewest(visits) <= known.started[j].sum() + TUNING.unpaid:
                continue
            now = starts_of(j, uses, many)
            for i, counts in enumerate(visits):
                for n in counts:
                    if (j, n, i) not in uses:
                        more = starts_of(j, {**uses, (j, n, i): True}, many) > now
                        this = more, float(known.held[i, j, n])
                        if this > best:
                            best, use = this, (j, n, i)
        return use


@dataclass(frozen=True, eq=False)
class Proven:
    """A bound on the mean completion − submission, s, and how it was found.

    Parameters
    ----------
    stopped: why it ended before its end, unless because it had solved as many programs as it may.
    message: that it had, and what went wrong with one.
    """

    bound: float
    programs: int
    stopped: Termination | None
    message: str
    bound_by: str = "orders of events and starts, LP"


def completions(problem: ElasticProblem, solution: ElasticSolution) -> Floats:
    """(J,) the last end of each job, s."""
    ends = np.zeros(len(problem))
    np.maximum.at(ends, solution.job, solution.end_s)
    return ends


def searched(
    problem: ElasticProblem,
    limits: Limits,
    groups: Sequence[Sequence[int]],
    ends_s: Floats,
    prices: Bounded,
    most: int,
) -> Proven:
    """What is proven by so many programs at `most`, or until the limits say stop.

    Parameters
    ----------
    groups: the jobs, in parts that are searched by themselves if they are small.
    ends_s: (J,) completions of the best schedule known.
    prices: the bound on all.
    """
    waited = ends_s - problem.jobs.submit_s
    proven, programs = [], 0
    stopped, spent, trouble = None, False, ""
    for k, jobs in enumerate(sorted(groups, key=len)):
        limited = limits.within(limits.remaining / (len(groups) - k))
        part = problem.subset(jobs)
        if len(groups) > 1:
            share = limits.within(TUNING.prices_share * limited.remaining)
            prices = bounded(part, share, order=one_machine(part, share))
        found = math.fsum(waited[jobs].tolist())
        proven.append(min(found, prices.bound * len(jobs)))
        if len(jobs) > TUNING.jobs:
            continue
        search = Search(part, limited, found, most - programs, prices.by_completion)
        search.run()
        proven[-1] = max(proven[-1], search.proven)
        programs, spent = programs + search.programs.programs, spent or search.spent
        stopped, trouble = stopped or search.stopped, trouble or search.programs.trouble
    bound = outwards(proven) / len(problem) * (1 - ROUNDING)
    ended = f"the bound's search ended at programs={most}; more may prove more" if spent else ""
    return Proven(bound, programs, stopped, "; ".join(filter(None, (trouble, ended))))


def chargeable(problem: ElasticProblem) -> bool:
    """Whether starts take long enough to be charged."""
    return bool(starts_s(problem).min() >= TUNING.least_start_s)


def twins(problem: ElasticProblem) -> list[set[int]]:
    """By job, those alike in everything that come before it: they may complete before it, too."""
    jobs = problem.jobs
    same = [
        (int(jobs.of_class[j]), float(jobs.submit_s[j]), float(jobs.iterations[j]))
        for j in range(len(problem))
    ]
    return [{i for i in range(j) if same[i] == same[j]} for j in range(len(problem))]
