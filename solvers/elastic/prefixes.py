"""What schedules whose events begin in a given way cost at least: a small linear program.

Up to the last event of a prefix the intervals between events are known. Of what follows only is
asked how long the cluster spends with how many jobs completed, between which submissions; GPUs
and power are kept on average in every interval. See ``docs/elastic-bounds.md``.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from optgap.models.elastic.arrays import Floats, Ints
from optgap.models.limits import Limits
from optgap.models.result import Termination
from optgap.models.work import ELASTIC
from optgap.solvers.backends.growing import Growing
from optgap.solvers.backends.linear import LinearModel
from optgap.solvers.backends.safe import EPS, outwards, safe_bound, usable
from optgap.solvers.elastic.joint import Tables

TOLERANCE = 1e-9
"""The linear programs' own, with the longest job alone as the unit of time."""
SIMPLEX = {
    "presolve": "off",
    "simplex_strategy": 4,  # primal
    "primal_feasibility_tolerance": TOLERANCE,
    "dual_feasibility_tolerance": TOLERANCE,
}
"""Options of HiGHS: these programs are small, and all work undone is where it may begin."""
INTERIOR = {"solver": "ipm", "run_crossover": "off"}
"""The same for an order of many jobs: prices amid all the best ones need fewer rounds."""
ROUNDING = 1e-12
"""Relative: more than rounding makes of rates and sums of times."""
UNDONE = 1000.0
"""What work left undone costs, in times that all jobs one after another take."""

Events = tuple[int, ...]
"""−1 for the next submission, else the job that completes."""


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
    """Those of a prefix in order, then those of what follows it."""
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
class Program:
    """A linear program over the configurations made so far.

    Parameters
    ----------
    model: its variables are the intervals' lengths, the times in a configuration, and shares of
        work left undone.
    parts: the intervals.
    pair_interval, pair_job: (A,) intervals and the jobs that may run in them.
    gpus, watts, work, done, started, begun: the first row of each kind: GPUs and power, by
        interval; work, by job; completions, by number; and where starts are charged those of a
        job on a count, and of all by number of completions. Before them a job's time in an
        interval, by pair.
    """

    model: LinearModel
    parts: Sequence[Interval]
    pair_interval: Ints
    pair_job: Ints
    gpus: int
    watts: int
    work: int
    done: int
    started: int
    begun: int


@dataclass(frozen=True, eq=False)
class Priced:
    """What is known of an order where GPUs and power are kept on average.

    Parameters
    ----------
    value: Σ (completion − submission) of no schedule with this order is below it, s.
    worth: (J,) of each job's work, s.
    length_s: (I,) of the intervals between events.
    gpu_price, power_price: (I,) s per GPU·s, and per J.
    """

    value: float
    worth: Floats
    length_s: Floats
    gpu_price: Floats
    power_price: Floats


class Programs:
    """What linear programs over the events of some jobs have in common.

    Attributes
    ----------
    unit: the unit of time, s: the longest job alone, or start.
    gap_s: (J−1,) between submissions.
    last_s: no longer is some optimal schedule.
    count: by job, (Z,) which of its counts each configuration has.
    first: (J+1,) the first of the rows of a job's starts by count; none where starts are free.
    programs: how many were solved.
    trouble, stopped: why the last one was not, or "" and None.
    """

    def __init__(self, tables: Tables, limits: Limits) -> None:
        self.tables, self.limits = tables, limits
        self.size = tables.size
        self.unit = max(float(tables.fastest_s.max()), tables.longest_start_s)
        self.gap_s = np.diff(tables.submit_s)
        self.last_s = latest_s(tables) * (1 + ROUNDING)
        # by job, which of its counts each configuration has; none where starts are free
        self.count = [np.unique(n, return_inverse=True)[1] for n in tables.gpus]
        many = [int(count.max()) + 1 if tables.charged else 0 for count in self.count]
        self.first = np.cumsum([0, *many])
        self.programs = 0
        self.trouble = ""
        self.stopped: Termination | None = None


