"""The programs of whole orders where starts take time, and some of what a schedule uses is decided.

Columns are joint configurations, a start being a configuration that does no work. What a job uses
from interval to interval says how often it starts at least. See ``docs/elastic-bounds.md``.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from optgap.models.elastic.arrays import Floats, Ints
from optgap.models.limits import Limits
from optgap.solvers.backends.growing import Growing
from optgap.solvers.backends.safe import EPS, outwards, safe_bound, usable
from optgap.solvers.elastic.joint import Joint, Tables
from optgap.solvers.elastic.prefixes import (
    SIMPLEX,
    TOLERANCE,
    Events,
    Interval,
    Prefixes,
    intervals,
    linear_model,
)

ANY = -1
"""In place of an interval."""
Use = tuple[int, int, int]
"""A job, an index of its GPU counts, and an interval or `ANY`."""
Uses = tuple[tuple[Use, bool], ...]
"""What is decided of a schedule, and how."""


def fewest(visits: Sequence[set[int]]) -> int:
    """Starts of a job that has all of each of these counts in turn, at least."""
    last = {-1: 0}
    for counts in filter(None, visits):
        reached: dict[int, int] = {}
        for (before, so_far), end in itertools.product(last.items(), counts):
            goes_on = before in counts and (end != before or len(counts) == 1)
            starts = so_far + len(counts) - goes_on
            reached[end] = min(reached.get(end, starts), starts)
        last = reached
    return min(last.values())


@dataclass(frozen=True, eq=False)
class Relaxed:
    """What is known of an order with some uses decided.

    Parameters
    ----------
    value: proven: Σ (completion − submission) of no such schedule is below it, s.
    held: (I, J, N) units of time that a job holds each count in an interval, in the solution.
    started: (J, N) starts that are paid for there.
    """

    value: float
    held: Floats
    started: Floats


class Charged(Prefixes):
    """The programs of whole orders; columns by set of active jobs."""

    def __init__(self, tables: Tables, limits: Limits) -> None:
        super().__init__(tables, limits)
        self.counts = int(np.diff(self.first).max())
        self.start_s = np.zeros((self.size, self.counts))
        for j, starts in enumerate(tables.starts):
            at = np.flatnonzero(starts)
            self.start_s[j, self.count[j][at]] = 1 / starts[at]
        self.joint: dict[tuple[int, ...], list[Joint]] = {}

    def columns(self, active: tuple[int, ...]) -> list[Joint]:
        """Those made so far; at first nothing, and each job alone, its start before it."""
        if active not in self.joint:
            tables = self.tables
            alone = [tables.only(j, z) for j in active for z in tables.fastest(j)]
            self.joint[active] = [(-1,) * self.size, *alone]
        return self.joint[active]

    def relaxed(self, events: Events, uses: Uses, cut: float) -> Relaxed | None:
        """Of an order; asked is not much more than whether that is `cut`. None: see `value`."""
        parts = intervals(events, self.tables.submit_s)
        decided = Decided.of(uses, len(parts), self.size, self.counts)
        best, more = -math.inf, True
        while more and best < cut:
            self.stopped = self.limits.stop
            if self.stopped is not None:
                return None
            program = _Whole(self, parts, decided)
            self.programs += 1
            solver = Growing(**SIMPLEX)
            solver.load(program.model)
            if not solver.run():  # all work may be left undone
                self.trouble = "a linear program that has a solution was not solved"
                return None
            proven, more = program.proven(solver.duals)
            best = max(best, proven * self.unit)
        return Relaxed(best, *program.used(solver.values))


@dataclass(frozen=True, eq=False)
class Decided:
    """Uses as arrays.

    Parameters
    ----------
    never: (I, J, N) whether a job may not hold a count in an interval.
    used: (J, N) whether it is used at all.
    starts: (J,) at least.
    """

    never: np.ndarray
    used: np.ndarray
    starts: Ints

    @classmethod
    def of(cls, uses: Uses, many: int, size: int, counts: int) -> Decided:
        """From what is decided."""
        never = np.zeros((many, size, counts), np.bool_)
        used = np.zeros((size, counts), np.bool_)
        for (j, n, i), so in uses:
            if not so:
                never[slice(None) if i == ANY else i, j, n] = True
            elif i == ANY:
                used[j, n] = True
        starts = [starts_of(j, dict(uses), many) for j in range(size)]
        return cls(never, used, np.array(starts))


def starts_of(job: int, uses: Mapping[Use, bool], many: int) -> int:
    """How many starts of a job follow from where it uses which counts, at least."""
    mine = [use for use, so in uses.items() if so and use[0] == job]
    visits = [{n for _, n, at in mine if at == i} for i in range(many)]
    elsewhere = {n for _, n, _ in mine} - set().union(*visits)
    return fewest(visits) + len(elsewhere)


class _Whole:
    """min Σ cost·time over the columns made so far.

    Rows: work, by job; time between submissions; starts of a job on a count, and of a job.
    Variables: time in (interval, joint configuration), and work left undone, which makes up for
    starts, too.
    """

    def __init__(self, of: Charged, parts: Sequence[Interval], decided: Decided) -> None:
        self.of, self.parts, self.decided = of, parts, decided
        columns = [(i, q) for i, part in enumerate(parts) for q in of.columns(part.active)]
        self.interval = np.array([i for i, _ in columns])
        pick = np.array([q for _, q in columns])
        size, counts = of.size, of.counts
        column, job = np.nonzero(pick >= 0)
        many = np.cumsum([0, *map(len, of.rate)])
        z = many[job] + pick[column, job]
        count, rate, starts = (np.concatenate(t)[z] for t in (of.count, of.rate, of.starts))
        allowed = np.ones(len(columns), np.bool_)
        allowed[column[decided.never[self.interval[column], job, count]]] = False
        self.at = column, job, count, starts
        self.gap, self.started = size, 2 * size - 1
        self.total = self.started + size * counts
        pair = job * counts + count
        free = ~decided.used.ravel()[pair]
        undone = len(columns) + np.arange(size)
        used = np.flatnonzero(decided.used)
        gaps = np.array([part.gap for part in parts])[self.interval]
        inner = np.flatnonzero(gaps < size - 1)
        blocks = [
            (job, column, rate),
            (np.arange(size), undone, np.ones(size)),
            (self.gap + gaps[inner], inner, np.ones(len(inner))),
            (self.started + pair, column, starts - np.where(free, rate, 0.0)),
            (self.started + used, undone[used // counts], np.ones(len(used))),
            (self.total + job, column, starts),
            (self.total + np.arange(size), undone, decided.starts.astype(float)),
        ]
        lower = np.zeros(self.total + size)
        lower[:size] = 1.0
        lower[size : self.started] = of.gap_s / of.unit
        lower[self.started + used] = 1.0
        lower[self.total :] = decided.starts
        upper = np.full(len(lower), math.inf)
        upper[: self.started] = lower[: self.started]
        self.cost = np.array([float(part.cost) for part in parts])
        cost = np.append(self.cost[self.interval], np.full(size, of.undone))
        most = np.append(np.where(allowed, math.inf, 0.0), np.ones(size))
        self.model = linear_model(blocks, cost, most, lower, upper)

    def proven(self, duals: Floats) -> tuple[float, bool]:
        """What these prices prove with *every* column, and whether any was added."""
        of, size = self.of, self.of.size
        duals = usable(self.model, duals)
        bound = safe_bound(self.model, duals, np.full(self.model.variables, of.last))
        work = []
        for j in range(size):
            own = of.count[j]
            row = duals[self.started + j * of.counts + own]
            shared = np.where(self.decided.used[j][own], 0.0, row)
            parts = (
                duals[j] * of.rate[j], -shared * of.rate[j], row * of.starts[j],
                duals[self.total + j] * of.starts[j],
            )  # fmt: skip
            work.append(sum(parts) + 8 * EPS * sum(map(np.abs, parts)))
        lost, added = self._priced(duals, work, False)
        if not added:  # good columns are found long before it is proven that there are none
            lost, added = self._priced(duals, work, True)
        return outwards([bound, lost * of.last]), added

    def _priced(self, duals: Floats, work: Sequence[Floats], proof: bool) -> tuple[float, bool]:
        """The least reduced cost of all columns at most, and whether any was added."""
        of, lost, added = self.of, 0.0, False
        for i, part in enumerate(self.parts):
            terms = [float(self.cost[i])]
            if part.gap < of.size - 1:
                terms.append(-float(duals[self.gap + part.gap]))
            never = self.decided.never[i]
            values = {j: np.where(never[j][of.count[j]], 0.0, work[j]) for j in part.active}
            value, joint = of.tables.price(part.active, values, proof)
            reduced = outwards([*terms, -value])
            lost = min(lost, reduced)
            known = of.columns(part.active)
            there = sum(float(values[j][z]) for j, z in enumerate(joint) if z >= 0)
            better = sum(terms) - there < -TOLERANCE * sum(map(abs, terms))
            if better and joint not in known:
                known.append(joint)
                added = True
        return lost, added

    def used(self, values: Floats) -> tuple[Floats, Floats]:
        """`Relaxed.held` and `Relaxed.started`."""
        column, job, count, starts = self.at
        held = np.zeros(self.decided.never.shape)
        np.add.at(held, (self.interval[column], job, count), values[column])
        started = np.zeros(held.shape[1:])
        np.add.at(started, (job, count), starts * values[column])
        return held, started
