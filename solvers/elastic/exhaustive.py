"""The optimum of a few jobs with free restarts: every order of events, a linear program for each.

Between two events (a submission or a completion) it only matters how long the cluster spends in
each joint configuration of the active jobs: a linear program, whose columns are made as they are
needed by dynamic programming. Prefixes of orders are extended best first.
"""

from __future__ import annotations

import heapq
import itertools
import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from optgap.models.compiled import compiled
from optgap.models.elastic import ElasticProblem, ElasticSolution, Kind
from optgap.models.elastic.knapsack import pareto
from optgap.models.elastic.problem import Floats
from optgap.models.elastic.snapshot import undominated
from optgap.models.errors import InputError, NoQuote
from optgap.models.limits import Limits
from optgap.models.result import Outcome, Status, Termination
from optgap.solvers.backends import solve
from optgap.solvers.backends.linear import LinearBuilder, Solved

MOST_JOBS = 6
MOST_CONFIGURATIONS = 40
"""Per class: more, and a joint one takes too long to find."""
EPS = 1e-9
SHORT = 1e-7
"""Shares of jobs, in all, that an order may leave undone and still count as possible."""

Joint = tuple[int, ...]
"""The configuration of each job, −1 for none."""


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


@dataclass(frozen=True)
class Node:
    """A prefix of events, and what is known of its best completion.

    Parameters
    ----------
    events: −1 for the next submission, else the job that completes.
    value: a lower bound on Σ completions of all orders that begin so.
    plan: seconds in each joint configuration by interval.
    """

    events: tuple[int, ...]
    value: float
    plan: tuple[tuple[tuple[Joint, float], ...], ...]


