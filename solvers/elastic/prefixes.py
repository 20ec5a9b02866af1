"""What schedules whose events begin in a given way cost at least: a small linear program.

Up to the last event of a prefix the intervals between events are known. Of what follows only is
asked how long the cluster spends with how many jobs completed, between which submissions; GPUs
and power are kept on average in every interval. See ``docs/elastic-bounds.md``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from optgap.models.elastic.arrays import Floats, Ints
from optgap.models.limits import Limits
from optgap.models.result import Termination
from optgap.solvers.backends.growing import Growing
from optgap.solvers.backends.linear import LinearModel
from optgap.solvers.backends.safe import EPS, outwards, safe_bound
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
    interval, job: (A,) intervals and the jobs that may run in them; the first A rows say that no
        job runs for longer than its interval.
    counted: pair, row, and how often the row counts what the pair does of its job's work.
    gpus, watts: the first row of GPUs and of power, by interval.
    """

    model: LinearModel
    interval: Ints
    job: Ints
    counted: tuple[Ints, Ints, Floats]
    gpus: int
    watts: int


class Prefixes:
    """Configurations worth having by job, and the linear programs over them."""

    def __init__(self, tables: Tables, limits: Limits) -> None:
        self.tables, self.limits = tables, limits
        self.size = tables.size
        self.unit = float(tables.fastest_s.max())
        self.gap_s = np.diff(tables.submit_s)
        self.last = latest(tables) * (1 + 1e-12) / self.unit
        self.undone = UNDONE * float(tables.fastest_s.sum()) / self.unit
        self.pool: dict[tuple[int, int], set[int]] = {}  # by number of active jobs, and job
        limit = tables.problem.power_allowed_w
        self.limited = math.isfinite(limit)
        # shares of the cluster and of the limit, and work per unit of time
        self.gpus = [n / tables.problem.gpus for n in tables.gpus]
        self.watts = [w / limit if self.limited else 0 * w for w in tables.watts]
        self.rate = [rate * self.unit for rate in tables.rate]
        self.programs = 0
        self.trouble = ""
        self.stopped: Termination | None = None

    def configurations(self, active: int, job: int) -> set[int]:
        """Those made so far for a job among so many; at first the fastest."""
        return self.pool.setdefault((active, job), {int(self.rate[job].argmax())})

    def value(self, events: Events, cut: float) -> float | None:
        """Σ (completion − submission) of every schedule that begins so is at least this, s.

        Not much more is asked than whether it is at least `cut`. None where it is not known:
        `trouble` and `stopped` say why.
        """
        parts = intervals(events, self.tables.submit_s)
        gone = [event for event in events if event >= 0]
        best = -math.inf
        while True:
            program = self._program(parts, gone)
            self.programs += 1
            self.stopped = self.limits.stop
            if self.stopped is not None:
                return None
            solver = Growing(**SIMPLEX)
            solver.load(program.model)
            if not solver.run():  # all work may be left undone
                self.trouble = "a linear program that has a solution was not solved"
                return None
            proven, more = self._proven(program, parts, gone, solver.duals)
            best = max(best, proven * self.unit)
            if best >= cut or not more:
                return best

    def _proven(
        self, program: Program, parts: Sequence[Interval], gone: list[int], duals: Floats
    ) -> tuple[float, bool]:
        """What these prices prove with every configuration, and whether any was added.

        One that is not in the program costs at least its reduced cost, and no job runs for longer
        than some optimal schedule takes.
        """
        bound = safe_bound(program.model, duals, np.full(program.model.variables, self.last))
        pair, row, times = program.counted
        worth = np.bincount(pair, times * duals[row], minlength=len(program.job))
        worthy = np.bincount(pair, np.abs(times * duals[row]), minlength=len(program.job))
        lost, added = [], False
        for j in range(self.size):
            rows = np.flatnonzero(program.job == j)
            i = program.interval[rows]
            terms = [np.outer(duals[program.gpus + i], self.gpus[j]), duals[rows][:, None]]
            if self.limited:
                terms.append(np.outer(duals[program.watts + i], self.watts[j]))
            reduced = -sum(terms, start=np.outer(worth[rows], self.rate[j]))
            size = sum(map(np.abs, terms), start=np.outer(worthy[rows], self.rate[j]))
            lost.append(float((reduced - (program.model.rows + 8) * EPS * size).min(initial=0.0)))
            best = reduced.argmin(axis=1)
            for a in np.flatnonzero((reduced < -TOLERANCE * size).any(axis=1)).tolist():
                known = self.configurations(len(parts[i[a]].active), j)
                added = added or int(best[a]) not in known
                known.add(int(best[a]))
        return outwards([bound, *(less * self.last for less in lost)]), added

    def _program(self, parts: Sequence[Interval], gone: list[int]) -> Program:
        """min Σ cost·length, GPUs and power kept on average, and everyone's work done."""
        pairs = [(len(part.active), j) for part in parts for j in part.active]
        job = np.array([j for _, j in pairs])
        interval = np.array([i for i, part in enumerate(parts) for _ in part.active])
        pools = {pair: np.array(sorted(self.configurations(*pair))) for pair in set(pairs)}
        sizes = np.array([len(pools[pair]) for pair in pairs])
        gpus, watts, rate = (
            np.concatenate([table[pair[1]][pools[pair]] for pair in pairs])
            for table in (self.gpus, self.watts, self.rate)
        )
        many, per = len(parts), np.repeat(np.arange(len(pairs)), sizes)
        lengths, x = np.arange(many), many + np.arange(len(per))
        undone = many + len(per) + np.arange(self.size)
        at_gpus = len(pairs)
        at_watts = at_gpus + many
        at_work = at_watts + many * self.limited
        counts = self._counts(parts, gone, interval, job)
        pair, row, times = counts.entries
        ones, at = np.ones(len(per)), interval[per]
        blocks = [
            (per, x, ones),
            (np.arange(len(pairs)), interval, -np.ones(len(pairs))),
            (at_gpus + at, x, gpus),
            (at_gpus + lengths, lengths, -np.ones(many)),
        ]
        if self.limited:
            blocks.append((at_watts + at, x, watts))
            blocks.append((at_watts + lengths, lengths, -np.ones(many)))
        each = np.repeat(np.arange(len(pair)), sizes[pair])  # every configuration of each pair
        first = np.cumsum(sizes) - sizes
        begin = np.cumsum(sizes[pair]) - sizes[pair]
        which = first[pair[each]] + np.arange(len(each)) - begin[each]
        blocks.append((at_work + row[each], x[which], times[each] * rate[which]))
        blocks += [(at_work + r, undone[j], t) for r, j, t in (counts.undone,)]
        blocks += [(at_work + r, i, t) for r, i, t in (counts.lengths,)]
        lower = np.append(np.full(at_work, -math.inf), counts.lower)
        upper = np.append(np.zeros(at_work), counts.upper)
        cost = np.zeros(many + len(per) + self.size)
        cost[:many] = [part.cost for part in parts]
        cost[undone] = self.undone
        most = np.full(len(cost), math.inf)
        most[undone] = 1.0
        model = _model(blocks, cost, most, lower, upper)
        return Program(model, interval, job, (pair, at_work + row, times), at_gpus, at_watts)

    def _counts(
        self, parts: Sequence[Interval], gone: list[int], interval: Ints, job: Ints
    ) -> Counts:
        """Rows of work and of time: everyone's work; the times between submissions; that so many
        jobs have done theirs where so many have completed; and before which submissions."""
        counts = Counts()
        gap = np.array([part.gap for part in parts])
        completed = np.array([part.completed for part in parts])
        open_ = np.ones(self.size, np.bool_)
        open_[gone] = False
        everyone = np.flatnonzero(open_)
        for j in range(self.size):
            counts.row(np.flatnonzero(job == j), 1.0, np.array([j]), lower=1.0, upper=1.0)
        for g, length in enumerate((self.gap_s / self.unit).tolist()):
            counts.row(none=True, over=np.flatnonzero(gap == g), lower=length, upper=length)
        for end in range(len(gone) + 1, self.size):
            done = np.flatnonzero((completed < end)[interval] & open_[job])
            counts.row(done, 1.0, everyone, lower=float(end - len(gone)))
        for g, length in enumerate((self.gap_s / self.unit).tolist()):
            for end in range(len(gone) + 1, g + 2):
                over = np.flatnonzero((gap == g) & (completed >= end))
                if not len(over):
                    continue
                before = (completed < end) & (gap <= g)
                done = np.flatnonzero(before[interval] & open_[job] & (job <= g))
                there = everyone[everyone <= g]
                counts.row(done, length, there, over=over, each=float(len(gone) - end), lower=0.0)
        return counts


