"""Lower bound on schedules whose events begin in a given order, by column generation.

Between two events (a submission or a completion) it only matters how long the cluster spends in
each joint configuration of the active jobs. Of what follows the last event of a prefix only is
asked how long the cluster spends with how many jobs completed, between which submissions. Where
starts take time, a start is a configuration that does no work, and a job needs as large a share of
a start on a GPU count as of its work there; a whole one where it is decided that the job uses the
count. No bound rests on the solver's tolerances, see `Orders.proven`; and docs/elastic-bounds.md.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from optgap.models.elastic.arrays import Floats, Ints
from optgap.models.limits import Limits
from optgap.models.result import Termination
from optgap.models.work import ELASTIC
from optgap.solvers.backends.growing import Growing
from optgap.solvers.backends.linear import LinearModel
from optgap.solvers.backends.safe import EPS, outwards, safe_bound, usable
from optgap.solvers.elastic.joint import Joint, Step, Tables
from optgap.solvers.engines.column_generation import Pricing, Solved, generate

TOLERANCE = 1e-9
"""The linear programs' own, with the longest job alone, or start, as the unit of time."""
SIMPLEX = {
    "presolve": "off",
    "simplex_strategy": 4,  # primal
    "primal_feasibility_tolerance": TOLERANCE,
    "dual_feasibility_tolerance": TOLERANCE,
}
"""Options of HiGHS: these programs are small, and all work undone is where it may begin."""
ROUNDING = 1e-12
"""Relative: more than rounding makes of rates and sums of times."""
UNDONE = 1000.0
"""Cost of work left undone, relative to the time of all jobs one after another."""
SHORT = 1e-8
"""Shares of a job's work: a GPU count that does less of it is not in use."""
UNPAID = 1e-3
"""Starts, in units of time: a count whose start is unpaid by less is not worth a decision."""
NEGLIGIBLE = 1e-9
"""Shares of jobs that a schedule need not do: a thousandth of what the referee allows."""

Events = tuple[int, ...]
"""−1 for the next submission, else the job that completes."""
Use = tuple[int, int]
"""A job and an index of its GPU counts."""
Uses = tuple[tuple[Use, bool], ...]
"""Decisions about a schedule: jobs that use certain counts, and jobs that do not."""


@dataclass(frozen=True, slots=True)
class Interval:
    """Some time of a schedule.

    Parameters
    ----------
    active: jobs that may run.
    cost: jobs submitted and not completed.
    gap: the last submission before it.
    completed: jobs that have completed before it; −1 within the prefix.
    """

    active: tuple[int, ...]
    cost: int
    gap: int
    completed: int


def intervals(events: Events, submit_s: Floats) -> list[Interval]:
    """Return the intervals of a prefix in order, then those of the undecided rest."""
    size, arrived = len(submit_s), 1
    gone: set[int] = set()
    found = []
    for event in events:
        active = tuple(j for j in range(arrived) if j not in gone)
        found.append(Interval(active, len(active), arrived - 1, -1))
        arrived, gone = (arrived + 1, gone) if event < 0 else (arrived, gone | {event})
    for gap in range(arrived - 1, size):
        last = gap == size - 1
        if not last and submit_s[gap + 1] == submit_s[gap]:
            continue
        active = tuple(j for j in range(gap + 1) if j not in gone)
        many = gap + 1 + (not last)  # before the next submission all may have completed
        for completed in range(len(gone), many):
            cost = gap + 1 - completed
            found.append(Interval(active if cost else (), cost, gap, completed))
    return found


@dataclass(frozen=True, eq=False)
class Known:
    """Bound and solution of a prefix or an order.

    Parameters
    ----------
    value: proven: no schedule whose events begin so has a smaller Σ (completion − submission), s.
    steps: of an order with free starts the schedule found, every job's work done; None where only
        the value was wanted.
    use: of an order whose start is paid for least, to be decided next; None where all are paid for.
    """

    value: float
    steps: tuple[Step, ...] | None = None
    use: Use | None = None


@dataclass(frozen=True, eq=False)
class Program:
    """The linear program over the columns made so far, in units of time.

    Parameters
    ----------
    model: first the columns, then shares of work left undone.
    interval: (X,) of each column; joint: (X, J) its configurations, −1 for none.
    gap, done, started: the first row of each kind after those of the jobs' work: what
        follows each submission but the last; completions after the prefix, by number; and where
        starts are charged those of a job on a count.
    pay: (Z,) of configurations: what of a start on its count each makes up for, or needs.
    never: (Z,) those of counts that are decided not to be used.
    """

    model: LinearModel
    interval: Ints
    joint: Ints
    gap: int
    done: int
    started: int
    pay: Floats
    never: np.ndarray


