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
    """How finely a job's starts are told apart.

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
    """The integer program of a period; `model` minimises what is waited, or the makespan, s."""

    def __init__(
        self,
        problem: QueueingProblem,
        period: Period,
        weights: list[Width],
        fineness: Fineness,
        least_s: float = 0.0,
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
        self.makespan = problem.objective.goal == "makespan"
        self.model = self._model(weights, least_s)

    def cell(self, time: float) -> int:
        """The cell of a moment, which may be a little before the cell begins."""
        return int(np.searchsorted(self.times, time + SAME_S, side="right")) - 1

    def _job(self, job: int, column: int) -> Steps:
        jobs, period = self.problem.jobs, self.period
        arrival, duration = float(jobs.arrival_s[job]), float(jobs.duration_s[job])
        since = max(arrival, period.begin)
        edges = self._ranges(job, self.cell(since), since)
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
        ends = self._ended(ends)
        self._use(job, column, edges, ends)
        delay = np.append(starts - since, period.end - since)
        return Steps(job, column, edges[:-1], int(edges[-1]), delay)

    def _ended(self, ends: FloatArray) -> IntArray:
        """The first cell that a job which ends then does not hold for certain."""
        if self.period.exact:  # nobody starts within the cell that it ends in
            return np.searchsorted(self.times, ends - SAME_S, side="left")
        return np.searchsorted(self.times, ends + SAME_S, side="right") - 1

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
        """Where the job holds GPUs for certain, as differences of two of its variables."""
        cells = np.arange(edges[0], self.count)
        begun = np.searchsorted(edges[1:] - 1, cells, side="right") - 1
        ended = np.searchsorted(ends, cells, side="right") - 1
        held = begun > ended
        over = held & (ended >= 0)
        signed = np.full(len(cells), job + 1)
        self.uses.append((cells[held], column + begun[held], signed[held]))
        self.uses.append((cells[over], column + ended[over], -signed[over]))

    # -- the model ------------------------------------------------------------------------

    def _model(self, weights: list[Width], least_s: float) -> LinearModel:
        cost, rows = np.zeros(self.columns + self.makespan), _Rows()
        offset = 0.0
        for step in self.steps:
            many = len(step.first)
            rows.rise(step.column, many)
            gain = np.diff(step.delay)
            if self.makespan:
                due = self._due(step)
                columns = np.append(np.arange(step.column, step.column + many), self.columns)
                rows.add(columns, np.append(gain, 1.0), due + float(gain.sum()), np.inf)
            else:
                cost[step.columns] = -gain
                offset += float(step.delay[-1])
        self._capacity(rows, weights)
        lower, upper = np.zeros(len(cost)), np.ones(len(cost))
        lower[self.must] = 1.0
        if self.makespan:
            cost[-1] = 1.0
            lower[-1], upper[-1] = least_s, self._horizon()
        integer = np.ones(len(cost), dtype=np.bool_)
        integer[self.columns :] = False
        return rows.model(cost, lower, upper, integer, offset)

    def _due(self, step: Steps) -> float:
        """When the job would be done without waiting, from the first arrival on, s."""
        jobs = self.problem.jobs
        return float(jobs.arrival_s[step.job] + jobs.duration_s[step.job] - jobs.arrival_s[0])

    def _horizon(self) -> float:
        """More than any makespan that the program can show, s."""
        return 2 * (self.period.end + float(self.problem.jobs.duration_s.max()))

    def _capacity(self, rows: _Rows, weights: list[Width]) -> None:
        """A row for every cell and width that can bind; rows that repeat are left out."""
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
                    rows.add(column[part], value[part], -np.inf, limit)

    # -- from schedules to points and back --------------------------------------------------

    def point(self, start: FloatArray) -> FloatArray:
        """The variables of a schedule that keeps the capacity."""
        values = np.zeros(self.model.variables)
        delays = []
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
            delays.append(step.delay[k] + self._due(step))
        if self.makespan:
            values[-1] = max(delays)
        return values

    def starts(self, values: FloatArray) -> FloatArray:
        """The earliest start of each job's range, s, in order of `steps`; `end` for none."""
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
            if period.exact:
                continue
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
    """Rows of a linear model as they come."""

    def __init__(self) -> None:
        self.starts, self.lower, self.upper = [0], [], []  # type: list[int], list[float], list[float]
        self.columns: list[IntArray] = []
        self.values: list[FloatArray] = []

    def add(self, columns: IntArray, values: FloatArray, lower: float, upper: float) -> None:
        self.columns.append(columns)
        self.values.append(values)
        self.starts.append(self.starts[-1] + len(columns))
        self.lower.append(lower)
        self.upper.append(upper)

    def rise(self, column: int, count: int) -> None:
        """Variables from `column` on that never fall."""
        if count < 2:
            return
        pairs = np.arange(count - 1)
        self.columns.append((column + np.stack([pairs, pairs + 1], axis=1)).ravel())
        self.values.append(np.tile([1.0, -1.0], count - 1))
        self.starts += (self.starts[-1] + 2 * (pairs + 1)).tolist()
        self.lower += [-np.inf] * (count - 1)
        self.upper += [0.0] * (count - 1)

    def model(
        self,
        cost: FloatArray,
        lower: FloatArray,
        upper: FloatArray,
        integer: np.ndarray,
        offset: float,
    ) -> LinearModel:
        return LinearModel(
            cost,
            np.array(self.starts, dtype=np.int64),
            np.concatenate([np.zeros(0, np.int64), *self.columns]),
            np.concatenate([np.zeros(0), *self.values]),
            np.array(self.lower, dtype=np.float64),
            np.array(self.upper, dtype=np.float64),
            lower,
            upper,
            integer,
            offset=offset,
        )
