"""Column generation over node contents (Dantzig-Wolfe over node types).

The master LP chooses how many nodes of each type carry which contents so that every task
class gets its demand; its prices go to `pricing`, whose offers become new columns. Any
prices give a valid bound; the best one seen is kept.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np

from optgap.models.limits import Limits
from optgap.models.placement.arrays import FloatArray, IntArray
from optgap.models.result import Termination
from optgap.models.work import WORK
from optgap.solvers.backends.growing import Growing
from optgap.solvers.engines.column_generation import Pricing, Solved, generate, unsmoothed
from optgap.solvers.placement.aggregate import UNITS, Aggregate, Contents
from optgap.solvers.placement.pricing import Pricer

NEGATIVE = 1e-7
"""A reduced cost below minus this, relative to the column's own cost, is worth a column."""
ROUNDING = 1e-13
"""Relative: more than a few hundred operations round by."""
WHOLE = 1e-6
"""Least excess over a whole number for a value to be rounded up."""
SMOOTHING = 0.7
"""Weight of the best prices so far in those that are tried."""
KNOWN_TO_FIT = 100.0
"""Factor on the price ceilings where nodes that serve every task are known."""
MOST_RAISES = 5
"""Fivefold rises of the price ceiling; a task still left out then is taken for unplaceable."""


@dataclass(frozen=True, slots=True)
class Column:
    """Nodes of type `type_index` with these contents, at this cost each."""

    type_index: int
    contents: Contents
    cost: float


class Master:
    """The restricted master LP, kept warm in one program.

    Rows: one per task class (its demand; as an equation when fragmentation counts, because
    then one task too many can pay), one per node type (its count), and where the aggregate counts
    them one each for the GPUs and CPU packages in use (how many at least). Columns: an
    artificial one per class, which leaves a task unserved at a cost, and per row of these, which
    stands for one in use at the least that it costs, then the generated ones.

    Parameters
    ----------
    counted: which of the two is all that costs something, if any.
    """

    def __init__(
        self, aggregate: Aggregate, unserved_cost: FloatArray, counted: int | None = None
    ) -> None:
        self.aggregate, self.counted = aggregate, counted
        self.columns: list[Column] = []
        self._known: set[tuple[int, Contents]] = set()
        self._program = Growing()
        for _ in aggregate.classes:
            self._program.row()
        for n in aggregate.count:
            self._program.row(upper=n)
        self.head = len(aggregate.classes) + len(aggregate.types)
        self.units = UNITS if aggregate.counting else 0
        for unit in range(self.units):
            self._program.row(upper=0.0 if unit == counted else math.inf)
        for c in range(len(aggregate.classes)):
            self._program.column(unserved_cost[c], [c], [1.0])
        for unit, cost in enumerate(aggregate.unit_cost[: self.units].tolist()):
            own = unit == counted
            self._program.column(1.0 if own else cost, [self.head + unit], [-1.0 if own else 1.0])
        self.set_demand()

    def add(self, type_index: int, contents: Contents) -> Column | None:
        """Add a column; None when it is there already or no node of the type can carry it."""
        key = (type_index, contents)
        if key in self._known or not self.aggregate.feasible(type_index, contents):
            return None
        self._known.add(key)
        column = Column(type_index, contents, self.aggregate.cost(type_index, contents))
        tasks = contents.tasks
        rows = [*tasks, len(self.aggregate.classes) + type_index]
        values = [float(n) for n in tasks.values()] + [1.0]
        in_use = self.aggregate.in_use(type_index, contents)[: self.units]
        for unit, n in enumerate(in_use):
            if n:
                rows.append(self.head + unit)
                values.append(float(n))
        self._program.column(column.cost, rows, values)
        self.columns.append(column)
        return column

    def set_unserved_cost(self, cost: FloatArray) -> None:
        """Change what an unserved task costs."""
        for c, value in enumerate(cost):
            self._program.reprice(c, value)

    def set_demand(self) -> None:
        """Take over what the aggregate's demand is now."""
        exact = bool(self.aggregate.frag_weight)
        for c, d in enumerate(self.aggregate.priced_demand):
            self._program.bound_row(c, d, d if exact else math.inf)

    def set_least(self, least: FloatArray) -> None:
        """Take over how many GPUs and CPU packages are in use at least, (2,)."""
        for unit, n in enumerate(least):
            if unit != self.counted:
                self._program.bound_row(self.head + unit, n if n > 0 else -math.inf, math.inf)

    def solve(self, limits: Limits) -> MasterSolution:
        """Solve the LP as it stands, to its end, and count that work."""
        program, whole = self._program, Limits()
        program.run(whole)
        limits.spend(whole.spent)
        duals, values = program.duals, program.values
        classes = len(self.aggregate.classes)
        return MasterSolution(
            program.objective,
            Prices(duals[:classes], duals[self.head :]),
            duals[classes : self.head],
            values[:classes],
            values[classes + self.units :],
        )