class Orders:
    """Columns by set of active jobs, and the linear programs over them, for `generate`.

    Attributes
    ----------
    unit: the unit of time, s: the longest job alone, or start.
    programs: how many were solved.
    trouble, stopped: why the last one was not, or "" and None.
    """

    def __init__(self, tables: Tables, limits: Limits) -> None:
        self.tables, self.limits = tables, limits
        self.size = tables.size
        self.unit = max(float(tables.fastest_s.max()), tables.longest_start_s)
        self.gap = np.diff(tables.submit_s) / self.unit
        last, waited = one_by_one(tables)
        if tables.charged:  # nobody waits longer than all do together in that schedule
            last = float(tables.submit_s[-1]) + waited
        self.last = last * (1 + ROUNDING) / self.unit
        alone = tables.fastest_s + tables.longest_start_s
        self.undone = UNDONE * float(alone.sum()) / self.unit
        self.pool: dict[tuple[int, ...], dict[Joint, None]] = {}
        # all jobs' configurations in turn, and their GPU counts, if starts are charged
        sizes = [len(rate) for rate in tables.rate]
        self.begin = np.cumsum([0, *sizes])
        self.job = np.repeat(np.arange(self.size), sizes)
        self.rate, self.starts = (
            np.concatenate(table) * self.unit for table in (tables.rate, tables.starts)
        )
        counts = [np.unique(n, return_inverse=True)[1] for n in tables.gpus]
        many = [int(count.max()) + 1 if tables.charged else 0 for count in counts]
        self.first = np.cumsum([0, *many])
        self.count = self.first[self.job] + np.concatenate(counts) * tables.charged
        self.programs = 0
        self.trouble = ""
        self.stopped: Termination | None = None

    def columns(self, active: tuple[int, ...]) -> dict[Joint, None]:
        """Return the configurations so far for a set of jobs; at first none and each job alone."""
        if active not in self.pool:
            alone = [self.tables.only(j, z) for j in active for z in self.tables.fastest(j)]
            self.pool[active] = dict.fromkeys([(-1,) * self.size, *alone])
        return self.pool[active]

    def solve(self, events: Events, cut: float, uses: Uses = ()) -> Known | None:
        """Return what is known of a prefix or an order with some uses decided.

        Not much more is asked than whether it is at least `cut`, s. None where it is not known:
        `trouble` and `stopped` say why.
        """
        self.parts = intervals(events, self.tables.submit_s)
        self.gone = [event for event in events if event >= 0]
        self.used, self.cut = dict(uses), cut
        found = generate(self, self.limits)
        self.stopped = found.stopped
        if self.stopped is not None or self.trouble:
            return None
        value, used = found.bound, self.values
        if value >= cut or len(self.gone) < self.size:
            return Known(value)
        if self.tables.charged:
            return Known(value, None, self._unpaid(used))
        return Known(value, tuple(self._schedule(events, used)))

    def solve_master(self, limits: Limits) -> Solved[Floats] | None:
        """Solve the program over the columns so far; all work may be left undone."""
        self.program = self._program()
        self.programs += 1
        limits.spend(ELASTIC.program + ELASTIC.entry * len(self.program.model.values))
        solver = Growing(**SIMPLEX)
        solver.load(self.program.model)
        if solver.run(limits):
            self.values, self.duals = solver.values, solver.duals
            return Solved(solver.objective * self.unit, self.duals)
        if limits.stop is None:
            self.trouble = "a linear program that has a solution was not solved"
        return None

    def price(self, duals: Floats, limits: Limits) -> Pricing[Floats]:
        """Bound the program over all columns; none is added where that suffices."""
        proven, added = self.proven(duals)
        bound = proven * self.unit
        return Pricing(bound, duals, 0 if bound >= self.cut else int(added))

    def closed(self, value: float, bound: float) -> bool:
        """Tell whether nothing more is asked."""
        return bound >= self.cut

    def escalate(self, closed: bool, limits: Limits) -> bool:
        """Leave it at that: pricing leaves no column out."""
        return False

    def proven(self, duals: Floats) -> tuple[float, bool]:
        """Return the bound of the prices for *all* columns, and whether a column was added.

        Prices of rows bound the program over the columns made so far whatever the solver's
        tolerances (`safe_bound`). One that has not been made costs at least the least reduced
        cost of all, and some optimal schedule is no longer than `last`: so much of the bound
        is lost at most.
        """
        model = self.program.model
        duals = usable(model, duals)
        bound = safe_bound(model, duals, np.full(model.variables, self.last))
        values = self._values(duals)
        lost, added = self._priced(duals, values)
        return outwards([bound, lost * self.last]), added

    def _values(self, duals: Floats) -> list[list[Floats]]:
        """Return, by interval and job, the worth of time by configuration, rounded up, (Z,)."""
        program, charged = self.program, self.tables.charged
        # so many completed, by each row after the prefix
        ends = np.arange(len(self.gone) + 1, self.size)
        open_ = ~np.isin(self.job, self.gone)
        terms = [duals[self.job] * self.rate]
        if charged:
            terms.append(duals[program.started + self.count] * program.pay)
        found = {}
        for completed in {part.completed for part in self.parts}:
            later = ends > completed  # the rows that count the interval
            done = float(duals[program.done : program.started][later].sum())
            own = [*terms, np.where(open_, done * self.rate, 0.0)]
            value = sum(own) + (8 + self.size) * EPS * sum(map(np.abs, own))
            value = np.where(program.never, 0.0, value)
            found[completed] = np.split(value, self.begin[1:-1])
        return [found[part.completed] for part in self.parts]

    def _priced(self, duals: Floats, values: Sequence[Sequence[Floats]]) -> tuple[float, bool]:
        """Return the least reduced cost of all columns at most, and whether any was added."""
        lost, added = 0.0, False
        for part, worth in zip(self.parts, values, strict=True):
            terms = [float(part.cost)]
            if part.gap < self.size - 1:
                terms.append(-float(duals[self.program.gap + part.gap]))
            self.limits.spend(ELASTIC.column)
            value, joint = self.tables.price(part.active, worth)
            lost = min(lost, outwards([*terms, -value]))
            there = sum(float(worth[j][z]) for j, z in enumerate(joint) if z >= 0)
            known = self.columns(part.active)
            better = sum(terms) - there < -TOLERANCE * (sum(map(abs, terms)) + there)
            if better and joint not in known:
                known[joint] = None
                added = True
        return lost, added

    def _program(self) -> Program:
        """Build min Σ cost·time + work undone: rows on work by job, submissions and completions."""
        parts, gone, used = self.parts, self.gone, self.used
        size, charged = self.size, self.tables.charged
        never, whole = (
            np.isin(self.count, [self.first[j] + n for (j, n), so in used.items() if so == is_used])
            & charged
            for is_used in (False, True)
        )
        pay = self.starts - np.where(whole, 0.0, self.rate)
        pools = [np.array(list(self.columns(part.active))) for part in parts]
        interval = np.repeat(np.arange(len(parts)), [len(pool) for pool in pools])
        joint = np.concatenate(pools)
        if never.any():
            kept = ~((joint >= 0) & never[self.begin[:-1] + joint]).any(axis=1)
            interval, joint = interval[kept], joint[kept]
        x, job = np.nonzero(joint >= 0)
        z = self.begin[job] + joint[x, job]
        undone = len(joint) + np.arange(size)
        ends = np.arange(len(gone) + 1, size)  # so many completed, by each row
        at_gap = size
        at_done = at_gap + size - 1
        at_started = at_done + len(ends)
        rows = at_started + int(self.first[-1])
        of_parts = np.array([(part.cost, part.gap, part.completed) for part in parts])
        cost, gap, completed = of_parts[interval].T
        inner = np.flatnonzero(gap < size - 1)
        blocks = [
            (job, x, self.rate[z]),
            (np.arange(size), undone, np.ones(size)),
            (at_gap + gap[inner], inner, np.ones(len(inner))),
        ]
        open_ = ~np.isin(np.arange(size), gone)
        left = undone[open_]
        for k, end in enumerate(ends.tolist()):
            counted = (completed[x] < end) & open_[job]
            together = np.bincount(x[counted], self.rate[z[counted]], len(joint))
            own = np.flatnonzero(together)
            blocks.append((np.full(len(own), at_done + k), own, together[own]))
            blocks.append((np.full(len(left), at_done + k), left, np.ones(len(left))))
        lower = np.zeros(rows)
        lower[:size], lower[at_gap:at_done] = 1.0, self.gap
        lower[at_done:at_started] = ends - len(gone)
        if charged:
            blocks.append((at_started + self.count[z], x, pay[z]))
            at = np.unique(self.count[whole])
            late = undone[np.searchsorted(self.first, at, side="right") - 1]
            # work left undone makes up for a whole start, too
            blocks.append((at_started + at, late, np.ones(len(at))))
            lower[at_started + at] = 1.0
        upper = np.full(rows, math.inf)
        upper[:at_done] = lower[:at_done]
        cost = np.append(cost, np.full(size, self.undone))
        most = np.append(np.full(len(joint), math.inf), np.ones(size))
        model = linear_model(blocks, cost, most, lower=lower, upper=upper)
        return Program(model, interval, joint, at_gap, at_done, at_started, pay, never)

    def _unpaid(self, values: Floats) -> Use | None:
        """Return the job and the count whose start is paid for least by the program's solution."""
        program = self.program
        x, job = np.nonzero(program.joint >= 0)
        z = self.begin[job] + program.joint[x, job]
        held, paid = (
            np.bincount(self.count[z], table[z] * values[x], int(self.first[-1]))
            for table in (self.rate, self.starts)
        )
        start = np.zeros(int(self.first[-1]))
        at = self.starts > 0
        start[self.count[at]] = 1 / self.starts[at]
        unpaid = np.where(held > SHORT, start * (1 - paid), 0.0)
        row = int(unpaid.argmax())
        if unpaid[row] <= UNPAID:
            return None
        job_of = int(np.searchsorted(self.first, row, side="right")) - 1
        return job_of, row - int(self.first[job_of])

    def _schedule(self, events: Events, values: Floats) -> list[Step]:
        """Return the solution as a schedule that keeps submissions and finishes every job.

        What the solver's tolerance left undone is done when the job should have completed, and
        everything after that comes later.
        """
        tables = self.tables
        left = np.ones(self.size)
        now, arrived, steps = 0.0, 1, []

        def spend(joint: Joint, span: float) -> None:
            """Run the jobs that have work left, each no longer than that."""
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
            for x in np.flatnonzero(self.program.interval == i).tolist():
                spend(tuple(self.program.joint[x].tolist()), float(values[x]) * self.unit)
            if event < 0:
                now = max(now, float(tables.submit_s[arrived]))
                arrived += 1
            elif left[event] > NEGLIGIBLE:
                fastest = tables.only(event, tables.fastest(event)[0])
                spend(fastest, float(left[event] * tables.fastest_s[event]))
        return [step for step in steps if step.end_s > step.start_s]


