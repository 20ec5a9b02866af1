"""The linear program over contents of a GPU, with whole numbers of GPUs by level beside them.

With equal GPUs in equal servers a placement costs Σ_q s_q·N_q + P·Z, where N_q is how many GPUs
cost level q or more, s_q the step in cost to that level, Z the awake servers and P their static
power. λ_S counts the GPUs that hold the set S:

    min  Σ_q s_q·N_q + P·Z
    Σ_{S∋l} λ_S ≥ v_l                                 every task l
    N_q ≥ Σ_{S of level ≥ q} λ_S                      every level q
    W·Z ≥ N_0                                         W GPUs in a server
    Σ_{S in server i} λ_S ≤ W                         once tasks are bound to servers

Few values of (N, Z) lie between a good bound and a good placement; branching on them alone leaves
a gap that is mostly closed (see docs/consolidation-bounds.md).
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from optgap.models.clock import working_time
from optgap.models.limits import Limits
from optgap.solvers.consolidation.generation import (
    FEW,
    Set,
    coarse_sizes,
    quiet_program,
    solve_within,
    table_shape,
)
from optgap.solvers.consolidation.kernels import (
    DEEPEST,
    NOBODY_APART,
    all_sets,
    best_sets,
    fill_tables,
)
from optgap.solvers.consolidation.levels import Levels
from optgap.solvers.consolidation.packing import QUANTUM_W, FloatArray, IntArray, Packing

DUAL, PRIMAL = 1, 4
"""HiGHS's simplex: after rows or bounds have changed, and after columns have been added."""
SAFE = 1e-9
"""Relative: what the sums of a bound may be off by."""
QUICK, MANY, MORE_NODES = 100, 200_000, 10
"""Nodes of the search for a set, at first, as sets that are worth more than they cost are soon
found where there are such; at most, which is between two looks at the clock; and times as many are
allowed where fewer leave it open."""
MOST_FRESH = 50
"""Sets that are added at a time, or a quarter as many as there are tasks: with more of them each
linear program takes longer than they save."""
MOST_BESIDE, MOST_EACH = 150, 30
"""The same where there are anchors, as those linear programs are solved once; and beside each."""
MOST_SETS, SETS_PER_TASK = 1500, 16
"""Sets, in all or per task, beyond which half are forgotten."""
FIRST_DEAR, DEARER, DEAR = 1.0, 4.0, 50.0
"""Times the dearest GPU and a server: what a GPU beyond the counts costs at first, so that no
linear program is infeasible; how much more where one is used all the same, and at most. With less,
prices stay near those of the box around, and far fewer sets are worth anything."""
FINE = 4.0
"""The same where prices are asked for that are no proof: enough, and not more than all others."""
PATIENT = 3
"""Rounds in which a value that is to be lowered has to be."""
BEYOND = 1e-7
"""GPUs beyond the counts that are more than what a linear program is off by."""
LOOSE = 1e-7
"""Of the dearest level: what a set must be worth beyond its cost to be worth adding."""


@dataclass(frozen=True)
class Box:
    """Least and most of N_0, …, N_{Q−1}, Z."""

    low: tuple[int, ...]
    high: tuple[int, ...]

    @property
    def single(self) -> bool:
        """Whether it holds one vector."""
        return self.low == self.high

    @property
    def holds(self) -> bool:
        """Whether it holds any."""
        return all(low <= high for low, high in zip(self.low, self.high, strict=True))


def up_to(vector: tuple[int, ...]) -> Box:
    """Counts that are no more: what a linear program needs less is seen as it is lost."""
    return Box((*(0 for _ in vector[:-1]), vector[-1]), vector)


@dataclass(frozen=True, eq=False)
class Binding:
    """Which servers tasks of several GPUs are in.

    Parameters
    ----------
    server: (L,) a server, or -1 for a task that is bound to none yet.
    barred: (L, N) bool, servers that an unbound task is not in.
    """

    server: IntArray
    barred: np.ndarray

    @classmethod
    def none(cls, tasks: int, servers: int) -> Binding:
        """Nothing bound."""
        return cls(np.full(tasks, -1, dtype=np.int64), np.zeros((tasks, max(1, servers)), bool))

    @property
    def fresh(self) -> int:
        """The first server that no task is bound to."""
        return int(self.server.max()) + 1

    def bind(self, pairs: Iterable[tuple[int, int]]) -> Binding:
        """With more tasks in servers."""
        bound = self.server.copy()
        for task, server in pairs:
            bound[task] = server
        return Binding(bound, self.barred)

    def bar(self, pairs: Iterable[tuple[int, int]]) -> Binding:
        """With tasks kept out of servers."""
        barred = self.barred.copy()
        for task, server in pairs:
            barred[task, server] = True
        return Binding(self.server, barred)


