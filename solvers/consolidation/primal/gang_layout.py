"""Gang-first layouts: tasks of several GPUs go first, then the others by branch-and-price.

With the tasks of several GPUs in place, the others are a problem without gangs: what is on a GPU
already is a preplaced task, and those are kept apart. That problem is solved in moments. So what
has to be found is a layout that leaves room of the right kind: it is annealed at duals of the
linear programs of the layouts before it, by which room of every size and level has a worth.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from optgap.models.limits import Limits, silent
from optgap.solvers.consolidation.bounds.level_counts import CostLevels, level_counts
from optgap.solvers.consolidation.branch_and_price.heuristic import PrimalHeuristic, SearchState
from optgap.solvers.consolidation.branch_and_price.node import Node
from optgap.solvers.consolidation.branch_and_price.tree import Tree
from optgap.solvers.consolidation.column_generation.generation import ColumnGeneration
from optgap.solvers.consolidation.config import DEFAULT
from optgap.solvers.consolidation.config.primal import GangLayoutParams
from optgap.solvers.consolidation.incumbent import Incumbent
from optgap.solvers.consolidation.instance import Instance
from optgap.solvers.consolidation.numerics import (
    INTEGRALITY,
    QUANTUM_W,
    Column,
    Counts,
    FloatArray,
    IntArray,
    Placement,
)
from optgap.solvers.consolidation.primal.counts import TargetPower
from optgap.solvers.consolidation.primal.gang_layout_kernels import lay_out, room_worth
from optgap.solvers.consolidation.primal.pairwise_exchange import (
    PairwiseExchange,
    exchange_cheapest,
)

Heuristics = Callable[[Instance, CostLevels], Sequence[PrimalHeuristic]]


@dataclass(frozen=True)
class Rest:
    """The problem that a layout leaves.

    Parameters
    ----------
    instance: preplaced tasks, then the tasks of one GPU.
    stands_for: (tasks,) the task that each takes its cost from.
    whole: from its placements to those of all tasks.
    """

    instance: Instance
    stands_for: IntArray
    whole: Callable[[Placement], Placement]


class RoomPrices:
    """What room beside tasks of several GPUs is worth to the others, learnt from duals.

    Attributes
    ----------
    wide, narrow: tasks of several GPUs, and of one by rising level.
    heads: the first level of each group of levels: neighbours are taken together where many.
    learnt: how many times duals were averaged.
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
        cells = (params.cells_memory, 0) if alone else (params.cells, params.cells)
        self.cells: IntArray = np.array(cells, dtype=np.int64)
        sizes = instance.demand[:, self.narrow] * self.share[:, None]
        two = np.array([sizes[0], sizes[1:].max(axis=0, initial=0.0)])
        self.sizes: IntArray = np.rint(two * self.cells[:, None]).astype(np.int64)
        over = self.group[self.narrow][None, :] >= np.arange(len(self.heads))[:, None]
        self.others: IntArray = np.ascontiguousarray(over @ instance.demand[:, self.narrow].T)
        self.prices: FloatArray = np.zeros(len(self.narrow))
        self.rents: FloatArray = np.cumsum(self.steps)
        self.learnt = 0

    @property
    def applies(self) -> bool:
        """Whether there are tasks of both kinds, and none is wider than a server."""
        widest = int(self.instance.width.max())
        servers_hold = widest <= int(self.instance.server_gpus[0])
        return bool(self.wide.size and self.narrow.size and servers_hold)

    def learn(self, prices: FloatArray, rents: FloatArray) -> None:
        """Average duals of tasks of one GPU, in the order of `narrow`, and rents of levels."""
        self.learnt += 1
        share = 1 / self.learnt
        self.prices += share * (prices - self.prices)
        self.rents += share * (rents[self.heads] - self.rents)

    def worth(self) -> FloatArray:
        """See `room_worth`."""
        level = self.group[self.narrow]
        return room_worth(self.sizes, self.prices, level, self.rents, self.cells)


