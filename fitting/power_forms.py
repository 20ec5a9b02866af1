"""What a board's applications share: the breakpoint f0, the voltage slope κ, the form of P(f).

Given these, P(f) is linear in its coefficients, so a candidate costs one small weighted least
squares per application and the search can afford to look everywhere.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from optgap.fitting.optimise import Floats
from optgap.models.errors import InputError, NoQuote
from optgap.models.performance.energy import PowerForm, power_columns

FormChoice = Literal["auto", "printed", "continuous", "physical"]

FORMS: tuple[PowerForm, ...] = ("physical", "continuous", "printed")

KAPPAS = (0.3, 1.0, 3.0, 10.0, 25.0)
"""Candidate slopes of the voltage, 1/GHz."""

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


def weighted_fit(columns: Floats, power: Floats, positive: bool = False) -> Floats:
    """Coefficients of least relative squares."""
    size = np.maximum(np.abs(columns).max(axis=0), 1e-300)
    scaled = columns / size / power[:, None]
    if positive:
        from scipy.optimize import nnls

        return np.asarray(nnls(scaled, np.ones(len(power)))[0] / size)
    return np.asarray(np.linalg.lstsq(scaled, np.ones(len(power)), rcond=None)[0] / size)


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
    sizes = {"physical": 3, "continuous": 5, "printed": 6}
    usable = [form for form in forms if sizes[form] < fewest] or ["physical"]
    shapes = [_best_shape(curves, form, f0_mhz) for form in usable]
    if len(shapes) == 1:
        return shapes[0]
    return min(shapes, key=lambda shape: _held_out(curves, shape))


def _best_shape(curves: Curves, form: PowerForm, f0_mhz: float | None) -> Shape:
    clocks = np.unique(np.concatenate([clock for clock, _ in curves]))
    if f0_mhz is not None:
        knots = np.array([f0_mhz])
    else:
        inner = clocks[1:-1] if len(clocks) > 3 else clocks
        count = min(len(inner), 12)
        knots = np.unique(inner[np.linspace(0, len(inner) - 1, count).astype(int)])
    kappas = KAPPAS if form == "physical" else (0.0,)
    shapes = [Shape(form, float(f0), kappa) for f0 in knots for kappa in kappas]
    best = min(shapes, key=lambda shape: cost(shape, curves))
    if f0_mhz is not None and form != "physical":
        return best
    return _polish(curves, best, clocks, f0_mhz)


def _polish(curves: Curves, shape: Shape, clocks: Floats, f0_mhz: float | None) -> Shape:
    """Move f0 and κ off the grid by a simplex search, where that lowers the cost."""
    from scipy.optimize import minimize

    if shape.form == "printed":
        return shape  # f0 only decides which clock belongs to which branch

    def shaped(point: Floats) -> Shape:
        f0 = float(np.clip(point[0] * 1000, clocks[0], clocks[-1])) if f0_mhz is None else f0_mhz
        kappa = float(np.exp(np.clip(point[1], -6, 5))) if shape.form == "physical" else 0.0
        return Shape(shape.form, f0, kappa)

    start = np.array([shape.f0_mhz / 1000, np.log(max(shape.kappa, 1e-2))])
    size = len(start) if shape.form == "physical" else 1

    def objective(point: Floats) -> float:
        full = start.copy()
        full[:size] = point
        return cost(shaped(full), curves)

    # rounds as long as they pay: noisy data settle in the first, exact ones deserve every digit
    point, last = start[:size], cost(shape, curves)
    for steps in (40, 80, 160, 320):
        found = minimize(
            objective,
            point,
            method="Nelder-Mead",
            options={"xatol": 1e-10, "fatol": 1e-20, "maxfev": steps},
        )
        point = found.x
        if found.fun > 0.98 * last:
            break
        last = float(found.fun)
    full = start.copy()
    full[:size] = point
    polished = shaped(full)
    return polished if cost(polished, curves) < cost(shape, curves) else shape


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
