"""Parameters, bounded robust least squares from several starts, and the errors of a solution."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Loss = Literal["linear", "soft_l1"]
Residuals = Callable[[Floats], tuple[Floats, Floats]]
"""``f(theta) -> (residuals (rows,), jacobian (rows, parameters))``."""

MOST_STEPS = 300
"""Largest number of evaluations of one descent."""
TOLERANCE = 1e-10
"""Relative fall of the cost at which a descent ends."""
ACCEPTED, TRIED = 0.01, 1000
"""Least share of draws that must lie within the bounds, and the number of draws tried."""


@dataclass(frozen=True, slots=True)
class Parameter:
    """Parameter with unit, physical bounds and meaning; it is fixed if the bounds are equal."""

    name: str
    unit: str
    lower: float
    upper: float
    meaning: str
    measure: str = ""
    """Advice on what to measure if the data cannot determine the parameter."""

    @property
    def fixed(self) -> bool:
        return self.lower == self.upper


def bounds(params: Sequence[Parameter]) -> tuple[Floats, Floats]:
    """Return the lower and upper bounds of the parameters."""
    lower, upper = np.array([[p.lower, p.upper] for p in params], dtype=float).reshape(-1, 2).T
    return lower, upper


@dataclass(frozen=True, slots=True)
class Fit:
    """End of a fit: parameters, cost (half the robust sum), Jacobian and row weights.

    Parameters
    ----------
    weights: ρ' of each residual; the gradient is Jᵀ(ρ'·r).
    start: parameters at which the descent began.
    """

    theta: Floats
    cost: float
    residuals: Floats
    jacobian: Floats
    weights: Floats
    start: Floats


def solved(
    evaluate: Residuals,
    params: Sequence[Parameter],
    starts: Floats,
    loss: Loss,
    *,
    scale: float,
) -> tuple[Fit, NDArray[np.bool_], Spread]:
    """Return the best fit from several starts, which parameters are at a bound, and their errors.

    Parameters
    ----------
    starts: (starts, parameters); of several equal ends the first wins.
    loss, scale: the loss, and the residual at which it turns linear.
    """
    from scipy.optimize import least_squares

    lower, upper = bounds(params)
    free = np.flatnonzero(lower < upper)

    def at(theta: Floats, start: Floats) -> Fit:
        residuals, jacobian = evaluate(theta)
        square = (residuals / scale) ** 2
        root = np.ones_like(square) if loss == "linear" else np.sqrt(1 + square)
        # z²/(1+√(1+z²)) is √(1+z²)−1 without its cancellation near zero
        cost = scale**2 * float(np.sum(square / (root + 1)))
        return Fit(theta, cost, residuals, jacobian, 1 / root, start)

    def descend(start: Floats) -> Fit:
        theta = np.clip(start, lower, upper)

        def residuals(values: Floats) -> Floats:
            theta[free] = values
            return evaluate(theta)[0]

        def jacobian(values: Floats) -> Floats:
            theta[free] = values
            return evaluate(theta)[1][:, free]

        if len(free):
            theta[free] = least_squares(
                residuals,
                theta[free],
                jac=jacobian,
                bounds=(lower[free], upper[free]),
                x_scale="jac",
                loss=loss,
                f_scale=scale,
                ftol=TOLERANCE,
                xtol=1e-14,
                gtol=None,  # of a scale that falls with the distance to a bound
                max_nfev=MOST_STEPS,
            ).x
        fit = at(theta.copy(), start)
        # scipy keeps to the inside of the bounds: what presses against one ends on it
        gradient = fit.jacobian.T @ (fit.weights * fit.residuals)
        bound = np.where(gradient > 0, lower, upper)
        move = np.where((gradient != 0) & np.isfinite(bound), bound - fit.theta, 0.0)
        change = np.abs(gradient * move) + np.sum(fit.jacobian**2, axis=0) * move**2
        pressed = (move != 0) & (change <= TOLERANCE * fit.cost)
        there = at(np.where(pressed, bound, fit.theta), start) if pressed.any() else fit
        return there if there.cost <= fit.cost * (1 + TOLERANCE) else fit

    # Several threads for matrices of a few columns mostly wait for one another.
    with _threads().limit(limits=1, user_api="blas"):
        ends = [descend(start) for start in starts]
    fit = min(ends, key=lambda end: np.inf if np.isnan(end.cost) else end.cost)
    edge = 1e-9 * np.maximum(np.abs(fit.theta), 1e-12)
    held = (fit.theta <= lower + edge) | (fit.theta >= upper - edge)
    return fit, held, _spread(fit, params, held, lambda theta: at(theta, theta).cost)


@cache
def _threads() -> Any:
    import scipy.linalg  # whose library has to be there to be found
    from threadpoolctl import ThreadpoolController

    assert scipy.linalg
    return ThreadpoolController()


@dataclass(frozen=True, slots=True)
class Spread:
    """Covariance of the free parameters (zero rows and columns elsewhere), with its limits.

    Parameters
    ----------
    covariance, stderr: of the parameters at no bound; NaN if no row is left for the noise.
    loose: groups of parameters of which the data determine too few combinations.
    centre, drawn: mean and covariance of draws, from the fit without bounds; draws outside the
        bounds are rejected. If no row is left for the noise, the covariance is relative to the
        variance of the noise.
    """

    covariance: Floats
    stderr: Floats
    loose: tuple[tuple[int, ...], ...]
    centre: Floats
    drawn: Floats

    @classmethod
    def of(cls, theta: Floats, covariance: Floats) -> Spread:
        """Return the spread of parameters that a covariance describes completely."""
        return cls(covariance, np.sqrt(np.diag(covariance)), (), theta, covariance)


def _spread(
    fit: Fit,
    params: Sequence[Parameter],
    held: NDArray[np.bool_],
    cost: Callable[[Floats], float],
) -> Spread:
    """Return standard errors from the Jacobian at the solution; NaN if not identifiable.

    Parameters
    ----------
    held: parameters at a bound or fixed; the error of a parameter at a bound is unknown.
    cost: cost of parameters, beyond their bounds, too; a step there must lower the cost, or the
        curve is too bent for the step.
    """
    lower, upper = bounds(params)
    fixed = lower == upper
    shape, noise, loose = _errors(fit, held)
    covariance = shape * noise**2
    if len(fit.residuals) <= int(np.sum(~fixed)):  # no row to spare
        free = ~held
        unknown = np.where(np.outer(free, free), np.nan, 0.0)
        return Spread(unknown, np.where(fixed, 0.0, np.nan), loose, fit.theta, shape)
    stderr = np.sqrt(np.maximum(np.diag(covariance), 0))
    stderr[[k for members in loose for k in members]] = np.nan
    stderr[held & ~fixed] = np.nan
    if not np.any(held & ~fixed):
        return Spread(covariance, stderr, loose, fit.theta, covariance)
    gradient = fit.jacobian.T @ (fit.weights * fit.residuals)
    wide, _, unsure = _errors(fit, fixed)
    there = fit.theta - wide @ gradient  # one Newton step, beyond the bounds
    beyond = fit.residuals + fit.jacobian @ (there - fit.theta)
    wide, noise, _ = _errors(replace(fit, residuals=beyond), fixed)
    wide = wide * noise**2
    normal = np.random.default_rng(0).standard_normal((TRIED, len(there)))
    accepted = float(np.mean(within(there + normal @ root(wide).T, there, lower, upper)))
    with np.errstate(all="ignore"):
        better = cost(there) <= fit.cost
    if better and accepted >= ACCEPTED and not unsure:
        return Spread(covariance, stderr, loose, there, wide)
    return Spread(covariance, stderr, loose, fit.theta, covariance)


def within(drawn: Floats, centre: Floats, lower: Floats, upper: Floats) -> NDArray[np.bool_]:
    """Return which draws, (draws, parameters), lie within the bounds."""
    slack = 1e-9 * np.abs(centre)
    return np.asarray(np.all((drawn >= lower - slack) & (drawn <= upper + slack), axis=1))


def root(covariance: Floats) -> Floats:
    """Return a matrix whose product with its transpose is the covariance."""
    values, vectors = np.linalg.eigh(covariance)
    return np.asarray(vectors * np.sqrt(np.maximum(values, 0)))


def _errors(fit: Fit, held: NDArray[np.bool_]) -> tuple[Floats, float, tuple[tuple[int, ...], ...]]:
    """Return covariance over the noise's variance, the noise, and unidentifiable groups."""
    shape, free = np.zeros((len(fit.theta),) * 2), np.flatnonzero(~held)
    if not len(free):
        return shape, 0.0, ()
    square = float(np.sum(fit.weights * fit.residuals**2))
    jacobian = fit.jacobian[:, free] * np.sqrt(fit.weights)[:, None]
    norms = np.linalg.norm(jacobian, axis=0)
    safe = np.where(norms > 0, norms, 1.0)
    short = max(len(free) - len(jacobian), 0)  # rows of zeros complete the directions
    padded = np.concatenate([jacobian / safe, np.zeros((short, len(free)))])
    _, values, right = np.linalg.svd(padded, full_matrices=False)
    weak = values <= 1e-7 * max(float(values[0]), 1e-300)
    # what the rows do not tell takes no degree of freedom from the noise
    noise = float(np.sqrt(square / max(len(fit.residuals) - int(np.sum(~weak)), 1)))
    inverse = np.where(weak, 0.0, 1 / np.where(weak, 1.0, values) ** 2)
    shape[np.ix_(free, free)] = (right.T * inverse) @ right / np.outer(safe, safe)
    share = np.linalg.norm(right[weak], axis=0)  # of each parameter that no row tells
    several = free[(share > 0.1) & (share < 1 - 1e-6)].tolist()
    loose = [(k,) for k in free[share >= 1 - 1e-6].tolist()]
    return shape, noise, (*loose, *([tuple(several)] if several else []))
