"""The restricted master: set covering over contents of a GPU, with counts of GPUs by level.

With equal GPUs in equal servers a placement costs Σ_q s_q·N_q + P·Z, where N_q is how many GPUs
cost level q or more, s_q the step in cost to that level, Z the awake servers and P their static
power. λ_S counts the GPUs that hold the column S:

    min  Σ_q s_q·N_q + P·Z
    Σ_{S∋l} λ_S ≥ v_l                                 every task l             (dual π)
    N_q ≥ Σ_{S of level ≥ q} λ_S                      every level q            (μ)
    W·Z ≥ N_0                                         W GPUs in a server       (ω)
    Σ_{S in server i} λ_S ≤ W                         once tasks are assigned  (τ)

Surplus variables allow GPUs beyond the box of counts at a penalty, so that no program is
infeasible.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from optgap.models.limits import Limits
from optgap.solvers.backends.growing import AGAIN, is_optimal, quiet_highs, solve_within
from optgap.solvers.consolidation.bounds import CostLevels
from optgap.solvers.consolidation.instance import Instance
from optgap.solvers.consolidation.numerics import Column, CountBox, FloatArray, IntArray
from optgap.solvers.engines.column_generation import Solved

PENALTY = 50.0
"""Cost of a GPU beyond the counts, in the dearest GPU's and a server's power; more than any gap."""
DUAL, PRIMAL = 1, 4
"""Variants of HiGHS's simplex: after bounds have changed, and after columns have been added."""
POSITIVE = 1e-7
"""A λ that is more than the linear program's tolerance."""
FREE, EXCLUDED = -1, -2
"""In place of a column's server: it may be in any, or the assignment allows it in none."""


@dataclass(frozen=True, eq=False)
class Duals:
    """Dual values of the restricted master's rows, W for each unit of the right-hand side; ≥ 0.

    Parameters
    ----------
    tasks: (L,) π of the covering rows. levels: (Q,) μ of the counts by level.
    server_count: ω of W·Z ≥ N_0. servers: (N,) τ of the servers' rows, or one 0 without such rows.
    """

    tasks: FloatArray
    levels: FloatArray
    server_count: float
    servers: FloatArray

    @classmethod
    def of_rows(cls, values: FloatArray, tasks: int, levels: int) -> Duals:
        """Return the duals in the order of the rows of `RestrictedMaster`."""
        values = np.maximum(values, 0.0)
        servers = values[tasks + levels + 1 :]
        return cls(
            values[:tasks],
            values[tasks : tasks + levels],
            float(values[tasks + levels]),
            servers if servers.size else np.zeros(1),
        )

    @property
    def gpu_prices(self) -> FloatArray:
        """(Q,) the dual price of a GPU of each level, Σ_{q ≤ level} μ_q."""
        return np.cumsum(self.levels)


@dataclass(frozen=True, eq=False)
class LpSolution(Solved[Duals]):
    """An optimum of the restricted master.

    Parameters
    ----------
    counts: (Q+1,) N and Z. usage: (columns,) λ.
    """

    counts: FloatArray
    usage: FloatArray