@dataclass(frozen=True, slots=True, eq=False)
class Prices:
    """Prices of tasks, and with them a bound for any demand d: idle cost + Σ price·d − `nodes`.

    Parameters
    ----------
    task: (classes,) price of each.
    in_use: (2,) price of a GPU and a CPU package in use: the bound is higher by these times how
        many are in use at least. Of a master without such rows (0,).
    nodes: Σ_t n_t·max(0, V_t), see `pricing`; infinite before that: no bound.
    """

    task: FloatArray
    in_use: FloatArray
    nodes: float = math.inf

    def towards(self, other: Prices) -> Prices:
        """Return prices that are nearer to these than to others by `SMOOTHING` (Wentges 1997)."""
        units, weight = len(other.in_use), SMOOTHING
        return Prices(
            weight * self.task + (1 - weight) * other.task,
            weight * self.in_use[:units] + (1 - weight) * other.in_use,
        )


@dataclass(frozen=True, eq=False)
class MasterSolution(Solved[Prices]):
    """An optimal basic solution of the restricted master; its value is beyond the idle cluster's.

    Parameters
    ----------
    node_prices: (types,) the (non-positive) duals of the node counts.
    unserved, nodes: the two column blocks.
    """

    node_prices: FloatArray
    unserved: FloatArray
    nodes: FloatArray

    def reduced_cost(
        self, type_index: int, contents: Contents, cost: float, in_use: tuple[int, ...] = ()
    ) -> float:
        """Return the cost of a node with these contents beyond the worth of tasks and node."""
        prices = self.duals
        worth = sum(n * float(prices.task[c]) for c, n in contents.tasks.items())
        worth += sum(n * float(each) for n, each in zip(in_use, prices.in_use, strict=True))
        return cost - worth - float(self.node_prices[type_index])