class Prefixes(Programs):
    """Configurations worth having by job, and the linear programs over them."""

    def __init__(self, tables: Tables, limits: Limits) -> None:
        super().__init__(tables, limits)
        self.last = self.last_s / self.unit
        alone = tables.fastest_s + tables.longest_start_s
        self.undone = UNDONE * float(alone.sum()) / self.unit
        self.pool: dict[tuple[int, int], set[int]] = {}  # by number of active jobs, and job
        limit = tables.problem.power_allowed_w
        self.limited = math.isfinite(limit)
        # shares of the cluster and of the limit, and work per unit of time
        self.gpus = [n / tables.problem.gpus for n in tables.gpus]
        self.watts = [w / limit if self.limited else 0 * w for w in tables.watts]
        self.rate = [rate * self.unit for rate in tables.rate]
        self.starts = [starts * self.unit for starts in tables.starts]

    def configurations(self, active: int, job: int) -> set[int]:
        """Those made so far for a job among so many; at first the fastest, and its start."""
        return self.pool.setdefault((active, job), set(self.tables.fastest(job)))

    def value(self, events: Events, cut: float) -> float | None:
        """Σ (completion − submission) of every schedule that begins so is at least this, s.

        Not much more is asked than whether it is at least `cut`. None where it is not known:
        `trouble` and `stopped` say why.
        """
        best = -math.inf
        for _, _, proven in self._rounds(events, SIMPLEX):
            best = max(best, proven)
            if best >= cut:
                break
        return None if self.stopped or self.trouble else best

    def order(self, events: Events) -> Priced | None:
        """The optimum of a whole order, and what everything is worth there; None as for `value`."""
        found = None
        for program, solver, proven in self._rounds(events, INTERIOR):
            many = len(program.parts)
            gpus = -solver.duals[program.gpus : program.gpus + many]
            watts = -solver.duals[program.watts : program.watts + many * self.limited]
            length = solver.values[:many]
            problem = self.tables.problem
            found = Priced(
                proven,
                solver.duals[program.work : program.work + self.size] * self.unit,
                length * self.unit,
                gpus / problem.gpus,
                watts / problem.power_limit_w if self.limited else np.zeros(many),
            )
        return None if self.stopped or self.trouble else found

    def _rounds(
        self, events: Events, settings: Mapping[str, Any]
    ) -> Iterator[tuple[Program, Growing, float]]:
        """Programs with ever more configurations, solved, and what is proven of all, s."""
        parts = intervals(events, self.tables.submit_s)
        gone = [event for event in events if event >= 0]
        more = True
        while more:
            self.stopped = self.limits.stop
            if self.stopped is not None:
                return
            program = self._program(parts, gone)
            self.programs += 1
            self.limits.spend(ELASTIC.program + ELASTIC.entry * len(program.model.values))
            solver = Growing(**settings)
            solver.load(program.model)
            if not solver.run(self.limits):  # all work may be left undone
                self.stopped = self.limits.stop
                if self.stopped is not None:
                    return
                self.trouble = "a linear program that has a solution was not solved"
                return
            proven, more = self._proven(program, gone, solver.duals)
            yield program, solver, proven * self.unit

    def _proven(self, program: Program, gone: list[int], duals: Floats) -> tuple[float, bool]:
        """What these prices prove with every configuration, and whether any was added.

        One that is not in the program costs at least its reduced cost, and no job runs for longer
        than some optimal schedule takes.
        """
        duals = usable(program.model, duals)
        bound = safe_bound(program.model, duals, np.full(program.model.variables, self.last))
        open_ = np.ones(self.size, np.bool_)
        open_[gone] = False
        completed = np.array([part.completed for part in program.parts])
        passed = np.maximum(completed - len(gone), 0)  # the rows from here on count the interval

        def later(first: int, last: int) -> Floats:
            return np.asarray(np.append(np.cumsum(duals[first:last][::-1])[::-1], 0.0)[passed])

        done = later(program.done, program.started)
        begun = later(program.begun, len(duals)) if self.tables.charged else done
        lost, added = [], False
        for j in range(self.size):
            rows = np.flatnonzero(program.pair_job == j)
            i = program.pair_interval[rows]
            terms = [
                np.outer(duals[program.gpus + i], self.gpus[j]),
                duals[rows][:, None],
                (duals[program.work + j] * self.rate[j])[None, :],
            ]
            if open_[j]:
                terms.append(np.outer(done[i], self.rate[j]))
            if self.limited:
                terms.append(np.outer(duals[program.watts + i], self.watts[j]))
            if self.tables.charged:
                start = duals[program.started + self.first[j] + self.count[j]]
                terms += [(start * self.starts[j])[None, :], -(start * self.rate[j])[None, :]]
                if open_[j]:
                    terms.append(np.outer(begun[i], self.starts[j]))
            none = np.zeros((len(rows), len(self.rate[j])))
            reduced = -sum(terms, start=none)
            size = sum(map(np.abs, terms), start=none)
            lost.append(float((reduced - (self.size + 12) * EPS * size).min(initial=0.0)))
            best = reduced.argmin(axis=1)
            for row in np.flatnonzero((reduced < -TOLERANCE * size).any(axis=1)).tolist():
                known = self.configurations(len(program.parts[i[row]].active), j)
                added = added or int(best[row]) not in known
                known.add(int(best[row]))
        return outwards([bound, *(less * self.last for less in lost)]), added

    def _program(self, parts: Sequence[Interval], gone: list[int]) -> Program:
        """min Σ cost·length, GPUs and power kept on average, and everyone's work done."""
        many = len(parts)
        pair_interval = np.array([i for i, part in enumerate(parts) for _ in part.active])
        pair_job = np.array([j for part in parts for j in part.active])
        pairs = [(len(part.active), j) for part in parts for j in part.active]
        pools = {pair: np.array(sorted(self.configurations(*pair))) for pair in set(pairs)}
        sizes = [len(pools[pair]) for pair in pairs]
        pair = np.repeat(np.arange(len(pair_job)), sizes)
        x = many + np.arange(len(pair))
        interval, job = pair_interval[pair], pair_job[pair]
        gpus, watts, rate, starts, count = (
            np.concatenate([table[pair[1]][pools[pair]] for pair in pairs])
            for table in (self.gpus, self.watts, self.rate, self.starts, self.count)
        )
        undone = many + len(pair) + np.arange(self.size)
        ones = np.ones(len(pair))
        lengths = np.arange(many)
        at_gpus = len(pair_job)
        at_watts = at_gpus + many
        at_work = at_watts + many * self.limited
        at_gap = at_work + self.size
        at_done = at_gap + self.size - 1
        ends = np.arange(len(gone) + 1, self.size)  # so many completed, by each of the last rows
        at_started = at_done + len(ends)
        at_begun = at_started + int(self.first[-1])
        gap = np.array([part.gap for part in parts])
        blocks = [
            (pair, x, ones),
            (np.arange(at_gpus), pair_interval, -np.ones(at_gpus)),
            (at_gpus + interval, x, gpus),
            (at_gpus + lengths, lengths, -np.ones(many)),
            (at_work + job, x, rate),
            (at_work + np.arange(self.size), undone, np.ones(self.size)),
        ]
        if self.limited:
            blocks.append((at_watts + interval, x, watts))
            blocks.append((at_watts + lengths, lengths, -np.ones(many)))
        inner = np.flatnonzero(gap < self.size - 1)
        blocks.append((at_gap + gap[inner], inner, np.ones(len(inner))))
        completed = np.array([part.completed for part in parts])[interval]
        open_ = np.ones(self.size, np.bool_)
        open_[gone] = False
        for k, end in enumerate(ends.tolist()):
            counted = np.flatnonzero((completed < end) & open_[job])
            row = at_done + k
            blocks.append((np.full(len(counted), row), x[counted], rate[counted]))
            left = undone[open_]
            blocks.append((np.full(len(left), row), left, np.ones(len(left))))
            if self.tables.charged:
                row = at_begun + k
                blocks.append((np.full(len(counted), row), x[counted], starts[counted]))
                blocks.append((np.full(len(left), row), left, np.ones(len(left))))
        if self.tables.charged:
            blocks.append((at_started + self.first[job] + count, x, starts - rate))
        upper = np.zeros(at_begun + len(ends) * self.tables.charged)
        upper[at_work:at_gap] = 1.0
        upper[at_gap:at_done] = self.gap_s / self.unit
        upper[at_done:] = math.inf
        lower = np.full(len(upper), -math.inf)
        lower[at_work:at_done] = upper[at_work:at_done]
        lower[at_done:at_started] = ends - len(gone)
        lower[at_started:at_begun] = 0.0
        if self.tables.charged:
            lower[at_begun:] = ends - len(gone)
        cost = np.zeros(many + len(pair) + self.size)
        cost[:many] = [part.cost for part in parts]
        cost[undone] = self.undone
        most = np.full(len(cost), math.inf)
        most[undone] = 1.0
        model = linear_model(blocks, cost, most, lower, upper)
        return Program(
            model, parts, pair_interval, pair_job, at_gpus, at_watts, at_work, at_done, at_started,
            at_begun,
        )  # fmt: skip


