"""The least Σ completions of one order of events: a linear program whose columns are priced.

Between two events (a submission or a completion) it only matters how long the cluster spends in
each joint configuration of the active jobs. What is proven of an order never rests on the
solver's tolerances: see `Orders.proven`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from optgap.models.elastic.arrays import Floats
from optgap.models.limits import Limits
from optgap.models.result import Status, Termination
from optgap.solvers.backends import solve
from optgap.solvers.backends.linear import LinearBuilder, LinearModel, Solved
from optgap.solvers.backends.safe import outwards, safe_bound
from optgap.solvers.elastic.joint import Joint, Step, Tables

TOLERANCE = 1e-9
"""The linear programs' own, with the longest job alone as the unit of time."""
SHORT = 1e-8
"""Shares of jobs that an order may leave undone where it is not proven impossible."""

NEGLIGIBLE = 1e-9
"""Shares of jobs that a schedule need not do: a thousandth of what the referee allows."""

Events = tuple[int, ...]
"""−1 for the next submission, else the job that completes."""


@dataclass(frozen=True)
class Node:
    """A prefix of events, and what is known of its best completion.

    Parameters
    ----------
    events: the prefix.
    value: proven: no schedule whose events begin so has a smaller Σ completions, s.
    steps: the schedule found for a complete order, every job's work done; None for a prefix.
    """

    events: Events
    value: float
    steps: tuple[Step, ...] | None


@dataclass(frozen=True, eq=False)
class Program:
    """The linear program of a prefix over the columns made so far, in units of time.

    Parameters
    ----------
    model: first the columns of (interval, joint configuration), then all else.
    columns: interval and joint configuration.
    most: (n,) limits of the variables that some optimal schedule keeps.
    work: (J,) row of each job's work.
    counted: (I,) per interval, what a second of it costs: completions at its end or later.
    spans: rows that add up all time of the intervals 0 to i, with the sign that it has there.
    """

    model: LinearModel
    columns: list[tuple[int, Joint]]
    most: Floats
    work: list[int]
    counted: Floats
    spans: list[tuple[int, int, float]]


