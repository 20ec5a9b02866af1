"""Diving: columns are fixed one after another, and generated again for the rest.

With `gang=server` the tasks of several GPUs are assigned to servers first, by their shares beside
tasks that are assigned already.
"""

from __future__ import annotations

import math

import numpy as np

from optgap.models.limits import Limits
from optgap.solvers.consolidation.branch_and_price.branching import unassigned
from optgap.solvers.consolidation.branch_and_price.heuristic import SearchState
from optgap.solvers.consolidation.branch_and_price.node import Node
from optgap.solvers.consolidation.branch_and_price.packing import pack_usage
from optgap.solvers.consolidation.column_generation.generation import ColumnGeneration, Relaxation
from optgap.solvers.consolidation.column_generation.master import RestrictedMaster
from optgap.solvers.consolidation.column_generation.space import CountBox, ServerAssignment
from optgap.solvers.consolidation.config import DEFAULT
from optgap.solvers.consolidation.config.primal import DivingParams
from optgap.solvers.consolidation.numerics import (
    SLACK_W,
    Counts,
    FloatArray,
    IntArray,
    Placement,
)

WHOLE = 1e-5
"""How far from an integer a λ counts as one."""


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
        params: DivingParams = DEFAULT.diving,
    ) -> None:
        self.generation, self.master = generation, generation.master
        self.limits, self.rng, self.noise, self.params = limits, rng, noise, params

    def assign_servers(
        self,
        box: CountBox,
        assignment: ServerAssignment,
        most: float,
        *,
        dearest: float,
        seconds: float = math.inf,
    ) -> ServerAssignment | None:
        """All tasks of several GPUs in servers so that `most` W may do; None where this cannot be.

        A choice that takes more is taken back, and its opposite holds from then on. Where neither
        does, `most` rises to a little more than the cheaper of them takes, up to `dearest`; after
        so many seconds it rises to that at once.
        """
        master, params = self.master, self.params
        master.set_box(box)
        master.set_servers(assignment)
        before: tuple[ServerAssignment, list[tuple[int, int]]] | None = None
        other: tuple[float, ServerAssignment] | None = None
        wrong, patience = 0, self.limits.within(seconds)
        while self.limits.stop is None and wrong <= params.most_wrong:
            if patience.stop is not None:
                most = dearest
            relaxed = self._relax(dearest)
            if relaxed.value > most and before is not None:
                wrong += 1
                other = (relaxed.value, master.assignment)
                master.set_servers(before[0].forbid(before[1]))
                before = None
                continue
            if relaxed.value > most:
                if min(relaxed.value, other[0] if other else math.inf) > dearest:
                    return None
                if other is not None and other[0] < relaxed.value:
                    master.set_servers(other[1])
                    relaxed = self._relax(dearest)
                most, wrong = relaxed.value * (1 + params.rise), 0
            other = None
            rest = unassigned(self.generation.instance, master.assignment)
            if not rest.size:
                return master.assignment
            choice = self._servers(relaxed, rest)
            if not choice:
                return None
            before = (master.assignment, choice)
            master.set_servers(before[0].assign(choice))
        return None

    def _relax(self, enough: float) -> Relaxation:
        """The linear program, roughly: only shares are looked at."""
        return self.generation.solve(self.limits, enough=enough, gap=self.params.gap, quick=True)

    def _servers(self, relaxed: Relaxation, rest: IntArray) -> list[tuple[int, int]]:
        """Tasks and the servers they are assigned to next."""
        master, width, params = self.master, self.generation.instance.width, self.params
        share = server_shares(master, relaxed.usage)[rest]
        share[master.assignment.forbidden[rest]] = 0.0
        clear = np.flatnonzero(share.max(axis=1, initial=0.0) >= params.clear_share)
        if clear.size:
            return [(int(rest[k]), int(share[k].argmax())) for k in clear.tolist()]
        if share.size and share.max() >= params.least_share:
            k, server = divmod(int((share * self._draw(share.shape)).argmax()), share.shape[1])
            return [(int(rest[k]), server)]
        task = int(rest[int(np.argmax(width[rest] * self._draw(rest.shape)))])
        server, most = master.assignment.first_empty, master.box.high[-1]
        if server < most and not master.assignment.forbidden[task, server]:
            return [(task, server)]
        room = master.server_gpus - gpus_used(master, relaxed.usage)[:most]
        room[master.assignment.forbidden[task, : len(room)]] = -np.inf
        return [(task, int(room.argmax()))] if room.max() > -np.inf else []

    def _draw(self, shape: tuple[int, ...]) -> FloatArray:
        return self.rng.uniform(1 - 0.5 * self.noise, 1, shape)

    def placement(
        self, box: CountBox, assignment: ServerAssignment, most: float
    ) -> Placement | None:
        """A placement for no more than `most` W, by columns fixed until none is fractional."""
        usage = self.usage(box, assignment, most)
        return None if usage is None else pack_usage(self.master, usage)

    def usage(
        self, box: CountBox, assignment: ServerAssignment, most: float, until: int = 0
    ) -> IntArray | None:
        """Whole numbers of GPUs for columns; None where `most` W does not suffice.

        A linear program is not solved further than to what may be lost in a step. Of columns that
        take more together only the first is fixed, and where that does, it is not.

        Parameters
        ----------
        until: it is enough if no more tasks than these want GPUs still.
        """
        master, width = self.master, self.generation.instance.width
        master.set_box(box)
        master.set_servers(assignment)
        last: list[int] = []
        wrong, hopeless = 0, -math.inf
        with _Fixed(master) as fixed:
            while True:
                relaxed = self.generation.solve(
                    self.limits, enough=most, hopeless=hopeless, quick=True
                )
                hopeless = relaxed.value + self.params.lost_share * (most - relaxed.value)
                whole, rest = _split(relaxed.usage)
                if self.limits.stop is not None:
                    return None
                if relaxed.value > most:
                    if len(last) > 1:  # too many at once
                        for index in last[1:]:
                            fixed.fewer(index)
                        last = last[:1]
                    elif last and wrong < self.params.most_wrong_columns:
                        fixed.at_most_fewer(last[0])
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
        order = np.argsort(-rest[fractional] * self._draw(fractional.shape), kind="stable")
        first = order[: 1 + len(fractional) // self.params.at_once]
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

    def fewer(self, index: int) -> None:
        """One less."""
        self.amounts[index] -= 1
        self.master.fix(index, self.amounts[index])

    def at_most_fewer(self, index: int) -> None:
        """One less, and no more than that."""
        self.amounts[index] -= 1
        self.master.fix(index, self.amounts[index], self.amounts[index])


class Diving:
    """Dives from counts, from the best node and from the root, by turns."""

    before_proof = False

    def __init__(self, params: DivingParams = DEFAULT.diving) -> None:
        self.params = params
        self.dives = 0

    def realise(self, state: SearchState, node: Node, counts: Counts, limits: Limits) -> None:
        """Dives to counts, from the assignment that the node has."""
        most = state.generation.master.watts(counts) + SLACK_W
        for _ in range(self.params.at_counts):
            if state.realised(counts) or limits.stop is not None:
                return
            dive = Dive(state.generation, limits, state.rng, float(self.dives > 0), self.params)
            self.dives += 1
            box = CountBox.up_to(counts)
            state.incumbent.offer(dive.placement(box, node.assignment, most))

    def improve(self, state: SearchState, limits: Limits) -> None:
        """Tasks assigned at the least loss, then columns fixed; by turns from the best node."""
        best, noise = state.best[0], float(self.dives > 0)
        start = best if self.dives % 2 else state.root
        self.dives += 1
        limits = limits.within(self.params.dive_s * state.generation.instance.tasks / 100)
        dive = Dive(state.generation, limits, state.rng, noise, self.params)
        box, assignment = near_best(state), start.assignment
        if self.dives % 4 == 1:  # no more GPUs than the best node's linear program has
            gpus = max(box.low[0], best.near[0])
            box = CountBox(box.low, (gpus, *box.high[1:]))
        if unassigned(state.generation.instance, assignment).size:
            seconds = self.params.assign_s * state.generation.instance.tasks / 100
            most = best.bound * (1 + self.params.least_loss)
            found = dive.assign_servers(
                box, assignment, most, dearest=state.cutoff, seconds=seconds
            )
            if found is None:
                return
            assignment = found
        for _ in range(self.params.from_assignment):
            if limits.stop is None:
                state.incumbent.offer(dive.placement(box, assignment, state.cutoff))


def near_best(state: SearchState) -> CountBox:
    """The root's box with as many GPUs and servers as the best node has."""
    root, best = state.root.box, state.best[0].box
    most = best.low[-1] if state.generation.instance.gang else root.high[-1]
    return CountBox((best.low[0], *root.low[1:-1], best.low[-1]), (*root.high[:-1], most))


def tasks_left(master: RestrictedMaster, usage: IntArray, width: IntArray) -> IntArray:
    """(L,) GPUs that each task still wants beside whole numbers of columns."""
    left = width.copy()
    for j in np.flatnonzero(usage).tolist():
        left[list(master.columns[j])] -= usage[j]
    return np.maximum(left, 0)


def gpus_used(master: RestrictedMaster, usage: FloatArray) -> FloatArray:
    """(N,) GPUs of each server that hold a task assigned to it."""
    server = master.column_server
    inside = server >= 0
    found = np.bincount(server[inside], usage[inside], minlength=master.servers)
    return found.astype(np.float64)


def server_shares(master: RestrictedMaster, usage: FloatArray) -> FloatArray:
    """(L, N) how much of a task lies beside tasks that are assigned to a server."""
    server = master.column_server
    found = np.zeros((master.instance.tasks, max(1, master.servers)))
    for j in np.flatnonzero((server >= 0) & (usage > 1e-7)).tolist():
        found[list(master.columns[j]), server[j]] += usage[j]
    return found / master.instance.width[:, None]


def _split(usage: FloatArray) -> tuple[IntArray, FloatArray]:
    """GPUs that hold each column for certain, and what is fractional."""
    whole = np.floor(usage + WHOLE).astype(np.int64)
    return whole, usage - whole
