"""Gang-first layouts: tasks of several GPUs are placed first, the others by branch-and-price.

A *layout* gives each task of several GPUs a run of neighbouring GPUs in one server. It leaves a
residual problem without gangs, in which the residents of a GPU are one preplaced task, and which
a small tree solves in moments. So the layout must leave room that the other tasks can use: it is
annealed with the value of that room, which the duals of earlier residual problems give.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from optgap.models.limits import Limits, silent
from optgap.solvers.consolidation.bounds.level_counts import CostLevels, level_counts
from optgap.solvers.consolidation.branch_and_price.branching import Node
from optgap.solvers.consolidation.branch_and_price.heuristic import PrimalHeuristic, SearchState
from optgap.solvers.consolidation.branch_and_price.tree import Tree
from optgap.solvers.consolidation.column_generation.generation import ColumnGeneration
from optgap.solvers.consolidation.column_generation.space import CountBox
from optgap.solvers.consolidation.config import DEFAULT, GangLayoutParams
from optgap.solvers.consolidation.incumbent import Incumbent
from optgap.solvers.consolidation.instance import Instance
from optgap.solvers.consolidation.numerics import (
    QUANTUM_W,
    Column,
    Counts,
    FloatArray,
    IntArray,
    Placement,
)
from optgap.solvers.consolidation.primal.counts import TargetPower
from optgap.solvers.consolidation.primal.gang_layout_kernels import lay_out, room_worth

Heuristics = Callable[[Instance, CostLevels], Sequence[PrimalHeuristic]]


@dataclass(frozen=True)
class Residual:
    """The residual problem that a layout leaves.

    Parameters
    ----------
    instance: preplaced tasks, then the tasks of one GPU.
    cost_task: (tasks,) the task of the whole problem whose cost level each has.
    whole: turns a placement of this problem into one of the whole problem.
    """

    instance: Instance
    cost_task: IntArray
    whole: Callable[[Placement], Placement]


class RoomPrices:
    """The value of room beside tasks of several GPUs to the other tasks, averaged over duals.

    Attributes
    ----------
    wide, narrow: tasks of several GPUs, and tasks of one GPU by rising level.
    heads: the first level of each group of levels that the annealing does not tell apart.
    prices, gpu_prices: averaged duals of the `narrow` tasks, and of a GPU of each group, W.
    learnt: how many duals were averaged.
    """

    def __init__(self, instance: Instance, levels: CostLevels, params: GangLayoutParams) -> None:
        self.instance, self.params = instance, params
        self.wide: IntArray = np.flatnonzero(instance.width > 1)
        narrow = np.flatnonzero(instance.width == 1)
        self.narrow: IntArray = narrow[np.argsort(levels.of[narrow], kind="stable")]
        number = len(levels.quanta)
        groups = np.array_split(np.arange(number), min(params.levels, number))
        self.heads = np.array([int(group[0]) for group in groups])
        self.group: IntArray = np.searchsorted(self.heads, levels.of, side="right") - 1
        quanta = np.array(levels.quanta)[self.heads]
        self.steps: FloatArray = np.diff(np.concatenate([[0], quanta])) * QUANTUM_W
        self.share: FloatArray = 1 / np.maximum(instance.max_capacity, 1)
        alone = len(instance.demand) == 1
        cells = (params.memory_cells, 0) if alone else (params.cells, params.cells)
        self.cells: IntArray = np.array(cells, dtype=np.int64)
        sizes = instance.demand[:, self.narrow] * self.share[:, None]
        two = np.array([sizes[0], sizes[1:].max(axis=0, initial=0.0)])
        self.sizes: IntArray = np.rint(two * self.cells[:, None]).astype(np.int64)
        over = self.group[self.narrow][None, :] >= np.arange(len(self.heads))[:, None]
        self.others: IntArray = np.ascontiguousarray(over @ instance.demand[:, self.narrow].T)
        self.prices: FloatArray = np.zeros(len(self.narrow))
        self.gpu_prices: FloatArray = np.cumsum(self.steps)
        self.learnt = 0

    @property
    def applies(self) -> bool:
        """Whether there are tasks of one and of several GPUs, and none is wider than a server."""
        widest = int(self.instance.width.max())
        servers_hold = widest <= int(self.instance.server_gpus[0])
        return bool(self.wide.size and self.narrow.size and servers_hold)

    def learn(self, prices: FloatArray, gpu_prices: FloatArray) -> None:
        """Average duals of the `narrow` tasks and prices of a GPU of each level into the means."""
        self.learnt += 1
        share = 1 / self.learnt
        self.prices += share * (prices - self.prices)
        self.gpu_prices += share * (gpu_prices[self.heads] - self.gpu_prices)

    def worth(self) -> FloatArray:
        """See `room_worth`."""
        level = self.group[self.narrow]
        return room_worth(self.sizes, self.prices, level, self.gpu_prices, self.cells)


class GangLayout:
    """Anneals one layout at a time, and solves its residual problem.

    Parameters
    ----------
    heuristics: makes the heuristics of a residual problem's tree.
    """

    before_proof = True

    def __init__(
        self,
        instance: Instance,
        levels: CostLevels,
        heuristics: Heuristics,
        seed: int,
        params: GangLayoutParams = DEFAULT.gang_layout,
    ) -> None:
        self.instance, self.levels, self.params = instance, levels, params
        self.heuristics = heuristics
        self.rng = np.random.default_rng(seed)
        self.prices = RoomPrices(instance, levels, params)
        self.server_gpus = int(instance.server_gpus[0])
        wide = self.prices.wide
        work = 4.0 * float(instance.width[wide].mean()) * len(instance.demand) if wide.size else 1.0
        self.moves = min(params.moves * len(wide), int(params.max_updates / work))
        self.target = TargetPower()

    @property
    def applies(self) -> bool:
        """Whether there are gangs to lay out, and other tasks beside them."""
        return self.instance.gang and self.prices.applies

    def realise(self, state: SearchState, node: Node, counts: Counts, limits: Limits) -> None:
        """Nothing: layouts are made between nodes."""

    def improve(self, state: SearchState, limits: Limits) -> None:
        """One layout for the counts of one of the best nodes, or for more servers."""
        if not self.prices.learnt:
            state.generation.master.set_servers(state.root.assignment)
            self._learn(state.generation, state.best[0].rounded, self.prices.narrow, limits)
        nodes = list(dict.fromkeys(node.rounded for node in state.best if node.rounded))
        wanted = nodes[min(len(nodes), int(self.rng.geometric(0.5))) - 1]
        awake = state.incumbent.awake_servers
        if wanted[-1] < awake and self.rng.random() < self.params.incumbent_servers:
            wanted = (*wanted[:-1], awake)
        known = state.incumbent.watts
        self.attempt(state.incumbent, wanted, self.target.watts(state), limits)
        self.target.learn(state.incumbent.watts < known)

    def attempt(self, incumbent: Incumbent, wanted: Counts, below: float, limits: Limits) -> None:
        """Anneal one layout for counts of GPUs and servers, and solve its residual problem.

        Parameters
        ----------
        below: power below which a placement is looked for, W.
        """
        first = self.anneal(wanted)
        if not self.fits(first, wanted[-1]):
            return
        residual = self.residual(first, wanted[-1])
        levels = replace(self.levels, of=self.levels.of[residual.cost_task])
        found = Incumbent(residual.instance)
        found.watts = below
        counts = level_counts(residual.instance, levels)
        heuristics = self.heuristics(residual.instance, levels)
        seed = int(self.rng.integers(2**31))
        tree = Tree(residual.instance, levels, counts, found, heuristics, seed)
        narrow = np.arange(residual.instance.preplaced, residual.instance.tasks)
        self._learn(tree.generation, wanted, narrow, limits)
        seconds = self.params.residual_s * self.instance.tasks / 100
        tree.run(limits.each(min(seconds, limits.remaining), silent))
        if found.placement is not None:
            incumbent.offer(residual.whole(found.placement))

    def anneal(self, wanted: Counts) -> IntArray:
        """(wide,) the first GPU of each run, annealed for these counts of GPUs and servers."""
        instance, params, prices, servers = self.instance, self.params, self.prices, wanted[-1]
        wide = prices.wide
        first: IntArray = self.server_gpus * (np.arange(len(wide), dtype=np.int64) % servers)
        lay_out(
            prices.worth(), np.ascontiguousarray(instance.demand[:, wide]), instance.max_capacity,
            instance.width[wide], prices.group[wide], prices.share, prices.others,
            np.array(wanted[:-1], dtype=np.int64)[prices.heads], prices.steps,
            params.shortage_weight, params.overload_weight, params.overload_offset,
            self.server_gpus, servers, first, self.moves, params.hot_w, params.cold_w, self.rng
        )  # fmt: skip
        return first

    def fits(self, first: IntArray, servers: int) -> bool:
        """Whether no GPU of a layout is overloaded."""
        used = np.zeros((len(self.instance.demand), self.server_gpus * servers), dtype=np.int64)
        for ell, begin in zip(self.prices.wide.tolist(), first.tolist(), strict=True):
            demand = self.instance.demand[:, ell, None]
            used[:, begin : begin + int(self.instance.width[ell])] += demand
        return bool(np.all(used <= self.instance.max_capacity[:, None]))

    def residual(self, first: IntArray, servers: int) -> Residual:
        """The residual problem of a layout; GPUs with the same residents are one preplaced task."""
        runs = {
            ell: tuple(range(begin, begin + int(self.instance.width[ell])))
            for ell, begin in zip(self.prices.wide.tolist(), first.tolist(), strict=True)
        }
        on: list[list[int]] = [[] for _ in range(self.server_gpus * servers)]
        for ell, gpus in runs.items():
            for g in gpus:
                on[g].append(ell)
        alike: dict[Column, list[int]] = {}
        for g, inside in enumerate(on):
            alike.setdefault(tuple(inside), []).append(g)
        empty = alike.pop((), [])
        together = list(alike)
        top = [max(one, key=lambda ell: int(self.levels.of[ell])) for one in together]
        cost_task = np.array(top + self.prices.narrow.tolist())
        part = self.instance.part(cost_task, servers)
        for k, one in enumerate(together):
            part.width[k] = len(alike[one])
            part.demand[:, k] = self.instance.demand[:, list(one)].sum(axis=1)
        apart = (np.arange(len(cost_task)) < len(together)).astype(np.int64)
        ones = np.ones(len(part.capacity), dtype=np.int64)
        part = replace(
            part,
            demand=np.vstack([part.demand, apart]),
            capacity=np.column_stack([part.capacity, ones]),
            preplaced=len(together),
        )
        groups = list(alike.values())
        in_use = {g // self.server_gpus for group in groups for g in group}
        empty.sort(key=lambda g: (g // self.server_gpus not in in_use, g))
        return Residual(part, cost_task, lambda found: self._whole(found, runs, groups, empty))

    def _whole(
        self,
        found: Placement,
        runs: dict[int, tuple[int, ...]],
        groups: list[list[int]],
        empty: list[int],
    ) -> Placement:
        """A placement of the residual on the GPUs that the layout means.

        Parameters
        ----------
        runs: GPUs of tasks of several. groups: those of each preplaced task. empty: with none.
        """
        means: dict[int, int] = {}
        for gpus, group in zip(found, groups, strict=False):
            means |= dict(zip(gpus, group, strict=True))
        free = iter(empty)
        whole: Placement = [runs.get(ell, ()) for ell in range(self.instance.tasks)]
        for ell, (gpu,) in zip(self.prices.narrow.tolist(), found[len(groups) :], strict=True):
            if gpu not in means:
                means[gpu] = next(free)
            whole[ell] = (means[gpu],)
        return whole

    def _learn(
        self, generation: ColumnGeneration, wanted: Counts, narrow: IntArray, limits: Limits
    ) -> None:
        """Average the duals of a linear program near the counts wanted into the prices.

        Parameters
        ----------
        narrow: the program's tasks of one GPU, in the order of `prices.narrow`.
        """
        low = (int(self.params.target_share * count) for count in wanted[:-1])
        high = (self.instance.gpus,) * len(wanted[:-1])
        servers = len(self.instance.server_w)
        generation.master.set_box(CountBox((*low, wanted[-1]), (*high, servers)))
        own = limits.within(self.params.dual_s * self.instance.tasks / 100)
        relaxed = generation.solve(own, gap=self.params.lp_gap, quick=True)
        if relaxed.duals is not None:
            self.prices.learn(relaxed.duals.tasks[narrow], relaxed.duals.gpu_prices)
