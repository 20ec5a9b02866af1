"""A program in HiGHS that gets rows and columns one by one, and is solved from where it stands."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from optgap.models.limits import Limits
from optgap.models.work import WORK
from optgap.solvers.backends.highs import MOST_ITERATIONS, run_within, translate
from optgap.solvers.backends.linear import LinearModel

Floats = npt.NDArray[np.float64]
LEAST = 0.05
"""Least work for a linear program when the budget is spent; with less there is no result.

In units of work, and in seconds before a user's time limit.
"""
AGAIN = {"simplex_dual_edge_weight_strategy": 1, "simplex_scale_strategy": 0}
"""Settings of a program that is solved again and again: Devex, as HiGHS makes exact dual edge
weights anew each time, at more than they save; and no scaling."""


def quiet_highs(**settings: Any) -> Any:
    """Return an empty, silent program in HiGHS on one thread; `settings` are further options."""
    import highspy

    highs = highspy.Highs()
    for name, value in {"output_flag": False, "threads": 1, **settings}.items():
        highs.setOptionValue(name, value)
    return highs


def solve_within(highs: Any, limits: Limits) -> Any:
    """Run a linear program until the limits' budget or time is up, and where it is then."""
    rows = highs.getNumRow()
    most = WORK.iterations(max(LEAST, limits.remaining), rows)
    highs.setOptionValue("simplex_iteration_limit", int(min(most, MOST_ITERATIONS)))
    until = math.inf
    if math.isfinite(limits.seconds_left):  # HiGHS counts over the life of its object
        until = highs.getRunTime() + max(LEAST, limits.seconds_left)
    highs.setOptionValue("time_limit", until)
    highs.run()
    limits.spend(WORK.linear(highs.getInfo().simplex_iteration_count, rows))
    return highs.getSolution()


def is_optimal(highs: Any) -> bool:
    """Tell whether the last run ended at an optimum, and not at a limit or in trouble."""
    import highspy

    return bool(highs.getModelStatus() == highspy.HighsModelStatus.kOptimal)


class Growing:
    """min cost·x, x ≥ 0, on one thread.

    Parameters
    ----------
    settings: options of HiGHS besides.
    """

    def __init__(self, **settings: Any) -> None:
        import highspy

        self._api: Any = highspy
        self._highs: Any = quiet_highs(**settings)
        self._integer = False

    def row(self, lower: float = -math.inf, upper: float = math.inf) -> None:
        """Add a row without entries."""
        self._highs.addRow(float(lower), float(upper), 0, [], [])

    def bound_row(self, row: int, lower: float, upper: float) -> None:
        """Change the limits of a row."""
        self._highs.changeRowBounds(row, float(lower), float(upper))

    def column(
        self,
        cost: float,
        rows: Sequence[int],
        values: Sequence[float],
        upper: float = math.inf,
    ) -> None:
        """Add a column."""
        self._highs.addCol(float(cost), 0.0, float(upper), len(rows), rows, values)

    def load(self, model: LinearModel) -> None:
        """Take a minimisation of continuous variables as it is; rows have their order."""
        self._highs.passModel(translate(model))

    def reprice(self, column: int, cost: float) -> None:
        """Change what a column costs."""
        self._highs.changeColCost(column, float(cost))

    def whole(self) -> None:
        """Make every column a whole number from now on."""
        size = self._highs.getNumCol()
        kind = np.full(size, self._api.HighsVarType.kInteger)
        self._highs.changeColsIntegrality(size, np.arange(size, dtype=np.int32), kind)
        self._integer = True

    def start(self, values: Sequence[float]) -> None:
        """Set a first solution for the first columns; the others are 0."""
        solution = self._api.HighsSolution()
        rest = [0.0] * (self._highs.getNumCol() - len(values))
        solution.col_value = [*values, *rest]
        self._highs.setSolution(solution)

    def run(self, limits: Limits | None = None) -> bool:
        """Solve within the limits; whether there is a feasible solution."""
        run_within(self._highs, limits or Limits(), integer=self._integer)
        return bool(self._highs.getInfo().primal_solution_status == 2)

    @property
    def objective(self) -> float:
        """Objective of the solution."""
        return float(self._highs.getInfo().objective_function_value)

    @property
    def values(self) -> Floats:
        """The solution's columns."""
        return np.array(self._highs.getSolution().col_value)

    @property
    def duals(self) -> Floats:
        """Prices of the rows."""
        return np.array(self._highs.getSolution().row_dual)
