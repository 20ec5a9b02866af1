"""The time-indexed integer program of a period, in variables that step from 0 to 1.

Time is cut into cells of any widths. A job's starts fall into ranges of cells; y_jk = 1 says that
job j has started by the end of its k-th range. A start in cells q to q' − 1 holds GPUs for certain
from cell q' − 1 until the cell in which it ends had it started when cell q begins. So in every
cell a job's use is n_j·(y_jk − y_jl): two non-zeros. Why that is a relaxation is in
docs/queueing-bounds.md.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from optgap.models.queueing import QueueingProblem
from optgap.models.queueing.arrays import FloatArray, IntArray
from optgap.models.times import slack_s
from optgap.solvers.backends.linear import LinearModel
from optgap.solvers.queueing.periods import SAME_S, Period
from optgap.solvers.queueing.widths import Width

MOST_PARTS = 16
"""Into which a cell is cut at once."""
ROOM = 1e-9
"""Relative room in rows whose numbers are not whole."""


@dataclass(frozen=True, slots=True)
class Fineness:
    """Resolution of a job's starts.

    Parameters
    ----------
    reach_s: cell by cell for a wait up to this, s.
    growth: from there on in ranges as long as this share of the wait.
    """

    reach_s: float = 6000.0
    growth: float = 0.15


@dataclass(frozen=True, slots=True)
class Steps:
    """One job's variables: its ranges begin in cells `first` and the last one ends before `stop`.

    Parameters
    ----------
    job: its place in the stream.
    column: of its first variable.
    first: (m,) cell in which each range begins.
    stop: the cell after the last range.
    delay: (m + 1,) what is waited in the period if it starts in each range, or in none, s.
    """

    job: int
    column: int
    first: IntArray
    stop: int
    delay: FloatArray

    @property
    def columns(self) -> slice:
        return slice(self.column, self.column + len(self.first))


class StepProgram:
    """The integer program of a period; `model` minimises what is waited, s."""

    def __init__(
        self,
        problem: QueueingProblem,
        period: Period,
        weights: list[Width],
        fineness: Fineness,
    ) -> None:
        self.problem, self.period, self.fineness = problem, period, fineness
        self.times = np.append(period.times, period.end)
        self.count = len(period.times)
        self.parted: dict[int, list[int]] = {}
        for job, time in period.parted:
            self.parted.setdefault(job, []).append(self.cell(time))
        self.steps: list[Steps] = []
        self.must: list[int] = []
        self.uses: list[tuple[IntArray, IntArray, IntArray]] = []  # cell, column, ± job + 1
        column = 0
        for job in period.jobs.tolist():
            step = self._job(job, column)
            self.steps.append(step)
            column += len(step.first)
        self.columns = column
        self.model = self._model(weights)

    def cell(self, time: float) -> int:
        """Return the cell of a moment, which may be a little before the cell begins."""
        return int(np.searchsorted(self.times, time + SAME_S, side="right")) - 1

    def _job(self, job: int, column: int) -> Steps:
        jobs, period = self.problem.jobs, self.period
        arrival, duration = float(jobs.arrival_s[job]), float(jobs.duration_s[job])
        since = max(arrival, period.begin)
        edges = self._ranges(job, min(self.cell(since), self.count - 1), since)
        latest = arrival + float(jobs.patience_s[job])
        last = len(edges) - 1
        if latest < period.end:
            latest += slack_s(latest) + len(self.problem) * SAME_S
            last = max(1, int((self.times[edges[:-1]] <= latest).sum()))
            self.must.append(column + last - 1)
        edges = edges[: last + 1]
        starts = np.maximum(self.times[edges[:-1]], since)
        ends = starts + duration
        if arrival < period.begin:  # it may have started before, as soon as it came
            ends[0] = arrival + duration
        # the first cell that a job which ends then does not hold for certain
        ended = np.searchsorted(self.times, ends + SAME_S, side="right") - 1
        self._use(job, column, edges, ended)
        delay = np.append(starts - since, period.end - since)
        return Steps(job, column, edges[:-1], int(edges[-1]), delay)

    def _ranges(self, job: int, first: int, since: float) -> IntArray:
        """Cells where ranges begin, and the one after the last."""
        fine, growth = self.fineness.reach_s, self.fineness.growth
        near = int(np.searchsorted(self.times[:-1], since + fine, side="right"))
        edges = list(range(first, max(near, first + 1)))
        cell = edges[-1] + 1
        while cell < self.count:
            edges.append(cell)
            wait = self.times[cell] - since
            far = int(np.searchsorted(self.times, since + wait * (1 + growth), side="left"))
            cell = max(cell + 1, far)
        more = [c for c in self.parted.get(job, ()) if first < c < self.count]
        return np.unique(np.array([*edges, *more, self.count], dtype=np.int64))

    def _use(self, job: int, column: int, edges: IntArray, ends: IntArray) -> None:
        """Find where the job holds GPUs for certain, as differences of two of its variables."""
        cells = np.arange(edges[0], self.count)
        begun = np.searchsorted(edges[1:] - 1, cells, side="right") - 1
        ended = np.searchsorted(ends, cells, side="right") - 1
        held = begun > ended
        over = held & (ended >= 0)
        signed = np.full(len(cells), job + 1)
        self.uses.append((cells[held], column + begun[held], signed[held]))
        self.uses.append((cells[over], column + ended[over], -signed[over]))

    # -- the model ------------------------------------------------------------------------

    def _model(self, weights: list[Width]) -> LinearModel:
        cost, rows = np.zeros(self.columns), _Rows()
        offset = 0.0
        for step in self.steps:
            rows.rise(step.column, len(step.first))
            cost[step.columns] = -np.diff(step.delay)
            offset += float(step.delay[-1])
        self._capacity(rows, weights)
        lower, upper = np.zeros(len(cost)), np.ones(len(cost))
        lower[self.must] = 1.0
        most = np.array(rows.most, dtype=np.float64)
        return LinearModel(
            cost,
            np.array(rows.starts, dtype=np.int64),
            np.concatenate([np.zeros(0, np.int64), *rows.columns]),
            np.concatenate([np.zeros(0), *rows.values]),
            np.full(len(most), -np.inf),
            most,
            lower,
            upper,
            np.ones(len(cost), dtype=np.bool_),
            offset=offset,
        )

    def _capacity(self, rows: _Rows, weights: list[Width]) -> None:
        """Add a row for every cell and width that can bind, but no row twice."""
        cell, column, signed = (np.concatenate(parts) for parts in zip(*self.uses, strict=True))
        order = np.lexsort((column, cell))
        cell, column, signed = cell[order], column[order], signed[order]
        job, sign = np.abs(signed) - 1, np.sign(signed)
        at = np.searchsorted(cell, np.arange(self.count + 1))
        for demand, capacity in weights:
            value = demand[job] * sign
            most = np.bincount(cell, np.maximum(value, 0.0), minlength=self.count)
            whole = np.array_equal(demand, np.rint(demand))
            limit = capacity if whole else capacity * (1 + ROOM)
            seen: set[tuple[bytes, bytes]] = set()
            for t in np.flatnonzero(most > limit).tolist():
                part = slice(at[t], at[t + 1])
                key = (column[part].tobytes(), value[part].tobytes())
                if key not in seen:
                    seen.add(key)
                    rows.add(column[part], value[part], limit)

    # -- from schedules to points and back --------------------------------------------------

    def point(self, start: FloatArray) -> FloatArray:
        """Return the variables of a schedule that keeps the capacity."""
        values = np.zeros(self.model.variables)
        for step in self.steps:
            time = start[step.job]
            cell = self.cell(time) if time < self.period.end else self.count
            k = (
                0
                if time < self.period.begin
                else int(np.searchsorted(step.first, cell, "right")) - 1
            )
            k = len(step.first) if cell >= step.stop else max(0, k)
            values[step.column + k : step.columns.stop] = 1.0
        return values

    def starts(self, values: FloatArray) -> FloatArray:
        """Return the earliest start of each job's range, s, in order of `steps`; `end` for none."""
        found = np.empty(len(self.steps))
        for i, step in enumerate(self.steps):
            k = len(step.first) - round(float(values[step.columns].sum()))
            since = max(float(self.problem.jobs.arrival_s[step.job]), self.period.begin)
            found[i] = since + step.delay[k]
        return found

    def refine(self, values: FloatArray) -> bool:
        """Cut cells and ranges where the point gains from their being coarse; False if nowhere."""
        jobs, period = self.problem.jobs, self.period
        ends: list[float] = []
        before = len(period.parted)
        for step, start in zip(self.steps, self.starts(values).tolist(), strict=True):
            k = len(step.first) - round(float(values[step.columns].sum()))
            if k == len(step.first):
                continue
            stop = step.first[k + 1] if k + 1 < len(step.first) else step.stop
            if stop > step.first[k] + 1:
                for cell in {int(step.first[k]) + 1, (int(step.first[k]) + int(stop)) // 2}:
                    period.parted.add((step.job, float(self.times[cell])))
            begun = float(jobs.arrival_s[step.job]) < period.begin and k == 0
            since = float(jobs.arrival_s[step.job]) if begun else start
            end = since + float(jobs.duration_s[step.job])
            ends.append(end)
            if not begun and self.cell(end) == (cell := self.cell(start)):
                # shorter than its cell, and so of no weight
                parts = min(MOST_PARTS, int((self.times[cell + 1] - start) / (end - start)))
                ends += np.linspace(start, self.times[cell + 1], parts + 1)[1:-1].tolist()
        return (period.cut(np.array(ends)) if ends else False) or len(period.parted) > before


class _Rows:
    """Rows of a linear model as they come, each at most a number."""

    def __init__(self) -> None:
        self.starts: list[int] = [0]
        self.most: list[float] = []
        self.columns: list[IntArray] = []
        self.values: list[FloatArray] = []

    def add(self, columns: IntArray, values: FloatArray, most: float) -> None:
        self.columns.append(columns)
        self.values.append(values)
        self.starts.append(self.starts[-1] + len(columns))
        self.most.append(most)

    def rise(self, column: int, count: int) -> None:
        """Variables from `column` on that never fall."""
        for k in range(column, column + count - 1):
            self.add(np.array([k, k + 1]), np.array([1.0, -1.0]), 0.0)
