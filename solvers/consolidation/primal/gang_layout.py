"""Gang-first layouts: tasks of several GPUs are assigned to servers by annealing, then columns are
fixed.

A *layout* gives each task of several GPUs a run of neighbouring GPUs in one server. It must leave
room that the other tasks can use: it is annealed with the value of that room, which the duals of a
linear program give. The servers of the runs are an assignment, under which a dive on columns places
all tasks.
"""

from __future__ import annotations

import numpy as np

from optgap.models.limits import Limits
from optgap.solvers.consolidation.bounds.level_counts import CostLevels
from optgap.solvers.consolidation.branch_and_price.branching import Node
from optgap.solvers.consolidation.branch_and_price.heuristic import SearchState
from optgap.solvers.consolidation.branch_and_price.packing import pack_usage
from optgap.solvers.consolidation.column_generation.generation import ColumnGeneration
from optgap.solvers.consolidation.column_generation.space import CountBox
from optgap.solvers.consolidation.config import DEFAULT, Params
from optgap.solvers.consolidation.instance import Instance
from optgap.solvers.consolidation.numerics import QUANTUM_W, Counts, FloatArray, IntArray
from optgap.solvers.consolidation.primal.counts import TargetPower, richer_counts
from optgap.solvers.consolidation.primal.diving import Dive
from optgap.solvers.consolidation.primal.gang_layout_kernels import lay_out, room_worth
from optgap.solvers.consolidation.primal.pairwise_exchange import (
    PairwiseExchange,
)


