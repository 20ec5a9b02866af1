"""Pricing: columns of negative reduced cost, and an upper limit on the dual value of every column.

A column is priced by its first task, the dearest, which fixes its level: a knapsack over the tasks
after it with their duals as profits, solved by the depth-first search of `kernels`. The limit
counts even where the search was cut short, so that the dual bound is valid at any time.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from optgap.solvers.consolidation.bounds.level_counts import CostLevels
from optgap.solvers.consolidation.column_generation.dual_bound import Duals
from optgap.solvers.consolidation.column_generation.kernels import (
    Knapsack,
    best_columns,
    fill_tables,
)
from optgap.solvers.consolidation.column_generation.space import ServerAssignment
from optgap.solvers.consolidation.config import DEFAULT, PricingParams
from optgap.solvers.consolidation.instance import Instance
from optgap.solvers.consolidation.numerics import BoolArray, Column, FloatArray, IntArray

TOLERANCE = 1e-7
"""How negative a reduced cost must be for its column to be added, in the dearest GPU's cost."""
Found = list[tuple[float, Column]]
"""Columns with minus their reduced costs, W."""


@dataclass(frozen=True, eq=False)
class Priced:
    """The result of one pricing.

    Parameters
    ----------
    gpu_prices, upper: (L,) for the columns of each dearest task, in the order of `Pricer.order`:
        the dual price of their GPU, and an upper limit on their dual value less their server's
        price, W.
    columns: columns of negative reduced cost, the most negative first.
    exact: proven that no other column has one.
    """

    gpu_prices: FloatArray
    upper: FloatArray
    columns: list[Column]
    exact: bool


class Pricer:
    """Solves the pricing subproblems of an instance.

    Attributes
    ----------
    order: tasks by falling level, then size: a column begins with its dearest task.
    tolerance: reduced costs above minus this count as not negative, W.
    """

    def __init__(
        self, instance: Instance, levels: CostLevels, params: PricingParams = DEFAULT.pricing
    ) -> None:
        self.instance, self.levels, self.params = instance, levels, params
        rows = len(instance.demand) - bool(instance.preplaced)  # the last keeps those apart
        self.limit: IntArray = instance.max_capacity[:rows]
        sizes = (instance.demand[:rows] / np.maximum(self.limit[:, None], 1)).sum(axis=0)
        self.order: IntArray = np.lexsort((-sizes, -levels.of))
        self.demand: IntArray = np.ascontiguousarray(instance.demand[:rows, self.order])
        self.coarse, self.room = coarse_sizes(self.demand, self.limit, params)
        self._cells: FloatArray = np.zeros(math.prod(table_shape(self.coarse, self.room)))
        self.tolerance = TOLERANCE * float(levels.steps_w.sum())
        preplaced, share = bool(instance.preplaced), int(params.new_share * instance.tasks)
        self.most_new = max(params.new_preplaced if preplaced else params.new, share)
        self.most_each = params.new_each_preplaced if preplaced else self.most_new

    @property
    def task_levels(self) -> IntArray:
        """(L,) the level of each task, in `order`."""
        return self.levels.of[self.order]

    def price(self, duals: Duals, assignment: ServerAssignment, nodes: int) -> Priced:
        """Search for columns of negative reduced cost that the assignment allows.

        Parameters
        ----------
        nodes: most nodes of the search for each dearest task.
        """
        gpu_prices = duals.gpu_prices[self.task_levels]
        wanted = gpu_prices + self.tolerance
        server = assignment.server[self.order]
        ask = _Subproblem(duals, server, assignment.forbidden, nodes)
        if self.instance.preplaced:
            parts = self._by_preplaced(ask, wanted)
        else:
            parts = [self._among(ask, wanted, np.arange(self.instance.tasks))]
        upper: FloatArray = np.full(len(wanted), -np.inf)
        found: Found = []
        for more, columns in parts:
            upper = np.maximum(upper, more)
            found += columns
        best = [column for _, column in sorted(found, reverse=True)[: self.most_new]]
        return Priced(gpu_prices, upper, best, bool((upper <= wanted).all()))

    def _by_preplaced(self, ask: _Subproblem, wanted: FloatArray) -> list[tuple[FloatArray, Found]]:
        """One subproblem beside each preplaced task, and one without any."""
        others = np.flatnonzero(self.order >= self.instance.preplaced)
        parts = [self._among(ask, wanted, others)]
        for placed in np.flatnonzero(self.order < self.instance.preplaced).tolist():
            parts.append(self._beside(placed, ask, wanted, others))
        return parts

    def _beside(
        self, placed: int, ask: _Subproblem, wanted: FloatArray, others: IntArray
    ) -> tuple[FloatArray, Found]:
        """The same as `_among` on the GPUs of a preplaced task, with the tables filled last."""
        own = float(ask.duals.tasks[self.order[placed]])
        least = np.maximum(wanted[others], wanted[placed]) - own
        room = self.room - self.coarse[:, placed]
        left = self.limit - self.demand[:, placed]
        most, columns = self._search(
            ask, least, others, self.knapsack(ask.duals, others, left, room)
        )
        upper: FloatArray = np.full(len(wanted), -np.inf)
        dearer = others < placed  # a column counts where its dearest task does
        upper[others[dearer]] = own + most[dearer]
        upper[placed] = own + max(0.0, float(most[~dearer].max(initial=0.0)))
        also = int(self.order[placed])
        return upper, [(excess, (also, *column)) for excess, column in columns]

    def _among(
        self, ask: _Subproblem, wanted: FloatArray, tasks: IntArray
    ) -> tuple[FloatArray, Found]:
        """Price columns of some tasks: the upper limits of `Priced`, and the columns found."""
        knapsack = self.knapsack(ask.duals, tasks, self.limit, self.room)
        fill_tables(knapsack)
        upper: FloatArray = np.full(len(wanted), -np.inf)
        upper[tasks], found = self._search(ask, wanted[tasks], tasks, knapsack)
        return upper, found

    def knapsack(self, duals: Duals, tasks: IntArray, limit: IntArray, room: IntArray) -> Knapsack:
        """The subproblem over some tasks, in memory that the next one takes over."""
        coarse = np.ascontiguousarray(self.coarse[:, tasks])
        shape = table_shape(coarse, self.room)
        tables = self._cells[: math.prod(shape)].reshape(shape)
        demand = np.ascontiguousarray(self.demand[:, tasks])
        return Knapsack(demand, limit, duals.tasks[self.order[tasks]], coarse, room, tables)

    def _search(
        self, ask: _Subproblem, wanted: FloatArray, tasks: IntArray, knapsack: Knapsack
    ) -> tuple[FloatArray, Found]:
        order = self.order[tasks]
        value, upper, size, members = best_columns(
            knapsack, wanted, ask.nodes, ask.server[tasks], ask.duals.servers, ask.forbidden[order]
        )
        excess = value - wanted
        best = np.argsort(-excess, kind="stable")[: self.most_each]
        found = [
            (float(excess[k]), tuple(int(order[j]) for j in members[k, : size[k]]))
            for k in best[excess[best] > 0].tolist()
        ]
        return upper, found


