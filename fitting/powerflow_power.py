"""Power of one GPU against its clock in PowerFlow's forms (Eq. 13-15 with one batch).

The applications of a board share the breakpoint f0, the voltage slope κ and the form of P(f).

Given these, P(f) is linear in its coefficients. A candidate therefore costs one small weighted
least squares per application, so the search covers the whole range.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, Self

import numpy as np

from optgap.fitting.curves import Linear, weighted_fit
from optgap.fitting.estimator import Design, Estimator
from optgap.fitting.optimise import Floats, Parameter
from optgap.fitting.profile import Profile
from optgap.models.errors import InputError, NoQuote
from optgap.models.performance.energy import COLUMN_NAMES, PowerForm, power_columns
from optgap.models.performance.priors import FLOOR

FormChoice = Literal["auto", "printed", "continuous", "physical"]

KAPPAS = (0.3, 1.0, 3.0, 10.0, 25.0)
"""Candidate slopes of the voltage, 1/GHz."""
MOST_KNOTS, MOST_STEPS = 12, 200
"""Number of candidate breakpoints, and of evaluations of the simplex search."""
MANY_CLOCKS = 15
"""Least number of clocks at which intervals of the continuous form, of five coefficients, hold."""
SCALE = 0.02
"""Relative error at which the robust loss of the search turns linear."""

Shape = dict[str, Any]
"""Shared facts: ``form``, ``f0_mhz``, and ``kappa`` in 1/GHz (0 if the form has none)."""
Curves = list[tuple[Floats, Floats]]
"""Clocks (MHz) and power (W) of each application."""


def lower_bounds(form: PowerForm) -> Floats:
    """Return lower bounds: 0 for all coefficients of V(f), and else for the low branch."""
    fixed = 3 if form == "physical" else 2
    return np.array([0.0] * fixed + [-np.inf] * (len(COLUMN_NAMES[form]) - fixed))


def started(form: PowerForm, columns: Floats, power: Floats) -> Floats:
    """Return initial coefficients inside their bounds."""
    weights, lower = weighted_fit(columns, power, form == "physical"), lower_bounds(form)
    return np.where(np.isfinite(lower), np.maximum(weights, 1e-3), weights)


def _errors(curves: Curves, shape: Shape) -> Floats:
    """Return relative errors of each application's best coefficients."""
    found = [np.zeros(0)]
    for clock, power in curves:
        columns = power_columns(shape["form"], clock, shape["f0_mhz"], shape["kappa"])
        weights = weighted_fit(columns, power, shape["form"] == "physical")
        found.append(columns @ weights / power - 1)
    return np.concatenate(found)


def search(curves: Curves, choice: FormChoice, f0_mhz: float | None, kappa: float | None) -> Shape:
    """Return the shape with the least error; a complete given shape is returned unchanged.

    Applications at a single clock do not count. If the smallest other application has no more
    clocks than the form has coefficients, the physical form, with the fewest, takes its place.

    Raises
    ------
    InputError: if no application ran at two clocks.
    """
    if choice != "auto" and f0_mhz is not None and kappa is not None:
        return {"form": choice, "f0_mhz": f0_mhz, "kappa": kappa}
    curves = [(clock, power) for clock, power in curves if len(np.unique(clock)) > 1]
    if not curves:
        found = NoQuote("no job at two clocks with everything else equal")
        raise InputError("P(f)", "column frequency_mhz", found, "a sweep of the clock")
    fewest = min(len(np.unique(clock)) for clock, _ in curves)
    form = choice
    if form == "auto":
        form = "continuous" if fewest >= MANY_CLOCKS else "physical"
    form = form if len(COLUMN_NAMES[form]) < fewest else "physical"
    return _best_shape(curves, form, f0_mhz, kappa)


