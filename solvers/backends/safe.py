"""Bounds from a linear program's prices that hold whatever the solver's tolerances were.

For any row prices y, feasible ones or not, Lagrangian duality gives

    min cᵀx ≥ Σ_i min over b_i in [row_lower, row_upper] of y_i·b_i
              + Σ_j min over x_j in [lower, upper] of (c − Aᵀy)_j·x_j,

which is worked out here from the model's own numbers and rounded outwards (Neumaier and
Shcherbina, Math. Program. 99, 2004). A price that is off by the solver's tolerance makes the bound
lower by that much and never wrong; a variable whose reduced cost may be negative has to have a
finite range.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from optgap.solvers.backends.linear import FloatArray, LinearModel

EPS = 2.0**-52
"""Twice what one operation rounds by: a sum of n products is off by less than n·EPS·Σ|terms|."""


def safe_bound(model: LinearModel, duals: FloatArray, most: FloatArray | None = None) -> float:
    """Return a bound on the minimum of a linear program, and of integer programs that it relaxes.

    Parameters
    ----------
    model: a minimisation.
    duals: (m,) a price for every row, of whatever quality.
    most: (n,) limits of the variables that some optimal point keeps, where the model has none.

    Returns
    -------
    −∞ where a variable without a limit would have to have one.

    Raises
    ------
    ValueError: for a maximisation.
    """
    if model.sense != "min":
        raise ValueError("a minimisation is wanted")
    y = usable(model, duals)
    with np.errstate(invalid="ignore"):
        rows = np.where(y == 0, 0.0, y * np.where(y > 0, model.row_lower, model.row_upper))
    terms = model.values * y[model.row_of]
    many = np.bincount(model.columns, minlength=model.variables)
    reduced = model.cost - np.bincount(model.columns, terms, minlength=model.variables)
    size = np.abs(model.cost)
    size = size + np.bincount(model.columns, np.abs(terms), minlength=model.variables)
    reduced = np.where(size == 0, 0.0, reduced)
    off = (many + 2) * EPS * size
    upper = model.upper if most is None else np.minimum(model.upper, most)
    columns = np.minimum(_least(reduced - off, model.lower, upper),
                         _least(reduced + off, model.lower, upper))  # fmt: skip
    return outwards([model.offset, *rows.tolist(), *columns.tolist()])


def usable(model: LinearModel, duals: FloatArray) -> FloatArray:
    """Return prices for `safe_bound`, (m,): none of a sign that a row without a limit forbids.

    Columns that the model leaves out are to be priced by these, too.
    """
    y = np.where(np.isfinite(duals), duals, 0.0)
    limit = np.where(y > 0, model.row_lower, model.row_upper)
    return np.where(np.isfinite(limit), y, 0.0)


def _least(cost: FloatArray, lower: FloatArray, upper: FloatArray) -> FloatArray:
    """Return (n,) least of cost·x for x in its range."""
    with np.errstate(invalid="ignore"):
        value = cost * np.where(cost > 0, lower, upper)
    return np.asarray(np.where(cost == 0, 0.0, value))


def outwards(terms: Sequence[float]) -> float:
    """Σ terms, each the result of one operation, rounded down by more than all rounding adds."""
    if -math.inf in terms:
        return -math.inf
    return math.fsum(terms) - 2 * EPS * math.fsum(map(abs, terms))


def solver_slack(model: LinearModel, tolerance: float, most: FloatArray | None = None) -> float:
    """Return the error that a solver's tolerance on reduced costs allows in its bound.

    For integer programs, whose bounds come from more linear programs than anyone sees: each of
    them is off by at most the tolerance times the range of every variable. Rows that may be
    broken a little make a bound lower only. What presolve and cuts make of rounding is not in it.
    """
    upper = model.upper if most is None else np.minimum(model.upper, most)
    return tolerance * math.fsum((upper - model.lower).tolist())
