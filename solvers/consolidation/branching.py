"""Branching on counts of GPUs by level, then on the servers of tasks of several GPUs."""

from __future__ import annotations

import heapq
import itertools
import math
from dataclasses import dataclass, field

import numpy as np

from optgap.models.limits import Limits
from optgap.solvers.consolidation.levels import Levels, closed_bound, server_limit
from optgap.solvers.consolidation.master import Binding, Box, Master
from optgap.solvers.consolidation.packing import FloatArray, IntArray, Packing
from optgap.solvers.consolidation.plunge import (
    SLACK_W,
    Plunge,
    servers_needed,
)
from optgap.solvers.consolidation.search import Search
from optgap.solvers.consolidation.squeeze import Attempts

CLOSE = 1e-7
"""Relative: what rounding costs to a quantum may leave between equal numbers."""
WHOLE = 1e-6
PLUNGES, MOST_PLUNGES = 3, 8
"""Ways down from counts whose tasks are all bound, and from a vector while they are not."""
ATTEMPTS_LONGER = 2.0
"""How much longer than at first placements with given counts are annealed."""


@dataclass(order=True)
class Node:
    """A box of counts and a binding, with a bound on what lies in it."""

    bound: float
    deep: int
    order: int
    box: Box = field(compare=False)
    binding: Binding = field(compare=False)


