"""An integer program that is built column by column, and ended from outside."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np

from optgap.models.limits import Limits
from optgap.solvers.consolidation.generation import quiet_program


class Program:
    """HiGHS with rows, then columns of whole numbers; one thread, that ends when it is asked to."""

    def __init__(self) -> None:
        import highspy

        self._highs = quiet_program()
        self.infinity = highspy.kHighsInf
        self._integer = highspy.HighsVarType.kInteger
        self.option("mip_heuristic_run_feasibility_jump", False)  # it finds nothing
        self._limits, self._done = Limits(), threading.Event()
        self._highs.cbMipInterrupt += self._interrupt
        self._columns: list[tuple[float, float, dict[int, float]]] = []
        self._known: int | None = None

    def option(self, name: str, value: Any) -> None:
        """One of HiGHS's."""
        self._highs.setOptionValue(name, value)

    def _interrupt(self, event: Any) -> None:
        # said each time: what an earlier run was told holds for the next one, too
        event.interrupt(self._limits.stop is not None or self._done.is_set())

    def row(self, low: float, high: float) -> int:
        """A row, and its number."""
        self._highs.addRow(low, high, 0, [], [])
        return int(self._highs.getNumRow()) - 1

    def column(self, cost: float, most: float, rows: dict[int, float]) -> None:
        """A column from 0 to `most`, with what it has in rows."""
        self._columns.append((cost, most, rows))

    def build(self) -> None:
        """All columns at once: one by one takes longer than to solve."""
        costs, most, rows = zip(*self._columns, strict=True)
        count = len(costs)
        sizes = np.array([len(one) for one in rows])
        starts = np.concatenate([[0], np.cumsum(sizes)[:-1]]).astype(np.int32)
        index = np.fromiter((row for one in rows for row in one), np.int32, sizes.sum())
        values = np.fromiter((x for one in rows for x in one.values()), np.float64, sizes.sum())
        self._highs.addCols(
            count, np.array(costs), np.zeros(count), np.array(most), len(index), starts, index,
            values,
        )  # fmt: skip
        kinds = np.full(count, self._integer)
        self._highs.changeColsIntegrality(count, np.arange(count, dtype=np.int32), kinds)

    def cheaper_than(self, known: int, watts: float) -> None:
        """Look for solutions that cost less than `watts` alone, from the one that a column is."""
        self._known = known
        self.option("objective_target", watts)
        self.option("mip_rel_gap", 0.0)
        self.option("mip_abs_gap", 1e-6)

    def run(self, limits: Limits, done: threading.Event | None = None, turn: int = 0) -> None:
        """From the beginning, until limits, or until `done` is set.

        Parameters
        ----------
        turn: each searches in another way, as some take a hundredth of the time of others.
        """
        import highspy

        self._limits, self._done = limits, done or threading.Event()
        self.option("random_seed", turn)
        if np.isfinite(limits.remaining):
            self.option("time_limit", max(0.01, limits.remaining))
        self._highs.clearSolver()
        if self._known is not None:
            known = highspy.HighsSolution()
            known.col_value = [float(k == self._known) for k in range(self.columns)]
            self._highs.setSolution(known)
        self._highs.run()

    @property
    def columns(self) -> int:
        """How many there are."""
        return len(self._columns)

    @property
    def infeasible(self) -> bool:
        """Whether the last run proved that there is no solution."""
        import highspy

        return bool(self._highs.getModelStatus() == highspy.HighsModelStatus.kInfeasible)

    @property
    def solved(self) -> bool:
        """Whether it found a solution that no other is better than."""
        import highspy

        return bool(self._highs.getModelStatus() == highspy.HighsModelStatus.kOptimal)

    @property
    def values(self) -> list[int] | None:
        """(columns,) of the best solution of the last run."""
        solution = self._highs.getSolution()
        if not solution.value_valid:
            return None
        whole: list[int] = np.rint(solution.col_value).astype(int).tolist()
        return whole