class Search:
    """Columns by set of active jobs, and the linear programs over them."""

    def __init__(self, problem: ElasticProblem, limits: Limits) -> None:
        self.problem, self.limits = problem, limits
        self.size = len(problem)
        self.submit = problem.jobs.submit_s
        self.rate: list[Floats] = []
        self.gpus: list[Floats] = []
        self.watts: list[Floats] = []
        self.index: list[list[tuple[int, int]]] = []
        for j, c in enumerate(problem.jobs.of_class.tolist()):
            k, f = np.nonzero(
                np.isfinite(problem.time_s[c]) & (problem.power_w[c] <= problem.power_limit_w)
            )
            t, n, w = problem.time_s[c, k, f], problem.counts[k], problem.power_w[c, k, f]
            keep = undominated(t, n.astype(float), w)
            self.rate.append(1 / (t[keep] * problem.jobs.iterations[j]))
            self.gpus.append(n[keep].astype(np.int64))
            self.watts.append(w[keep])
            self.index.append(list(zip(k[keep].tolist(), f[keep].tolist(), strict=True)))
        self.fastest = np.array([1 / r.max() for r in self.rate])
        self.pool: dict[frozenset[int], list[Joint]] = {}
        self.programs = 0
        self.trouble = ""
        self.stopped: Termination | None = None

    def columns(self, active: frozenset[int]) -> list[Joint]:
        """Those made so far for a set; at first nothing, and each job alone at its fastest."""
        if active not in self.pool:
            idle = tuple([-1] * self.size)
            alone = []
            for j in sorted(active):
                pick = list(idle)
                pick[j] = int(self.rate[j].argmax())
                alone.append(tuple(pick))
            self.pool[active] = [idle, *alone]
        return self.pool[active]

    def price(self, active: frozenset[int], worth: Floats) -> tuple[float, Joint]:
        """The joint configuration that does most worth of work per second."""
        jobs = [j for j in sorted(active) if worth[j] > 1e-12]
        idle = [-1] * self.size
        if not jobs:
            return 0.0, tuple(idle)
        values = [worth[j] * self.rate[j] for j in jobs]
        first = np.cumsum([0, *(len(v) for v in values)])
        picks = _best_joint(
            first,
            np.concatenate(values),
            np.concatenate([self.gpus[j] for j in jobs]),
            np.concatenate([self.watts[j] for j in jobs]),
            self.problem.gpus,
            min(self.problem.power_limit_w, 1e300),
        )
        total = 0.0
        for j, z in zip(jobs, picks.tolist(), strict=True):
            idle[j] = z
            total += worth[j] * self.rate[j][z] if z >= 0 else 0.0
        return total, tuple(idle)

    def solve(self, events: tuple[int, ...]) -> Node | None:
        """The linear program of a prefix; None when no schedule has its events in that order.

        Also None where `trouble` or `stopped` says that it is not known.
        """
        sets = self._sets(events)
        first, slack = False, 0.0
        while True:
            columns = [(i, q) for i, active in enumerate(sets) for q in self.columns(active)]
            solved, rows = self._program(events, columns, first, slack)
            self.programs += 1
            if solved.status is Status.INFEASIBLE and not first and not slack:
                first = True  # of the columns made so far: phase 1 makes those that are missing
                continue
            if solved.termination in (Termination.TIME_LIMIT, Termination.INTERRUPTED):
                self.stopped = solved.termination
            self.stopped = self.stopped or self.limits.stop
            if self.stopped is not None:
                return None
            if solved.values is None:  # nothing is known of this order: the search must end
                self.trouble = solved.message or f"a linear program ended {solved.status}"
                return None
            if solved.duals is None or solved.objective is None:
                raise ValueError("the linear program's solver gives no duals")
            if first and solved.objective <= SHORT * float(self.fastest.max()):
                first, slack = False, SHORT
                continue
            if not self._extend(sets, solved.duals, rows, first):
                if first:
                    return None  # with every column there is work left undone
                break
        plan = tuple(
            tuple(
                (q, float(solved.values[x]))
                for x, (i, q) in enumerate(columns)
                if i == at and solved.values[x] > EPS
            )
            for at in range(len(sets))
        )
        return Node(events, solved.objective, plan)

    def _sets(self, events: tuple[int, ...]) -> list[frozenset[int]]:
        """The active jobs of each interval."""
        arrived = 1
        gone: set[int] = set()
        sets = []
        for event in events:
            sets.append(frozenset(set(range(arrived)) - gone))
            if event < 0:
                arrived += 1
            else:
                gone.add(event)
        return sets

    def _program(
        self,
        events: tuple[int, ...],
        columns: list[tuple[int, Joint]],
        first: bool,
        slack: float,
    ) -> tuple[Solved, dict[str, Any]]:
        """min Σ C: work rows by job, times of submissions, and completions still to come.

        Time begins with the first submission. In phase 1 (`first`) instead the least share of
        work left undone, by artificial variables; in phase 2 they may take up to `slack` each.
        """
        done = {event: i for i, event in enumerate(events) if event >= 0}
        rest = [j for j in range(self.size) if j not in done]
        zero = float(self.submit[0])
        builder = LinearBuilder("min", offset=0.0 if first else zero * len(done))
        for i, _ in columns:
            builder.variable(
                cost=0.0 if first else float(sum(1 for at in done.values() if at >= i))
            )
        late = [
            builder.variable(
                lower=float(self.submit[j] + self.fastest[j]), cost=0.0 if first else 1.0
            )
            for j in rest
        ]
        work = []
        for j in range(self.size):
            terms = [
                (x, float(self.rate[j][q[j]])) for x, (_, q) in enumerate(columns) if q[j] >= 0
            ]
            if j in done and (first or slack):
                # in seconds, as times are: a share per second may be below solvers' tolerances
                undone = builder.variable(
                    upper=math.inf if first else slack,
                    cost=float(self.fastest.max()) if first else 0.0,
                )
                terms.append((undone, 1.0))
            work.append(builder.row(terms, lower=1.0 if j in done else -math.inf, upper=1.0))
        fixed, arrived = {}, 1
        for i, event in enumerate(events):
            if event < 0:
                when = float(self.submit[arrived]) - zero
                terms = [(x, 1.0) for x, (at, _) in enumerate(columns) if at <= i]
                fixed[i] = builder.row(terms, lower=when, upper=when)
                arrived += 1
        ends = []
        for z in late:  # after the last event so far
            terms = [(z, 1.0), *((x, -1.0) for x in range(len(columns)))]
            ends.append(builder.row(terms, lower=zero))
        if arrived < self.size:  # and that before the next submission
            when = float(self.submit[arrived]) - zero
            limit = builder.row([(x, 1.0) for x in range(len(columns))], upper=when)
        else:
            limit = -1
        solved = solve(builder.build(), backend="highs", limits=self.limits)
        rows = {"work": work, "fixed": fixed, "ends": ends, "limit": limit, "done": done}
        return solved, rows

    def _extend(
        self,
        sets: list[frozenset[int]],
        duals: Floats,
        rows: dict[str, Any],
        first: bool,
    ) -> bool:
        """Add joint configurations of negative reduced cost; whether there was one."""
        worth = duals[rows["work"]]
        added = False
        for i, active in enumerate(sets):
            cost = 0.0 if first else float(sum(1 for at in rows["done"].values() if at >= i))
            cost -= sum(float(duals[r]) for at, r in rows["fixed"].items() if at >= i)
            cost += sum(float(duals[r]) for r in rows["ends"])
            if rows["limit"] >= 0:
                cost -= float(duals[rows["limit"]])
            value, joint = self.price(active, worth)
            least = 1e-9 * abs(cost) if first else 1e-8 * (1 + abs(cost))
            if value > cost + least and joint not in self.columns(active):
                self.columns(active).append(joint)
                added = True
        return added

    def children(self, events: tuple[int, ...]) -> list[tuple[int, ...]]:
        """Every next event."""
        arrived = 1 + sum(1 for event in events if event < 0)
        gone = {event for event in events if event >= 0}
        following = [(*events, j) for j in range(arrived) if j not in gone]
        if arrived < self.size:
            following.append((*events, -1))
        return following


