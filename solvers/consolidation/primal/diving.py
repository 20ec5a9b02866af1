"""Diving: columns of the linear program are fixed one after another until all tasks are covered.

A dive loses little power at first and a GPU or two with the last columns, and its linear programs
are slow while they hold all tasks. So the tasks that are not covered yet, with the counts that are
left, become a smaller program of their own again and again, until that is small enough to be
decided by enumerating its columns.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from optgap.models.limits import Limits
from optgap.solvers.consolidation.branch_and_price.branching import Node
from optgap.solvers.consolidation.branch_and_price.feasibility import CountFeasibility, Verdict
from optgap.solvers.consolidation.branch_and_price.heuristic import SearchState
from optgap.solvers.consolidation.branch_and_price.packing import pack_columns
from optgap.solvers.consolidation.column_generation.generation import ColumnGeneration
from optgap.solvers.consolidation.column_generation.master import FREE, RestrictedMaster
from optgap.solvers.consolidation.column_generation.space import CountBox, ServerAssignment
from optgap.solvers.consolidation.config import DEFAULT, Params
from optgap.solvers.consolidation.numerics import SLACK_W, Column, Counts, FloatArray, IntArray
from optgap.solvers.consolidation.primal.counts import TargetPower, richer_counts

WHOLE = 1e-5
"""Distance at which a λ counts as integer, looser than `INTEGRALITY`: these are sums of columns."""


class Diving:
    """Dives to integer counts, and to higher ones; a task's GPUs may be in any servers."""

    before_proof = False

    def __init__(self, params: Params = DEFAULT) -> None:
        self.params = params
        self.dives = 0
        self.target = TargetPower()

    def realise(self, state: SearchState, node: Node, counts: Counts, limits: Limits) -> None:
        """Dive to the counts a few times, randomised after the first dive."""
        for _ in range(self.params.diving.dives_per_counts):
            if not state.realised(counts) and limits.stop is None:
                self._dive(state, counts, limits)

    def improve(self, state: SearchState, limits: Limits) -> None:
        """One dive to higher counts."""
        generation, known = state.generation, state.incumbent.watts
        most, near = self.target.watts(state), state.best[0].rounded
        drawn = richer_counts(generation.instance, generation.levels, near[:-1], most, state.rng)
        servers = max(generation.instance.servers_for(drawn[0]), near[-1])
        self._dive(state, (*drawn, servers), limits)
        self.target.learn(state.incumbent.watts < known)

    def _dive(self, state: SearchState, counts: Counts, limits: Limits) -> None:
        noise = float(self.dives > 0)
        self.dives += 1
        columns = Dive(state.generation, limits, state.rng, noise, self.params).columns(counts)
        if columns is not None:
            free = [(column, FREE) for column in columns]
            state.incumbent.offer(pack_columns(state.generation.master, free))


