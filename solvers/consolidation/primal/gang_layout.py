"""Gang-first layouts: tasks of several GPUs are placed first, the others beside them.

A *layout* gives each task of several GPUs a run of neighbouring GPUs in one server. It must leave
room that the other tasks can use: it is annealed with the value of that room, which duals give.
A small tree solves the residual problem: one without gangs, in which the
residents of a GPU are one task, and an additional capacity row keeps such tasks apart.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from optgap.models.limits import Limits, silent
from optgap.solvers.consolidation.bounds.level_counts import CostLevels, level_counts
from optgap.solvers.consolidation.branch_and_price.tree import PrimalHeuristic, SearchState, Tree
from optgap.solvers.consolidation.column_generation.generation import ColumnGeneration
from optgap.solvers.consolidation.config import DEFAULT, Params
from optgap.solvers.consolidation.instance import Instance
from optgap.solvers.consolidation.numerics import (
    QUANTUM_W,
    Column,
    CountBox,
    Counts,
    FloatArray,
    IntArray,
    Placement,
)
from optgap.solvers.consolidation.outcome import Incumbent
from optgap.solvers.consolidation.primal.diving import Diving
from optgap.solvers.consolidation.primal.gang_layout_kernels import empty_gpus, lay_out, room_worth


@dataclass(frozen=True)
class Residual:
    """The problem that a layout leaves: a GPU's residents are one task, kept apart from the others.

    Parameters
    ----------
    instance: tasks that stand for residents, then the tasks of one GPU; one more capacity row.
    cost_task: (tasks,) the task of the whole problem whose cost level each has.
    whole: turns a placement of this problem into a flat one of the whole problem.
    """

    instance: Instance
    cost_task: IntArray
    whole: Callable[[Placement], IntArray]


class GangLayout(PrimalHeuristic):
    """Anneals one layout at a time, and places the other tasks beside it.

    Attributes
    ----------
    wide, narrow: tasks of several GPUs, and tasks of one GPU by rising level.
    heads: the first level of each group of levels that the annealing does not tell apart.
    prices, gpu_prices: duals of the `narrow` tasks and of a GPU of each group, W, averaged over
        `learnt` linear programs.
    """

    def __init__(
        self, instance: Instance, levels: CostLevels, seed: int, params: Params = DEFAULT
    ) -> None:
        self.instance, self.levels = instance, levels
        self.params, self.own = params, params.gang_layout
        self.rng = np.random.default_rng(seed)
        self.wide: IntArray = np.flatnonzero(instance.width > 1)
        narrow = np.flatnonzero(instance.width == 1)
        self.narrow: IntArray = narrow[np.argsort(levels.of[narrow], kind="stable")]
        number = len(levels.quanta)
        groups = np.array_split(np.arange(number), min(self.own.levels, number))
        self.heads = np.array([int(group[0]) for group in groups])
        self.group: IntArray = np.searchsorted(self.heads, levels.of, side="right") - 1
        quanta = np.array(levels.quanta)[self.heads]
        self.steps: FloatArray = np.diff(np.concatenate([[0], quanta])) * QUANTUM_W
        self.server_gpus = int(instance.server_gpus[0])
        self.prices: FloatArray = np.zeros(len(self.narrow))
        self.gpu_prices: FloatArray = np.cumsum(self.steps)
        self.learnt = 0

    @property
    def applies(self) -> bool:
        """Whether there are tasks of one and of several GPUs, and none is wider than a server."""
        narrow = int(self.instance.width.max()) <= self.server_gpus
        return bool(self.instance.gang and self.wide.size and self.narrow.size and narrow)

    def improve(self, state: SearchState, limits: Limits) -> None:
        """One layout for the counts of one of the best nodes, or for more servers."""
        nodes = list(dict.fromkeys(node.rounded for node in state.best if node.rounded))
        wanted = nodes[min(len(nodes), int(self.rng.geometric(0.5))) - 1]
        awake = state.incumbent.awake_servers
        if wanted[-1] < awake and self.rng.random() < self.own.incumbent_servers:
            wanted = (*wanted[:-1], awake)
        if not self.learnt:
            state.generation.master.set_servers(state.root.assignment)
            self._learn(state.generation, wanted, self.narrow, limits)
        first = self.anneal(wanted)
        if self.fits(first, wanted[-1]):
            self._solve(state, first, wanted, min(state.target, state.incumbent.cutoff), limits)

    def _solve(
        self, state: SearchState, first: IntArray, wanted: Counts, most: float, limits: Limits
    ) -> None:
        """Solve the residual problem for a placement of less than `most` W."""
        residual = self.residual(first, wanted[-1])
        levels = replace(self.levels, of=self.levels.of[residual.cost_task])
        found = Incumbent(residual.instance)
        found.watts = most
        counts, seed = level_counts(residual.instance, levels), int(self.rng.integers(2**31))
        heuristics = (Diving(self.params.diving),)
        tree = Tree(residual.instance, levels, counts, found, heuristics, seed, self.params)
        narrow = np.arange(residual.instance.tasks - len(self.narrow), residual.instance.tasks)
        self._learn(tree.generation, wanted, narrow, limits)
        seconds = self.own.residual_s * self.instance.tasks / 100
        tree.run(limits.each(min(seconds, limits.remaining), silent))
        if found.placement is not None:
            state.incumbent.offer_flat(residual.whole(found.placement))

    def residual(self, first: IntArray, servers: int) -> Residual:
        """The residual problem of a layout; GPUs with the same residents are one task."""
        place, task = self.runs(first), self.instance.entry_task
        on: list[Column] = [
            tuple(task[place == g].tolist()) for g in range(self.server_gpus * servers)
        ]
        groups: dict[Column, list[int]] = {}
        for g, inside in enumerate(on):
            groups.setdefault(inside, []).append(g)
        empty = groups.pop((), [])
        top = [max(one, key=lambda ell: int(self.levels.of[ell])) for one in groups]
        cost_task = np.array(top + self.narrow.tolist())
        part = self.instance.part(cost_task, servers)
        for k, one in enumerate(groups):
            part.width[k] = len(groups[one])
            part.demand[:, k] = self.instance.demand[:, list(one)].sum(axis=1)
        apart = (np.arange(len(cost_task)) < len(groups)).astype(np.int64)
        ones = np.ones(len(part.capacity), dtype=np.int64)
        part = replace(
            part, anywhere=True, demand=np.vstack([part.demand, apart]),
            capacity=np.column_stack([part.capacity, ones])
        )  # fmt: skip
        in_use = {g // self.server_gpus for own in groups.values() for g in own}
        empty.sort(key=lambda g: (g // self.server_gpus not in in_use, g))
        gpus = [g for own in groups.values() for g in own] + empty

        def whole(found: Placement) -> IntArray:
            """The GPUs that the layout means, in the order in which the residual names them."""
            order = list(dict.fromkeys(g for own in found for g in own))
            means = dict(zip(order, gpus, strict=False))
            narrow = zip(self.narrow.tolist(), found[len(groups) :], strict=True)
            entries, start = place.copy(), self.instance.entry_start
            for ell, (gpu,) in narrow:
                entries[start[ell]] = means[gpu]
            return entries

        return Residual(part, cost_task, whole)

    def anneal(self, wanted: Counts) -> IntArray:
        """(wide,) the first GPU of each run, annealed for these counts of GPUs and servers."""
        instance, own, wide, servers = self.instance, self.own, self.wide, wanted[-1]
        narrow = self.narrow
        over = self.group[narrow][None, :] >= np.arange(len(self.heads))[:, None]
        others: IntArray = np.ascontiguousarray(over @ instance.demand[:, narrow].T)
        first: IntArray = self.server_gpus * (np.arange(len(wide), dtype=np.int64) % servers)
        work = 4.0 * float(instance.width[wide].mean()) * len(instance.demand)
        moves = min(own.moves * len(wide), int(own.max_updates / work))
        gangs = empty_gpus(
            np.ascontiguousarray(instance.demand[:, wide]), instance.width[wide], self.group[wide],
            instance.max_capacity, self.worth(), own.overload_weight * float(self.steps.sum()),
            own.overload_offset, self.server_gpus * servers
        )  # fmt: skip
        lay_out(
            gangs, others, np.array(wanted[:-1], dtype=np.int64)[self.heads], self.steps,
            own.shortage_weight, self.server_gpus, first, moves, own.hot_w, own.cold_w, self.rng
        )  # fmt: skip
        return first

    def runs(self, first: IntArray) -> IntArray:
        """The flat placement of the tasks of several GPUs; -1 for the entries of the others."""
        start = self.instance.entry_start
        place: IntArray = np.full(int(start[-1]), -1, dtype=np.int64)
        for ell, begin in zip(self.wide.tolist(), first.tolist(), strict=True):
            place[start[ell] : start[ell + 1]] = begin + np.arange(self.instance.width[ell])
        return place

    def fits(self, first: IntArray, servers: int) -> bool:
        """Whether no GPU of a layout is overloaded."""
        place, task = self.runs(first), self.instance.entry_task
        used = np.zeros((self.server_gpus * servers, len(self.instance.demand)), dtype=np.int64)
        np.add.at(used, place[place >= 0], self.instance.demand.T[task[place >= 0]])
        return bool(np.all(used <= self.instance.max_capacity))

    def _learn(
        self, generation: ColumnGeneration, wanted: Counts, narrow: IntArray, limits: Limits
    ) -> None:
        """Average the duals of a linear program near the counts wanted into the prices.

        Parameters
        ----------
        narrow: the program's tasks of one GPU, in the order of `self.narrow`.
        """
        low = (int(self.own.target_share * count) for count in wanted[:-1])
        high = (self.instance.gpus,) * len(wanted[:-1])
        servers = len(self.instance.server_w)
        generation.master.set_box(CountBox((*low, wanted[-1]), (*high, servers)))
        limits = limits.within(self.own.dual_s * self.instance.tasks / 100)
        duals = generation.solve(limits, gap=self.own.lp_gap, quick=True).duals
        if duals is not None:
            self.learnt += 1
            self.prices += (duals.tasks[narrow] - self.prices) / self.learnt
            self.gpu_prices += (duals.gpu_prices[self.heads] - self.gpu_prices) / self.learnt

    def worth(self) -> FloatArray:
        """The value of room by these prices, see `room_worth`."""
        limit = np.maximum(self.instance.max_capacity, 1)
        sizes = self.instance.demand[:, self.narrow] / limit[:, None]
        two = np.array([sizes[0], sizes[1:].max(axis=0, initial=0.0)])
        alone = len(self.instance.demand) == 1
        cells = np.array([self.own.memory_cells, 0] if alone else [self.own.cells] * 2)
        whole: IntArray = np.rint(two * cells[:, None]).astype(np.int64)
        return room_worth(whole, self.prices, self.group[self.narrow], self.gpu_prices, cells)
