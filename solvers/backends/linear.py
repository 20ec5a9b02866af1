"""A mixed-integer linear program as arrays, and what any solver makes of it."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from optgap.models.errors import InputError, NoQuote
from optgap.models.result import Sense, Status, Termination

if TYPE_CHECKING:
    from optgap.models.limits import Limits

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]
INF = math.inf
TOLERANCE = 1e-5
"""Largest violation of a row that counts as feasible; the solvers' own is 1e-6."""


@dataclass(frozen=True, eq=False)
class LinearModel:
    """min or max cᵀx + offset  s.t.  row_lower ≤ A x ≤ row_upper, lower ≤ x ≤ upper.

    Parameters
    ----------
    cost: (n,) c.
    starts, columns, values: A by rows (CSR): row i holds the entries
        ``starts[i]`` to ``starts[i+1]``, each a column and a value; shapes (m+1,), (z,), (z,).
    row_lower, row_upper: (m,), infinite where there is no limit.
    lower, upper: (n,), infinite where there is no limit.
    integer: (n,) whether x_j must be an integer.
    sense: ``min`` or ``max``.
    offset: constant part of the objective.
    """

    cost: FloatArray
    starts: IntArray
    columns: IntArray
    values: FloatArray
    row_lower: FloatArray
    row_upper: FloatArray
    lower: FloatArray
    upper: FloatArray
    integer: BoolArray
    sense: Sense = "min"
    offset: float = 0.0

    @property
    def variables(self) -> int:
        return len(self.cost)

    @property
    def rows(self) -> int:
        return len(self.row_lower)

    @property
    def row_of(self) -> IntArray:
        """(z,) the row of each entry of A."""
        return np.repeat(np.arange(self.rows, dtype=np.int64), np.diff(self.starts))

    def objective(self, x: FloatArray) -> float:
        """Return cᵀx + offset."""
        return float(self.cost @ x) + self.offset

    def rounded(self, x: FloatArray) -> FloatArray:
        """Return `x` with its integer variables rounded."""
        values: FloatArray = np.where(self.integer, np.rint(x), x)
        return values

    def whole(self, x: FloatArray) -> bool:
        """Tell whether the integer variables of `x` are integers, within `TOLERANCE`."""
        return bool((np.abs(x - np.rint(x))[self.integer] <= TOLERANCE).all())

    def violation(self, x: FloatArray) -> float:
        """Return the largest amount by which `x` breaks a row, a bound or integrality.

        Rows count relative to the size of what they add up.
        """
        terms = self.values * x[self.columns]
        activity = np.bincount(self.row_of, terms, minlength=self.rows)
        size = np.maximum(1.0, np.bincount(self.row_of, np.abs(terms), minlength=self.rows))
        parts = [
            self.lower - x,
            x - self.upper,
            (self.row_lower - activity) / size,
            (activity - self.row_upper) / size,
            np.abs(x - np.rint(x))[self.integer],
        ]
        return max((float(part.max()) for part in parts if part.size), default=0.0)

    def validate(self) -> None:
        """Raise InputError for data that is not finite, or limits that cross."""
        for name in ("cost", "values"):
            if not np.isfinite(getattr(self, name)).all():
                raise InputError("linear model", name, NoQuote("nan or infinity"), "numbers")
        for name, low, high in (
            ("rows", self.row_lower, self.row_upper),
            ("variables", self.lower, self.upper),
        ):
            if np.isnan(low).any() or np.isnan(high).any():
                raise InputError("linear model", f"limits of {name}", NoQuote("nan"), "numbers")
            if (low > high).any():
                k = int(np.flatnonzero(low > high)[0])
                raise InputError(
                    "linear model",
                    f"limits of {name}[{k}]",
                    NoQuote(f"{low[k]:g} to {high[k]:g}"),
                    "a lower limit that is not above the upper one",
                )


class LinearBuilder:
    """Collects variables and rows, then `build`s the arrays.

    >>> model = LinearBuilder("max")
    >>> x = model.variable(upper=1, cost=3, integer=True)
    >>> y = model.variable(upper=1, cost=2, integer=True)
    >>> _ = model.row([(x, 1), (y, 1)], upper=1)
    >>> model.build().variables
    2
    """

    def __init__(self, sense: Sense = "min", offset: float = 0.0) -> None:
        self.sense: Sense = sense
        self.offset = offset
        self._cost: list[float] = []
        self._lower: list[float] = []
        self._upper: list[float] = []
        self._integer: list[bool] = []
        self._starts: list[int] = [0]
        self._columns: list[int] = []
        self._values: list[float] = []
        self._row_lower: list[float] = []
        self._row_upper: list[float] = []

    def variable(
        self, lower: float = 0.0, upper: float = INF, cost: float = 0.0, integer: bool = False
    ) -> int:
        """Add a variable; returns its column."""
        self._cost.append(cost)
        self._lower.append(lower)
        self._upper.append(upper)
        self._integer.append(integer)
        return len(self._cost) - 1

    def add_cost(self, column: int, cost: float) -> None:
        """Add to a variable's objective coefficient."""
        self._cost[column] += cost

    def upper_limit(self, column: int) -> float:
        """Return a variable's upper limit."""
        return self._upper[column]

    def row(
        self, terms: Iterable[tuple[int, float]], lower: float = -INF, upper: float = INF
    ) -> int:
        """Add lower ≤ Σ value·x_column ≤ upper; returns its row.

        The values of a column given twice are added.
        """
        merged: dict[int, float] = {}
        for column, value in terms:
            merged[column] = merged.get(column, 0.0) + value
        for column, value in merged.items():
            if value:
                self._columns.append(column)
                self._values.append(value)
        self._starts.append(len(self._columns))
        self._row_lower.append(lower)
        self._row_upper.append(upper)
        return len(self._row_lower) - 1

    def build(self) -> LinearModel:
        return LinearModel(
            np.array(self._cost, dtype=np.float64),
            np.array(self._starts, dtype=np.int64),
            np.array(self._columns, dtype=np.int64),
            np.array(self._values, dtype=np.float64),
            np.array(self._row_lower, dtype=np.float64),
            np.array(self._row_upper, dtype=np.float64),
            np.array(self._lower, dtype=np.float64),
            np.array(self._upper, dtype=np.float64),
            np.array(self._integer, dtype=np.bool_),
            self.sense,
            self.offset,
        )


