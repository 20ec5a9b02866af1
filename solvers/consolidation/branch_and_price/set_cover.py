"""Integer programs over columns: the cheapest cover of the tasks with counts in a box.

A cover that costs exactly the given power is there to begin with, as a column of its own that
covers
all: a solver that may cut off what is dearer than a solution it knows denies in a fraction of the
    time
that it takes over the same limit as a row.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from optgap.models.limits import Limits
from optgap.solvers.consolidation.branch_and_price.packing import pack_columns
from optgap.solvers.consolidation.column_generation.highs import quiet_highs
from optgap.solvers.consolidation.column_generation.master import FREE, RestrictedMaster
from optgap.solvers.consolidation.column_generation.space import CountBox
from optgap.solvers.consolidation.numerics import Column, Placement

MIP_SAFETY = 1e-7
"""Relative: what HiGHS's bound may be off by, and what it leaves between that and a solution."""


@dataclass(frozen=True)
class Cover:
    """What is known of covers for less than was asked.

    Parameters
    ----------
    placement: of the best that was found. bound: W that none of them undercuts.
    complete: the program came to its end.
    """

    placement: Placement | None
    bound: float
    complete: bool

    @property
    def denied(self) -> bool:
        """Whether there is none."""
        return self.complete and self.placement is None


class SetCover:
    """min Σ c_S·λ_S + P·Z with every task covered and counts in a box, λ and Z whole.

    Parameters
    ----------
    columns: that may be used.
    watts: covers for this and more are not looked for.
    """

    def __init__(
        self, master: RestrictedMaster, columns: Sequence[Column], box: CountBox, watts: float
    ) -> None:
        import highspy

        self.master, self.columns, self.box, self.watts = master, columns, box, watts
        self.width = master.instance.width
        self.gpu_w = np.cumsum(master.steps)
        self._infinity = highspy.kHighsInf
        self._rows: list[tuple[float, float]] = []
        self._entries: list[tuple[float, float, dict[int, float]]] = []
        self._servers: list[int] = []
        """The server of each entry that is a column, in the order of the entries."""
        self._which: list[int] = []
        covers_all = self._add_columns()
        seats = float(master.server_gpus)
        awake = self._row(float(box.low[-1]), float(box.high[-1]))
        self._entry(master.static_w, float(box.high[-1]), {self.seat_row: -seats, awake: 1.0})
        lowest = {
            row: float(low) for row, low in zip(self.level_rows, box.low, strict=False) if low
        }
        servers = {awake: float(box.low[-1])} if box.low[-1] else {}
        self._entry(watts, 1.0, covers_all | lowest | servers)
        self._highs = self._program()

    def _row(self, low: float, high: float) -> int:
        self._rows.append((low, high))
        return len(self._rows) - 1

    def _entry(self, cost: float, most: float, rows: dict[int, float]) -> None:
        """A variable from 0 to `most`, with what it has in rows."""
        self._entries.append((cost, most, rows))

    def _count_rows(self) -> None:
        ends = zip(self.box.low[:-1], self.box.high[:-1], strict=True)
        self.level_rows = [self._row(float(low), float(high)) for low, high in ends]
        self.seat_row = self._row(-self._infinity, 0.0)

    def _column(self, k: int, server: int, rows: list[int]) -> None:
        """A variable for a column: the rows of its tasks and of its server are given."""
        tasks = list(self.columns[k])
        top = int(self.master.levels.of[tasks].max())
        inside = [*rows, *self.level_rows[: top + 1], self.seat_row]
        most = float(self.width[tasks].min())
        self._entry(float(self.gpu_w[top]), most, dict.fromkeys(inside, 1.0))
        self._which.append(k)
        self._servers.append(server)

    def _add_columns(self) -> dict[int, float]:
        """Rows and columns; what covers all tasks."""
        cover = {self._row(float(v), self._infinity): float(v) for v in self.width.tolist()}
        self._count_rows()
        for k, column in enumerate(self.columns):
            self._column(k, FREE, list(column))  # tasks have the first rows
        return cover

    def _program(self) -> Any:
        """All at once: one by one takes longer than to solve."""
        import highspy

        highs = quiet_highs()
        for low, high in self._rows:
            highs.addRow(low, high, 0, [], [])
        costs, most, rows = zip(*self._entries, strict=True)
        count = len(costs)
        sizes = np.array([len(one) for one in rows])
        starts = np.concatenate([[0], np.cumsum(sizes)[:-1]]).astype(np.int32)
        index = np.fromiter((row for one in rows for row in one), np.int32, sizes.sum())
        values = np.fromiter((x for one in rows for x in one.values()), np.float64, sizes.sum())
        highs.addCols(
            count, np.array(costs), np.zeros(count), np.array(most), len(index), starts, index,
            values,
        )  # fmt: skip
        kinds = np.full(count, highspy.HighsVarType.kInteger)
        highs.changeColsIntegrality(count, np.arange(count, dtype=np.int32), kinds)
        highs.setOptionValue("mip_heuristic_run_feasibility_jump", False)  # it finds nothing
        return highs

    def solve(self, limits: Limits, *, first: bool, turn: int = 0) -> Cover:
        """From the beginning: the cheapest cover for less than `watts`, or any.

        Parameters
        ----------
        first: the first cover that is found will do.
        turn: each searches in another way, as some take a hundredth of the time of others.
        """
        import highspy

        highs = self._highs
        highs.setOptionValue("random_seed", turn)
        highs.setOptionValue("mip_rel_gap", 0.0 if first else MIP_SAFETY)
        highs.setOptionValue("mip_abs_gap", 1e-6 if first else 0.0)
        if first:  # what there is, is found by branching as well
            highs.setOptionValue("objective_target", self.watts - 1e-6)
            highs.setOptionValue("mip_heuristic_effort", 0.0)
            highs.setOptionValue("mip_allow_restart", False)
        if np.isfinite(limits.remaining):
            highs.setOptionValue("time_limit", max(0.01, limits.remaining))
        highs.clearSolver()
        known = highspy.HighsSolution()
        known.col_value = [0.0] * (len(self._entries) - 1) + [1.0]
        highs.setSolution(known)
        with _Interruptible(highs, limits):
            highs.run()
        return self._cover()

    def _cover(self) -> Cover:
        import highspy

        solution = self._highs.getSolution()
        complete = self._highs.getModelStatus() == highspy.HighsModelStatus.kOptimal
        bound = float(self._highs.getInfo().mip_dual_bound)
        bound = min(self.watts, bound * (1 - MIP_SAFETY)) if math.isfinite(bound) else 0.0
        placement = None
        if solution.value_valid:
            values = np.rint(solution.col_value).astype(int).tolist()
            if not values[-1]:
                placement = self._placement(values)
                complete = complete and placement is not None
        return Cover(placement, bound, complete)

    def _placement(self, values: list[int]) -> Placement | None:
        chosen: list[tuple[Column, int]] = []
        for k, server, amount in zip(self._which, self._servers, values, strict=False):
            chosen += [(self.columns[k], server)] * amount
        return pack_columns(self.master, chosen)


