"""Power of one GPU against its clock in PowerFlow's forms (Eq. 13-15 with one batch).

What a board's applications share is the breakpoint f0, the voltage slope κ, the form of P(f).

Given these, P(f) is linear in its coefficients, so a candidate costs one small weighted least
squares per application and the search can afford to look everywhere.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, Self

import numpy as np

from optgap.fitting.curves import Linear, weighted_fit
from optgap.fitting.estimator import Design, Estimator, number
from optgap.fitting.optimise import Floats, Parameter
from optgap.fitting.profile import Profile
from optgap.models.errors import InputError, NoQuote
from optgap.models.performance.energy import COLUMN_NAMES, PowerForm, power_columns
from optgap.models.performance.priors import FLOOR

FormChoice = Literal["auto", "printed", "continuous", "physical"]
FORMS: tuple[PowerForm, ...] = ("physical", "continuous", "printed")

KAPPAS = (0.3, 1.0, 3.0, 10.0, 25.0)
"""Candidate slopes of the voltage, 1/GHz."""
MOST_KNOTS, MOST_STEPS = 12, 200
"""Candidate breakpoints, and evaluations of the simplex search."""

SCALE = 0.02
"""Where the search's robust loss turns linear, as a relative error."""


@dataclass(frozen=True, slots=True)
class Shape:
    """What is shared: form, f0 in MHz, κ in 1/GHz (0 where the form has none)."""

    form: PowerForm
    f0_mhz: float
    kappa: float


Curves = list[tuple[Floats, Floats]]
"""(clocks in MHz, power in W) of each application."""


def lower_bounds(form: PowerForm) -> Floats:
    """Coefficients that physics keeps at 0 or above: all of V(f)'s, the low branch's elsewhere."""
    free = {"printed": 4, "continuous": 3, "physical": 0}[form]
    fixed = {"printed": 2, "continuous": 2, "physical": 3}[form]
    return np.array([0.0] * fixed + [-np.inf] * free)


def coefficients(form: PowerForm, columns: Floats, power: Floats) -> Floats:
    """Coefficients of a form: none below 0 in the physical one."""
    return weighted_fit(columns, power, positive=form == "physical")


def cost(shape: Shape, curves: Curves) -> float:
    """Robust relative error of the best coefficients, summed over the applications."""
    total = 0.0
    for clock, power in curves:
        columns = power_columns(shape.form, clock, shape.f0_mhz, shape.kappa)
        error = columns @ coefficients(shape.form, columns, power) / power - 1
        total += float(np.sum(np.sqrt(1 + (error / SCALE) ** 2) - 1))
    return total


def search(curves: Curves, choice: FormChoice, f0_mhz: float | None, kappa: float | None) -> Shape:
    """The shape with the least error; the form itself by folds when it is to be chosen.

    A shape that is given whole is taken as it is.

    Applications at a single clock say nothing about the shape; forms with more coefficients
    than the smallest of the others has clocks are left out.

    Raises
    ------
    InputError: when no application ran at two clocks.
    """
    if choice != "auto" and f0_mhz is not None and kappa is not None:
        return Shape(choice, f0_mhz, kappa)
    curves = [(clock, power) for clock, power in curves if len(np.unique(clock)) > 1]
    if not curves:
        found = NoQuote("no job at two clocks with everything else equal")
        raise InputError("P(f)", "column frequency_mhz", found, "a sweep of the clock")
    fewest = min(len(np.unique(clock)) for clock, _ in curves)
    forms = FORMS if choice == "auto" else (choice,)
    usable = [form for form in forms if len(COLUMN_NAMES[form]) < fewest] or ["physical"]
    shapes = [_best_shape(curves, form, f0_mhz, kappa) for form in usable]
    return shapes[0] if len(shapes) == 1 else min(shapes, key=lambda s: _held_out(curves, s))


def _best_shape(
    curves: Curves, form: PowerForm, f0_mhz: float | None, kappa: float | None
) -> Shape:
    """The best of a grid, moved off it by a simplex search where that lowers the cost."""
    clocks = np.unique(np.concatenate([clock for clock, _ in curves]))
    inner = clocks[1:-1] if len(clocks) > 3 else clocks
    places = np.unique(np.linspace(0, len(inner) - 1, min(len(inner), MOST_KNOTS)).astype(int))
    knots = inner[places] if f0_mhz is None else [f0_mhz]
    slopes = (0.0,) if form != "physical" else KAPPAS if kappa is None else (kappa,)
    shapes = [Shape(form, float(f0), slope) for f0 in knots for slope in slopes]
    best = min(shapes, key=lambda shape: cost(shape, curves))
    if form == "printed" or (f0_mhz is not None and form == "continuous"):
        return best  # f0 of the printed form only decides which clock belongs to which branch

    def shaped(point: Floats) -> Shape:
        f0 = float(np.clip(point[0] * 1000, clocks[0], clocks[-1])) if f0_mhz is None else f0_mhz
        free = form == "physical" and kappa is None
        return Shape(form, f0, float(np.exp(np.clip(point[1], -6, 5))) if free else best.kappa)

    from scipy.optimize import minimize

    least = cost(best, curves)

    def objective(point: Floats) -> float:
        return cost(shaped(point), curves)

    found = minimize(
        objective,
        np.array([best.f0_mhz / 1000, np.log(max(best.kappa, 1e-2))]),
        method="Nelder-Mead",
        options={"xatol": 1e-8, "fatol": 1e-6 * least, "maxfev": MOST_STEPS},
    )
    return shaped(found.x) if found.fun < least else best


