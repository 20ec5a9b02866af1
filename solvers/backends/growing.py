"""A program in HiGHS that gets rows and columns one by one, and is solved from where it stands."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]


class Growing:
    """min cost·x, x ≥ 0, on one thread.

    Parameters
    ----------
    settings: options of HiGHS besides.
    """

    def __init__(self, **settings: Any) -> None:
        import highspy

        self._api: Any = highspy
        self._highs: Any = highspy.Highs()
        for name, value in {"output_flag": False, "threads": 1, **settings}.items():
            self._highs.setOptionValue(name, value)

    def row(self, lower: float = -math.inf, upper: float = math.inf) -> None:
        """Add a row without entries."""
        self._highs.addRow(float(lower), float(upper), 0, [], [])

    def column(
        self,
        cost: float,
        rows: Sequence[int],
        values: Sequence[float],
        upper: float = math.inf,
    ) -> None:
        """Add a column."""
        self._highs.addCol(float(cost), 0.0, float(upper), len(rows), rows, values)

    def reprice(self, column: int, cost: float) -> None:
        """Change what a column costs."""
        self._highs.changeColCost(column, float(cost))

    def whole(self) -> None:
        """Every column is a whole number from now on."""
        size = self._highs.getNumCol()
        kind = np.full(size, self._api.HighsVarType.kInteger)
        self._highs.changeColsIntegrality(size, np.arange(size, dtype=np.int32), kind)

    def start(self, values: Sequence[float]) -> None:
        """A solution to begin with, of the first columns; the others are 0."""
        solution = self._api.HighsSolution()
        rest = [0.0] * (self._highs.getNumCol() - len(values))
        solution.col_value = [*values, *rest]
        self._highs.setSolution(solution)

    def run(self) -> bool:
        """Solve; whether there is a feasible solution."""
        self._highs.run()
        return bool(self._highs.getInfo().primal_solution_status == 2)

    @property
    def objective(self) -> float:
        """Of the solution."""
        return float(self._highs.getInfo().objective_function_value)

    @property
    def values(self) -> Floats:
        """The solution's columns."""
        return np.array(self._highs.getSolution().col_value)

    @property
    def duals(self) -> Floats:
        """Prices of the rows."""
        return np.array(self._highs.getSolution().row_dual)