class GangSetCover(SetCover):
    """The same, and a task of several GPUs has them in one server.

    Only columns with such a task are told apart by server. Servers are alike, and numbered as the
    tasks of several GPUs that are in them first, the widest first.
    """

    def _add_columns(self) -> dict[int, float]:
        instance, inf = self.master.instance, self._infinity
        order = np.lexsort((-instance.demand[0], -self.width)).tolist()
        wide = [ell for ell in order if self.width[ell] > 1]
        place = {ell: k for k, ell in enumerate(wide)}
        servers = range(self.box.high[-1])
        narrow = {ell: self._row(1.0, inf) for ell in np.flatnonzero(self.width == 1).tolist()}
        inside = {(ell, i): self._row(0.0, inf) for ell in wide for i in servers}
        once = {ell: self._row(1.0, 1.0) for ell in wide}
        self._count_rows()
        seats = [self._row(-inf, float(self.master.server_gpus)) for _ in servers]
        for k, column in enumerate(self.columns):
            tied = any(ell in place for ell in column)
            for i in servers if tied else (FREE,):
                rows = [narrow[ell] if ell in narrow else inside[ell, i] for ell in column]
                self._column(k, i, [*rows, seats[i]] if tied else rows)
        self.homes: list[tuple[int, int]] = []
        for ell in wide:
            for i in servers[: place[ell] + 1]:
                self._entry(0.0, 1.0, {inside[ell, i]: -float(self.width[ell]), once[ell]: 1.0})
                self.homes.append((ell, i))
        return dict.fromkeys([*narrow.values(), *once.values()], 1.0)

    def _placement(self, values: list[int]) -> Placement | None:
        first = len(self._which)
        home = dict(one for one, x in zip(self.homes, values[first:], strict=False) if x)
        chosen: list[tuple[Column, int]] = []
        for k, server, amount in zip(self._which, self._servers, values, strict=False):
            kept = tuple(ell for ell in self.columns[k] if home.get(ell, server) == server)
            chosen += [(kept, server)] * amount if kept else []
        return pack_columns(self.master, chosen)


class _Interruptible:
    """Lets HiGHS's integer programs end when the limits say so."""

    def __init__(self, highs: Any, limits: Limits) -> None:
        self.highs, self.limits = highs, limits

    def _look(self, event: Any) -> None:
        # said each time: what an earlier run was told holds for the next one, too
        event.interrupt(self.limits.stop is not None)

    def __enter__(self) -> None:
        self.highs.cbMipInterrupt += self._look

    def __exit__(self, *_: object) -> None:
        self.highs.cbMipInterrupt -= self._look