@dataclass(frozen=True, slots=True)
class Options:
    """Options for every back end, in one form for all.

    Parameters
    ----------
    gap: relative gap at which to call a solution optimal.
    seed: random seed.
    start: (n,) a feasible point to begin with, or None. Back ends that cannot use it do not.
    target: an objective that is good enough, so that no proof is needed below (above) it, or
        None. Back ends that cannot use it do not.
    tolerance: how far a point may break a row, a reduced cost its sign or an integer itself; 0
        for the back end's own. HiGHS alone is told.
    presolve: whether the program is made smaller first. HiGHS alone is told.
    """

    gap: float = 0.0
    seed: int = 0
    start: FloatArray | None = None
    target: float | None = None
    tolerance: float = 0.0
    presolve: bool = True


@dataclass(frozen=True, eq=False)
class Solved:
    """Answer of a back end about a model, in one form for all.

    Parameters
    ----------
    status: optimal, feasible, bound_only, infeasible, no_solution or error.
    termination: why it stopped.
    objective: cᵀx + offset of `values`, by our own arithmetic; None without `values`.
    bound: the solver's proven bound, in the model's sense; None when it has none.
    values: (n,) x, integer variables rounded; None when there is no feasible point.
    duals: (m,) row duals of a linear program, where the back end gives them.
    solver: who solved it, with its version.
    message: the solver's own words, when there is something to say.
    """

    status: Status
    termination: Termination
    objective: float | None = None
    bound: float | None = None
    values: FloatArray | None = None
    duals: FloatArray | None = None
    solver: str = ""
    message: str = ""
    info: dict[str, float | int | str] = field(default_factory=dict)


def without_work(model: LinearModel, limits: Limits) -> Solved | None:
    """Return the answer if nothing is to be solved: a false empty row, no variables or no time."""
    empty = np.diff(model.starts) == 0
    if (empty & ((model.row_lower > 0) | (model.row_upper < 0))).any():
        return Solved(Status.INFEASIBLE, Termination.COMPLETED)
    if not model.variables:
        value = model.offset
        return Solved(Status.OPTIMAL, Termination.COMPLETED, value, value, np.zeros(0))
    if limits.stop is not None:
        return Solved(Status.NO_SOLUTION, limits.stop)
    return None


def normalised(
    model: LinearModel,
    *,
    solver: str,
    proven: bool,
    infeasible: bool,
    values: FloatArray | None,
    bound: float | None,
    termination: Termination,
    duals: FloatArray | None = None,
    message: str = "",
) -> Solved:
    """Fold a back end's findings into a `Solved`: one place decides what may be called what."""
    if infeasible:
        return Solved(Status.INFEASIBLE, Termination.COMPLETED, solver=solver, message=message)
    if termination is Termination.ERROR:
        return Solved(Status.ERROR, termination, solver=solver, message=message)
    if bound is not None and not math.isfinite(bound):
        bound = None
    if values is not None:
        # an optimum is one before it is rounded; any other point may be one that rounding makes
        fractional = _broken(model, values) if proven else ""
        values = model.rounded(values)
        wrong = fractional or _broken(model, values)
        if wrong and not proven:
            values = None  # the point of an unfinished linear program
        else:
            wrong = wrong or _contradiction(model, values, bound)
            if wrong:
                return Solved(Status.ERROR, Termination.ERROR, solver=solver, message=wrong)
    if values is None:
        status = Status.NO_SOLUTION if bound is None else Status.BOUND_ONLY
        return Solved(status, termination, bound=bound, solver=solver, message=message)
    objective = model.objective(values)
    status = Status.OPTIMAL if proven else Status.FEASIBLE
    return Solved(
        status, termination, objective, bound, values, duals, solver=solver, message=message
    )


def _broken(model: LinearModel, values: FloatArray) -> str:
    """Return what speaks against a point that a back end calls feasible; "" when nothing does."""
    if not np.isfinite(values).all():
        return "its solution holds NaN or infinity"
    violation = model.violation(values)
    return f"its solution breaks the model by {violation:.3g}" if violation > TOLERANCE else ""


def _contradiction(model: LinearModel, values: FloatArray, bound: float | None) -> str:
    """Tell whether a back end's bound denies its own solution; "" when it does not."""
    if bound is None:
        return ""
    objective = model.objective(values)
    ahead = bound - objective if model.sense == "min" else objective - bound
    if ahead <= 1e-4 * max(1.0, abs(objective)):
        return ""
    return f"its bound {bound:.9g} is better than its solution {objective:.9g}"