class RestrictedMaster:
    """The linear program, kept in one HiGHS object so that each solve starts from the last basis.

    Parameters
    ----------
    box: allowed counts at first. servers: number of servers with a row of their own; 0 where a
        task's GPUs may be in any servers.
    static_w: P, W; the instance's where it is left out.

    Attributes
    ----------
    columns: the columns λ stands for. column_server: (columns,) their servers, `FREE` or
        `EXCLUDED`.
    prices: (Q+1,) s_q and P, W.
    """

    def __init__(
        self,
        instance: Instance,
        levels: CostLevels,
        box: CountBox,
        servers: int,
        *,
        static_w: float | None = None,
    ) -> None:
        self.instance, self.levels, self.servers = instance, levels, servers
        self.static_w = float(instance.server_w[0]) if static_w is None else static_w
        self.server_gpus = int(instance.server_gpus[0])
        self.steps: FloatArray = levels.steps_w
        self.prices: FloatArray = np.append(self.steps, self.static_w)
        self.dearest_gpu_w = float(self.steps.sum())
        self.columns: list[Column] = []
        self._known: set[Column] = set()
        self.column_server: IntArray = np.zeros(0, dtype=np.int64)
        self.assignment: IntArray = np.full(instance.tasks, -1, dtype=np.int64)
        self._highs = quiet_highs(**AGAIN)
        self._primal = False
        self._first = 2 * (len(self.steps) + 1) + servers
        self._build()
        self.set_box(box)
        self.add((ell,) for ell in range(instance.tasks))

    def _build(self) -> None:
        highs, tasks, levels = self._highs, self.instance.tasks, len(self.steps)
        for v in self.instance.width.tolist():
            highs.addRow(float(v), math.inf, 0, [], [])
        for _ in range(levels + 1):
            highs.addRow(0.0, math.inf, 0, [], [])
        for _ in range(self.servers):
            highs.addRow(-float(self.server_gpus), math.inf, 0, [], [])
        server_count = tasks + levels
        for q, step in enumerate(self.steps.tolist()):
            rows, values = [tasks + q], [1.0]
            if q == 0:
                rows, values = [tasks, server_count], [1.0, -1.0]
            highs.addCol(step, 0.0, math.inf, len(rows), rows, values)
        highs.addCol(self.static_w, 0.0, math.inf, 1, [server_count], [float(self.server_gpus)])
        penalty = PENALTY * (self.dearest_gpu_w + self.static_w)
        for row in (*range(tasks, server_count + 1), *self._server_rows()):
            highs.addCol(penalty, 0.0, math.inf, 1, [row], [1.0])

    def _server_rows(self) -> range:
        first = self.instance.tasks + len(self.steps) + 1
        return range(first, first + self.servers)

    def watts(self, counts: Iterable[float]) -> float:
        """Return what counts of GPUs and servers cost, W."""
        return math.fsum(p * x for p, x in zip(self.prices.tolist(), counts, strict=True))

    def set_box(self, box: CountBox) -> None:
        """Bound N and Z by a box."""
        for j, (low, high) in enumerate(zip(box.low, box.high, strict=True)):
            self._highs.changeColBounds(j, float(low), float(high))
        self.box = box

    def add(self, columns: Iterable[Iterable[int]]) -> int:
        """Add columns; how many of them are new."""
        fresh = []
        for one in columns:
            column = tuple(sorted(int(ell) for ell in one))
            if column and column not in self._known:
                self._known.add(column)
                fresh.append(column)
        if not fresh:
            return 0
        tasks, first = self.instance.tasks, len(self.columns)
        of = self.levels.of.tolist()
        for column in fresh:
            rows = [*column, *range(tasks, tasks + max(of[ell] for ell in column) + 1)]
            values = [1.0] * len(column) + [-1.0] * (len(rows) - len(column))
            self._highs.addCol(0.0, 0.0, math.inf, len(rows), rows, values)
        self.columns += fresh
        self.column_server = np.append(self.column_server, np.full(len(fresh), FREE))
        self._set_column_servers(first)
        self._primal = True
        return len(fresh)

    def set_servers(self, assignment: IntArray | None = None) -> None:
        """Restrict columns to what an assignment of tasks to servers allows.

        Parameters
        ----------
        assignment: (L,) the server of each task, -1 for any. Without it all may be in any.
        """
        self.assignment = np.full_like(self.assignment, -1) if assignment is None else assignment
        self._set_column_servers(0)

    def _set_column_servers(self, first: int) -> None:
        """Move columns, from number `first` on, to the rows of the servers they are assigned to."""
        old = self.column_server[first:]
        new = servers_of(self.columns[first:], self.assignment, self.servers)
        rows = self._server_rows()
        for k in np.flatnonzero(new != old).tolist():
            column = self._first + first + k
            if old[k] >= 0:
                self._highs.changeCoeff(rows[int(old[k])], column, 0.0)
            if new[k] >= 0:
                self._highs.changeCoeff(rows[int(new[k])], column, -1.0)
            if (old[k] == EXCLUDED) != (new[k] == EXCLUDED):
                most = 0.0 if new[k] == EXCLUDED else math.inf
                self._highs.changeColBounds(column, 0.0, most)
        self.column_server[first:] = new

    def server_shares(self, usage: FloatArray) -> FloatArray:
        """Return (L, N) the share of each task that λ puts in columns of each server."""
        found = np.zeros((self.instance.tasks, max(1, self.servers)))
        for j in np.flatnonzero((self.column_server >= 0) & (usage > POSITIVE)).tolist():
            found[list(self.columns[j]), self.column_server[j]] += usage[j]
        return found / self.instance.width[:, None]

    def fix(self, index: int, least: int) -> None:
        """Bound a λ from below; `least` of 0 frees it again."""
        most = float(least) if self.column_server[index] == EXCLUDED else math.inf
        self._highs.changeColBounds(self._first + index, float(least), float(most))

    def solve(self, limits: Limits) -> LpSolution | None:
        """Solve the program with the present columns; None where it was stopped before its optimum.

        Duals of a run that was stopped would prove a bound as well, but its value is none.
        """
        self._highs.setOptionValue("simplex_strategy", PRIMAL if self._primal else DUAL)
        self._primal = False
        solution = solve_within(self._highs, limits)
        if not is_optimal(self._highs):
            return None
        found, levels = np.array(solution.col_value), len(self.steps)
        return LpSolution(
            float(self._highs.getInfo().objective_function_value),
            Duals.of_rows(np.array(solution.row_dual), self.instance.tasks, levels),
            found[: levels + 1],
            found[self._first :],
        )


def servers_of(columns: Sequence[Column], assignment: IntArray, servers: int) -> IntArray:
    """Return the server of each column in an assignment; `FREE` for any, `EXCLUDED` for none."""
    if not ((assignment >= 0).any() and columns):
        return np.full(len(columns), FREE, dtype=np.int64)
    starts = np.cumsum([0, *(len(column) for column in columns[:-1])])
    own = assignment[[ell for column in columns for ell in column]]
    most = np.maximum.reduceat(own, starts)
    least = np.minimum.reduceat(np.where(own < 0, servers, own), starts)
    return np.where((most >= 0) & (least != most), EXCLUDED, most)
