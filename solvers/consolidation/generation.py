"""Column generation over what one GPU may hold, with exact pricing.

min Σ c_S·λ_S over sets S of tasks that fit one GPU, so that every task l is in v_l of them; c_S is
the cost of the set's dearest task. Prices π of the tasks give a bound at any time (Farley 1990):
Σ v·π / max_S (Σ_{l∈S} π_l / c_S).
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from optgap.models.limits import Limits
from optgap.solvers.consolidation.kernels import NOBODY_APART, best_sets, fill_tables, unbound
from optgap.solvers.consolidation.packing import FloatArray, IntArray, Packing

FINE, COARSE, CELLS_EACH = 4096, 800, 8
"""Cells of the tables that bound the search for sets: at most, and with several rows at least; and
for each task. What rounding sizes to cells adds to a bound is what a search cannot close, so that
with hundreds of tasks of about equal worth few cells take a thousand times as many nodes."""
MOST_CELLS = 120_000_000
SAFE = 1e-7
"""What a sum of prices may be off by, relative: taken off every bound."""
FEW, MANY = 2000, 2_000_000
"""Nodes of the search for a set: to begin with, and at most."""
LEAST_S = 0.05
"""Seconds that a linear program has where time is up: short of that nothing comes of it."""
BLOCK = 24
"""Searches between two looks at the clock."""
NODE_S, SHARE = 1e-6, 0.1
"""About what a node takes, and the share of the time left that one search may have."""
DEVEX = 1
"""HiGHS's weights of rows: exact ones are made anew for each node, at more than they save."""
Set = tuple[int, ...]


@dataclass(frozen=True)
class Relaxed:
    """Where column generation ended.

    Parameters
    ----------
    value: of the last restricted linear program.
    bound: no more than the value of the full one.
    prices: (n,) π of the tasks, in the order of `Generation.tasks`.
    used: the sets with a positive λ, and that λ.
    """

    value: float
    bound: float
    prices: FloatArray
    used: list[tuple[Set, float]]

    @property
    def closed(self) -> bool:
        """Whether no set is left that would lower the value."""
        return self.bound >= self.value * (1 - 10 * SAFE)