def _held_out(curves: Curves, shape: Shape, folds: int = 5) -> float:
    """Summed absolute relative error over folds dealt round robin along the clock."""
    total = 0.0
    for clock, power in curves:
        columns = power_columns(shape.form, clock, shape.f0_mhz, shape.kappa)
        place = np.argsort(np.argsort(clock, kind="stable"), kind="stable") % folds
        for k in range(folds):
            train, held = place != k, place == k
            if not held.any() or train.sum() < columns.shape[1]:
                continue
            weights = coefficients(shape.form, columns[train], power[train])
            total += float(np.sum(np.abs(columns[held] @ weights / power[held] - 1)))
    return total


class Shaped(Estimator):
    """A power whose form, f0 and κ belong to the board: given, or searched over all its rows.

    Parameters
    ----------
    form: ``printed`` (Eq. 13-14: linear below f0, cubic above, free to jump), ``continuous``
        (joined at f0), ``physical`` (static + linear + f·V², V flat up to f0 and rising by κ
        above; coefficients at least 0), or ``auto`` (default): the one that predicts held-out
        clocks best over the board's applications.
    f0_mhz, kappa: the breakpoint and the voltage's slope in 1/GHz; None (default) searches
        them. In a grouped fit all groups share them.
    """

    def __init__(
        self,
        *,
        form: FormChoice = "auto",
        f0_mhz: float | None = None,
        kappa: float | None = None,
        **shared: Any,
    ) -> None:
        super().__init__(**shared)
        self.form = self.one_of("form", form, ("auto", *FORMS))
        self.f0_mhz = number(self.name, "f0_mhz", f0_mhz, "a clock in MHz")
        self.kappa = number(self.name, "kappa", kappa, "a slope in 1/GHz")

    @abstractmethod
    def sweeps(self, table: Profile, by: str | None) -> Curves:
        """Clocks and power of the rows that differ in nothing but the clock."""

    def shape(self, table: Profile, by: str | None = None) -> dict[str, Any]:
        """The facts that all groups share."""
        found = search(self.sweeps(table, by), self.form, self.f0_mhz, self.kappa)
        return {"form": found.form, "f0_mhz": found.f0_mhz, "kappa": found.kappa}

    def share(self, table: Profile, by: str | None) -> Self:
        """A copy whose form, f0 and κ are those of all groups together."""
        return self.clone(**self.shape(self.prepare(table), by))


class PowerFlowPower(Shaped, Linear):
    """P(f) of a busy GPU at one batch: printed piecewise, continuous, or from V(f).

    No prediction is below a quarter of the least power measured.
    """

    name = "powerflow-power"

    def sweeps(self, table: Profile, by: str | None) -> Curves:
        clock, power = table.numbers("frequency_mhz"), table.numbers("power_w")
        return [(clock[rows], power[rows]) for _, rows in table.groups(by)]

    def settle(self, table: Profile) -> Design:
        return {**self.shape(table), "floor_w": FLOOR * float(table.numbers("power_w").min())}

    def parameters(self, table: Profile, facts: Design) -> Sequence[Parameter]:
        form, f0, kappa = facts["form"], facts["f0_mhz"], facts["kappa"]
        more = "more clocks on either side of f0"
        lower = lower_bounds(form)
        return (
            Parameter("f0_mhz", "MHz", f0, f0, "where the voltage starts to rise"),
            Parameter("kappa", "1/GHz", kappa, kappa, "slope of the voltage above f0"),
            *(
                Parameter(name, "W", float(low), np.inf, f"coefficient of P(f), {form} form", more)
                for name, low in zip(COLUMN_NAMES[form], lower, strict=True)
            ),
        )

    def guess(self, table: Profile, facts: Design) -> Floats:
        columns = self.design(table, facts)["columns"]
        weights = coefficients(facts["form"], columns, table.numbers("power_w"))
        lower = lower_bounds(facts["form"])
        start = np.where(np.isfinite(lower), np.maximum(weights, 1e-3), weights)
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
