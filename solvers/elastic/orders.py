"""The least Σ (completion − submission) of one order of events: a program whose columns are priced.

Between two events (a submission or a completion) it only matters how long the cluster spends in
each joint configuration of the active jobs. Where starts take time, a start is a configuration that
does no work, and a job needs as large a share of a start on a GPU count as of its work there; a
whole one where it is decided that the job uses the count. The value of an order never rests on the
solver's tolerances: see `Orders.proven`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from optgap.models.elastic.arrays import Floats
from optgap.models.limits import Limits
from optgap.models.result import Status, Termination
from optgap.models.work import ELASTIC
from optgap.solvers.backends import solve
from optgap.solvers.backends.linear import LinearBuilder, LinearModel, Solved
from optgap.solvers.backends.safe import EPS, outwards, safe_bound, usable
from optgap.solvers.elastic.joint import Joint, Step, Tables
from optgap.solvers.elastic.prefixes import TOLERANCE, Events, Interval, Programs, intervals

SHORT = 1e-8
"""Shares of jobs that an order may leave undone where it is not proven impossible."""

UNPAID = 1e-3
"""Starts, in units of time: a count whose start is unpaid by less is not worth a decision."""

Use = tuple[int, int]
"""A job and an index of its GPU counts."""
Uses = tuple[tuple[Use, bool], ...]
"""What is decided of a schedule: which jobs use which counts, and which do not."""

NEGLIGIBLE = 1e-9
"""Shares of jobs that a schedule need not do: a thousandth of what the referee allows."""


@dataclass(frozen=True, eq=False)
class Ordered:
    """What is known of an order.

    Parameters
    ----------
    value: proven: no schedule with this order of events has a smaller Σ (completion −
        submission), s.
    steps: the schedule found, every job's work done; None where only the value was wanted, and
        where starts are charged.
    worth: (J,) what a job's work is worth at the optimum, s.
    use: whose start is paid for least, to be decided next; None where all are paid for.
    """

    value: float
    steps: tuple[Step, ...] | None
    worth: Floats
    use: Use | None = None


@dataclass(frozen=True, eq=False)
class Program:
    """The linear program of an order over the columns made so far, in units of time.

    Parameters
    ----------
    model: first the columns of (interval, joint configuration), then shares of work left undone.
    columns: interval and joint configuration.
    most: (n,) limits of the variables that some optimal schedule keeps.
    cost: (I,) per interval, what a second of it costs.
    used: what is decided.
    started: by job, what of a start on its count each configuration makes up for, or needs.
    work, gap, starts: the first row of each kind: work by job, what follows each submission but
        the last, and where starts are charged those of a job on a count.
    """

    model: LinearModel
    columns: list[tuple[int, Joint]]
    most: Floats
    cost: Floats
    used: dict[Use, bool]
    started: list[Floats]
    work: int
    gap: int
    starts: int


class Orders(Programs):
    """Columns by set of active jobs, and the linear programs over them."""

    def __init__(self, tables: Tables, limits: Limits) -> None:
        super().__init__(tables, limits)
        self.pool: dict[tuple[int, ...], list[Joint]] = {}

    def columns(self, active: tuple[int, ...]) -> list[Joint]:
        """Those made so far for a set; at first nothing, and each job alone, and its start."""
        if active not in self.pool:
            tables = self.tables
            alone = [tables.only(j, z) for j in active for z in tables.fastest(j)]
            self.pool[active] = [(-1,) * self.size, *alone]
        return self.pool[active]

    def solve(self, events: Events, cut: float, uses: Uses = ()) -> Ordered | None:
        """What is known of an order with some uses decided; None where it is impossible.

        Without steps where it cannot be below `cut` s. Also None where `trouble` or `stopped` says
        that it is not known.
        """
        parts = intervals(events, self.tables.submit_s)
        first, slack, value = False, 0.0, -math.inf
        while True:
            program = self._program(parts, first, slack, dict(uses))
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
            proven, more = self.proven(program, parts, solved.duals)
            if first:
                if proven > 0:
                    return None  # with every column there is work left undone
                if solved.objective <= SHORT or not more:
                    first, slack = False, max(SHORT, 2 * solved.objective)
                continue
            value = max(value, proven * self.unit)
            if value >= cut or not more:
                break
        worth = solved.duals[program.work : program.work + self.size] * self.unit
        if value >= cut:
            return Ordered(value, None, worth)
        if self.tables.charged:
            return Ordered(value, None, worth, self._unpaid(program, solved))
        return Ordered(value, tuple(self._schedule(events, program, solved)), worth)

    def proven(
        self, program: Program, parts: Sequence[Interval], duals: Floats
    ) -> tuple[float, bool]:
        """What these prices prove of the program with *every* column, and whether any was added.

        Prices of rows bound the program over the columns made so far whatever the solver's
        tolerances (`safe_bound`). One that has not been made costs at least the least reduced
        cost of all, and some optimal schedule is no longer than `last_s`: so much of the bound
        is lost at most.
        """
        duals = usable(program.model, duals)
        bound = safe_bound(program.model, duals, program.most)
        values = [self.unit * value for value in self._values(program, duals)]
        lost, added = self._priced(program, parts, duals, values, False)
        if not added:  # good columns are found long before it is proven that there are none
            lost, added = self._priced(program, parts, duals, values, True)
        return outwards([bound, lost * self.last_s / self.unit]), added

    def _priced(
        self,
        program: Program,
        parts: Sequence[Interval],
        duals: Floats,
        values: Sequence[Floats],
        proof: bool,
    ) -> tuple[float, bool]:
        """The least reduced cost of all columns at most, and whether any was added."""
        lost, added = 0.0, False
        for i, part in enumerate(parts):
            terms = [float(program.cost[i])]
            if part.gap < self.size - 1:
                terms.append(-float(duals[program.gap + part.gap]))
            self.limits.spend(ELASTIC.column)
            value, joint = self.tables.price(part.active, values, proof)
            lost = min(lost, outwards([*terms, -value]))
            there = sum(float(values[j][z]) for j, z in enumerate(joint) if z >= 0)
            known = self.columns(part.active)
            better = sum(terms) - there < -TOLERANCE * sum(map(abs, terms))
            if better and joint not in known:
                known.append(joint)
                added = True
        return lost, added

    def _values(self, program: Program, duals: Floats) -> list[Floats]:
        """By job, (Z,) what a second in each configuration is worth at these prices, rounded up."""
        found = []
        for j, rate in enumerate(self.tables.rate):
            terms = [duals[program.work + j] * rate]
            if self.tables.charged:
                row = duals[program.starts + self.first[j] + self.count[j]]
                terms.append(row * program.started[j])
            value = sum(terms) + 8 * EPS * sum(map(np.abs, terms))
            never = [n for (i, n), so in program.used.items() if i == j and not so]
            found.append(np.where(np.isin(self.count[j], never), 0.0, value))
        return found

    def _unpaid(self, program: Program, solved: Solved) -> Use | None:
        """The job and the count whose start is paid for least by the program's solution."""
        assert solved.values is not None
        held = np.zeros(self.first[-1])
        paid = np.zeros(self.first[-1])
        start_s = np.zeros(self.first[-1])
        for x, (_, q) in enumerate(program.columns):
            for j, z in enumerate(q):
                if z >= 0:
                    row = self.first[j] + self.count[j][z]
                    held[row] += self.tables.rate[j][z] * solved.values[x]
                    paid[row] += self.tables.starts[j][z] * self.unit * solved.values[x]
        for j, starts in enumerate(self.tables.starts):
            at = np.flatnonzero(starts)
            start_s[self.first[j] + self.count[j][at]] = 1 / starts[at]
        unpaid = np.where(held * self.unit > SHORT, start_s * (1 - paid), 0.0)
        row = int(unpaid.argmax())
        if unpaid[row] <= UNPAID * self.unit:
            return None
        job = int(np.searchsorted(self.first, row, side="right")) - 1
        return job, row - int(self.first[job])

    def _solved(self, model: LinearModel) -> Solved | None:
        """The optimum with its prices, or that there is none; None where neither is known."""
        self.programs += 1
        for tolerance in (TOLERANCE, 0.0):
            found = solve(model, backend="highs", limits=self.limits, tolerance=tolerance)
            if found.termination not in (Termination.COMPLETED, Termination.ERROR):
                self.stopped = found.termination
            self.stopped = self.stopped or self.limits.stop
            if self.stopped is not None:
                return None
            if found.status is Status.INFEASIBLE or found.duals is not None:
                return found
        self.trouble = found.message or f"a linear program ended {found.status}"
        return None

    def _program(
        self, parts: Sequence[Interval], first: bool, slack: float, used: dict[Use, bool]
    ) -> Program:
        """min Σ cost·time: work rows by job, and the times between submissions.

        In phase 1 (`first`) instead the least work left undone, by artificial variables; in
        phase 2 they may take up to `slack` each.
        """
        tables, unit = self.tables, self.unit
        builder = LinearBuilder("min")
        columns = [
            (i, q)
            for i, part in enumerate(parts)
            for q in self.columns(part.active)
            if all(z < 0 or used.get((j, self.count[j][z]), True) for j, z in enumerate(q))
        ]
        cost = np.array([0.0 if first else float(part.cost) for part in parts])
        for i, _ in columns:
            builder.variable(cost=float(cost[i]))
        undone: list[int] = []
        for j in range(self.size):
            terms = [
                (x, float(tables.rate[j][q[j]]) * unit)
                for x, (_, q) in enumerate(columns)
                if q[j] >= 0
            ]
            if first or slack:
                upper = 1.0 if first else min(1.0, slack)
                undone.append(builder.variable(upper=upper, cost=float(first)))
                terms.append((undone[j], 1.0))
            builder.row(terms, lower=1.0, upper=1.0)
        for gap, length in enumerate((self.gap_s / unit).tolist()):
            terms = [(x, 1.0) for x, (i, _) in enumerate(columns) if parts[i].gap == gap]
            builder.row(terms, lower=length, upper=length)
        started = self._start_rows(builder, columns, undone, used) if tables.charged else []
        model = builder.build()
        most = np.full(model.variables, self.last_s / unit)
        return Program(
            model, columns, most, cost, used, started, 0, self.size, 2 * self.size - 1
        )  # fmt: skip

    def _start_rows(
        self,
        builder: LinearBuilder,
        columns: Sequence[tuple[int, Joint]],
        undone: Sequence[int],
        used: dict[Use, bool],
    ) -> list[Floats]:
        """Starts of each job on each count: a share as large as that of its work, or a whole one.

        Work left undone makes up for a whole one, too, so that it alone tells what is impossible.
        """
        started = []
        for j, (starts, rate) in enumerate(zip(self.tables.starts, self.tables.rate, strict=True)):
            many = int(self.first[j + 1] - self.first[j])
            whole = [n for n in range(many) if used.get((j, n), False)]
            started.append(starts - np.where(np.isin(self.count[j], whole), 0.0, rate))
            rows: list[list[tuple[int, float]]] = [[] for _ in range(many)]
            for n in whole:
                rows[n] += [(x, 1.0) for x in undone[j : j + 1]]
            for x, (_, q) in enumerate(columns):
                if q[j] >= 0:
                    term = x, float(started[j][q[j]]) * self.unit
                    rows[self.count[j][q[j]]].append(term)
            for n, row in enumerate(rows):
                builder.row(row, lower=float(n in whole))
        return started

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
                fastest = tables.only(event, tables.fastest(event)[0])
                spend(fastest, float(left[event] * tables.fastest_s[event]))
        return [step for step in steps if step.end_s > step.start_s]
