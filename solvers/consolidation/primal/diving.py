"""Diving: columns are fixed one after another, in smaller and smaller residual problems.

A dive to given counts loses little while many columns are open, and a GPU or two with the last of
them; and its linear programs take long while all tasks are in them. So what no fixed column covers
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
from optgap.solvers.consolidation.branch_and_price.packing import pack_columns, pack_usage
from optgap.solvers.consolidation.branch_and_price.set_cover import Verdict
from optgap.solvers.consolidation.column_generation.generation import ColumnGeneration
from optgap.solvers.consolidation.column_generation.master import FREE, RestrictedMaster
from optgap.solvers.consolidation.column_generation.space import CountBox, ServerAssignment
from optgap.solvers.consolidation.config import DEFAULT, Params
from optgap.solvers.consolidation.numerics import SLACK_W, Column, Counts, FloatArray, IntArray
from optgap.solvers.consolidation.primal.counts import TargetPower, richer_counts

WHOLE = 1e-5
"""How far from an integer a λ counts as one."""


class Diving:
    """Dives to counts, and to counts that cost a share of the gap more.

    A task's GPUs may be anywhere.
    """

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
        """One dive to richer counts; where tasks are preplaced, to any that are cheap enough."""
        if state.generation.instance.preplaced:
            dive = Dive(state.generation, limits, state.rng, float(self.dives > 0), self.params)
            self.dives += 1
            usage = dive.usage(near_best(state), state.cutoff)
            if usage is not None:
                state.incumbent.offer(pack_usage(state.generation.master, usage))
            return
        generation, known = state.generation, state.incumbent.watts
        most, near = self.target.watts(state), state.best[0].near
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


def near_best(state: SearchState) -> CountBox:
    """The root's box with as many GPUs and servers as the best node has at least."""
    root, best = state.root.box, state.best[0].box
    most = best.low[-1] if state.generation.instance.gang else root.high[-1]
    return CountBox((best.low[0], *root.low[1:-1], best.low[-1]), (*root.high[:-1], most))


class Dive:
    """One dive.

    Parameters
    ----------
    noise: 0 to take the largest share each time; 1 to take it within a factor of two.
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
        """Columns that cover all tasks with no more than counts; None where this dive has none.

        It goes on to the end where tasks are preplaced, which nothing else keeps apart, and where
        tasks are few, but the columns too many to decide.
        """
        instance, own = self.generation.instance, self.params.diving
        until = max(own.residual_tasks, int(own.residual_share * instance.tasks))
        if instance.preplaced:
            until = 0
        elif instance.tasks <= own.residual_tasks:
            until, verdict = 0, self._decided(counts)
            if verdict.placement is not None:
                return [tuple(one) for one in instance.residents(verdict.placement).values()]
            if verdict.denied:
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
        """Whether there is a placement, by all columns that one with such counts can use."""
        own = self.params.diving
        decision = CountFeasibility(self.generation, (0,) * len(counts), self.params.feasibility)
        limits = self.limits.within(own.residual_s)
        return decision.decide(
            counts, math.inf, limits, most_columns=own.residual_columns, quick=True
        )

    def usage(
        self,
        box: CountBox,
        most: float,
        until: int = 0,
        assignment: ServerAssignment | None = None,
    ) -> IntArray | None:
        """Whole numbers of GPUs for columns; None where `most` W does not suffice.

        A linear program is not solved further than to what may be lost in a step. Of columns that
        take more together only the first is fixed, and where that does, it is not.

        Parameters
        ----------
        until: it is enough if no more tasks than these want GPUs still.
        assignment: of tasks to servers, if there is one.
        """
        master, width, params = self.master, self.generation.instance.width, self.params.diving
        master.set_box(box)
        master.set_servers(assignment or ServerAssignment.none(len(width), master.servers))
        last: list[int] = []
        wrong, hopeless = 0, -math.inf
        with _Fixed(master) as fixed:
            while True:
                relaxed = self.generation.solve(
                    self.limits, enough=most, hopeless=hopeless, quick=True
                )
                hopeless = relaxed.value + params.lost_share * (most - relaxed.value)
                whole: IntArray = np.floor(relaxed.usage + WHOLE).astype(np.int64)
                rest = relaxed.usage - whole
                if self.limits.stop is not None:
                    return None
                if relaxed.value > most:
                    if len(last) > 1:  # too many at once
                        for index in last[1:]:
                            fixed.fewer(index)
                        last = last[:1]
                    elif last and wrong < params.most_wrong_columns:
                        fixed.fewer(last[0], at_most=True)
                        last, wrong = [], wrong + 1
                    else:
                        return None
                    hopeless = most
                    continue
                left = tasks_left(master, whole, width) if until else rest
                if rest.max() <= WHOLE or (until and (left > 0).sum() <= until):
                    return whole
                last = self._fix(fixed, whole, rest)

    def _fix(self, fixed: _Fixed, whole: IntArray, rest: FloatArray) -> list[int]:
        """What is whole, and one more GPU for the largest of the others, which are returned."""
        fractional = np.flatnonzero(rest > WHOLE)
        drawn = self.rng.uniform(1 - 0.5 * self.noise, 1, fractional.shape)
        order = np.argsort(-rest[fractional] * drawn, kind="stable")
        first = order[: 1 + len(fractional) // self.params.diving.at_once]
        for j in np.flatnonzero(whole).tolist():
            fixed.at_least(j, int(whole[j]))
        last: list[int] = fractional[first].tolist()
        for j in last:
            fixed.at_least(j, int(whole[j]) + 1)
        return last


class _Fixed:
    """Columns that are given GPUs; let go when the block ends."""

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
        """One less, and no more than that where `at_most` is said."""
        self.amounts[index] -= 1
        self.master.fix(index, self.amounts[index], self.amounts[index] if at_most else None)


def tasks_left(master: RestrictedMaster, usage: IntArray, width: IntArray) -> IntArray:
    """(L,) GPUs that each task still wants beside whole numbers of columns."""
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
