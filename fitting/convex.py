"""Power over the clock as a convex program (CVXPY): Huber's loss, power above 0 that never falls.

For models that are linear in their coefficients once f0 and κ are given.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any, Self

import numpy as np

from optgap.fitting.estimator import Design, Estimator
from optgap.fitting.optimise import Fit, Floats, spread
from optgap.fitting.parameter import Parameter, bounds
from optgap.fitting.profile import Profile
from optgap.models.errors import InputError, NoQuote

GRID = 60
"""Clocks between the lowest and the highest at which the constraints hold."""
LEAST = 1e-3
"""Least power on them, of the mean one."""


def weighted_fit(columns: Floats, power: Floats, positive: bool = False) -> Floats:
    """Coefficients of least relative squares."""
    size = np.maximum(np.abs(columns).max(axis=0), 1e-300)
    scaled = columns / size / power[:, None]
    if positive:
        from scipy.optimize import nnls

        return np.asarray(nnls(scaled, np.ones(len(power)))[0] / size)
    return np.asarray(np.linalg.lstsq(scaled, np.ones(len(power)), rcond=None)[0] / size)


class Linear(Estimator):
    """A power that is linear in the coefficients which come last among its parameters.

    Parameters
    ----------
    robust: coefficients by a convex program with Huber's loss.
    """

    response = "power_w"
    needs = ("frequency_mhz",)

    def __init__(self, *, robust: bool = False, **shared: Any) -> None:
        super().__init__(**(dict[str, Any](starts=1) | shared))
        self.robust = robust

    def curve(self, theta: Floats, design: Design) -> tuple[Floats, Floats]:
        columns = design["columns"]
        size = columns.shape[1]
        power = np.maximum(columns @ theta[-size:], design.get("floor_w", 1e-300))
        jacobian = columns / power[:, None]
        held = np.zeros((len(power), len(theta) - size))
        return np.log(power), np.append(held, jacobian, axis=1) if held.size else jacobian

    def _solve(
        self, profile: Profile, facts: Design, params: tuple[Parameter, ...], starts: Floats
    ) -> Self:
        if self.robust:
            return self._constrained(profile, facts, params)
        return super()._solve(profile, facts, params, starts)

    def _constrained(self, profile: Profile, facts: Design, params: tuple[Parameter, ...]) -> Self:
        """Fit by the convex program; raise InputError where the solver finds nothing."""
        design = self.design(profile, facts)
        columns, power = design["columns"], profile.numbers(self.response)
        clock = profile.numbers("frequency_mhz")
        between = Profile({"frequency_mhz": np.linspace(clock.min(), clock.max(), GRID)})
        grid = self.design(between, facts)["columns"]
        lower, upper = bounds(params)
        theta = np.where(lower == upper, lower, 0.0)
        last = slice(-columns.shape[1], None)
        theta[last] = _weights(columns, power, grid, lower[last], self.loss_scale, profile.source)
        log, jacobian = self.curve(theta, design)
        residuals = log - self.target(profile)
        trust = np.minimum(1.0, self.loss_scale / np.maximum(np.abs(residuals), 1e-300))
        held = (lower == upper) | (theta <= lower + 1e-9 * np.abs(theta).max())
        found = Fit(theta, 0.0, residuals, jacobian, trust, theta)
        self.start_, self.residuals_ = theta, residuals
        scatter = spread(found, held, len(residuals), lower, upper)
        return self._found(profile, facts, params, theta, held, scatter)


def _weights(
    columns: Floats, power: Floats, grid: Floats, lower: Floats, scale: float, source: str
) -> Floats:
    """min Σ huber(columns·w/power − 1) with power on the grid above 0 and rising."""
    cp: Any = import_module("cvxpy")  # whose functions carry no types
    size = np.maximum(np.abs(columns).max(axis=0), 1e-300)
    w = cp.Variable(columns.shape[1])
    error = (columns / size / power[:, None]) @ w - 1
    curve = (grid / size / power.mean()) @ w
    rules = [curve >= LEAST, cp.diff(curve) >= 0]
    held = np.flatnonzero(np.isfinite(lower))
    if len(held):
        rules.append(w[held] >= 0)
    loss = cp.sum(cp.huber(error / scale, 1.0))
    try:
        cp.Problem(cp.Minimize(loss), rules).solve(solver="CLARABEL")
    except cp.error.SolverError:
        w.value = None
    if w.value is None:
        found = NoQuote("no rising power that fits")
        raise InputError(source, "robust", found, "powers that rise with the clock")
    return np.asarray(np.where(np.isfinite(lower), np.maximum(w.value, 0), w.value) / size)
