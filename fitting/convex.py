"""Power over the clock as a convex program (CVXPY): Huber's loss, power above 0 that never falls.

For models that are linear in their coefficients once f0 and κ are given.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any, TypeVar

import numpy as np

from optgap.fitting.estimator import Design, Estimator
from optgap.fitting.optimise import Fit, Floats, spread
from optgap.fitting.parameter import Parameter
from optgap.fitting.profile import Profile
from optgap.models.errors import InputError, NoQuote

E = TypeVar("E", bound=Estimator)
GRID = 60
"""Clocks between the lowest and the highest at which the constraints hold."""
LEAST = 1e-3
"""Least power on them, of the mean one."""


def constrained(estimator: E, profile: Profile, facts: Design, params: tuple[Parameter, ...]) -> E:
    """Fit the coefficients that come last among the parameters, and judge the fit.

    Raises
    ------
    InputError: where the solver finds none.
    """
    design = estimator.design(profile, facts)
    columns, power = design["columns"], profile.numbers(estimator.response)
    clock = profile.numbers("frequency_mhz")
    between = Profile({"frequency_mhz": np.linspace(clock.min(), clock.max(), GRID)})
    grid = estimator.design(between, facts)["columns"]
    lower = np.array([p.lower for p in params[-columns.shape[1] :]])
    theta = np.array([p.lower if p.fixed else 0.0 for p in params])
    theta[-columns.shape[1] :] = _weights(columns, power, grid, lower, estimator, profile)
    log, jacobian = estimator.curve(theta, design)
    residuals = log - estimator.target(profile)
    trust = np.minimum(1.0, estimator.loss_scale / np.maximum(np.abs(residuals), 1e-300))
    held = np.array([p.fixed for p in params])
    held |= theta <= np.array([p.lower for p in params]) + 1e-9 * np.abs(theta).max()
    found = Fit(theta, 0.0, residuals, jacobian, trust, theta)
    estimator.start_, estimator.residuals_ = theta, residuals
    ends = np.array([[p.lower, p.upper] for p in params], dtype=float).T
    scatter = spread(found, held, len(residuals), *ends)
    return estimator._found(profile, facts, params, theta, held, scatter)


def _weights(
    columns: Floats, power: Floats, grid: Floats, lower: Floats, estimator: Estimator,
    profile: Profile,
) -> Floats:  # fmt: skip
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
    loss = cp.sum(cp.huber(error / estimator.loss_scale, 1.0))
    try:
        cp.Problem(cp.Minimize(loss), rules).solve(solver="CLARABEL")
    except cp.error.SolverError:
        w.value = None
    if w.value is None:
        found = NoQuote("no rising power that fits")
        raise InputError(profile.source, "robust", found, "powers that rise with the clock")
    return np.asarray(np.where(np.isfinite(lower), np.maximum(w.value, 0), w.value) / size)