@dataclass
class ColumnGeneration:
    """The loop, its bound so far and the prices that prove it.

    Attributes
    ----------
    best: the prices that prove `lower`, None before the first.
    least: (2,) how many GPUs and CPU packages are in use at least, whole numbers.

    Parameters
    ----------
    aggregate: the counted problem.
    unserved_cost: (classes,) cost of leaving a task out. When leaving out is not allowed, a
        price ceiling: the loop raises it while the LP still buys at it.
    may_leave_out: whether `unserved_cost` is part of the problem.
    counted: which of these two is all that costs something, if any.
    """

    aggregate: Aggregate
    unserved_cost: FloatArray
    may_leave_out: bool = False
    counted: int | None = None
    lower: float = -math.inf
    tolerance: float = 0.0
    rounds: int = 0
    raises: int = 0
    stopped: Termination | None = None
    best: Prices | None = None
    master: Master = field(init=False)
    last: MasterSolution = field(init=False)
    least: FloatArray = field(init=False)

    def __post_init__(self) -> None:
        self.master = Master(self.aggregate, self.unserved_cost, self.counted)
        self.least = np.zeros(UNITS)
        self.last = self.master.solve(Limits())

    def begin(self, nodes: Iterable[tuple[int, Contents]]) -> None:
        """Begin with these nodes, which serve every task, so that no price meets its ceiling."""
        for type_index, contents in nodes:
            self.master.add(type_index, contents)
        self.unserved_cost = KNOWN_TO_FIT * self.unserved_cost
        self.master.set_unserved_cost(self.unserved_cost)
        self.last = self.master.solve(Limits())

    def change_demand(
        self,
        demand: IntArray,
        limits: Limits,
        among: Iterable[Prices] = (),
        least: FloatArray | None = None,
    ) -> None:
        """Go on with another demand, (classes,), from the columns and the best of these prices."""
        self.aggregate.demand = demand
        self.master.set_demand()
        if least is not None:
            self.least = least
            self.master.set_least(least)
        self.last = self.master.solve(limits)
        self.raises = 0
        self.best = max(among, key=lambda prices: self.proven(prices, demand), default=None)
        self.lower = -math.inf if self.best is None else self.proven(self.best, demand)

    def proven(self, prices: Prices, demand: IntArray) -> float:
        """Return the lower bound that these prices prove for a demand, beyond the idle cluster."""
        terms = [*(prices.task * demand).tolist(), -prices.nodes]
        terms += (prices.in_use * self.least).tolist()
        # what tasks are worth cancels against what nodes cost within each value, too
        return math.fsum(terms) - ROUNDING * math.fsum(map(abs, terms))

    @property
    def bound(self) -> float:
        """Proven lower bound in the objective's own unit (with the idle cluster's cost)."""
        return self.with_idle(self.lower)

    def with_idle(self, lower: float) -> float:
        """Return a lower bound beyond the idle cluster, in the objective's own unit.

        Tasks never lower the power of a node: without fragmentation the idle cluster is one, too.
        """
        least = -math.inf if self.aggregate.frag_weight else 0.0
        return self.aggregate.base + max(lower, least)

    @property
    def upper(self) -> float:
        """Value of the restricted LP in the same unit; no bound on anything by itself."""
        return self.aggregate.base + self.last.value

    @property
    def short(self) -> bool:
        """Whether the LP leaves out tasks that must not be left out."""
        return not self.may_leave_out and bool(self.last.unserved.max(initial=0.0) > 1e-7)

    def run(
        self,
        cpu_unit: float,
        limits: Limits,
        *,
        tolerance: float,
        most_rounds: int = 400,
        patience: int = 0,
    ) -> None:
        """Generate columns with this CPU unit until bound and LP agree, or nothing is gained.

        With `patience`, so many rounds in a row that bring little end it, too.
        """
        self.tolerance = tolerance
        if self.closed(self.last.value, self.lower):
            return
        self._down = Pricer(self.aggregate, cpu_unit, "down")
        exact = bool(np.all(self.aggregate.cpu_milli % cpu_unit == 0))
        self._up = None if exact else Pricer(self.aggregate, cpu_unit, "up")
        found = generate(
            self, limits, bound=self.lower, duals=self.best, patience=patience, rounds=most_rounds,
            # units are counted in too few rounds for smoothed prices to get there
            smooth=Prices.towards if self.counted is None else unsmoothed,
            tell=lambda value, bound: limits.progress(
                "columns", self.aggregate.base + value, self.with_idle(bound)
            ),
        )  # fmt: skip
        self.lower, self.best, self.stopped = found.bound, found.duals, found.stopped

    def solve_master(self, limits: Limits) -> MasterSolution:
        """Solve the restricted master."""
        self.last = self.master.solve(limits)
        return self.last

    def price(self, duals: Prices, limits: Limits) -> Pricing[Prices]:
        """Bound with CPU needs rounded down, and look for columns both ways."""
        prices, added = self._offer(self._down, duals, limits)
        if self._up is not None and (not added or self.rounds % 3 == 2):
            added += self._offer(self._up, duals, limits)[1]
        self.rounds += 1
        return Pricing(self.proven(prices, self.aggregate.priced_demand), prices, added)

    def _offer(self, pricer: Pricer, duals: Prices, limits: Limits) -> tuple[Prices, int]:
        """Return these prices with what nodes earn by them, and how many columns were added."""
        aggregate, units = self.aggregate, len(duals.in_use)
        in_use = np.zeros(UNITS)
        in_use[:units] = np.clip(duals.in_use, 0.0, aggregate.unit_cost[:units])
        if self.counted is not None:
            in_use = -np.eye(UNITS)[self.counted]
        task = np.where(pricer.priceable, duals.task, 0.0)
        if not aggregate.frag_weight:
            task = np.maximum(task, 0.0)
        added, nodes = 0, []
        limits.spend(WORK.pricing(pricer.units))
        for offer in pricer.price(task, in_use):
            nodes.append(float(aggregate.count[offer.type_index]) * max(0.0, offer.value))
            added += self.add_attractive(offer.type_index, offer.contents)
        return Prices(task, in_use, math.fsum(nodes)), added

    def closed(self, value: float, bound: float) -> bool:
        """Tell whether bound and restricted LP agree to the tolerance."""
        if self.counted is not None:  # what is whole has no room between the two
            return not self.short and whole(bound) >= whole(value)
        upper = self.aggregate.base + value
        gap = upper - self.with_idle(bound)
        return not self.short and gap <= self.tolerance * max(1e-9, abs(upper))

    def escalate(self, closed: bool, limits: Limits) -> bool:
        """Raise the price ceiling where the LP still leaves tasks out; False when it need not."""
        if self.short and self._add_alone():
            return True
        if not self.short or self.raises == MOST_RAISES:
            return False
        self.raises += 1
        left_out = self.last.unserved > 1e-7
        self.unserved_cost = np.where(left_out, 5 * self.unserved_cost, self.unserved_cost)
        self.master.set_unserved_cost(self.unserved_cost)
        return True

    def add_attractive(self, t: int, candidates: Iterable[Contents]) -> int:
        """Add the contents with a negative reduced cost at the LP's prices."""
        added = 0
        for contents in candidates:
            cost = self.aggregate.cost(t, contents)
            in_use = self.aggregate.in_use(t, contents) if self.master.units else ()
            reduced = self.last.reduced_cost(t, contents, cost, in_use)
            if reduced < -NEGATIVE * (1 + abs(cost)) and self.master.add(t, contents):
                added += 1
        return added

    def _add_alone(self) -> bool:
        """Offer the tasks left out one by one: pricing may know only more of them than fit."""
        aggregate, added = self.aggregate, False
        for c in np.flatnonzero(self.last.unserved > 1e-7).tolist():
            alone = single(int(aggregate.num_gpu[c]), c)
            for t in np.flatnonzero(aggregate.fits_type[:, c]).tolist():
                added |= self.master.add(t, alone) is not None
        return added