def linear_model(
    blocks: Sequence[tuple[Ints, Ints, Floats]],
    cost: Floats,
    most: Floats,
    *,
    lower: Floats,
    upper: Floats,
) -> LinearModel:
    """Return a minimisation from entries (row, column, value) in any order."""
    row, column, value = (np.concatenate(parts) for parts in zip(*blocks, strict=True))
    order = np.argsort(row, kind="stable")
    starts = np.zeros(len(lower) + 1, np.int64)
    np.cumsum(np.bincount(row, minlength=len(lower)), out=starts[1:])
    none = np.zeros(len(cost))
    return LinearModel(
        cost, starts, column[order].astype(np.int64), value[order], lower, upper, none, most,
        none.astype(np.bool_),
    )  # fmt: skip


def following(events: Events, submit_s: Floats, first: Sequence[set[int]]) -> list[Events]:
    """Return every next event that may be one of some optimal order; `first`: see `dominated`."""
    arrived = 1 + sum(1 for event in events if event < 0)
    gone = {event for event in events if event >= 0}
    coming = arrived < len(submit_s)
    if coming and submit_s[arrived] == submit_s[arrived - 1]:
        return [(*events, -1)]
    found = [(*events, j) for j in range(arrived) if j not in gone and first[j] <= gone]
    return [*found, (*events, -1)] if coming else found


def one_by_one(tables: Tables) -> tuple[float, float]:
    """Return the last completion and Σ (completion − submission), s, if jobs run one by one.

    Each runs alone at its fastest, after its start where starts are charged: a schedule. Where they
    are free, some optimal schedule is done by then: where the jobs there are do less work in a
    second than one alone at its fastest, the same work one by one takes less time, and what comes
    after can be done earlier.
    """
    now, ends = 0.0, []
    for j, (submit, alone) in enumerate(zip(tables.submit_s, tables.fastest_s, strict=True)):
        count = int(tables.gpus[j][tables.fastest(j)[0]])
        start = tables.problem.overhead.seconds(count) if tables.charged else 0.0
        now = max(now, float(submit)) + start + float(alone)
        ends.append(now)
    return now, math.fsum([*ends, *(-tables.submit_s).tolist()])
