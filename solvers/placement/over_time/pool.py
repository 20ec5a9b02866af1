"""Bounds by prices at every time, and the GPUs and CPU packages in use then."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np

from optgap.models.limits import Limits
from optgap.models.placement.arrays import FloatArray, IntArray
from optgap.solvers.placement.aggregate import UNITS, Aggregate
from optgap.solvers.placement.columns import (
    WHOLE,
    Column,
    ColumnGeneration,
    Prices,
    cpu_units,
)
from optgap.solvers.placement.over_time.demand import Demand

EPSILON = float(np.finfo(float).eps)
ROUNDS = 12
"""Rounds of pricing for one number at one time; later rounds rarely prove more."""


@dataclass(eq=False)
class Pool:
    """The best bound at every moment so far.

    Parameters
    ----------
    demand, class_of: when tasks run, and (T,) of which class each is.
    value: (E,) what is proven beyond the idle cluster, from each event to the next.
    least: (2, E) how many GPUs and CPU packages are in use then, at least.
    prices: what proves it.

    Attributes
    ----------
    largest: the highest price of a task. dearest: (2,) of a GPU and a CPU package in use.
    rounding: what sums of so many prices round by, at most.
    """

    demand: Demand
    class_of: IntArray
    value: FloatArray
    least: FloatArray
    prices: list[Prices] = field(default_factory=list)
    largest: float = 0.0
    dearest: FloatArray = field(default_factory=lambda: np.zeros(UNITS))
    rounding: float = 0.0

    def add(self, prices: Prices) -> None:
        """Take what these prices prove wherever that is more."""
        self.largest = max(self.largest, float(np.abs(prices.task).max()))
        self.dearest = np.maximum(self.dearest, prices.in_use)
        self.prices.append(prices)
        self._raise(prices)
        largest_sum = float(self.value.max()) + prices.nodes
        self.rounding = max(self.rounding, len(self.value) * EPSILON * largest_sum)

    def in_use(self, least: FloatArray) -> None:
        """Take it that so many are in use, (2, E), and what the prices prove with that."""
        self.least = least
        for prices in self.prices:
            if prices.in_use.any():
                self._raise(prices)

    def _raise(self, prices: Prices) -> None:
        each = prices.task[self.class_of[self.demand.task]] * self.demand.change
        proven = np.cumsum(each) + prices.in_use @ self.least - prices.nodes
        np.maximum(self.value, proven, out=self.value)

    @property
    def integral(self) -> float:
        """Over all time; minus infinity where nothing is proven yet."""
        if math.isinf(float(self.value.min())):
            return -math.inf
        return float(self.value @ self.demand.lasts_s)


class Counting:
    """The least numbers of GPUs and CPU packages in use at every moment.

    Each is bounded as power is, by prices of tasks, and rounded up, as it is whole.

    Parameters
    ----------
    aggregate: of the problem whose power is bounded. demand, class_of: as for `Pool`.

    Attributes
    ----------
    least: (2, E) what is proven so far.
    """

    def __init__(self, aggregate: Aggregate, demand: Demand, class_of: IntArray) -> None:
        self.least = np.zeros((UNITS, len(demand.time_s)))
        self.pools: list[Pool] = []
        self.generations: list[ColumnGeneration] = []
        self.given = 0
        for counted in range(UNITS):
            own = Aggregate(aggregate.problem, weights=(0.0, 0.0), counting=True)
            most = max(max(t.gpus, own.bands(k)[-1].packages) for k, t in enumerate(own.types))
            unserved = np.full(len(own.classes), 1.0 + 3.0 * max(1, most))
            self.generations.append(ColumnGeneration(own, unserved, counted=counted))
            start, none = np.zeros(len(demand.time_s)), np.zeros_like(self.least)
            self.pools.append(Pool(demand, class_of, start, none))

    def know(self, other: Counting) -> None:
        """Take over the prices for another demand."""
        for counted, known in enumerate(other.pools):
            for prices in known.prices:
                self._add(counted, prices)

    def _add(self, counted: int, prices: Prices) -> None:
        pool = self.pools[counted]
        pool.add(prices)
        self.least[counted] = np.ceil(pool.value - (WHOLE + pool.rounding))

    def rises(self, dearest: FloatArray) -> float:
        """Return by how much one more task raises at most the part proven by devices in use.

        A sum of prices rises by the highest of a task, and rounding up adds less than one.

        Parameters
        ----------
        dearest: (2,) what a GPU and a CPU package in use are worth.
        """
        most = np.array([pool.largest for pool in self.pools])
        return float(dearest @ (1.0 + most))

    def raise_at(
        self, demand: IntArray, which: Iterable[int], limits: Limits, *, units: int
    ) -> None:
        """Prove as many in use after an event as can be.

        Parameters
        ----------
        demand: (classes,) what runs then. which: 0 for GPUs, 1 for CPU packages.
        units: of CPU per node, at most.
        """
        for counted in which:
            generation = self.generations[counted]
            generation.change_demand(demand, limits, self.pools[counted].prices)
            unit_milli = cpu_units(generation.aggregate, units)
            generation.run(unit_milli, limits, tolerance=0.0, most_rounds=ROUNDS)
            if generation.best is not None and generation.best not in self.pools[counted].prices:
                self._add(counted, generation.best)

    def offer(self, columns: list[Column]) -> None:
        """Take patterns found otherwise; `columns` are all there are."""
        for column in columns[self.given :]:
            for generation in self.generations:
                generation.master.add(column.type_index, column.contents)
        self.given = len(columns)
