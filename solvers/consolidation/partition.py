"""Branch-and-price on which tasks share a GPU: counts of GPUs first, then pairs (Ryan and Foster).

A node covers items rather than tasks: at first each task is one, wanted on v GPUs. With λ_S the
GPUs that hold the set S of items, N_q the GPUs of level q or more and Z the awake servers:

    min  Σ_q s_q·N_q + P·Z
    Σ_{S∋a} λ_S ≥ w_a                        every item a
    N_q ≥ Σ_{S of level ≥ q} λ_S             every level q
    W·Z ≥ N_0

Where the counts are whole and λ is not, two items a and b share a fractional number of GPUs, or
one that can still differ. For each number k that they may share there is a child with the items
a∪b on k GPUs, a on w_a − k and b on w_b − k, no two of them on one GPU: each placement is in one
child, and where all pairs are settled every item is alone.
"""

from __future__ import annotations

import heapq
import itertools
import math
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from optgap.models.limits import Limits
from optgap.solvers.consolidation.generation import (
    FEW,
    MANY,
    coarse_sizes,
    quiet_program,
    table_shape,
)
from optgap.solvers.consolidation.kernels import best_sets, fill_tables, unbound
from optgap.solvers.consolidation.levels import Levels, closed_bound
from optgap.solvers.consolidation.packing import QUANTUM_W, FloatArray, Packing
from optgap.solvers.consolidation.search import Search
from optgap.solvers.consolidation.seating import seated

CLOSE, SAFE, WHOLE = 1e-7, 1e-9, 1e-6
"""Relative: equal powers, what sums of a bound may be off by; and what counts as an integer."""
LOOSE = 1e-10
"""Of twice the best power: what a set may be worth beyond its cost without being added."""
Column = frozenset[int]


@dataclass(frozen=True, slots=True)
class Item:
    """Tasks that share each of their `width` GPUs."""

    tasks: frozenset[int]
    width: int


@dataclass(frozen=True, order=True)
class Node:
    """A part of all placements, and what none of them undercuts, W.

    Parameters
    ----------
    low, high: least and most of N_0, …, N_{Q−1}, Z.
    items, apart: what is covered, and pairs of items that share no GPU.
    columns: sets of items to begin with.
    """

    bound: float
    deep: int
    order: int
    low: tuple[int, ...] = field(compare=False)
    high: tuple[int, ...] = field(compare=False)
    items: tuple[Item, ...] = field(compare=False)
    apart: frozenset[frozenset[int]] = field(compare=False)
    columns: tuple[Column, ...] = field(compare=False)


@dataclass(frozen=True, eq=False)
class Relaxed:
    """Where column generation ended: counts (N, Z), and the GPUs of each set used."""

    bound: float
    counts: FloatArray
    used: list[tuple[Column, float]]
    columns: tuple[Column, ...]