class GangLayout:
    """Layouts one after another, each with the placement that it allows.

    Parameters
    ----------
    heuristics: makes what the trees of the other tasks are given.
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
        self.moves = min(params.moves * len(wide), int(params.most_work / work))
        self.target = TargetPower()

    @property
    def applies(self) -> bool:
        """Whether there is anything to lay out, and anything beside it."""
        return self.instance.gang and self.prices.applies

    def realise(self, state: SearchState, node: Node, counts: Counts, limits: Limits) -> None:
        """Not by this: layouts are made between nodes."""

    def improve(self, state: SearchState, limits: Limits) -> None:
        """A layout for the counts of one of the best nodes, or for more servers."""
        if not self.prices.learnt:
            state.generation.master.set_servers(state.root.assignment)
            self._learn(state.generation, state.best[0].near, self.prices.narrow, limits)
        nodes = list(dict.fromkeys(node.near for node in state.best if node.near))
        wanted = nodes[min(len(nodes), int(self.rng.geometric(0.5))) - 1]
        awake = state.incumbent.awake_servers
        if wanted[-1] < awake and self.rng.random() < self.params.same_servers:
            wanted = (*wanted[:-1], awake)
        known = state.incumbent.watts
        self.attempt(state.incumbent, wanted, self.target.watts(state), limits)
        self.target.learn(state.incumbent.watts < known)

    def attempt(self, incumbent: Incumbent, wanted: Counts, below: float, limits: Limits) -> None:
        """One layout for counts of GPUs and servers, and what can be placed for less in it.

        Parameters
        ----------
        below: W that a placement is looked for under.
        """
        first = self.lay(wanted)
        if not self.fits(first, wanted[-1]):
            return
        rest = self.rest(first, wanted[-1])
        levels = replace(self.levels, of=self.levels.of[rest.stands_for])
        found = Incumbent(rest.instance)
        found.watts = below
        counts = level_counts(rest.instance, levels)
        heuristics = self.heuristics(rest.instance, levels)
        seed = int(self.rng.integers(2**31))
        tree = Tree(rest.instance, levels, counts, found, heuristics, seed)
        narrow = np.arange(rest.instance.preplaced, rest.instance.tasks)
        self._learn(tree.generation, wanted, narrow, limits)
        if tree.open and limits.stop is None:
            tree.generation.master.set_box(tree.root.box)
            relaxed = tree.generation.solve(
                limits, enough=tree.cutoff, gap=self.params.gap, quick=True
            )
            if relaxed.bound >= tree.cutoff:
                return
            near = tuple(np.ceil(relaxed.counts[:-1] - INTEGRALITY).astype(int).tolist())
            exchanger = PairwiseExchange(rest.instance, levels, np.random.default_rng(0))
            seconds = self.params.rest_s * self.instance.tasks / 100
            own = limits.each(min(seconds, limits.remaining), silent)
            if exchanger.applies:
                share = own.within(self.params.exchange_share * own.remaining)
                exchange_cheapest(exchanger, near, found, share)
            tree.run(own)
        if found.placement is not None:
            incumbent.offer(rest.whole(found.placement))

    def lay(self, wanted: Counts) -> IntArray:
        """(wide,) first GPUs for counts by level and servers."""
        instance, params, prices, servers = self.instance, self.params, self.prices, wanted[-1]
        wide = prices.wide
        first: IntArray = self.server_gpus * (np.arange(len(wide), dtype=np.int64) % servers)
        lay_out(
            prices.worth(), np.ascontiguousarray(instance.demand[:, wide]), instance.max_capacity,
            instance.width[wide], prices.group[wide], prices.share, prices.others,
            np.array(wanted[:-1], dtype=np.int64)[prices.heads], prices.steps, params.beyond,
            params.too_full, params.over_at_all, self.server_gpus, servers, first, self.moves,
            params.hot_w, params.cold_w, self.rng,
        )  # fmt: skip
        return first

    def fits(self, first: IntArray, servers: int) -> bool:
        """Whether no GPU of a layout holds more than it can."""
        used = np.zeros((len(self.instance.demand), self.server_gpus * servers), dtype=np.int64)
        for ell, begin in zip(self.prices.wide.tolist(), first.tolist(), strict=True):
            demand = self.instance.demand[:, ell, None]
            used[:, begin : begin + int(self.instance.width[ell])] += demand
        return bool(np.all(used <= self.instance.max_capacity[:, None]))

    def rest(self, first: IntArray, servers: int) -> Rest:
        """What the layout leaves: GPUs with the same tasks are one preplaced task."""
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
        stands_for = np.array(top + self.prices.narrow.tolist())
        part = self.instance.part(stands_for, servers)
        for k, one in enumerate(together):
            part.width[k] = len(alike[one])
            part.demand[:, k] = self.instance.demand[:, list(one)].sum(axis=1)
        apart = (np.arange(len(stands_for)) < len(together)).astype(np.int64)
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
        return Rest(part, stands_for, lambda found: self._whole(found, runs, groups, empty))

    def _whole(
        self,
        found: Placement,
        runs: dict[int, tuple[int, ...]],
        groups: list[list[int]],
        empty: list[int],
    ) -> Placement:
        """A placement of the rest on the GPUs that the layout means.

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
        """Duals a little below the counts wanted.

        Parameters
        ----------
        narrow: tasks of the program that are those of one GPU, in the order of `prices.narrow`.
        """
        target = self.params.tight * np.array(wanted[:-1], dtype=np.float64)
        generation.master.set_target(target, wanted[-1])
        own = limits.within(self.params.learn_s * self.instance.tasks / 100)
        relaxed = generation.solve(own, gap=self.params.gap, quick=True)
        if relaxed.duals is not None:
            self.prices.learn(relaxed.duals.tasks[narrow], relaxed.duals.rents)