@compiled
def _best_joint(first: Any, value: Any, gpus: Any, watts: Any, capacity: int, limit: float) -> Any:
    """One configuration per job, or none, of most value within both capacities."""
    size = len(first) - 1
    used, power, cost = np.zeros(1, np.int64), np.zeros(1), np.zeros(1)
    parents, picks = [], []
    for j in range(size):
        total = len(used) * (first[j + 1] - first[j] + 1)
        new_used, new_power = np.empty(total, np.int64), np.empty(total)
        new_cost = np.empty(total)
        parent, pick = np.empty(total, np.int64), np.empty(total, np.int64)
        m = 0
        for s in range(len(used)):
            new_used[m], new_power[m], new_cost[m] = used[s], power[s], cost[s]
            parent[m], pick[m] = s, -1
            m += 1
            for z in range(first[j], first[j + 1]):
                if used[s] + gpus[z] <= capacity and power[s] + watts[z] <= limit:
                    new_used[m], new_power[m] = used[s] + gpus[z], power[s] + watts[z]
                    new_cost[m], parent[m], pick[m] = cost[s] - value[z], s, z - first[j]
                    m += 1
        slack = 1e-12 * np.abs(new_cost[:m]).max()
        keep = pareto(new_used[:m], new_power[:m], new_cost[:m], np.arange(m + 1), slack)
        used, power, cost = new_used[keep], new_power[keep], new_cost[keep]
        parents.append(parent[keep])
        picks.append(pick[keep])
    where = np.argmin(cost)
    answer = np.empty(size, np.int64)
    for j in range(size - 1, -1, -1):
        answer[j] = picks[j][where]
        where = parents[j][where]
    return answer


def exhaustive(problem: ElasticProblem, *, limits: Limits, seed: int) -> Outcome:
    """The optimum, with proof; where restarts cost time, a bound: that of free restarts.

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
    search = Search(problem, limits)
    counter = itertools.count()
    heap: list[tuple[float, int, Node]] = [(0.0, next(counter), Node((), 0.0, ()))]
    best: Node | None = None
    stopped: Termination | None = limits.stop
    bound = -math.inf
    while heap and stopped is None:
        value, _, node = heapq.heappop(heap)
        bound = max(bound, value)
        if best is not None and value >= best.value * (1 - 1e-9):
            break
        for events in search.children(node.events):
            child = search.solve(events)
            if search.trouble or search.stopped is not None:
                break
            if child is None or (best is not None and child.value >= best.value):
                continue
            if len({event for event in events if event >= 0}) == len(problem):
                best = child
                limits.progress("orders", child.value / len(problem), value / len(problem))
            else:
                # deeper first among equals
                heapq.heappush(heap, (max(child.value, value), -next(counter), child))
        stopped = Termination.ERROR if search.trouble else search.stopped or limits.stop
    if stopped is None and best is not None:
        bound = best.value
    return _outcome(problem, search, best, bound, stopped)


def _outcome(
    problem: ElasticProblem,
    search: Search,
    best: Node | None,
    bound: float,
    stopped: Termination | None,
) -> Outcome:
    submitted = math.fsum(problem.jobs.submit_s.tolist())
    proof = None
    if math.isfinite(bound):
        proof = (bound - 1e-7 * (abs(bound) + submitted) - submitted) / len(problem)
        proof = max(proof, 0.0)
    info = {"programs": search.programs}
    termination = stopped or Termination.COMPLETED
    if best is None or not problem.overhead.free:
        status = Status.NO_SOLUTION if proof is None else Status.BOUND_ONLY
        free = "" if problem.overhead.free else "restarts taken as free: a bound"
        return Outcome(
            None, status, termination, bound=proof, bound_by="orders of events, LP", info=info,
            message="; ".join(filter(None, (search.trouble, free))),
        )  # fmt: skip
    solution = schedule(problem, search, best)
    value = problem.evaluate(solution).objective
    if stopped is None and proof is not None and abs(value - proof) <= 1e-5 * max(1.0, value):
        proof = min(value, max(proof, value * (1 - 9e-7)))
    return Outcome(
        solution,
        Status.OPTIMAL if stopped is None else Status.FEASIBLE,
        termination,
        bound=proof,
        bound_by="orders of events, LP",
        info=info,
        message=search.trouble,
    )


def schedule(problem: ElasticProblem, search: Search, node: Node) -> ElasticSolution:
    """The segments behind a plan; a job's last one ends with its work."""
    now = float(problem.jobs.submit_s[0])
    open_at: dict[int, tuple[float, int]] = {}
    segments: list[tuple[int, float, float, int, int, int, int]] = []

    def close(j: int, end: float) -> None:
        start, z = open_at.pop(j)
        k, f = search.index[j][z]
        n = int(problem.counts[k])
        segments.append((j, start, end, int(Kind.RUN), n, f, -1))

    for interval in node.plan:
        for joint, span in interval:
            for j in range(len(problem)):
                if j in open_at and open_at[j][1] != joint[j]:
                    close(j, now)
                if joint[j] >= 0 and j not in open_at:
                    open_at[j] = (now, joint[j])
            now += span
    for j in list(open_at):
        close(j, now)
    return ElasticSolution.of(segments, switch_off=True)