def _best_shape(
    curves: Curves, form: PowerForm, f0_mhz: float | None, kappa: float | None
) -> Shape:
    """Return the best shape of a grid, improved by a simplex search if that lowers the cost."""
    from scipy.optimize import minimize

    clocks = np.unique(np.concatenate([clock for clock, _ in curves]))
    inner = clocks[1:-1] if len(clocks) > 3 else clocks
    places = np.unique(np.linspace(0, len(inner) - 1, min(len(inner), MOST_KNOTS)).astype(int))
    knots = inner[places] if f0_mhz is None else [f0_mhz]
    slopes = (0.0,) if form != "physical" else KAPPAS if kappa is None else (kappa,)

    def shape(f0: float, log_slope: float) -> Shape:
        f0 = float(np.clip(f0, clocks[0], clocks[-1])) if f0_mhz is None else f0_mhz
        slope = float(np.exp(np.clip(log_slope, -6, 5))) if len(slopes) > 1 else slopes[0]
        return {"form": form, "f0_mhz": f0, "kappa": slope}

    def cost(point: Floats) -> float:
        off = _errors(curves, shape(1000 * point[0], point[1])) / SCALE
        return float(np.sum(np.sqrt(1 + off**2) - 1))

    grid = [np.array([f0 / 1000, np.log(max(s, 1e-2))]) for f0 in knots for s in slopes]
    costs = [cost(point) for point in grid]
    best, least = grid[int(np.argmin(costs))], min(costs)
    # f0 of the printed form only decides which clock belongs to which branch
    if form != "printed" and (f0_mhz is None or len(slopes) > 1):
        found = minimize(
            cost,
            best,
            method="Nelder-Mead",
            options={"xatol": 1e-8, "fatol": 1e-6 * least, "maxfev": MOST_STEPS},
        )
        best = found.x if found.fun < least else best
    return shape(1000 * best[0], best[1])


@dataclass(kw_only=True, eq=False)
class Shaped(Estimator):
    """Base of powers whose form, f0 and κ belong to the board: given, or found from all rows.

    Parameters
    ----------
    form: ``printed`` (Eq. 13-14: linear below f0, cubic above, free to jump), ``continuous``
        (joined at f0), ``physical`` (static + linear + f·V², V flat up to f0 and rising by κ
        above; coefficients at least 0), or ``auto`` (default): continuous from 15 clocks on,
        else physical.
    f0_mhz, kappa: breakpoint, and slope of the voltage in 1/GHz; None (default) fits these.
        In a grouped fit all groups share the values.
    """

    form: FormChoice = "auto"
    f0_mhz: float | None = None
    kappa: float | None = None

    @abstractmethod
    def sweeps(self, table: Profile, by: str | None) -> Curves:
        """Return clocks and power of the rows that differ only in the clock."""

    def shape(self, table: Profile, by: str | None = None) -> Shape:
        """Return the facts that all groups share."""
        return search(self.sweeps(table, by), self.form, self.f0_mhz, self.kappa)

    def share(self, table: Profile, by: str | None) -> Self:
        """Return a copy whose form, f0 and κ come from all groups together."""
        return self.clone(**self.shape(self.prepare(table), by))

    def held(self, facts: Design) -> tuple[Parameter, Parameter]:
        """Return the parameters f0 and κ, which are fixed within each group."""
        f0, kappa = facts["f0_mhz"], facts["kappa"]
        return (
            Parameter("f0_mhz", "MHz", f0, f0, "where the voltage starts to rise"),
            Parameter("kappa", "1/GHz", kappa, kappa, "slope of the voltage above f0"),
        )


@dataclass(kw_only=True, eq=False)
class PowerFlowPower(Shaped, Linear):
    """P(f) of a busy GPU at one batch: printed piecewise, continuous, or from V(f).

    No prediction is below a quarter of the least measured power.
    """

    name = "powerflow-power"

    def sweeps(self, table: Profile, by: str | None) -> Curves:
        clock, power = table.numbers("frequency_mhz"), table.numbers("power_w")
        return [(clock[rows], power[rows]) for _, rows in table.groups(by)]

    def settle(self, table: Profile) -> Design:
        return {**self.shape(table), "floor_w": FLOOR * float(table.numbers("power_w").min())}

    def parameters(self, table: Profile, facts: Design) -> Sequence[Parameter]:
        form, more = facts["form"], "more clocks on either side of f0"
        own = zip(COLUMN_NAMES[form], lower_bounds(form).tolist(), strict=True)
        meaning = f"coefficient of P(f), {form} form"
        return (
            *self.held(facts),
            *(Parameter(name, "W", low, np.inf, meaning, more) for name, low in own),
        )

    def guess(self, table: Profile, facts: Design) -> Floats:
        columns = self.design(table, facts)["columns"]
        start = started(facts["form"], columns, table.numbers("power_w"))
        return np.concatenate([[facts["f0_mhz"], facts["kappa"]], start])

    def design(self, table: Profile, facts: Design) -> Design:
        clock = table.numbers("frequency_mhz")
        columns = power_columns(facts["form"], clock, facts["f0_mhz"], facts["kappa"])
        return {"columns": columns, "floor_w": facts["floor_w"]}

    def remarks(self, table: Profile) -> list[str]:
        clock = table.numbers("frequency_mhz")
        above = int(np.sum(clock > self.facts_["f0_mhz"]))
        found = ["f0 and kappa are held while errors are estimated"]
        if above < 2 or above > len(clock) - 2:
            found.append(f"{above} of {len(clock)} clocks lie above f0: it is not well placed")
        return found