class GangLayout:
    """Anneals one layout at a time, and dives under its assignment.

    Attributes
    ----------
    wide, narrow: tasks of several GPUs, and tasks of one GPU by rising level.
    heads: the first level of each group of levels that the annealing does not tell apart.
    worth: value of room, see `room_worth`; None before its duals are known.
    """

    before_proof = True

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
        self.share: FloatArray = 1 / np.maximum(instance.max_capacity, 1)
        self.server_gpus = int(instance.server_gpus[0])
        self.worth: FloatArray | None = None
        self.exchange = PairwiseExchange(instance, levels, self.rng, params.exchange)
        self.target, self.layouts = TargetPower(), 0

    @property
    def applies(self) -> bool:
        """Whether there are tasks of one and of several GPUs, and none is wider than a server."""
        narrow = int(self.instance.width.max()) <= self.server_gpus
        return bool(self.instance.gang and self.wide.size and self.narrow.size and narrow)

    def realise(self, state: SearchState, node: Node, counts: Counts, limits: Limits) -> None:
        """Nothing: layouts are made between nodes."""

    def improve(self, state: SearchState, limits: Limits) -> None:
        """One layout for the counts of one of the best nodes, or for more servers."""
        nodes = list(dict.fromkeys(node.rounded for node in state.best if node.rounded))
        wanted = nodes[min(len(nodes), int(self.rng.geometric(0.5))) - 1]
        awake = state.incumbent.awake_servers
        if wanted[-1] < awake and self.rng.random() < self.own.incumbent_servers:
            wanted = (*wanted[:-1], awake)
        if self.worth is None:
            state.generation.master.set_servers(state.root.assignment)
            self.worth = self._worth(state.generation, wanted, limits)
        first = self.anneal(wanted, self.worth)
        if not self.fits(first, wanted[-1]):
            return
        known, most = state.incumbent.watts, min(self.target.watts(state), state.cutoff)
        if not self._exchange(state, first, wanted, most, limits):
            self._dive(state, first, wanted, most, limits)
        self.target.learn(state.incumbent.watts < known)

    def _exchange(
        self, state: SearchState, first: IntArray, wanted: Counts, most: float, limits: Limits
    ) -> bool:
        """Look for the other tasks' GPUs by pairwise exchange, with counts of at most `most` W."""
        if not self.exchange.applies:
            return False
        start = self.instance.entry_start
        stay = np.full(int(start[-1]), -1, dtype=np.int64)
        for ell, begin in zip(self.wide.tolist(), first.tolist(), strict=True):
            stay[start[ell] : start[ell + 1]] = begin + np.arange(self.instance.width[ell])
        for _ in range(self.own.exchanges):
            counts = richer_counts(self.instance, self.levels, wanted[:-1], most, self.rng)
            if self.exchange.attempt(state.incumbent, counts, limits, stay):
                return True
        return False

    def _dive(
        self, state: SearchState, first: IntArray, wanted: Counts, most: float, limits: Limits
    ) -> None:
        """Dive on columns where tasks are in the servers of their runs, for at most `most` W."""
        pairs = zip(self.wide.tolist(), (first // self.server_gpus).tolist(), strict=True)
        assignment = state.root.assignment.assign(pairs)
        box = CountBox(state.root.box.low, (*state.root.box.high[:-1], wanted[-1]))
        dive = Dive(state.generation, limits, state.rng, float(self.layouts > 0), self.params)
        usage = dive.usage(box, most, assignment=assignment)
        self.layouts += 1
        if usage is not None:
            state.incumbent.offer(pack_usage(state.generation.master, usage))

    def anneal(self, wanted: Counts, worth: FloatArray) -> IntArray:
        """(wide,) the first GPU of each run, annealed for these counts of GPUs and servers."""
        instance, own, wide, servers = self.instance, self.own, self.wide, wanted[-1]
        narrow = self.narrow
        over = self.group[narrow][None, :] >= np.arange(len(self.heads))[:, None]
        others: IntArray = np.ascontiguousarray(over @ instance.demand[:, narrow].T)
        first: IntArray = self.server_gpus * (np.arange(len(wide), dtype=np.int64) % servers)
        work = 4.0 * float(instance.width[wide].mean()) * len(instance.demand)
        moves = min(own.moves * len(wide), int(own.max_updates / work))
        lay_out(
            worth, np.ascontiguousarray(instance.demand[:, wide]), instance.max_capacity,
            instance.width[wide], self.group[wide], self.share, others,
            np.array(wanted[:-1], dtype=np.int64)[self.heads], self.steps, own.shortage_weight,
            own.overload_weight, own.overload_offset, self.server_gpus, servers, first, moves,
            own.hot_w, own.cold_w, self.rng
        )  # fmt: skip
        return first

    def fits(self, first: IntArray, servers: int) -> bool:
        """Whether no GPU of a layout is overloaded."""
        used = np.zeros((len(self.instance.demand), self.server_gpus * servers), dtype=np.int64)
        for ell, begin in zip(self.wide.tolist(), first.tolist(), strict=True):
            demand = self.instance.demand[:, ell, None]
            used[:, begin : begin + int(self.instance.width[ell])] += demand
        return bool(np.all(used <= self.instance.max_capacity[:, None]))

    def _worth(self, generation: ColumnGeneration, wanted: Counts, limits: Limits) -> FloatArray:
        """The value of room by the duals of a linear program near the counts wanted."""
        low = (int(self.own.target_share * count) for count in wanted[:-1])
        high = (self.instance.gpus,) * len(wanted[:-1])
        servers = len(self.instance.server_w)
        generation.master.set_box(CountBox((*low, wanted[-1]), (*high, servers)))
        limits = limits.within(self.own.dual_s * self.instance.tasks / 100)
        duals = generation.solve(limits, gap=self.own.lp_gap, quick=True).duals
        prices, gpu_prices = np.zeros(len(self.narrow)), np.cumsum(self.steps)
        if duals is not None:
            prices, gpu_prices = duals.tasks[self.narrow], duals.gpu_prices[self.heads]
        sizes = self.instance.demand[:, self.narrow] * self.share[:, None]
        two = np.array([sizes[0], sizes[1:].max(axis=0, initial=0.0)])
        alone = len(self.instance.demand) == 1
        cells = np.array([self.own.memory_cells, 0] if alone else [self.own.cells] * 2)
        whole: IntArray = np.rint(two * cells[:, None]).astype(np.int64)
        return room_worth(whole, prices, self.group[self.narrow], gpu_prices, cells)
