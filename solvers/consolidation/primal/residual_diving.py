"""Diving in smaller and smaller residual problems: for many tasks whose GPUs may be anywhere.

A dive to given counts loses little while many columns are open, and a GPU or two with the last of
them; and its linear programs take long, as all tasks are in them. So what no fixed column covers
yet, with the counts that are left, is made a smaller problem again and again, until it is small
enough to be decided by all columns that its placements could use.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from optgap.models.limits import Limits
from optgap.solvers.consolidation.branch_and_price.feasibility import CountFeasibility
from optgap.solvers.consolidation.branch_and_price.heuristic import SearchState
from optgap.solvers.consolidation.branch_and_price.node import Node
from optgap.solvers.consolidation.branch_and_price.packing import pack_columns
from optgap.solvers.consolidation.column_generation.generation import ColumnGeneration
from optgap.solvers.consolidation.column_generation.master import FREE
from optgap.solvers.consolidation.column_generation.space import CountBox, ServerAssignment
from optgap.solvers.consolidation.config import DEFAULT, Params
from optgap.solvers.consolidation.numerics import SLACK_W, Column, Counts, IntArray
from optgap.solvers.consolidation.primal.counts import TargetPower, richer_counts
from optgap.solvers.consolidation.primal.diving import Dive, tasks_left


class ResidualDiving:
    """Dives to counts, and to counts that cost a share of the gap more."""

    before_proof = False

    def __init__(self, params: Params = DEFAULT) -> None:
        self.params = params
        self.dives = 0
        self.target = TargetPower()

    def realise(self, state: SearchState, node: Node, counts: Counts, limits: Limits) -> None:
        """Dives to counts that a node has."""
        for _ in range(self.params.diving.at_counts):
            if not state.realised(counts) and limits.stop is None:
                self._dive(state, counts, limits)

    def improve(self, state: SearchState, limits: Limits) -> None:
        """One dive to richer counts."""
        generation, known = state.generation, state.incumbent.watts
        most, near = self.target.watts(state), state.best[0].near
        drawn = richer_counts(generation.instance, generation.levels, near[:-1], most, state.rng)
        servers = max(generation.instance.servers_for(drawn[0]), near[-1])
        self._dive(state, (*drawn, servers), limits)
        self.target.learn(state.incumbent.watts < known)

    def _dive(self, state: SearchState, counts: Counts, limits: Limits) -> None:
        noise = float(self.dives > 0)
        self.dives += 1
        columns = residual_dive(state.generation, counts, limits, state.rng, noise, self.params)
        if columns is not None:
            free = [(column, FREE) for column in columns]
            state.incumbent.offer(pack_columns(state.generation.master, free))


def residual_dive(
    generation: ColumnGeneration,
    counts: Counts,
    limits: Limits,
    rng: np.random.Generator,
    noise: float,
    params: Params = DEFAULT,
) -> list[Column] | None:
    """Columns that cover all tasks with no more GPUs than counts; None where this dive has none."""
    master, tasks, own = generation.master, generation.instance.tasks, params.diving
    if tasks <= own.residual_tasks:
        feasibility = CountFeasibility(generation, (0,) * len(counts), params.feasibility)
        verdict = feasibility.decide(
            counts, math.inf, limits.within(own.residual_s), most_columns=own.residual_columns,
            quick=True,
        )  # fmt: skip
        if verdict.placement is None:
            return None
        return [tuple(one) for one in generation.instance.residents(verdict.placement).values()]
    dive = Dive(generation, limits, rng, noise, own)
    nothing, most = ServerAssignment.none(tasks, master.servers), master.watts(counts) + SLACK_W
    until = max(own.residual_tasks, int(own.residual_share * tasks))
    usage = dive.usage(CountBox.up_to(counts), nothing, most, until)
    if usage is None:
        return None
    fixed = [master.columns[j] for j in np.repeat(np.arange(len(usage)), usage).tolist()]
    left = tasks_left(master, usage, generation.instance.width)
    rest: IntArray = np.flatnonzero(left)
    if not rest.size:
        return fixed
    further = residual_dive(
        *_residual(generation, counts, fixed, rest, left), limits, rng, noise, params
    )
    if further is None:
        return None
    return fixed + [tuple(int(rest[k]) for k in column) for column in further]


def _residual(
    generation: ColumnGeneration,
    counts: Counts,
    fixed: list[Column],
    rest: IntArray,
    left: IntArray,
) -> tuple[ColumnGeneration, Counts]:
    """The problem of the tasks that want GPUs still, and the counts that are left for it."""
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
