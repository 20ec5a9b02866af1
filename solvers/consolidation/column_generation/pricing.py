"""Pricing: the columns of least reduced cost, and what no column is worth more than.

A column is priced by its first task, the dearest, as a knapsack over the tasks after it:
depth-first search, cut off by tables of what rounded-down sizes allow. A search that was cut short
counts with what the tables allow, so that the bound never takes a column for worth less than it
may be.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from optgap.solvers.consolidation.bounds.level_counts import CostLevels
from optgap.solvers.consolidation.column_generation.dual_bound import Duals
from optgap.solvers.consolidation.column_generation.kernels import best_columns, fill_tables
from optgap.solvers.consolidation.column_generation.space import ServerAssignment
from optgap.solvers.consolidation.config import DEFAULT, PricingParams
from optgap.solvers.consolidation.instance import Instance
from optgap.solvers.consolidation.numerics import BoolArray, Column, FloatArray, IntArray

WORTH_ADDING = 1e-7
"""Of the dearest GPU: what a column must be worth beyond its rent."""
Found = list[tuple[float, Column]]
"""Columns, and what each is worth beyond what was asked."""


@dataclass(frozen=True, eq=False)
class Priced:
    """What pricing has found.

    Parameters
    ----------
    rents, worth: (L,) by first task, in the order of `Pricer.order`: what its columns pay, and what
        none of them is worth more than.
    columns: worth adding, the best first.
    exact: none is missing.
    """

    rents: FloatArray
    worth: FloatArray
    columns: list[Column]
    exact: bool


class Pricer:
    """Searches for columns of an instance.

    Attributes
    ----------
    order: tasks by falling level, then size: a column begins with its dearest task.
    """

    def __init__(
        self, instance: Instance, levels: CostLevels, params: PricingParams = DEFAULT.pricing
    ) -> None:
        self.instance, self.levels, self.params = instance, levels, params
        rows = len(instance.demand) - bool(instance.preplaced)  # what keeps those apart is no size
        self.limit: IntArray = instance.max_capacity[:rows]
        sizes = (instance.demand[:rows] / np.maximum(self.limit[:, None], 1)).sum(axis=0)
        self.order: IntArray = np.lexsort((-sizes, -levels.of))
        self.demand: IntArray = np.ascontiguousarray(instance.demand[:rows, self.order])
        self.coarse, self.room = coarse_sizes(self.demand, self.limit, params)
        self._cells: FloatArray = np.zeros(math.prod(table_shape(self.coarse, self.room)))
        self.tolerance = WORTH_ADDING * float(levels.steps_w.sum())
        preplaced, share = bool(instance.preplaced), int(params.new_share * instance.tasks)
        self.most_new = max(params.new_preplaced if preplaced else params.new, share)
        self.most_each = params.new_each_preplaced if preplaced else self.most_new

    @property
    def task_levels(self) -> IntArray:
        """(L,) the level of each task, in `order`."""
        return self.levels.of[self.order]

    def price(self, duals: Duals, assignment: ServerAssignment, nodes: int) -> Priced:
        """Columns that are worth more than their rent.

        Parameters
        ----------
        nodes: of the search for each first task.
        """
        rents = duals.rents[self.task_levels]
        wanted = rents + self.tolerance
        server = assignment.server[self.order]
        ask = _Question(duals, server, assignment.forbidden, nodes)
        if self.instance.preplaced:
            parts = self._by_preplaced(ask, wanted)
        elif nodes <= self.params.heuristic_nodes or not (server >= 0).any():
            parts = [self._among(ask, wanted, np.arange(self.instance.tasks))]
        else:
            parts = self._by_server(ask, wanted)
        worth: FloatArray = np.full(len(wanted), -np.inf)
        found: Found = []
        for more, columns in parts:
            worth = np.maximum(worth, more)
            found += columns
        best = [column for _, column in sorted(found, reverse=True)[: self.most_new]]
        return Priced(rents, worth, best, bool((worth <= wanted).all()))

    def _by_server(self, ask: _Question, wanted: FloatArray) -> list[tuple[FloatArray, Found]]:
        """For each server what may be in it, its toll always paid: no two tasks exclude another.

        A column of unassigned tasks pays no toll where it is looked for without a server.
        """
        free = ask.anywhere()
        parts = [self._among(free, wanted, np.flatnonzero(ask.server < 0))]
        for i in np.unique(ask.server[ask.server >= 0]).tolist():
            open_here = (ask.server < 0) & ~ask.forbidden[self.order, i]
            toll = float(ask.duals.servers[i])
            tasks = np.flatnonzero((ask.server == i) | open_here)
            worth, columns = self._among(free, wanted + toll, tasks)
            parts.append((worth - toll, columns))
        return parts

    def _by_preplaced(self, ask: _Question, wanted: FloatArray) -> list[tuple[FloatArray, Found]]:
        """Beside no task that is in place already, and beside each."""
        others = np.flatnonzero(self.order >= self.instance.preplaced)
        parts = [self._among(ask, wanted, others)]
        for placed in np.flatnonzero(self.order < self.instance.preplaced).tolist():
            parts.append(self._beside(placed, ask, wanted, others))
        return parts

    def _beside(
        self, placed: int, ask: _Question, wanted: FloatArray, others: IntArray
    ) -> tuple[FloatArray, Found]:
        """The same as `_among` where a preplaced task is, with the tables that were filled last."""
        own = float(ask.duals.tasks[self.order[placed]])
        least = np.maximum(wanted[others], wanted[placed]) - own
        room = self.room - self.coarse[:, placed]
        left = self.limit - self.demand[:, placed]
        most, columns = self._search(ask, least, others, room, left)
        worth: FloatArray = np.full(len(wanted), -np.inf)
        dearer = others < placed  # a column counts where its dearest task does
        worth[others[dearer]] = own + most[dearer]
        worth[placed] = own + max(0.0, float(most[~dearer].max(initial=0.0)))
        also = int(self.order[placed])
        return worth, [(excess, (also, *column)) for excess, column in columns]

    def _among(
        self, ask: _Question, wanted: FloatArray, tasks: IntArray
    ) -> tuple[FloatArray, Found]:
        """Of columns of some tasks: what none exceeds by first task; those worth adding."""
        coarse = np.ascontiguousarray(self.coarse[:, tasks])
        fill_tables(coarse, self.room, ask.duals.tasks[self.order[tasks]], self.tables(coarse))
        worth: FloatArray = np.full(len(wanted), -np.inf)
        worth[tasks], found = self._search(ask, wanted[tasks], tasks, self.room, self.limit)
        return worth, found

    def tables(self, coarse: IntArray) -> FloatArray:
        """Memory for the tables of some tasks."""
        shape = table_shape(coarse, self.room)
        return self._cells[: math.prod(shape)].reshape(shape)

    def _search(
        self, ask: _Question, wanted: FloatArray, tasks: IntArray, room: IntArray, left: IntArray
    ) -> tuple[FloatArray, Found]:
        """By first task, with the tables of all of them."""
        order = self.order[tasks]
        coarse = np.ascontiguousarray(self.coarse[:, tasks])
        value, worth, size, members = best_columns(
            np.ascontiguousarray(self.demand[:, tasks]), left, ask.duals.tasks[order], coarse, room,
            self.tables(coarse), wanted, ask.nodes, ask.server[tasks], ask.duals.servers,
            ask.forbidden[order],
        )  # fmt: skip
        excess = value - wanted
        best = np.argsort(-excess, kind="stable")[: self.most_each]
        found = [
            (float(excess[k]), tuple(int(order[j]) for j in members[k, : size[k]]))
            for k in best[excess[best] > 0].tolist()
        ]
        return worth, found


@dataclass(frozen=True, eq=False)
class _Question:
    """Duals, the server of each task in the pricer's order, and how long may be searched."""

    duals: Duals
    server: IntArray
    forbidden: BoolArray
    nodes: int

    def anywhere(self) -> _Question:
        """The same with no task in a server."""
        return _Question(self.duals, np.full_like(self.server, -1), self.forbidden, self.nodes)


def coarse_sizes(
    demand: IntArray, limit: IntArray, params: PricingParams = DEFAULT.pricing
) -> tuple[IntArray, IntArray]:
    """Sizes rounded down to a table's cells: each row for a few, memory and sums for many.

    What rounding adds to a bound is what a search cannot close: with hundreds of tasks of about
    equal worth, few cells take a thousand times as many nodes.
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
    """Of the tables that `kernels.fill_tables` fills."""
    return len(room), coarse.shape[1] + 1, int(room.max()) + 1
