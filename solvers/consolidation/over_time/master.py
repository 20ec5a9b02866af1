"""The master program over courses of tasks, and the bound that its duals prove."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from optgap.models.limits import Limits
from optgap.models.work import CONSOLIDATION
from optgap.solvers.backends.growing import AGAIN, is_optimal, quiet_highs, solve_within
from optgap.solvers.consolidation.numerics import FloatArray, IntArray
from optgap.solvers.consolidation.over_time.parameters import TUNING
from optgap.solvers.consolidation.over_time.pricing_kernels import cheapest_courses
from optgap.solvers.consolidation.over_time.relaxation import Relaxation
from optgap.solvers.engines.column_generation import Pricing, Solved


class Course(NamedTuple):
    """A task's presence, progress beyond the base pace, and work over the buckets, (K,), s."""

    task: int
    presence: FloatArray
    progress: FloatArray
    work: FloatArray


@dataclass(frozen=True, eq=False)
class Prices:
    """Duals of the master program, J and s.

    Parameters
    ----------
    presence, progress: (R, K) of the rows of each share. asking: (K,) of utilisation.
    counted: (K,) of GPUs awake for certain. work: (L,) of ∫u of each task, of either sign.
    """

    presence: FloatArray
    progress: FloatArray
    asking: FloatArray
    counted: FloatArray
    work: FloatArray

    def feasible(self, relaxed: Relaxation) -> Prices:
        """Not negative, and in no bucket more than a GPU draws at any pace."""
        a, b, c, n = (
            np.maximum(0.0, x) for x in (self.presence, self.progress, self.asking, self.counted)
        )
        pace, watts = relaxed.curve.pace[:, None], relaxed.curve.watts[:, None]
        asked = (a.sum(axis=0) + n)[None, :] + pace * c[None, :]
        asked = asked + (pace - relaxed.base) * b.sum(axis=0)[None, :]
        scale = np.minimum(1.0, (watts / np.maximum(asked, 1e-300)).min(axis=0))
        return Prices(a * scale, b * scale, c * scale, n * scale, self.work)


def priced(relaxed: Relaxation, prices: Prices) -> tuple[float, list[Course]]:
    """Return a proven bound, J, and the course of each task behind it; prices are feasible."""
    progress = relaxed.shares.T @ prices.progress
    presence = relaxed.shares.T @ prices.presence - relaxed.base * progress
    asking = relaxed.weight[:, None] * prices.asking[None, :] - prices.work[:, None]
    rate = np.where(asking > 0, relaxed.low[:, None], relaxed.high[:, None])
    progress = progress + asking * rate
    shift = np.maximum(0.0, -progress.min(axis=1))  # every task makes `effort` of progress
    finish, pace = np.zeros(relaxed.tasks, dtype=np.int64), np.zeros(relaxed.cover.shape)
    cost = cheapest_courses(
        relaxed.cover, relaxed.first, relaxed.effort, presence, progress + shift[:, None],
        relaxed.waits, finish, pace,
    )  # fmt: skip
    cost = cost - shift * relaxed.effort + prices.work * relaxed.work
    there = pace.copy()
    if not relaxed.waits:
        buckets = np.arange(relaxed.buckets)[None, :]
        paid = (buckets == finish[:, None]) & (presence < 0)
        whole = (buckets < finish[:, None]) | paid
        there[whole] = relaxed.cover[whole]
    bound = float(cost.sum() + (prices.counted * relaxed.counted).sum())
    above = pace - relaxed.base * there
    return bound, list(map(Course, range(relaxed.tasks), there, above, pace * rate))


