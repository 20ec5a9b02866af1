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
from optgap.solvers.consolidation.branch_and_price.feasibility import (
    CountFeasibility,
    Verdict,
    pack_columns,
)
from optgap.solvers.consolidation.branch_and_price.tree import SearchState
from optgap.solvers.consolidation.column_generation.generation import ColumnGeneration
from optgap.solvers.consolidation.column_generation.master import FREE, RestrictedMaster
from optgap.solvers.consolidation.config import DEFAULT, DivingParams
from optgap.solvers.consolidation.numerics import SLACK_W, Column, CountBox, Counts, IntArray

WHOLE = 1e-5
"""Distance at which a λ counts as integer, looser than `INTEGRALITY`: these are sums of columns."""


class Diving:
    """Dives to integer counts, and to higher ones; a task's GPUs may be in any servers."""

    before_proof = False

    def __init__(self, params: DivingParams = DEFAULT.diving) -> None:
        self.params = params
        self.dives = 0

    def realise(self, state: SearchState, node: Node, counts: Counts, limits: Limits) -> None:
        """Dive to the counts a few times, randomised after the first dive."""
        for _ in range(self.params.dives_per_counts):
            if not state.realised(counts) and limits.stop is None:
                self._dive(state, counts, limits)

    def improve(self, state: SearchState, limits: Limits) -> None:
        """One dive to higher counts."""
        self._dive(state, state.richer_counts(), limits)

    def _dive(self, state: SearchState, counts: Counts, limits: Limits) -> None:
        dive = Dive(state.generation, limits, state.rng, float(self.dives > 0), self.params)
        self.dives += 1
        columns = dive.columns(counts)
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
        params: DivingParams = DEFAULT.diving,
    ) -> None:
        self.generation, self.master = generation, generation.master
        self.limits, self.rng, self.noise, self.params = limits, rng, noise, params

    def columns(self, counts: Counts) -> list[Column] | None:
        """Columns that cover all tasks with at most these counts; None where the dive fails."""
        instance, own = self.generation.instance, self.params
        until = max(own.residual_tasks, int(own.residual_share * instance.tasks))
        if instance.tasks <= own.residual_tasks:
            until, verdict = 0, self._decided(counts)
            if verdict.placement is not None:
                return [tuple(one) for one in instance.residents(verdict.placement).values()]
            if verdict.infeasible:
                return None
        most = self.master.watts(counts) + SLACK_W
        usage = self.usage(CountBox.up_to(counts), most, until)
        if usage is None:
            return None
        used = np.repeat(np.arange(len(usage)), usage).tolist()
        fixed = [self.master.columns[j] for j in used]
        left = tasks_left(self.master, usage)
        rest: IntArray = np.flatnonzero(left)
        if not rest.size:
            return fixed
        residual, below = _residual(self.generation, counts, fixed, rest, left)
        further = Dive(residual, self.limits, self.rng, self.noise, self.params).columns(below)
        if further is None:
            return None
        return fixed + [tuple(int(rest[k]) for k in column) for column in further]

    def _decided(self, counts: Counts) -> Verdict:
        """Decide the counts by enumeration, as `CountFeasibility` does."""
        decision = CountFeasibility(self.generation, (0,) * len(counts))
        limits = self.limits.within(self.params.residual_s)
        most = self.params.residual_columns
        return decision.decide(counts, math.inf, limits, most_columns=most)

    def usage(
        self, box: CountBox, most: float, until: int = 0, assignment: IntArray | None = None
    ) -> IntArray | None:
        """An integer λ of at most `most` W, by fixing columns; None where that cannot be kept.

        Each linear program is solved until its value is at most `DivingParams.slack_share` of the
        power to spare above the last one. Where a fixed column raises it beyond `most`, the column
        is given back and bounded from above.

        Parameters
        ----------
        until: stop once at most so many tasks are not fully covered.
        assignment: of tasks to servers, if any.
        """
        master = self.master
        master.set_box(box)
        master.set_servers(assignment)
        fixed: IntArray = np.zeros(0, dtype=np.int64)
        barred: list[int] = []
        last, stop_value = -1, -math.inf
        try:
            while True:
                relaxed = self.generation.solve(
                    self.limits, stop_bound=most, stop_value=stop_value, quick=True
                )
                stop_value = relaxed.value + self.params.slack_share * (most - relaxed.value)
                if self.limits.stop is not None:
                    return None
                if relaxed.value > most:
                    if last < 0 or len(barred) == self.params.max_backtracks:
                        return None
                    fixed[last] -= 1
                    master.fix(last, int(fixed[last]), int(fixed[last]))
                    barred.append(last)
                    last, stop_value = -1, most
                    continue
                used = np.maximum(relaxed.usage, 0.0)  # HiGHS may stop at an infeasible basis
                whole: IntArray = np.floor(used + WHOLE).astype(np.int64)
                rest = used - whole
                if rest.max() <= WHOLE or (tasks_left(master, whole) > 0).sum() <= until:
                    return whole
                drawn = self.rng.uniform(1 - 0.5 * self.noise, 1, rest.shape)
                last = int(np.argmax(rest * drawn))
                whole[last] += 1
                before = np.pad(fixed, (0, len(whole) - len(fixed)))
                fixed = np.maximum(before, whole)
                for j in np.flatnonzero(fixed > before).tolist():
                    master.fix(j, int(fixed[j]))
        finally:
            for j in (*np.flatnonzero(fixed).tolist(), *barred):
                master.fix(j, 0)


def tasks_left(master: RestrictedMaster, usage: IntArray) -> IntArray:
    """(L,) GPUs that each task still needs beside an integer λ."""
    left = master.instance.width.copy()
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