class Orders:
    """Columns by set of active jobs, and the linear programs over them."""

    def __init__(self, tables: Tables, limits: Limits) -> None:
        self.tables, self.limits = tables, limits
        self.size = tables.size
        self.unit = float(tables.fastest_s.max())
        self.last_s = latest(tables) * (1 + 1e-12)
        self.pool: dict[frozenset[int], list[Joint]] = {}
        self.programs = 0
        self.trouble = ""
        self.stopped: Termination | None = None

    def columns(self, active: frozenset[int]) -> list[Joint]:
        """Those made so far for a set; at first nothing, and each job alone at its fastest."""
        if active not in self.pool:
            alone = [self.tables.alone(j) for j in sorted(active)]
            self.pool[active] = [(-1,) * self.size, *alone]
        return self.pool[active]

    def children(self, events: Events) -> list[Events]:
        """Every next event."""
        arrived = 1 + sum(1 for event in events if event < 0)
        gone = {event for event in events if event >= 0}
        following = [(*events, j) for j in range(arrived) if j not in gone]
        if arrived < self.size:
            following.append((*events, -1))
        return following

    def solve(self, events: Events, cut: float) -> Node | None:
        """What is known of a prefix; None where no schedule begins so, or `cut` s are exceeded.

        Also None where `trouble` or `stopped` says that it is not known. A node that is cut is
        one whose value is at least `cut`.
        """
        sets = self._sets(events)
        first, slack, value = False, 0.0, -math.inf
        while True:
            program = self._program(events, sets, first, slack)
            solved = self._solved(program.model)
            if solved is None:
                return None
            if solved.status is Status.INFEASIBLE and not first and slack < 1:
                # of the columns made so far: phase 1 makes those that are missing
                first, slack = not slack, 10 * slack
                continue
            if solved.status is Status.INFEASIBLE:
                self.trouble = "a linear program that has a solution is called infeasible"
                return None
            assert solved.duals is not None
            assert solved.objective is not None
            proven, more = self.proven(program, sets, solved.duals)
            if first:
                if proven > 0:
                    return None  # with every column there is work left undone
                if solved.objective <= SHORT or not more:
                    first, slack = False, max(SHORT, 2 * solved.objective)
                continue
            value = max(value, proven * self.unit)
            if value >= cut or not more:
                break
        if value >= cut or len(events) < 2 * self.size - 1:
            return Node(events, value, None)
        return Node(events, value, tuple(self._schedule(events, program, solved)))

    def proven(
        self, program: Program, sets: list[frozenset[int]], duals: Floats
    ) -> tuple[float, bool]:
        """What these prices prove of the program with *every* column, and whether any was added.

        Prices of rows bound the program over the columns made so far whatever the solver's
        tolerances (`safe_bound`). One that has not been made costs at least the least reduced
        cost of all, and some optimal schedule is no longer than `last_s`: so much of the bound
        is lost at most.
        """
        bound = safe_bound(program.model, duals, program.most)
        worth = duals[program.work]
        lost, added = 0.0, False
        for i, active in enumerate(sets):
            terms = [float(program.counted[i])]
            terms += [-sign * float(duals[row]) for row, to, sign in program.spans if i <= to]
            value, joint = self.tables.price(active, worth * self.unit)
            reduced = outwards([*terms, -value])
            lost = min(lost, reduced)
            if reduced < -TOLERANCE * sum(map(abs, terms)) and joint not in self.columns(active):
                self.columns(active).append(joint)
                added = True
        return outwards([bound, lost * self.last_s / self.unit]), added

    def _solved(self, model: LinearModel) -> Solved | None:
        """The optimum with its prices, or that there is none; None where neither is known."""
        self.programs += 1
        for tolerance in (TOLERANCE, 0.0):
            found = solve(model, backend="highs", limits=self.limits, tolerance=tolerance)
            if found.termination in (Termination.TIME_LIMIT, Termination.INTERRUPTED):
                self.stopped = found.termination
            self.stopped = self.stopped or self.limits.stop
            if self.stopped is not None:
                return None
            if found.status is Status.INFEASIBLE or found.duals is not None:
                return found
        self.trouble = found.message or f"a linear program ended {found.status}"
        return None

    def _sets(self, events: Events) -> list[frozenset[int]]:
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
        self, events: Events, sets: list[frozenset[int]], first: bool, slack: float
    ) -> Program:
        """min Σ C: work rows by job, times of submissions, and completions still to come.

        Time begins with the first submission. In phase 1 (`first`) instead the least work left
        undone, by artificial variables; in phase 2 they may take up to `slack` each.
        """
        tables, unit = self.tables, self.unit
        builder = LinearBuilder("min")
        columns = [(i, q) for i, active in enumerate(sets) for q in self.columns(active)]
        done = {event: i for i, event in enumerate(events) if event >= 0}
        counted = np.array([sum(at >= i for at in done.values()) for i in range(len(sets))])
        counted = counted * (0.0 if first else 1.0)
        for i, _ in columns:
            builder.variable(cost=float(counted[i]))
        work = []
        for j in range(self.size):
            terms = [
                (x, float(tables.rate[j][q[j]]) * unit)
                for x, (_, q) in enumerate(columns)
                if q[j] >= 0
            ]
            if j in done and (first or slack):
                upper = 1.0 if first else min(1.0, slack)
                terms.append((builder.variable(upper=upper, cost=float(first)), 1.0))
            work.append(builder.row(terms, lower=1.0 if j in done else -math.inf, upper=1.0))
        every = [(x, 1.0) for x in range(len(columns))]
        spans, arrived = [], 1
        for i, event in enumerate(events):
            if event < 0:
                when = float(tables.submit_s[arrived]) / unit
                part = [(x, 1.0) for x, (at, _) in enumerate(columns) if at <= i]
                spans.append((builder.row(part, lower=when, upper=when), i, 1.0))
                arrived += 1
        last = len(events)
        for j in range(self.size):
            if j not in done:  # it ends after the last event so far, and its own work
                earliest = float(tables.submit_s[j] + tables.fastest_s[j]) / unit
                end = builder.variable(lower=earliest, cost=0.0 if first else 1.0)
                terms = [(end, 1.0), *((x, -1.0) for x, _ in every)]
                spans.append((builder.row(terms, lower=0.0), last, -1.0))
        if arrived < self.size:  # the last event so far is before the next submission
            when = float(tables.submit_s[arrived]) / unit
            spans.append((builder.row(every, upper=when), last, 1.0))
        model = builder.build()
        most = np.full(model.variables, self.last_s / unit)
        return Program(model, columns, most, work, counted, spans)

    def _schedule(self, events: Events, program: Program, solved: Solved) -> list[Step]:
        """The solution as a schedule that keeps submissions and finishes every job.

        What the solver's tolerance left undone is done when the job should have completed, and
        everything after that comes later.
        """
        assert solved.values is not None
        tables = self.tables
        left = np.ones(self.size)
        now, arrived, steps = 0.0, 1, []

        def spend(joint: Joint, span: float) -> None:
            """The jobs that have work left run; each no longer than that."""
            nonlocal now
            while span > 0:
                runs = [j for j, z in enumerate(joint) if z >= 0 and left[j] > 0]
                needs = [float(left[j] / tables.rate[j][joint[j]]) for j in runs]
                part = min([span, *needs])
                for j, need in zip(runs, needs, strict=True):
                    done = float(tables.rate[j][joint[j]]) * part
                    left[j] = 0.0 if need <= part else left[j] - done
                held = tuple(z if j in runs else -1 for j, z in enumerate(joint))
                steps.append(Step(held, now, now + part))
                now, span = now + part, span - part

        for i, event in enumerate(events):
            for x, (at, joint) in enumerate(program.columns):
                if at == i:
                    spend(joint, float(solved.values[x]) * self.unit)
            if event < 0:
                now = max(now, float(tables.submit_s[arrived]))
                arrived += 1
            elif left[event] > NEGLIGIBLE:
                spend(tables.alone(event), float(left[event] * tables.fastest_s[event]))
        return [step for step in steps if step.end_s > step.start_s]


def latest(tables: Tables) -> float:
    """An end that some optimal schedule keeps: as soon as they can, one job after another, s.

    Where the jobs there are do less work in a second than one alone at its fastest, the same work
    one by one takes less time, and what comes after can be done earlier.
    """
    now = 0.0
    for submit, alone in zip(tables.submit_s.tolist(), tables.fastest_s.tolist(), strict=True):
        now = max(now, submit) + alone
    return now