@dataclass(eq=False)
class Master:
    """Columns and rows so far. Times are measured in `relaxed.span`, energy in that times P(1).

    Parameters
    ----------
    close: relative distance of value and bound from which on rows are added and not columns.

    Attributes
    ----------
    rows: (share, bucket, whether progress) of the rows of shares, in order. courses: of each
        column, and weights: of each in the last solution.
    """

    relaxed: Relaxation
    close: float
    rows: list[tuple[int, int, bool]] = field(default_factory=list)
    courses: list[Course] = field(default_factory=list)
    weights: FloatArray = field(default_factory=lambda: np.zeros(0))

    def __post_init__(self) -> None:
        self.highs = quiet_highs(**AGAIN)
        relaxed = self.relaxed
        self.unit = relaxed.span * float(relaxed.curve.watts[-1])
        self.levels = levels = len(relaxed.curve.pace)
        for _ in range(relaxed.buckets):
            for watts in relaxed.curve.watts.tolist():
                self.highs.addCol(watts * relaxed.span / self.unit, 0.0, math.inf, 0, [], [])
        for _ in range(relaxed.tasks):  # each task has one course, and asks for ∫u in it
            self.highs.addRow(1.0, 1.0, 0, [], [])
        asked = relaxed.work / relaxed.span
        for ell in range(relaxed.tasks):
            self.highs.addRow(float(asked[ell]), float(asked[ell]), 0, [], [])
        for k in range(relaxed.buckets):
            least = float(relaxed.counted[k]) / relaxed.span
            self.highs.addRow(least, math.inf, levels, self._gpus(k), np.ones(levels))
        for k in range(relaxed.buckets):
            free = 0.0 if relaxed.asking else -math.inf
            self.highs.addRow(free, math.inf, levels, self._gpus(k), relaxed.curve.pace)
        self.fixed = 2 * relaxed.tasks + 2 * relaxed.buckets
        for ell in range(relaxed.tasks):  # a fine for work too much or too little
            fine = TUNING.fine * max(1e-6, float(relaxed.weight[ell]))
            for sign in (1.0, -1.0):
                row = np.array([relaxed.tasks + ell], dtype=np.int32)
                self.highs.addCol(fine, 0.0, math.inf, 1, row, np.array([sign]))
        self.first = relaxed.buckets * levels + 2 * relaxed.tasks
        for k in range(relaxed.buckets):
            for r in range(relaxed.regular):
                self._row(r, k, False)
                self._row(r, k, True)

    def _gpus(self, bucket: int) -> IntArray:
        """Return the columns of awake GPUs in a bucket."""
        own: IntArray = bucket * self.levels + np.arange(self.levels)
        return own

    def _row(self, share: int, bucket: int, progress: bool) -> None:
        """Add a row of a share, with the columns so far."""
        index, value = self._gpus(bucket), np.ones(self.levels)
        if progress:
            value = self.relaxed.curve.pace - self.relaxed.base[bucket]
        weights = self.relaxed.shares[share]
        more = [
            (self.first + c, -weights[ell] * float((pace if progress else there)[bucket]))
            for c, (ell, there, pace, _) in enumerate(self.courses)
            if weights[ell]
        ]
        more = [(c, v / self.relaxed.span) for c, v in more if v]
        index = np.concatenate([index, np.array([c for c, _ in more], dtype=np.int64)])
        value = np.concatenate([value, np.array([v for _, v in more])])
        self.highs.addRow(0.0, math.inf, len(index), index.astype(np.int32), value)
        self.rows.append((share, bucket, progress))

    def add(self, courses: Iterable[Course]) -> None:
        """More columns."""
        relaxed, span = self.relaxed, self.relaxed.span
        share = np.array([r for r, _, _ in self.rows], dtype=np.int64)
        bucket = np.array([k for _, k, _ in self.rows], dtype=np.int64)
        paced = np.array([p for _, _, p in self.rows], dtype=bool)
        asked = 2 * relaxed.tasks + relaxed.buckets
        for course in courses:
            ell, there, pace, work = course
            taken = np.where(paced, pace[bucket], there[bucket]) * relaxed.shares[share, ell]
            column = np.zeros(self.fixed + len(self.rows))
            column[ell] = 1.0
            column[relaxed.tasks + ell] = work.sum() / span
            column[asked : asked + relaxed.buckets] = -relaxed.weight[ell] * work / span
            column[self.fixed :] = -taken / span
            index = np.flatnonzero(column).astype(np.int32)
            self.highs.addCol(0.0, 0.0, math.inf, len(index), index, column[index])
            self.courses.append(course)

    def price(self, duals: Prices, limits: Limits) -> Pricing[Prices]:
        """Add the course of least cost of each task."""
        bound, courses = priced(self.relaxed, duals.feasible(self.relaxed))
        self.add(courses)
        limits.spend(CONSOLIDATION.course * self.relaxed.cover.size * self.relaxed.buckets)
        return Pricing(bound, duals, len(courses))

    def closed(self, value: float, bound: float) -> bool:
        """Tell whether more courses would prove little more for the rows so far."""
        return value - bound <= self.close * value

    def solve_master(self, limits: Limits) -> Solved[Prices] | None:
        """Return the value, J, and the duals; None where time is up."""
        relaxed = self.relaxed
        solution = solve_within(self.highs, limits)
        if not is_optimal(self.highs):
            return None
        dual = np.array(solution.row_dual) * self.unit / relaxed.span
        tasks, buckets = relaxed.tasks, relaxed.buckets
        shape = (len(relaxed.shares), buckets)
        presence, progress = np.zeros(shape), np.zeros(shape)
        for (share, bucket, paced), value in zip(self.rows, dual[self.fixed :], strict=True):
            (progress if paced else presence)[share, bucket] = value
        prices = Prices(
            presence,
            progress,
            dual[2 * tasks + buckets : self.fixed],
            dual[2 * tasks : 2 * tasks + buckets],
            dual[tasks : 2 * tasks],
        )
        self.weights = np.array(solution.col_value)[self.first :]
        return Solved(float(self.highs.getObjectiveValue()) * self.unit, prices)

    def escalate(self, closed: bool, limits: Limits) -> bool:
        """Add the rows of shares that the last solution violates most; False if none does."""
        relaxed = self.relaxed
        there, pace = np.zeros(relaxed.cover.shape), np.zeros(relaxed.cover.shape)
        for course, weight in zip(self.courses, self.weights.tolist(), strict=True):
            if weight > 1e-9:
                there[course.task] += weight * course.presence
                pace[course.task] += weight * course.progress
        gpus = np.array(self.highs.getSolution().col_value)[: relaxed.buckets * self.levels]
        gpus = gpus.reshape(relaxed.buckets, self.levels) * relaxed.span
        known = set(self.rows)
        found = []
        for progress, amount in ((False, there), (True, pace)):
            above = relaxed.curve.pace[:, None] - relaxed.base
            offered = (gpus * above.T).sum(axis=1) if progress else gpus.sum(axis=1)
            over = relaxed.shares @ amount - offered
            for share, bucket in np.argwhere(over > TUNING.least_broken * relaxed.span).tolist():
                if (share, bucket, progress) not in known:
                    found.append((float(over[share, bucket]), share, bucket, progress))
        found.sort(reverse=True)
        used: dict[tuple[int, bool], int] = {}
        added, most = 0, TUNING.new_rows * relaxed.buckets
        for _, share, bucket, progress in found:
            if used.get((bucket, progress), 0) < 2 and added < most:
                used[bucket, progress] = used.get((bucket, progress), 0) + 1
                self._row(share, bucket, progress)
                added += 1
        return added > 0