class Generation:
    """The restricted linear program of some of the tasks, kept warm in one HiGHS object.

    Parameters
    ----------
    tasks: those that are covered.
    cost: (L,) of each task; a set costs as much as its dearest.
    """

    def __init__(self, pack: Packing, tasks: IntArray, cost: FloatArray) -> None:
        import highspy

        self.pack, self.cost = pack, cost
        self.row = {int(ell): i for i, ell in enumerate(tasks)}
        self.tasks = tasks
        self.width = pack.width[tasks].astype(np.float64)
        sizes = (pack.rows / np.maximum(pack.most[:, None], 1)).sum(axis=0)[tasks]
        turn = np.lexsort((-sizes, -cost[tasks]))
        self.turn: IntArray = turn  # a set begins with its dearest task
        self.rows: IntArray = np.ascontiguousarray(pack.rows[:, tasks[turn]])
        self.coarse, self.room = coarse_sizes(self.rows, pack.most)
        self._tables: FloatArray = np.zeros(table_shape(self.coarse, self.room))
        self._unbound = unbound(len(tasks))
        self.sets: list[Set] = []
        self._known: set[Set] = set()
        self._highs = quiet_program()
        self._infinity = highspy.kHighsInf
        for v in self.width.tolist():
            self._highs.addRow(v, self._infinity, 0, [], [])
        self.add((int(ell),) for ell in tasks)

    def add(self, sets: Iterable[Iterable[int]]) -> int:
        """Add sets that fit, less the tasks that are not covered here; says how many are new."""
        added = 0
        for one in sets:
            inside = tuple(sorted(int(ell) for ell in one if int(ell) in self.row))
            if inside and inside not in self._known:
                self._known.add(inside)
                self.sets.append(inside)
                rows = [self.row[ell] for ell in inside]
                cost = max(float(self.cost[ell]) for ell in inside)
                self._highs.addCol(cost, 0.0, self._infinity, len(rows), rows, [1.0] * len(rows))
                added += 1
        return added

    def run(self, limits: Limits, enough: float = math.inf, hopeless: float = -math.inf) -> Relaxed:
        """Generate until nothing is missing, the bound is `enough`, or the value is `hopeless`.

        The value is what the bound can reach at most.
        """
        nodes, best = FEW, 0.0
        while True:
            value, prices, levels = self._solve(limits)
            bound, fresh, exact = self._price(prices, nodes, limits)
            best = max(best, bound)
            used = [(self.sets[j], float(x)) for j, x in enumerate(levels) if x > 1e-7]
            relaxed = Relaxed(value, best, prices, used)
            if relaxed.closed or best >= enough or value <= hopeless or limits.stop is not None:
                return relaxed
            if not self.add(fresh):
                if exact or nodes >= MANY:
                    return relaxed
                nodes *= 10

    def _solve(self, limits: Limits) -> tuple[float, FloatArray, FloatArray]:
        """Value, prices and λ; prices are good for a bound wherever the solver stopped."""
        solution = solve_within(self._highs, limits)
        value = float(self._highs.getInfo().objective_function_value)
        prices = np.maximum(np.array(solution.row_dual), 0.0)
        return value, prices, np.array(solution.col_value)

    def _price(
        self, prices: FloatArray, nodes: int, limits: Limits
    ) -> tuple[float, list[Set], bool]:
        """A bound, sets that are worth more than they cost, and whether none can be missing.

        When time is up, sets that were not looked for count with what the tables allow them.
        """
        profits = prices[self.turn]
        cost = self.cost[self.tasks[self.turn]]
        fill_tables(self.coarse, self.room, profits, self._tables)
        worth = cost * (1 + 1e-9)
        nobody, anything = np.full(len(worth), np.inf), np.full(len(worth), -np.inf)

        def search(wanted: FloatArray) -> tuple[FloatArray, FloatArray, IntArray, IntArray]:
            return best_sets(
                self.rows, self.pack.most, profits, self.coarse, self.room, self._tables, wanted,
                anything, few, NOBODY_APART, *self._unbound,
            )  # fmt: skip

        few = nodes
        _, upper, _, _ = search(nobody)
        open_ = np.flatnonzero(upper > worth)
        fresh: list[Set] = []
        for lo in range(0, len(open_), BLOCK):
            if limits.stop is not None:
                break
            block = open_[lo : lo + BLOCK]
            few = int(min(nodes, max(200, SHARE * limits.remaining / (NODE_S * len(block)))))
            wanted = nobody.copy()
            wanted[block] = worth[block]
            value, found, size, items = search(wanted)
            upper[block] = found[block]
            fresh += [
                tuple(sorted(int(self.tasks[self.turn[j]]) for j in items[i, : size[i]]))
                for i in block[value[block] > worth[block]]
            ]
        ratio = max(1.0, float((upper / cost).max()))
        total = math.fsum((self.width * prices).tolist())
        return total / ratio * (1 - SAFE), fresh, bool((upper <= worth).all())


def quiet_program(ones: bool = False) -> Any:
    """An empty program of HiGHS's, that has one thread and says nothing.

    Parameters
    ----------
    ones: nearly all entries will be ones: they are not scaled, and a dual simplex goes by DEVEX.
    """
    import highspy

    highs = highspy.Highs()
    highs.setOptionValue("output_flag", False)
    highs.setOptionValue("threads", 1)
    if ones:
        highs.setOptionValue("simplex_dual_edge_weight_strategy", DEVEX)
        highs.setOptionValue("simplex_scale_strategy", 0)
    return highs


def solve_within(highs: Any, limits: Limits) -> Any:
    """Run a linear program until the limits' time is up, and where it is then."""
    most = math.inf
    if math.isfinite(limits.remaining):  # HiGHS counts over the life of its object
        most = highs.getRunTime() + max(LEAST_S, limits.remaining)
    highs.setOptionValue("time_limit", most)
    highs.run()
    return highs.getSolution()


def coarse_sizes(rows: IntArray, limits: IntArray) -> tuple[IntArray, IntArray]:
    """Sizes rounded down to a table's cells: each row for a few, memory and sums for many."""
    count, n = rows.shape
    if count == 1 and limits[0] <= FINE:
        return rows.copy(), limits.copy()
    cells = FINE if count == 1 else int(np.clip(CELLS_EACH * n, COARSE, FINE))
    cells = max(50, min(cells, MOST_CELLS // (3 * max(1, n))))
    share = rows / np.maximum(limits[:, None], 1)
    lines = [share[0]]
    if count > 1:
        rest = share[1:].mean(axis=0)
        lines += [rest, (share[0] + rest) / 2]
    sizes = [np.floor(np.array(line) * cells * (1 - 1e-12)).astype(np.int64) for line in lines]
    return np.array(sizes), np.full(len(lines), cells, dtype=np.int64)


def table_shape(coarse: IntArray, room: IntArray) -> tuple[int, int, int]:
    """Of the tables that `kernels.fill_tables` fills."""
    return len(room), coarse.shape[1] + 1, int(room.max()) + 1
