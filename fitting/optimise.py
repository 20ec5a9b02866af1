"""Bounded, robust least squares from several starts, and the standard errors of a solution."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from operator import attrgetter
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Loss = Literal["linear", "soft_l1"]
Residuals = Callable[[Floats], tuple[Floats, Floats]]
"""``f(theta) -> (residuals (rows,), jacobian (rows, parameters))``."""

MOST_STEPS = 300
"""Evaluations of one descent."""

TOLERANCE = 1e-10
"""Relative fall of the cost at which a descent ends."""

LEAST_NOISE = 1e-6
"""Relative error below which measurements are not believed, where a prior is weighed."""


@dataclass(frozen=True, slots=True)
class Fit:
    """End of a fit: parameters, cost (half the robust sum), Jacobian and row weights.

    Parameters
    ----------
    weights: ρ' of each residual; the gradient is Jᵀ(ρ'·r).
    start: where the descent began.
    """

    theta: Floats
    cost: float
    residuals: Floats
    jacobian: Floats
    weights: Floats
    start: Floats


@dataclass(frozen=True, slots=True)
class Robust:
    """Robust least squares within bounds.

    Parameters
    ----------
    evaluate: residuals and Jacobian.
    lower, upper: (parameters,) bounds; a parameter whose bounds meet is fixed.
    loss, scale: the loss, and the residual at which it turns linear.
    """

    evaluate: Residuals
    lower: Floats
    upper: Floats
    loss: Loss = "soft_l1"
    scale: float = 0.02

    def at(self, theta: Floats, start: Floats) -> Fit:
        """Return the fit as if it ended at `theta`."""
        residuals, jacobian = self.evaluate(theta)
        if self.loss == "linear":
            weights, cost = np.ones_like(residuals), 0.5 * float(residuals @ residuals)
        else:
            square = (residuals / self.scale) ** 2
            root = np.sqrt(1 + square)
            # z²/(1+√(1+z²)) is √(1+z²)−1 without its cancellation near zero
            cost = self.scale**2 * float(np.sum(square / (root + 1)))
            weights = 1 / root
        return Fit(theta, cost, residuals, jacobian, weights, start)

    def descend(self, start: Floats) -> Fit:
        """Minimise the cost from one start."""
        from scipy.optimize import least_squares

        theta = np.clip(start, self.lower, self.upper)
        free = np.flatnonzero(self.lower < self.upper)

        @lru_cache(maxsize=1)  # scipy asks for both at once, and then writes into them
        def look(values: bytes) -> tuple[Floats, Floats]:
            theta[free] = np.frombuffer(values)
            found, slope = self.evaluate(theta)
            return found, slope[:, free]

        def residuals(values: Floats) -> Floats:
            return look(values.tobytes())[0]

        def jacobian(values: Floats) -> Floats:
            return look(values.tobytes())[1]

        if len(free):
            theta[free] = least_squares(
                residuals,
                theta[free],
                jac=jacobian,
                bounds=(self.lower[free], self.upper[free]),
                x_scale="jac",
                loss=self.loss,
                f_scale=self.scale,
                ftol=TOLERANCE,
                xtol=1e-14,
                gtol=None,  # of a scale that falls with the distance to a bound
                max_nfev=MOST_STEPS,
            ).x
        return self.settled(self.at(theta.copy(), start))

    def settled(self, fit: Fit) -> Fit:
        """Return the fit with parameters that press against a bound on it.

        scipy keeps to the inside of the bounds and only comes close.
        """
        gradient = fit.jacobian.T @ (fit.weights * fit.residuals)
        bound = np.where(gradient > 0, self.lower, self.upper)
        move = np.where((gradient != 0) & np.isfinite(bound), bound - fit.theta, 0.0)
        change = np.abs(gradient * move) + np.sum(fit.jacobian**2, axis=0) * move**2
        pressed = (move != 0) & (change <= TOLERANCE * fit.cost)
        if not pressed.any():
            return fit
        there = self.at(np.where(pressed, bound, fit.theta), fit.start)
        return there if there.cost <= fit.cost * (1 + TOLERANCE) else fit

    def best(self, starts: Floats) -> Fit:
        """Return the best fit from several starts, (starts, parameters); of equals the first."""
        # Several threads for matrices of a few columns mostly wait for one another.
        with _threads().limit(limits=1, user_api="blas"):
            return min(map(self.descend, starts), key=attrgetter("cost"))


@cache
def _threads() -> Any:
    import scipy.linalg  # whose library has to be there to be found
    from threadpoolctl import ThreadpoolController

    assert scipy.linalg
    return ThreadpoolController()


ACCEPTED, TRIED = 0.01, 1000
"""Draws that have to lie within the bounds, as a share, and how many are tried."""


@dataclass(frozen=True, slots=True)
class Spread:
    """Covariance of the free parameters (zero rows and columns elsewhere) and what it cannot say.

    Parameters
    ----------
    covariance, stderr: of the parameters that are at no bound; NaN with no row to spare.
    loose: groups of parameters of which the data fix fewer combinations than there are.
    centre, drawn: what parameters are drawn around, and their covariance there: of the fit without
        bounds, whose draws outside them are rejected. With no row to spare, over the noise's
        variance.
    """

    covariance: Floats
    stderr: Floats
    loose: tuple[tuple[int, ...], ...]
    centre: Floats
    drawn: Floats


def spread(
    fit: Fit,
    held: NDArray[np.bool_],
    rows: int,
    lower: Floats,
    upper: Floats,
    prior: Floats | None = None,
    cost: Callable[[Floats], float] | None = None,
    stated: float | None = None,
) -> Spread:
    """Standard errors from the Jacobian at the solution; NaN for what cannot be identified.

    Parameters
    ----------
    held: parameters at a bound or fixed; of one at a bound the error is unknown.
    rows: how many of the residuals are measurements (regularisers follow them).
    lower, upper: the bounds.
    prior: (priors, parameters) what was believed before there were rows, as rows of the Jacobian.
    cost: of parameters, beyond their bounds, too; the step there has to lower it, or the curve is
        too bent for one.
    stated: the noise, where there is no row to spare.
    """
    prior = np.zeros((0, len(fit.theta))) if prior is None else prior
    known = prior.any(axis=0)
    fixed = lower == upper
    told = int(np.sum(~fixed & ~known))
    shape, noise, loose = _errors(fit, held, rows, prior)
    if rows > told:
        stated = None
    spare, noise = rows > told or stated is not None, stated or noise
    covariance = shape * noise**2
    stderr = np.sqrt(np.maximum(np.diag(covariance), 0))
    stderr[[k for members in loose for k in members]] = np.nan
    stderr[held & ~fixed] = np.nan
    centre, drawn = fit.theta, covariance if spare else shape
    if spare and np.any(held & ~fixed):
        gradient = fit.jacobian[:rows].T @ (fit.weights[:rows] * fit.residuals[:rows])
        wide, _, unknown = _errors(fit, fixed, rows, prior)
        there = fit.theta - wide @ gradient  # one Newton step, beyond the bounds
        beyond = fit.residuals + fit.jacobian @ (there - fit.theta)
        wide, noise, _ = _errors(replace(fit, residuals=beyond), fixed, rows, prior)
        noise = stated or noise
        least, most = np.where(known, -np.inf, lower), np.where(known, np.inf, upper)
        with np.errstate(all="ignore"):
            better = cost is None or cost(there) <= fit.cost
        accepted = _accepted(there, wide * noise**2, least, most) >= ACCEPTED
        if better and accepted and not unknown:
            centre, drawn = there, wide * noise**2
    if not spare:
        free = ~held
        covariance = np.where(np.outer(free, free), np.nan, 0.0)
        stderr = np.where(fixed, 0.0, np.nan)
    return Spread(covariance, stderr, loose, centre, drawn)


def _accepted(centre: Floats, covariance: Floats, lower: Floats, upper: Floats) -> float:
    """Share of normal draws that lie within the bounds."""
    normal = np.random.default_rng(0).standard_normal((TRIED, len(centre)))
    drawn = centre + normal @ root(covariance).T
    slack = 1e-9 * np.abs(centre)
    return float(np.mean(np.all((drawn >= lower - slack) & (drawn <= upper + slack), axis=1)))


def root(covariance: Floats) -> Floats:
    """A matrix whose product with its transpose is the covariance."""
    values, vectors = np.linalg.eigh(covariance)
    return np.asarray(vectors * np.sqrt(np.maximum(values, 0)))


def _errors(
    fit: Fit, held: NDArray[np.bool_], rows: int, prior: Floats
) -> tuple[Floats, float, tuple[tuple[int, ...], ...]]:
    """Covariance over the noise's variance, the noise, and what is not identifiable."""
    size = len(fit.theta)
    shape = np.zeros((size, size))
    free = np.flatnonzero(~held)
    if not len(free):
        return shape, 0.0, ()
    weights, residuals = fit.weights[:rows], fit.residuals[:rows]
    jacobian = fit.jacobian[:rows][:, free] * np.sqrt(weights)[:, None]
    known = np.flatnonzero(prior[:, free].any(axis=0))
    square = float(np.sum(weights * residuals**2))
    noise = 0.0
    if len(known):
        degrees = max(rows - (len(free) - len(known)), 1)
        noise = max(float(np.sqrt(square / degrees)), LEAST_NOISE)
        jacobian = np.concatenate([jacobian, noise * prior[:, free]])
    norms = np.linalg.norm(jacobian, axis=0)
    safe = np.where(norms > 0, norms, 1.0)
    short = max(len(free) - len(jacobian), 0)  # rows of zeros complete the directions
    padded = np.concatenate([jacobian / safe, np.zeros((short, len(free)))])
    _, values, right = np.linalg.svd(padded, full_matrices=False)
    weak = values <= 1e-7 * max(float(values[0]), 1e-300)
    if not len(known):
        degrees = max(rows - (len(free) - int(weak.sum())), 1)
        noise = float(np.sqrt(square / degrees))
    weak |= values == 0
    inverse = np.where(weak, 0.0, 1 / np.where(weak, 1.0, values) ** 2)
    shape[np.ix_(free, free)] = (right.T * inverse) @ right / np.outer(safe, safe)
    loose = [free[np.abs(vector) > 0.1] for vector in right[weak]]
    return shape, noise, tuple(tuple(int(k) for k in members) for members in loose)