@dataclass(frozen=True, eq=False)
class _Subproblem:
    """Duals, the server of each task in the pricer's order, and the nodes of a search."""

    duals: Duals
    server: IntArray
    forbidden: BoolArray
    nodes: int


def coarse_sizes(
    demand: IntArray, limit: IntArray, params: PricingParams = DEFAULT.pricing
) -> tuple[IntArray, IntArray]:
    """Demands in table cells, rounded down: (S, n), and the cells of each table: (S,).

    One table for memory alone; with other rows three: memory, the mean of the others, and the mean
    of both. What rounding adds to an upper limit no search can close: with hundreds of tasks of
    about equal dual value, few cells take a thousand times as many nodes.
    """
    count, n = demand.shape
    if count == 1 and limit[0] <= params.max_cells:
        return demand.copy(), limit.copy()
    cells = params.max_cells
    if count > 1:
        cells = int(np.clip(params.cells_per_task * n, params.min_cells, params.max_cells))
    cells = max(50, min(cells, params.table_cells // (3 * max(1, n))))
    share = demand / np.maximum(limit[:, None], 1)
    lines = [share[0]]
    if count > 1:
        rest = share[1:].mean(axis=0)
        lines += [rest, (share[0] + rest) / 2]
    sizes = [np.floor(np.array(line) * cells * (1 - 1e-12)).astype(np.int64) for line in lines]
    return np.array(sizes), np.full(len(lines), cells, dtype=np.int64)


def table_shape(coarse: IntArray, room: IntArray) -> tuple[int, int, int]:
    """Shape of the tables that `kernels.fill_tables` fills."""
    return len(room), coarse.shape[1] + 1, int(room.max()) + 1