class Tree:
    """Best bound first, deepest first among equals.

    Parameters
    ----------
    search: holds the best placement, and is offered better ones.
    """

    def __init__(
        self,
        pack: Packing,
        own: Levels,
        counts: tuple[int, ...],
        search: Search,
        limits: Limits,
        seed: int,
    ) -> None:
        self.pack, self.own, self.search, self.limits = pack, own, search, limits
        self.rng = np.random.default_rng(seed)
        floor = closed_bound(pack, own, counts)
        servers = server_limit(pack, floor, search.watts, max(1, counts[0]))
        box = self._box(counts, floor, servers)
        self.master = Master(pack, own, box, servers if pack.gang else 0)
        self.master.add(pack.contents(search.places or []).values())
        self.numbers = itertools.count()
        binding = Binding.none(pack.tasks, servers)
        self.root = Node(floor, 0, next(self.numbers), box, binding)
        self.heap = [self.root]
        self.stuck = math.inf
        self.nodes = 0
        self.attempts = Attempts(pack, own, search, self.rng, limits)
        self.attempts.longer = ATTEMPTS_LONGER
        self.tried: dict[tuple[int, ...], int] = {}

    def _box(self, counts: tuple[int, ...], floor: float, servers: int) -> Box:
        """What a better placement may count: each GPU more must be paid for out of the gap."""
        gap = self.search.watts - floor
        steps = np.diff([0, *self.own.quanta]) * 1e-6
        high = [
            min(self.pack.gpus, count + int(gap / step + 1e-6))
            for count, step in zip(counts, steps.tolist(), strict=True)
        ]
        return Box((*counts, servers_needed(self.pack, counts[0])), (*high, servers))

    @property
    def cut(self) -> float:
        """What is too dear to look at, W."""
        return self.search.watts * (1 - CLOSE)

    @property
    def bound(self) -> float:
        """What no placement undercuts, W; infinite where none is better than the best."""
        least = self.heap[0].bound if self.heap else math.inf
        return min(least, self.stuck)

    def run(self) -> float:
        """Branch until nothing better is left, or the limits; the bound in W."""
        while self.heap and self.heap[0].bound < self.cut and self.limits.stop is None:
            node = heapq.heappop(self.heap)
            if not self._expand(node):
                heapq.heappush(self.heap, node)
                break
            self.limits.progress("counts of GPUs", self.search.watts, self.bound)
        return self.bound

    def _push(self, node: Node, bound: float, box: Box, binding: Binding) -> None:
        bound = max(bound, node.bound, self.master.watts(box.low))
        if bound < self.cut:
            heapq.heappush(
                self.heap, Node(bound, node.deep - 1, next(self.numbers), box, binding)
            )

    def _expand(self, node: Node) -> bool:
        """Whether the node is done with; else it counts as open."""
        self.nodes += 1
        self.master.confine(node.box)
        self.master.bind(node.binding)
        relaxed = self.master.run(self.limits, enough=self.cut, hopeless=self._hopeless(node))
        bound = max(node.bound, relaxed.bound)
        if bound >= self.cut:
            return True
        if self.limits.stop is not None:
            node.bound = bound
            return False
        vector = np.round(relaxed.vector).astype(int)
        far = np.abs(relaxed.vector - vector)
        if not node.box.single and far.max() > WHOLE:
            self._on_counts(node, bound, relaxed.vector, far)
        elif node.box.single and relaxed.value > self.master.watts(vector) + 1e-3:
            self.stuck = min(self.stuck, bound)  # not denied, and no way down from here
        else:
            self._settle(node, bound, tuple(vector.tolist()))
        return True

    def _hopeless(self, node: Node) -> float:
        """One vector's cost is its bound already: only whether it is allowed is asked."""
        return self.master.watts(node.box.low) + 1e-4 if node.box.single else -math.inf

    def _on_counts(self, node: Node, bound: float, found: FloatArray, far: FloatArray) -> None:
        j = int((far * self.master.prices * (far > WHOLE)).argmax())
        low, high = list(node.box.low), list(node.box.high)
        low[j], high[j] = math.floor(found[j]) + 1, math.floor(found[j])
        self._push(node, bound, Box(tuple(low), node.box.high), node.binding)
        self._push(node, bound, Box(node.box.low, tuple(high)), node.binding)

    def _around(self, node: Node, bound: float, vector: tuple[int, ...]) -> None:
        """The vector by itself, and the rest of the box in boxes that leave it out."""
        low, high = list(node.box.low), list(node.box.high)
        self._push(node, bound, Box(vector, vector), node.binding)
        for j, x in enumerate(vector):
            for least, most in ((x + 1, node.box.high[j]), (node.box.low[j], x - 1)):
                if least <= most:
                    self._push(
                        node, bound,
                        Box((*low[:j], least, *low[j + 1 :]), (*high[:j], most, *high[j + 1 :])),
                        node.binding,
                    )  # fmt: skip
            low[j] = high[j] = x

    def _settle(self, node: Node, bound: float, vector: tuple[int, ...]) -> None:
        """Counts are whole: look for a placement that keeps them, then branch on servers."""
        complete = not self._unbound(node.binding).size
        self._look(vector, node.binding, PLUNGES if complete else 1, complete)
        if self.search.watts <= bound * (1 + CLOSE):
            return
        if self.limits.stop is not None:
            self.stuck = min(self.stuck, bound)
        elif not complete:
            self._on_servers(node, bound)
        elif not node.box.single:
            self._around(node, bound, vector)
        else:
            self.stuck = min(self.stuck, bound)

    def _look(
        self, vector: tuple[int, ...], binding: Binding, tries: int, complete: bool
    ) -> None:
        """Placements with these counts: by annealing at first, then along the linear program."""
        watts = self.master.watts(vector)
        if vector not in self.tried:
            self.attempts(vector[:-1])
        for _ in range(tries):
            if self.search.watts <= watts * (1 + CLOSE) or self.limits.stop is not None:
                return
            number = self.tried[vector] = self.tried.get(vector, 0) + 1
            if complete or number <= MOST_PLUNGES:
                noise = 0.0 if number == 1 else 1.0
                self._plunge(Plunge(self.master, self.limits, self.rng, noise), vector, binding)

    def _unbound(self, binding: Binding) -> IntArray:
        """Tasks of several GPUs that no server has yet, where one must."""
        wide = (self.pack.width > 1) & (binding.server < 0)
        return np.flatnonzero(wide) if self.pack.gang else np.zeros(0, dtype=np.int64)

    def _plunge(self, plunge: Plunge, vector: tuple[int, ...], binding: Binding) -> None:
        whole: Binding | None = binding
        if self._unbound(binding).size:
            enough = self.master.watts(vector) + SLACK_W
            whole = plunge.bound(Box(vector, vector), binding, enough)
        if whole is not None:
            places = plunge.placed(vector, whole)
            if places is not None:
                self.search.offer(places)

    def descend(self, target: float, noise: float, nodes: int) -> None:
        """Bind all tasks by their shares for `target` W; then the best counts that allows."""
        box = self.root.box
        plunge = Plunge(self.master, self.limits, self.rng, noise)
        whole = plunge.bound(box, self.root.binding, min(target, self.cut))
        if whole is None:
            return
        heap, stuck, done = self.heap, self.stuck, self.nodes
        self.heap = [Node(self.root.bound, 0, next(self.numbers), box, whole)]
        while self.heap and self.nodes < done + nodes and self.limits.stop is None:
            node = heapq.heappop(self.heap)
            if node.bound < self.cut and not self._expand(node):
                break
        self.heap, self.stuck = heap, stuck

    def _on_servers(self, node: Node, bound: float) -> None:
        """The widest unbound task into each server where it may be, or a fresh one."""
        binding, pack = node.binding, self.pack
        unbound = self._unbound(binding)
        size = (pack.rows[:, unbound] / np.maximum(pack.most[:, None], 1)).max(axis=0)
        task = int(unbound[np.lexsort((-size, -pack.width[unbound]))[0]])
        first = int(binding.server.max()) + 1
        for home in range(min(first + 1, node.box.high[-1])):
            if not binding.barred[task, home]:
                self._push(node, bound, node.box, binding.bind(task, home))