def linear_model(
    blocks: Sequence[tuple[Ints, Ints, Floats]],
    cost: Floats,
    most: Floats,
    lower: Floats,
    upper: Floats,
) -> LinearModel:
    """A minimisation from entries (row, column, value) in any order."""
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
    """Every next event that may be one of some optimal order; `first`: see `dominated`."""
    arrived = 1 + sum(1 for event in events if event < 0)
    gone = {event for event in events if event >= 0}
    coming = arrived < len(submit_s)
    if coming and submit_s[arrived] == submit_s[arrived - 1]:
        return [(*events, -1)]
    found = [(*events, j) for j in range(arrived) if j not in gone and first[j] <= gone]
    return [*found, (*events, -1)] if coming else found


def one_by_one(tables: Tables) -> list[float]:
    """(J,) when each job is done if they run alone, one after another, as soon as they can, s.

    Each after its start where starts are charged: a schedule. Where they are free, some optimal
    schedule is done by the last of these: where the jobs there are do less work in a second than
    one alone at its fastest, the same work one by one takes less time, and what comes after can be
    done earlier.
    """
    now, found = 0.0, []
    for j, (submit, alone) in enumerate(zip(tables.submit_s, tables.fastest_s, strict=True)):
        count = int(tables.gpus[j][tables.fastest(j)[0]])
        start = tables.problem.overhead.seconds(count) if tables.charged else 0.0
        now = max(now, float(submit)) + start + float(alone)
        found.append(now)
    return found


def serial(tables: Tables) -> float:
    """Σ (completion − submission) of that, s."""
    return math.fsum([*one_by_one(tables), *(-tables.submit_s).tolist()])


def latest_s(tables: Tables) -> float:
    """An end that some optimal schedule keeps, s.

    Where starts are charged: nobody's Σ (completion − submission) is above that of a schedule.
    """
    if not tables.charged:
        return one_by_one(tables)[-1]
    return float(tables.submit_s[-1]) + serial(tables)
