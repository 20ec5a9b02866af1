"""Pricing: columns of negative reduced cost, and an upper limit on the dual value of every column.

A column is priced by its first task, the dearest, which fixes its level: a knapsack over the tasks
after it with their duals as profits, solved by the depth-first search of `kernels`. The limit
counts even where the search was cut short, so that the dual bound is valid at any time.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from optgap.models.work import CONSOLIDATION
from optgap.solvers.consolidation.bounds import CostLevels
from optgap.solvers.consolidation.column_generation.kernels import (
    Knapsack,
    best_columns,
    fill_tables,
)
from optgap.solvers.consolidation.column_generation.master import Duals
from optgap.solvers.consolidation.config import DEFAULT
from optgap.solvers.consolidation.instance import Instance
from optgap.solvers.consolidation.numerics import Column, FloatArray, IntArray

TOLERANCE = 1e-7
"""Least size of a negative reduced cost whose column is added, in the dearest GPU's cost."""

LEAST_NEW = 50
"""Columns that are added to the master at a time at least; or a quarter of the tasks."""
TABLE_CELLS = 16_000_000
"""Cells of all tables together at most, 8 bytes each."""


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
    work: units that the search took.
    """

    gpu_prices: FloatArray
    upper: FloatArray
    columns: list[Column]
    exact: bool
    work: float = 0.0


class Pricer:
    """Solves the pricing subproblems of an instance.

    Attributes
    ----------
    order: tasks by falling level, then size: a column begins with its dearest task.
    tolerance: reduced costs above minus this count as not negative, W.
    """

    def __init__(self, instance: Instance, levels: CostLevels) -> None:
        self.instance, self.levels = instance, levels
        self.limit: IntArray = instance.max_capacity
        sizes = (instance.demand / np.maximum(self.limit[:, None], 1)).sum(axis=0)
        self.order: IntArray = np.lexsort((-sizes, -levels.of))
        self.demand: IntArray = np.ascontiguousarray(instance.demand[:, self.order])
        self.coarse, self.room = coarse_sizes(self.demand, self.limit)
        self._tables: FloatArray = np.zeros(
            (len(self.room), instance.tasks + 1, int(self.room.max()) + 1)
        )
        self.tolerance = TOLERANCE * float(levels.steps_w.sum())
        self.most_new = max(LEAST_NEW, instance.tasks // 4)

    @property
    def task_levels(self) -> IntArray:
        """(L,) the level of each task, in `order`."""
        return self.levels.of[self.order]

    def price(self, duals: Duals, assignment: IntArray, nodes: int) -> Priced:
        """Search for columns of negative reduced cost that the assignment allows.

        Parameters
        ----------
        nodes: most nodes of the search for each dearest task.
        """
        gpu_prices = duals.gpu_prices[self.task_levels]
        wanted = gpu_prices + self.tolerance
        knapsack = self.knapsack(duals, assignment)
        value, upper, size, members, looks = best_columns(knapsack, wanted, nodes)
        excess = value - wanted
        best = np.argsort(-excess, kind="stable")[: self.most_new]
        columns = [
            tuple(self.order[members[k, : size[k]]].tolist()) for k in best[excess[best] > 0]
        ]
        exact = bool((upper <= wanted).all())
        work = CONSOLIDATION.cell * self._tables.size + CONSOLIDATION.look * looks
        return Priced(gpu_prices, upper, columns, exact, work)

    def knapsack(self, duals: Duals, assignment: IntArray) -> Knapsack:
        """Return the subproblem with its tables, in memory that the next one takes over."""
        found = Knapsack(
            self.demand, self.limit, duals.tasks[self.order], self.coarse, self.room, self._tables,
            assignment[self.order], duals.servers
        )  # fmt: skip
        fill_tables(found)
        return found


def coarse_sizes(demand: IntArray, limit: IntArray) -> tuple[IntArray, IntArray]:
    """Demands in table cells, rounded down: (S, n), and the cells of each table: (S,).

    One table for memory alone; with other rows three: memory, the mean of the others, and the mean
    of both. What rounding adds to an upper limit no search can close: with hundreds of tasks of
    about equal dual value, few cells take a thousand times as many nodes.
    """
    (count, n), params = demand.shape, DEFAULT.pricing
    if count == 1 and limit[0] <= params.max_cells:
        return demand.copy(), limit.copy()
    cells = params.max_cells
    if count > 1:
        cells = int(np.clip(params.cells_per_task * n, params.min_cells, params.max_cells))
    cells = max(50, min(cells, TABLE_CELLS // (3 * max(1, n))))
    share = demand / np.maximum(limit[:, None], 1)
    lines = [share[0]]
    if count > 1:
        rest = share[1:].mean(axis=0)
        lines += [rest, (share[0] + rest) / 2]
    sizes = [np.floor(np.array(line) * cells * (1 - 1e-12)).astype(np.int64) for line in lines]
    return np.array(sizes), np.full(len(lines), cells, dtype=np.int64)