def whole(least: float) -> float:
    """Return the whole number that something whole is not below, as it is not below `least`."""
    return math.ceil(least - WHOLE) if math.isfinite(least) else least


def stand_alone_cost(aggregate: Aggregate) -> FloatArray:
    """Return the cost of the cheapest idle node with one task, (classes,); inf if none fits.

    With fragmentation it can be negative; then it is an absolute value.
    """
    cost = np.full(len(aggregate.classes), math.inf)
    for t in range(len(aggregate.types)):
        for c, task in enumerate(aggregate.classes):
            if aggregate.fits_type[t][c]:
                cost[c] = min(cost[c], abs(aggregate.cost(t, single(task.num_gpu, c))))
    return cost


def single(num_gpu: int, c: int) -> Contents:
    """Return one task of class `c`, alone."""
    if num_gpu == 0:
        return Contents(cpu_only=(c,))
    return Contents(shares=((c,),)) if num_gpu == 1 else Contents(multi=(c,))


def cpu_units(aggregate: Aggregate, most: int) -> float:
    """Return a CPU unit with at most `most` units per node, losing the least when rounding down.

    Units around the finest allowed are tried; the loss is the CPU need that rounding hides,
    summed over all tasks.
    """
    needs = aggregate.cpu_milli[aggregate.cpu_milli > 0]
    weights = aggregate.demand[aggregate.cpu_milli > 0]
    capacity = max(int(t.cpu_milli) for t in aggregate.types)
    exact = math.gcd(*(int(c) for c in needs), capacity) if needs.size else max(1, capacity)
    if capacity / exact <= most:
        return float(exact)
    finest = capacity / most
    units = finest * np.linspace(1.0, 1.5, 101)
    loss = [float((weights * (needs % unit)).sum()) for unit in units]
    return float(units[int(np.argmin(loss))])