class Dive:
    """One dive.

    Parameters
    ----------
    noise: 0 to fix the column of the largest fraction; 1 to multiply fractions by factors from ½
        to 1 first.
    """

    def __init__(
        self,
        generation: ColumnGeneration,
        limits: Limits,
        rng: np.random.Generator,
        noise: float,
        params: Params = DEFAULT,
    ) -> None:
        self.generation, self.master = generation, generation.master
        self.limits, self.rng, self.noise, self.params = limits, rng, noise, params

    def columns(self, counts: Counts) -> list[Column] | None:
        """Columns that cover all tasks with at most these counts; None where the dive fails."""
        instance, own = self.generation.instance, self.params.diving
        until = max(own.residual_tasks, int(own.residual_share * instance.tasks))
        if instance.tasks <= own.residual_tasks:
            until, verdict = 0, self._decided(counts)
            if verdict.placement is not None:
                return [tuple(one) for one in instance.residents(verdict.placement).values()]
            if verdict.infeasible:
                return None
        usage = self.usage(CountBox.up_to(counts), self.master.watts(counts) + SLACK_W, until)
        if usage is None:
            return None
        used = np.repeat(np.arange(len(usage)), usage).tolist()
        fixed = [self.master.columns[j] for j in used]
        left = tasks_left(self.master, usage, instance.width)
        rest: IntArray = np.flatnonzero(left)
        if not rest.size:
            return fixed
        residual, below = _residual(self.generation, counts, fixed, rest, left)
        dive = Dive(residual, self.limits, self.rng, self.noise, self.params)
        further = dive.columns(below)
        if further is None:
            return None
        return fixed + [tuple(int(rest[k]) for k in column) for column in further]

    def _decided(self, counts: Counts) -> Verdict:
        """Decide the counts by enumeration, as `CountFeasibility` does."""
        own = self.params.diving
        decision = CountFeasibility(self.generation, (0,) * len(counts), self.params.feasibility)
        limits = self.limits.within(own.residual_s)
        return decision.decide(counts, math.inf, limits, most_columns=own.residual_columns)

    def usage(
        self, box: CountBox, most: float, until: int = 0, assignment: ServerAssignment | None = None
    ) -> IntArray | None:
        """An integer λ of at most `most` W, by fixing columns; None where that cannot be kept.

        Each linear program is solved until its value is at most `DivingParams.slack_share` of the
        power to spare above the last one. Where several columns fixed together exceed `most`, only
        the first stays; where it does so alone, it is given back and bounded from above.

        Parameters
        ----------
        until: stop once at most so many tasks are not fully covered.
        assignment: of tasks to servers, if any.
        """
        master, width, params = self.master, self.generation.instance.width, self.params.diving
        master.set_box(box)
        master.set_servers(assignment or ServerAssignment.none(len(width), master.servers))
        last: list[int] = []
        wrong, stop_value = 0, -math.inf
        with _Fixed(master) as fixed:
            while True:
                relaxed = self.generation.solve(
                    self.limits, stop_bound=most, stop_value=stop_value, quick=True
                )
                stop_value = relaxed.value + params.slack_share * (most - relaxed.value)
                used = np.maximum(relaxed.usage, 0.0)  # HiGHS may stop at an infeasible basis
                whole: IntArray = np.floor(used + WHOLE).astype(np.int64)
                rest: FloatArray = used - whole
                if self.limits.stop is not None:
                    return None
                if relaxed.value > most:
                    if len(last) > 1:  # too many at a time
                        for index in last[1:]:
                            fixed.fewer(index)
                        last = last[:1]
                    elif last and wrong < params.max_backtracks:
                        fixed.fewer(last[0], at_most=True)
                        last, wrong = [], wrong + 1
                    else:
                        return None
                    stop_value = most
                    continue
                left = tasks_left(master, whole, width) if until else rest
                if rest.max() <= WHOLE or (until and (left > 0).sum() <= until):
                    return whole
                last = self._fix(fixed, whole, rest)

    def _fix(self, fixed: _Fixed, whole: IntArray, rest: FloatArray) -> list[int]:
        """Fix the integer parts, and round up the largest fractions, whose columns are returned."""
        fractional = np.flatnonzero(rest > WHOLE)
        drawn = self.rng.uniform(1 - 0.5 * self.noise, 1, fractional.shape)
        order = np.argsort(-rest[fractional] * drawn, kind="stable")
        first = order[: 1 + int(self.params.diving.fixed_share * len(fractional))]
        for j in np.flatnonzero(whole).tolist():
            fixed.at_least(j, int(whole[j]))
        last: list[int] = fractional[first].tolist()
        for j in last:
            fixed.at_least(j, int(whole[j]) + 1)
        return last


class _Fixed:
    """Columns fixed in the master; freed when the block ends."""

    def __init__(self, master: RestrictedMaster) -> None:
        self.master = master
        self.amounts: dict[int, int] = {}

    def __enter__(self) -> _Fixed:
        return self

    def __exit__(self, *_: object) -> None:
        for index in self.amounts:
            self.master.fix(index, 0)

    def at_least(self, index: int, amount: int) -> None:
        if self.amounts.get(index, 0) < amount:
            self.amounts[index] = amount
            self.master.fix(index, amount)

    def fewer(self, index: int, *, at_most: bool = False) -> None:
        """Lower the fixed amount by one; with `at_most` it is an upper bound, too."""
        self.amounts[index] -= 1
        self.master.fix(index, self.amounts[index], self.amounts[index] if at_most else None)


def tasks_left(master: RestrictedMaster, usage: IntArray, width: IntArray) -> IntArray:
    """(L,) GPUs that each task still needs beside an integer λ."""
    left = width.copy()
    for j in np.flatnonzero(usage).tolist():
        left[list(master.columns[j])] -= usage[j]
    return np.maximum(left, 0)


def _residual(
    generation: ColumnGeneration,
    counts: Counts,
    fixed: list[Column],
    rest: IntArray,
    left: IntArray,
) -> tuple[ColumnGeneration, Counts]:
    """The column generation of the tasks not fully covered, and the counts left for it."""
    of, gpus = generation.levels.of, list(counts[:-1])
    for column in fixed:
        for q in range(int(of[list(column)].max()) + 1):
            gpus[q] -= 1
    whole = generation.instance
    part = replace(whole.part(rest, len(whole.server_w)), width=left[rest])
    below = (*gpus, part.servers_for(gpus[0]))
    levels = replace(generation.levels, of=of[rest])
    box = CountBox(below, below)
    residual = ColumnGeneration(part, levels, box, 0, params=generation.params)
    number = {int(ell): k for k, ell in enumerate(rest)}
    for column in generation.master.columns:  # with at most one task that is no longer there
        inside = tuple(number[ell] for ell in column if ell in number)
        if len(inside) >= max(1, len(column) - 1):
            residual.master.add([inside])
    return residual, below