class Partition:
    """The tree, for equal GPUs in equal servers.

    Parameters
    ----------
    counts: GPUs of each level or more that every placement has.
    floor: what no placement undercuts, W.
    search: holds the best placement, and is offered better ones.
    """

    def __init__(
        self,
        pack: Packing,
        own: Levels,
        counts: tuple[int, ...],
        floor: float,
        search: Search,
        limits: Limits,
    ) -> None:
        self.pack, self.own, self.search, self.limits = pack, own, search, limits
        self.steps: FloatArray = np.diff([0, *own.quanta]) * QUANTUM_W * (1 - 1e-12)
        self.static = float(pack.server_w[0])
        self.seats = int(pack.server_gpus[0])
        self.open = math.inf
        self.nodes = 0
        self.order = itertools.count()
        items = tuple(Item(frozenset([ell]), int(v)) for ell, v in enumerate(pack.width))
        known = pack.contents(search.places or []).values()
        low, high = self._box(counts)
        self.heap = [
            Node(
                floor, 0, next(self.order), low, high, items, frozenset(),
                tuple({*(frozenset([ell]) for ell in range(pack.tasks)), *map(frozenset, known)}),
            )
        ]  # fmt: skip

    def _box(self, counts: tuple[int, ...]) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Every GPU and server more than needed has to be paid for beyond what the needed cost.

        That is less than a bound may be: where a better one holds, more GPUs of one level may go
        with fewer of another.
        """
        needed = closed_bound(self.pack, self.own, counts)
        gap = max(0.0, self.search.watts - needed) + 1e-6
        gpus, most = self.pack.gpus, len(self.pack.server_w)
        high = [
            min(gpus, n + int(min(gpus, gap / max(step, 1e-12))))
            for n, step in zip(counts, self.steps.tolist(), strict=True)
        ]
        servers = -(-counts[0] // self.seats)
        paid = int(min(most, gap / self.static)) if self.static > 0 else most
        return (*counts, servers), (*high, min(most, servers + paid))

    @property
    def cut(self) -> float:
        """What is too dear to look at, W."""
        return self.search.watts * (1 - CLOSE)

    @property
    def bound(self) -> float:
        """What no placement undercuts, W; infinite where none is better than the best."""
        return min(self.open, self.heap[0].bound if self.heap else math.inf)

    def run(self, most_nodes: int) -> float:
        """Branch until nothing better is left, for so many nodes, or to the limits."""
        while self.heap and self.heap[0].bound < self.cut and self.nodes < most_nodes:
            if self._stopped():
                break
            self.nodes += 1
            node = heapq.heappop(self.heap)
            relaxed = Master(self, node).run(self.limits, self.cut)
            bound = max(node.bound, relaxed.bound)
            if bound >= self.cut:
                continue
            if self._stopped():
                self.open = min(self.open, bound)
                break
            self._branch(replace(node, bound=bound, columns=relaxed.columns), relaxed)
            self.limits.progress("pairs of tasks", self.search.watts, self.bound)
        return self.bound

    def _stopped(self) -> bool:
        return self.limits.stop is not None

    def _push(self, node: Node, **changes: Any) -> None:
        child = replace(node, deep=node.deep - 1, order=next(self.order), **changes)
        inside = all(a <= b for a, b in zip(child.low, child.high, strict=True))
        if inside and child.low[0] <= self.seats * child.high[-1]:
            heapq.heappush(self.heap, child)

    def _branch(self, node: Node, relaxed: Relaxed) -> None:
        far = np.abs(relaxed.counts - np.round(relaxed.counts))
        if far.max() > WHOLE:
            weight = far * np.array([*self.steps, self.static + self.steps[0]])
            j = int(np.where(far > WHOLE, weight, -1.0).argmax())
            below = math.floor(relaxed.counts[j])
            self._push(node, high=(*node.high[:j], below, *node.high[j + 1 :]))
            self._push(node, low=(*node.low[:j], below + 1, *node.low[j + 1 :]))
            return
        pair = self._pair(relaxed)
        if pair is not None:
            for k in range(min(node.items[p].width for p in pair), -1, -1):
                self._push(node, **sharing(node, *pair, k))
            return
        self._leaf(node, relaxed)

    def _pair(self, relaxed: Relaxed) -> tuple[int, int] | None:
        """The items whose shared GPUs are most in doubt; None where λ is whole."""
        if all(abs(x - round(x)) <= WHOLE for _, x in relaxed.used):
            return None
        # whole numbers are doubtful last of all, and only where an item is wanted several times
        doubt = {pair: abs(x - round(x)) for pair, x in shared(relaxed).items()}
        return max(doubt, default=None, key=lambda pair: (doubt[pair], pair))

    def _leaf(self, node: Node, relaxed: Relaxed) -> None:
        """λ is whole: GPUs with their contents, to be seated in servers."""
        gpus = contents_of(node, relaxed.used)
        if not gpus:
            self.open = min(self.open, node.bound)
            return
        # servers that cost nothing may all be awake
        servers = round(relaxed.counts[-1]) if self.static > 0 else node.high[-1]
        seats = seated(self.pack, gpus, servers)
        if seats.places is not None:
            self.search.offer(seats.places)
        if self.search.watts <= node.bound * (1 + CLOSE):
            return
        if seats.fits or not self.pack.gang:  # merged levels: dearer than they count
            self.open = min(self.open, node.bound)
            return
        self._push(node, low=(*node.low[:-1], servers + 1))
        wide = {pair: sum(node.items[i].width for i in pair) for pair in shared(relaxed)}
        if wide:  # other contents with these counts may find seats
            pair = max(wide, key=lambda pair: (wide[pair], pair))
            for k in range(min(node.items[i].width for i in pair) + 1):
                self._push(node, high=(*node.high[:-1], servers), **sharing(node, *pair, k))
        elif not seats.sure:
            self.open = min(self.open, node.bound)


def shared(relaxed: Relaxed) -> dict[tuple[int, int], float]:
    """How many GPUs two items share."""
    found: dict[tuple[int, int], float] = {}
    for one, x in relaxed.used:
        for pair in itertools.combinations(sorted(one), 2):
            found[pair] = found.get(pair, 0.0) + x
    return found


def sharing(node: Node, a: int, b: int, k: int) -> dict[str, Any]:
    """Items, pairs apart and columns where items a and b share exactly k GPUs."""
    one, other = node.items[a], node.items[b]
    both = len(node.items)
    items = list(node.items)
    items[a], items[b] = replace(one, width=one.width - k), replace(other, width=other.width - k)
    items.append(Item(one.tasks | other.tasks, k))
    apart = {*node.apart, frozenset((a, b)), frozenset((a, both)), frozenset((b, both))}
    apart |= {
        frozenset((both, next(iter(pair - {x}))))
        for pair in node.apart
        for x in (a, b)
        if x in pair
    }
    kept = [i for i, item in enumerate(items) if item.width > 0]
    number, here = {i: at for at, i in enumerate(kept)}, frozenset(kept)
    columns: set[Column] = {frozenset([i]) for i in kept}
    for column in node.columns:
        if {a, b} <= column:
            split = [column - {a}, column - {b}, column - {a, b} | {both}]
        else:
            split = [column]
        columns |= {c & here for c in split}
    pairs = {pair for pair in apart if pair <= number.keys()}

    def renumbered(one: frozenset[int]) -> frozenset[int]:
        return frozenset(number[i] for i in one)

    fine = [c for c in columns if c and not any(pair <= c for pair in pairs)]
    return {
        "items": tuple(items[i] for i in kept),
        "apart": frozenset(renumbered(pair) for pair in pairs),
        "columns": tuple(renumbered(c) for c in fine),
    }


def contents_of(node: Node, used: list[tuple[Column, float]]) -> list[set[int]]:
    """The tasks on each GPU; what is covered more often than wanted is left out."""
    left = [item.width for item in node.items]
    gpus: list[set[int]] = []
    for one, x in used:
        for _ in range(round(x)):
            tasks: set[int] = set()
            for a in one:
                if left[a] > 0:
                    left[a] -= 1
                    tasks |= node.items[a].tasks
            if tasks:
                gpus.append(tasks)
    return gpus


class Master:
    """The linear program of one node."""

    def __init__(self, tree: Partition, node: Node) -> None:
        import highspy

        self.tree, self.node = tree, node
        pack, own = tree.pack, tree.own
        each = [sorted(item.tasks) for item in node.items]
        self.width = np.array([item.width for item in node.items], dtype=np.float64)
        self.level = np.array([int(own.of[tasks].max()) for tasks in each], dtype=np.int64)
        rows = np.array([pack.rows[:, tasks].sum(axis=1) for tasks in each], dtype=np.int64).T
        sizes = (rows / np.maximum(pack.most[:, None], 1)).sum(axis=0)
        self.turn = np.lexsort((-sizes, -self.level))  # a set begins with its dearest item
        self.rows = np.ascontiguousarray(rows[:, self.turn])
        self.coarse, self.room = coarse_sizes(self.rows, pack.most)
        self._tables: FloatArray = np.zeros(table_shape(self.coarse, self.room))
        place = {int(i): at for at, i in enumerate(self.turn)}
        self.apart = np.zeros((len(each), len(each)), dtype=np.bool_)
        for pair in node.apart:
            i, j = (place[x] for x in pair)
            self.apart[i, j] = self.apart[j, i] = True
        self.columns: list[Column] = []
        self._known: set[Column] = set()
        self._highs = quiet_program()
        self._infinity = highspy.kHighsInf
        self._fixed()
        self.add(node.columns)

    def _fixed(self) -> None:
        """Rows; the columns N and Z, and GPUs that hold one item beyond all counts."""
        tree, node, h = self.tree, self.node, self._highs
        items, levels = len(node.items), len(tree.steps)
        for w in self.width.tolist():
            h.addRow(w, self._infinity, 0, [], [])
        for _ in range(levels + 1):
            h.addRow(0.0, self._infinity, 0, [], [])
        last = items + levels
        for q, step in enumerate(tree.steps.tolist()):
            rows, values = [items + q], [1.0]
            if q == 0:
                rows, values = [items, last], [1.0, -1.0]
            h.addCol(step, float(node.low[q]), float(node.high[q]), len(rows), rows, values)
        low, high = float(node.low[-1]), float(node.high[-1])
        h.addCol(tree.static, low, high, 1, [last], [float(tree.seats)])
        self.dear = 2 * tree.search.watts
        self.loose = LOOSE * self.dear
        for i in range(items):
            h.addCol(self.dear, 0.0, self._infinity, 1, [i], [1.0])

    def add(self, sets: Any) -> int:
        """Add sets of items; how many are new."""
        items, before = len(self.node.items), len(self.columns)
        for one in sets:
            if one and one not in self._known:
                self._known.add(one)
                self.columns.append(one)
                top = max(int(self.level[i]) for i in one)
                rows = [*sorted(one), *range(items, items + top + 1)]
                values = [1.0] * len(one) + [-1.0] * (top + 1)
                self._highs.addCol(0.0, 0.0, self._infinity, len(rows), rows, values)
        return len(self.columns) - before

    def run(self, limits: Limits, cut: float) -> Relaxed:
        """Generate columns until none is missing, or the bound is beyond the cut."""
        items, levels = len(self.node.items), len(self.tree.steps)
        nodes, best = FEW, -math.inf
        while True:
            self._highs.run()
            solution = self._highs.getSolution()
            duals = np.maximum(np.array(solution.row_dual), 0.0)
            bound, fresh, exact = self._price(duals, nodes)
            best = max(best, bound)
            if best >= cut or limits.stop is not None or not self.add(fresh):
                if best >= cut or limits.stop is not None or exact or nodes >= MANY:
                    break
                nodes *= 10
        values = np.array(solution.col_value)
        at = levels + 1 + items
        used = [
            (one, float(x)) for one, x in zip(self.columns, values[at:], strict=False) if x > WHOLE
        ]
        return Relaxed(best, values[: levels + 1], used, tuple(self.columns))

    def _price(self, duals: FloatArray, nodes: int) -> tuple[float, list[Column], bool]:
        """The bound that these duals prove, sets worth adding, and whether none can be missing."""
        tree, node, items = self.tree, self.node, len(self.node.items)
        prices, levels, server = duals[:items], duals[items:-1], float(duals[-1])
        profits = prices[self.turn]
        worth = np.cumsum(levels)[self.level[self.turn]]
        fill_tables(self.coarse, self.room, profits, self._tables)
        value, upper, size, found = best_sets(
            self.rows, tree.pack.most, profits, self.coarse, self.room, self._tables,
            worth + self.loose, np.full(items, -np.inf), nodes, self.apart, *unbound(items),
        )  # fmt: skip
        over = max(0.0, float((upper - worth).max()))
        rest = tree.steps - levels
        rest[0] += server
        low, high = np.array(node.low, dtype=float), np.array(node.high, dtype=float)
        parts = [
            *(self.width * prices).tolist(),
            *np.minimum(rest * low[:-1], rest * high[:-1]).tolist(),
            min(x * (tree.static - tree.seats * server) for x in (low[-1], high[-1])),
            -over * node.high[0],
        ]
        slack = SAFE * math.fsum(abs(x) for x in parts)
        fresh = [
            frozenset(int(self.turn[j]) for j in found[i, : size[i]])
            for i in np.flatnonzero(value > worth + self.loose)
        ]
        return math.fsum(parts) - slack, fresh, over <= 2 * self.loose