@dataclass(frozen=True)
class Relaxed:
    """Where the linear program of a box ended.

    Parameters
    ----------
    value: of the restricted program. bound: no more than that of the full one.
    vector: (Q+1,) N and Z. amounts: (sets,) λ.
    """

    value: float
    bound: float
    vector: FloatArray
    amounts: FloatArray


@dataclass(frozen=True)
class Basis:
    """Of the restricted program: sets whose amounts are basic, and HiGHS's words for the rest."""

    sets: frozenset[Set]
    columns: list[Any]
    rows: list[Any]


class Master:
    """The restricted linear program, kept warm in one HiGHS object.

    Parameters
    ----------
    servers: most that may be awake.
    """

    def __init__(self, pack: Packing, own: Levels, box: Box, servers: int) -> None:
        import highspy

        self.pack, self.own, self.servers = pack, own, servers
        self.steps: FloatArray = np.diff([0, *own.quanta]) * QUANTUM_W
        self.static_w = float(pack.server_w[0])
        self.prices: FloatArray = np.append(self.steps, self.static_w)
        self.width = int(pack.server_gpus[0])
        self.top = float(self.steps.sum())
        count = len(pack.rows) - bool(pack.anchors)  # what keeps anchors apart is no size
        self.most: IntArray = pack.most[:count]
        sizes = (pack.rows[:count] / np.maximum(self.most[:, None], 1)).sum(axis=0)
        turn = np.lexsort((-sizes, -own.of))
        self.turn: IntArray = turn  # a set begins with its dearest task
        self.rows: IntArray = np.ascontiguousarray(pack.rows[:count, turn])
        self.coarse, self.room = coarse_sizes(self.rows, self.most)
        self._cells: FloatArray = np.zeros(math.prod(table_shape(self.coarse, self.room)))
        self.fresh = max(MOST_BESIDE if pack.anchors else MOST_FRESH, pack.tasks // 4)
        self.each = MOST_EACH if pack.anchors else self.fresh
        self.sets: list[Set] = []
        self._known: set[Set] = set()
        self.binding = Binding.none(pack.tasks, servers)
        self._members = np.zeros((0, pack.tasks), dtype=bool)
        self._of: IntArray = np.zeros(0, dtype=np.int64)  # server of each set, -1, or -2: barred
        self._highs = quiet_program(ones=True)
        self._infinity = highspy.kHighsInf
        self._build(box)
        self.add((ell,) for ell in range(pack.tasks))

    def _build(self, box: Box) -> None:
        highs, tasks, levels = self._highs, self.pack.tasks, len(self.steps)
        for v in self.pack.width.tolist():
            highs.addRow(float(v), self._infinity, 0, [], [])
        for _ in range(levels + 1):
            highs.addRow(0.0, self._infinity, 0, [], [])
        for _ in range(self.servers):
            highs.addRow(-float(self.width), self._infinity, 0, [], [])
        for q, step in enumerate(self.steps.tolist()):
            rows, values = [tasks + q], [1.0]
            if q == 0:
                rows, values = [tasks, tasks + levels], [1.0, -1.0]
            highs.addCol(step, 0.0, self._infinity, len(rows), rows, values)
        highs.addCol(self.static_w, 0.0, self._infinity, 1, [tasks + levels], [float(self.width)])
        for row in (*range(tasks, tasks + levels + 1), *self._server_rows()):
            highs.addCol(0.0, 0.0, self._infinity, 1, [row], [1.0])
        self._first = 2 * (levels + 1) + self.servers
        self._fined = self._most_fined = 0.0
        self.confine(box)

    @property
    def homes(self) -> IntArray:
        """(sets,) the server of each set; -1 for none, -2 where the binding allows none."""
        return self._of

    def _server_rows(self) -> range:
        first = self.pack.tasks + len(self.steps) + 1
        return range(first, first + self.servers)

    def confine(self, box: Box) -> None:
        """Let N and Z be in a box."""
        for j, (low, high) in enumerate(zip(box.low, box.high, strict=True)):
            self._highs.changeColBounds(j, float(low), float(high))
        self._fine(FIRST_DEAR)
        self._most_fined = DEAR
        self.box = box

    def _fine(self, times: float) -> None:
        """What GPUs beyond the counts cost."""
        if times != self._fined:
            for column in range(len(self.prices), self._first):
                self._highs.changeColCost(column, times * (self.top + self.static_w))
        self._fined = times

    def _dearer(self, found: FloatArray) -> bool:
        """Let GPUs beyond the counts cost more, where there are any; whether they do."""
        beyond = found[len(self.prices) : self._first]
        if self._fined >= self._most_fined or beyond.max() <= BEYOND:
            return False
        self._fine(min(self._most_fined, DEARER * self._fined))
        return True

    def aim(self, least: FloatArray, servers: int) -> None:
        """Let the counts of GPUs be any that are no less, in so many servers."""
        for j, low in enumerate([*least.tolist(), float(servers)]):
            high = float(self.pack.gpus) if j < len(least) else low
            self._highs.changeColBounds(j, low, high)
        self._fine(FINE)
        self._most_fined = FINE

    def priced(self) -> tuple[FloatArray, FloatArray]:
        """(L,) prices of tasks, and (Q,) of a GPU by its level, of the last linear program."""
        prices, rents, _, _ = self._parts(np.array(self._highs.getSolution().row_dual))
        return prices, np.cumsum(rents)

    def _parts(self, duals: FloatArray) -> tuple[FloatArray, FloatArray, float, FloatArray]:
        """Prices of tasks, rents of levels, the price of a server's GPUs, tolls of servers."""
        tasks, levels = self.pack.tasks, len(self.steps)
        duals = np.maximum(duals, 0.0)
        tolls = duals[tasks + levels + 1 :] if self.servers else np.zeros(1)
        return duals[:tasks], duals[tasks : tasks + levels], float(duals[tasks + levels]), tolls

    def listed(
        self, watts: float, most: int, most_nodes: int
    ) -> tuple[list[tuple[float, Set]], bool]:
        """Sets that placements for no more than `watts` can use, within the box, none bound.

        Of the duals of the last linear program, bound + Σ (reduced cost of S)·λ_S is below every
        placement in the box; so a set whose reduced cost is more than what lies between is in
        none for that. A set that bears another task for the same is left out where that task
        takes as many GPUs as one of the set: the larger one stands for it.

        Returns
        -------
        Reduced costs and sets, the least first, and whether none is missing; no sets where there
        are too many.
        """
        pack = self.pack
        prices, rents, spread, _ = self._parts(np.array(self._highs.getSolution().row_dual))
        level = self.own.of[self.turn]
        cost = np.cumsum(rents)[level]
        whole = math.fsum((pack.width * prices).tolist())
        bound = self._bound(whole, rents, spread, np.zeros(1), cost, cost)
        slip = 2 * LOOSE * self.top  # what a set may earn beyond its cost where pricing ended
        gap = watts - bound + slip * self.box.high[0]
        profits, coarse = prices[self.turn], self.coarse
        fill_tables(coarse, self.room, profits, self._tables(coarse))
        found = np.zeros((most, min(DEEPEST, self._deepest())), dtype=np.int64)
        size, worth = np.zeros(most, dtype=np.int64), np.zeros(most)
        number, complete = all_sets(
            self.rows, self.most, profits, coarse, self.room, self._tables(coarse), cost - gap,
            np.searchsorted(-level, -level), pack.width[self.turn], found, size, worth, most_nodes,
        )  # fmt: skip
        if not complete:
            return [], False
        reduced = gap - worth[:number]
        complete = bool((reduced >= -slip).all())
        order = np.argsort(reduced, kind="stable")
        return [
            (float(reduced[k]), tuple(sorted(self.turn[found[k, : size[k]]].tolist())))
            for k in order.tolist()
        ], complete

    def _deepest(self) -> int:
        """No more tasks than these fit a GPU; at least one."""
        smallest = np.cumsum(np.sort(self.rows, axis=1), axis=1)
        return max(1, int((smallest <= self.most[:, None]).sum(axis=1).min()))

    def watts(self, vector: Iterable[float]) -> float:
        """What counts of GPUs and servers cost, W."""
        return math.fsum(p * x for p, x in zip(self.prices.tolist(), vector, strict=True))

    @property
    def basis(self) -> Basis:
        """Where the last linear program ended."""
        import highspy

        status = self._highs.getBasis()
        columns, basic = list(status.col_status), highspy.HighsBasisStatus.kBasic
        inside = (k for k, one in enumerate(columns[self._first :]) if one == basic)
        sets = frozenset(self.sets[k] for k in inside)
        return Basis(sets, columns[: self._first], list(status.row_status))

    def begin(self, basis: Basis | None) -> None:
        """Begin the next linear program at a basis, unless a set of it is forgotten."""
        if basis is None or not basis.sets <= self._known:
            return
        import highspy

        kinds = highspy.HighsBasisStatus
        status = highspy.HighsBasis()
        used = [kinds.kBasic if one in basis.sets else kinds.kLower for one in self.sets]
        status.col_status, status.row_status = basis.columns + used, basis.rows
        self._highs.setBasis(status)

    def add(self, sets: Iterable[Iterable[int]]) -> int:
        """Add sets of tasks that fit a GPU; says how many are new."""
        fresh = []
        for one in sets:
            inside = tuple(sorted(int(ell) for ell in one))
            if inside and inside not in self._known:
                self._known.add(inside)
                fresh.append(inside)
        if not fresh:
            return 0
        members = np.zeros((len(fresh), self.pack.tasks), dtype=bool)
        tasks, first = self.pack.tasks, len(self.sets)
        for k, inside in enumerate(fresh):
            members[k, list(inside)] = True
            top = int(self.own.of[list(inside)].max())
            rows = [*inside, *range(tasks, tasks + top + 1)]
            values = [1.0] * len(inside) + [-1.0] * (top + 1)
            self._highs.addCol(0.0, 0.0, self._infinity, len(rows), rows, values)
        self.sets += fresh
        self._members = np.concatenate([self._members, members])
        self._of = np.append(self._of, np.full(len(fresh), -1, dtype=np.int64))
        self._apply(first)
        return len(fresh)

    def bind(self, binding: Binding) -> None:
        """Keep tasks in, or out of, servers."""
        self.binding = binding
        self._apply(0)

    def _apply(self, first: int) -> None:
        """Give the sets from `first` on the server that the binding gives them."""
        members, server = self._members[first:], self.binding.server
        bound = np.flatnonzero(server >= 0)
        of = np.full(len(members), -1, dtype=np.int64)
        if bound.size:
            homes = np.where(members[:, bound], server[bound][None, :], -1)
            of = homes.max(axis=1)
            least = np.where(homes < 0, self.servers, homes).min(axis=1)
            of[(of >= 0) & (least != of)] = -2
            loose = np.flatnonzero(self.binding.barred.any(axis=1) & (server < 0))
            settled = np.flatnonzero(of >= 0)
            if loose.size and settled.size:
                inside = members[np.ix_(settled, loose)]
                out = self.binding.barred[loose][:, of[settled]].T
                of[settled[(inside & out).any(axis=1)]] = -2
        rows = self._server_rows()
        for k in np.flatnonzero(of != self._of[first:]).tolist():
            old, new, column = int(self._of[first + k]), int(of[k]), self._first + first + k
            if old >= 0:
                self._highs.changeCoeff(rows[old], column, 0.0)
            if new >= 0:
                self._highs.changeCoeff(rows[new], column, -1.0)
            if (old == -2) != (new == -2):
                self._highs.changeColBounds(column, 0.0, 0.0 if new == -2 else self._infinity)
        self._of[first:] = of

    def fix(self, index: int, least: int, most: int | None = None) -> None:
        """Let the GPUs with a set be so many; 0 to None takes that back."""
        limit = self._infinity if most is None else float(most)
        if self._of[index] == -2:
            limit = float(least)
        self._highs.changeColBounds(self._first + index, float(least), limit)

    def shrink(self) -> None:
        """Forget sets that are far from use, when there are many; none may be fixed."""
        most = max(MOST_SETS, SETS_PER_TASK * self.pack.tasks)
        if len(self.sets) <= most:
            return
        worth = np.array(solve_within(self._highs, Limits()).col_dual)[self._first :]
        single = self._members.sum(axis=1) == 1
        kept = single.copy()
        kept[np.argsort(worth, kind="stable")[: most // 2]] = True
        gone = np.flatnonzero(~kept)
        self._highs.deleteCols(len(gone), (gone + self._first).astype(np.int32))
        self.sets = [one for one, keep in zip(self.sets, kept.tolist(), strict=True) if keep]
        self._known = set(self.sets)
        self._members, self._of = self._members[kept], self._of[kept]

    def run(
        self,
        limits: Limits,
        enough: float = math.inf,
        hopeless: float = -math.inf,
        gap: float = 10 * SAFE,
        most_nodes: int = MANY,
        priced: bool = False,
        idle: float = 0.0,
    ) -> Relaxed:
        """Generate until the bound is within `gap` or `enough`, or the value is `hopeless`.

        The value is what the bound can reach at most. With sets fixed by `fix`, the bound
        is that of the program without. With `priced` the last duals are what proves it. With
        `idle` it is also the end where some rounds have lowered the value by no more than that
        share of it.
        """
        values: list[float] = []
        again = False
        nodes, best = QUICK, self.watts(self.box.low)
        low = np.array(self.box.low, dtype=np.float64)
        last = Relaxed(math.inf, best, low, np.zeros(len(self.sets)))
        while True:
            self._highs.setOptionValue("simplex_strategy", PRIMAL if again else DUAL)
            again = True
            solution = self._solved(limits)
            if solution is None:  # time is up: where the program before it ended
                missing = len(self.sets) - len(last.amounts)
                return replace(last, amounts=np.pad(last.amounts, (0, missing)))
            value = float(self._highs.getInfo().objective_function_value)
            found = np.array(solution.col_value)
            vector, amounts = found[: len(self.steps) + 1], found[self._first :]
            values.append(value)
            slow = len(values) > PATIENT and values[-1 - PATIENT] - value <= idle * value
            if value <= hopeless or (idle and slow):
                return Relaxed(value, best, vector, amounts)
            began = working_time()
            bound, fresh, exact = self._price(np.array(solution.row_dual), nodes)
            longer = MORE_NODES * (working_time() - began)
            best = bound if priced else max(best, bound)
            last = Relaxed(value, best, vector, amounts)
            if best >= enough or limits.stop is not None:
                return last
            ended = best >= value * (1 - gap)
            if not ended and not self.add(fresh):
                ended = exact or nodes >= most_nodes or longer > limits.remaining
                nodes = min(most_nodes, MORE_NODES * nodes)
            if ended:
                if not self._dearer(found):
                    return last
                nodes = QUICK

    def _solved(self, limits: Limits) -> Any:
        """HiGHS's solution of the program as it is; None where it did not come to one in time."""
        solution = solve_within(self._highs, limits)
        return solution if solution.value_valid and solution.dual_valid else None

    def _price(self, duals: FloatArray, nodes: int) -> tuple[float, list[Set], bool]:
        """A bound, sets that are worth more than they cost, and whether none can be missing."""
        pack, tasks = self.pack, self.pack.tasks
        prices, rents, spread, tolls = self._parts(duals)
        cost = np.cumsum(rents)[self.own.of[self.turn]]
        server = self.binding.server[self.turn]
        worth = cost + LOOSE * self.top
        if pack.anchors:
            parts = self._by_anchor(prices, worth, tolls, server, nodes)
        elif nodes <= FEW or not (server >= 0).any():
            parts = [self._sets(prices, worth, tolls, server, np.arange(tasks), nodes)]
        else:
            parts = self._by_server(prices, worth, tolls, server, nodes)
        upper: FloatArray = np.full(tasks, -np.inf)
        found: list[tuple[float, Set]] = []
        for more, sets in parts:
            upper = np.maximum(upper, more)
            found += sets
        fresh = [one for _, one in sorted(found, reverse=True)[: self.fresh]]
        whole = math.fsum((pack.width * prices).tolist())
        bound = self._bound(whole, rents, spread, tolls, cost, upper)
        return bound, fresh, bool((upper <= worth).all())

    def _by_server(
        self, prices: FloatArray, worth: FloatArray, tolls: FloatArray, server: IntArray, nodes: int
    ) -> list[tuple[FloatArray, list[tuple[float, Set]]]]:
        """For each server what may be in it, its toll always paid: no two items exclude another.

        A set of unbound items pays no toll where it is looked for without a server.
        """
        free = np.full(len(server), -1, dtype=np.int64)
        parts = [self._sets(prices, worth, tolls, free, np.flatnonzero(server < 0), nodes)]
        for i in np.unique(server[server >= 0]).tolist():
            allowed = (server == i) | ((server < 0) & ~self.binding.barred[self.turn, i])
            toll = float(tolls[i])
            upper, sets = self._sets(
                prices, worth + toll, tolls, free, np.flatnonzero(allowed), nodes
            )
            parts.append((upper - toll, sets))
        return parts

    def _by_anchor(
        self, prices: FloatArray, worth: FloatArray, tolls: FloatArray, server: IntArray, nodes: int
    ) -> list[tuple[FloatArray, list[tuple[float, Set]]]]:
        """Beside no anchor, and beside each."""
        others = np.flatnonzero(self.turn >= self.pack.anchors)
        parts = [self._sets(prices, worth, tolls, server, others, nodes)]
        for anchor in np.flatnonzero(self.turn < self.pack.anchors).tolist():
            parts.append(self._beside(anchor, prices, worth, tolls, server, others, nodes))
        return parts

    def _beside(
        self,
        anchor: int,
        prices: FloatArray,
        worth: FloatArray,
        tolls: FloatArray,
        server: IntArray,
        items: IntArray,
        nodes: int,
    ) -> tuple[FloatArray, list[tuple[float, Set]]]:
        """The same as `_sets` where an anchor is, with the tables that were filled last."""
        own = float(prices[self.turn[anchor]])
        wanted = np.maximum(worth[items], worth[anchor]) - own
        room = self.room - self.coarse[:, anchor]
        left = self.most - self.rows[:, anchor]
        most, sets = self._search(prices, wanted, tolls, server, items, nodes, room, left)
        upper: FloatArray = np.full(len(worth), -np.inf)
        dearer = items < anchor  # a set counts where its dearest task does
        upper[items[dearer]] = own + most[dearer]
        upper[anchor] = own + max(0.0, float(most[~dearer].max(initial=0.0)))
        also = int(self.turn[anchor])
        return upper, [(excess, (also, *inside)) for excess, inside in sets]

    def _sets(
        self,
        prices: FloatArray,
        worth: FloatArray,
        tolls: FloatArray,
        server: IntArray,
        items: IntArray,
        nodes: int,
    ) -> tuple[FloatArray, list[tuple[float, Set]]]:
        """What no set exceeds by its first item; sets worth more than asked, with the excess."""
        coarse = np.ascontiguousarray(self.coarse[:, items])
        fill_tables(coarse, self.room, prices[self.turn[items]], self._tables(coarse))
        upper: FloatArray = np.full(len(worth), -np.inf)
        upper[items], found = self._search(
            prices, worth[items], tolls, server, items, nodes, self.room, self.most
        )
        return upper, found

    def _tables(self, coarse: IntArray) -> FloatArray:
        shape = table_shape(coarse, self.room)
        return self._cells[: math.prod(shape)].reshape(shape)

    def _search(
        self,
        prices: FloatArray,
        wanted: FloatArray,
        tolls: FloatArray,
        server: IntArray,
        items: IntArray,
        nodes: int,
        room: IntArray,
        left: IntArray,
    ) -> tuple[FloatArray, list[tuple[float, Set]]]:
        """By first item of `items`, with the tables of all of them."""
        turn = self.turn[items]
        coarse = np.ascontiguousarray(self.coarse[:, items])
        value, most, size, inside = best_sets(
            np.ascontiguousarray(self.rows[:, items]), left, prices[turn], coarse, room,
            self._tables(coarse), wanted, wanted, nodes, NOBODY_APART, server[items], tolls,
            self.binding.barred[turn],
        )  # fmt: skip
        excess = value - wanted
        best = np.argsort(-excess, kind="stable")[: self.each]
        found = [
            (float(excess[k]), tuple(int(turn[j]) for j in inside[k, : size[k]]))
            for k in best[excess[best] > 0].tolist()
        ]
        return most, found

    def _bound(
        self,
        whole: float,
        rents: FloatArray,
        spread: float,
        tolls: FloatArray,
        cost: FloatArray,
        upper: FloatArray,
    ) -> float:
        """What the prices prove: either all scaled to what sets cost, or the excess paid for.

        No more than the most of N_0 sets are used, so the dearest excess is paid so often.
        """
        excess = upper - cost
        over = max(0.0, float(excess.max()))
        ratio = math.inf
        if (cost[excess > 0] > 0).all():
            ratio = max([1.0, *(upper[excess > 0] / cost[excess > 0]).tolist()])
        paid = max(whole / ratio, whole - over * self.box.high[0])
        rest = self.prices - np.append(rents, self.width * spread)
        rest[0] += spread
        ends = np.minimum(rest * np.array(self.box.low), rest * np.array(self.box.high))
        toll = self.width * math.fsum(tolls.tolist())
        terms = [paid, -toll, *ends.tolist()]
        return math.fsum(terms) - SAFE * (math.fsum(abs(term) for term in terms) + whole)