class Counts:
    """Rows that add up shares of jobs' work, and lengths of intervals, in the making."""

    def __init__(self) -> None:
        self._work: list[tuple[Ints, float]] = []
        self._undone: list[tuple[Ints, float]] = []
        self._over: list[tuple[Ints, float]] = []
        self.lower: list[float] = []
        self.upper: list[float] = []

    def row(
        self,
        pairs: Ints | None = None,
        times: float = 1.0,
        undone: Ints | None = None,
        *,
        over: Ints | None = None,
        each: float = 1.0,
        lower: float,
        upper: float = math.inf,
        none: bool = False,
    ) -> None:
        empty = np.zeros(0, np.int64)
        self._work.append((empty if pairs is None else pairs, times))
        self._undone.append((empty if undone is None else undone, times))
        self._over.append((empty if over is None else over, each))
        self.lower.append(lower)
        self.upper.append(upper)

    @staticmethod
    def _flat(parts: Sequence[tuple[Ints, float]]) -> tuple[Ints, Ints, Floats]:
        """Columns, rows and values."""
        many = [len(part[0]) for part in parts]
        column = np.concatenate([part[0] for part in parts])
        return (
            column,
            np.repeat(np.arange(len(parts)), many),
            np.repeat([t for _, t in parts], many),
        )

    @property
    def entries(self):
        return self._flat(self._work)

    @property
    def undone(self):
        c, r, v = self._flat(self._undone)
        return r, c, v

    @property
    def lengths(self):
        c, r, v = self._flat(self._over)
        return r, c, v


def _model(
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


def latest(tables: Tables) -> float:
    """An end that some optimal schedule keeps: as soon as they can, one job after another, s.

    Where the jobs there are do less work in a second than one alone at its fastest, the same work
    one by one takes less time, and what comes after can be done earlier.
    """
    now = 0.0
    for submit, alone in zip(tables.submit_s.tolist(), tables.fastest_s.tolist(), strict=True):
        now = max(now, submit) + alone
    return now
