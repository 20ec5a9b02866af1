"""Parameters, bounded robust least squares from several starts, and the errors of a solution."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from optgap.models.performance.priors import Prior

Floats = NDArray[np.float64]
Loss = Literal["linear", "soft_l1"]
Residuals = Callable[[Floats], tuple[Floats, Floats]]
"""``f(theta) -> (residuals (rows,), jacobian (rows, parameters))``."""

MOST_STEPS = 300
"""Largest number of evaluations of one descent."""
TOLERANCE = 1e-10
"""Relative fall of the cost at which a descent ends."""
LEAST_NOISE = 1e-6
"""Least relative error of measurements that is assumed when priors are weighed."""
PRIOR_NOISE = 0.03
"""Relative error of a measurement against which priors are weighed."""
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
    prior: Prior | None = None
    """Prior from published jobs, for data that cannot determine the parameter."""

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
    rows: int,
    loss: Loss,
    scale: float,
) -> tuple[Fit, NDArray[np.bool_], Spread]:
    """Return the best fit from several starts, which parameters are at a bound, and their errors.

    Parameters
    ----------
    evaluate: residuals; the first `rows` belong to measurements, the others to priors.
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

        @lru_cache(maxsize=1)  # scipy asks for both at once, and then writes into them
        def look(values: bytes) -> tuple[Floats, Floats]:
            theta[free] = np.frombuffer(values)
            found, slope = evaluate(theta)
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
    return fit, held, _spread(fit, params, held, rows, lambda theta: at(theta, theta).cost)


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
    rows: int,
    cost: Callable[[Floats], float],
) -> Spread:
    """Return standard errors from the Jacobian at the solution; NaN if not identifiable.

    Parameters
    ----------
    held: parameters at a bound or fixed; the error of a parameter at a bound is unknown.
    rows: number of residuals of measurements (those of priors follow).
    cost: cost of parameters, beyond their bounds, too; a step there must lower the cost, or the
        curve is too bent for the step.
    """
    lower, upper = bounds(params)
    prior, fixed = prior_rows(params, fit.theta), lower == upper
    known = np.array([p.prior is not None for p in params], dtype=bool)
    shape, noise, loose = _errors(fit, held, rows, prior)
    covariance = shape * noise**2
    if rows <= int(np.sum(~fixed & ~known)):  # no row to spare
        free = ~held
        unknown = np.where(np.outer(free, free), np.nan, 0.0)
        return Spread(unknown, np.where(fixed, 0.0, np.nan), loose, fit.theta, shape)
    stderr = np.sqrt(np.maximum(np.diag(covariance), 0))
    stderr[[k for members in loose for k in members]] = np.nan
    stderr[held & ~fixed] = np.nan
    if not np.any(held & ~fixed):
        return Spread(covariance, stderr, loose, fit.theta, covariance)
    gradient = fit.jacobian[:rows].T @ (fit.weights[:rows] * fit.residuals[:rows])
    wide, _, unsure = _errors(fit, fixed, rows, prior)
    there = fit.theta - wide @ gradient  # one Newton step, beyond the bounds
    beyond = fit.residuals + fit.jacobian @ (there - fit.theta)
    wide, noise, _ = _errors(replace(fit, residuals=beyond), fixed, rows, prior)
    wide = wide * noise**2
    normal = np.random.default_rng(0).standard_normal((TRIED, len(there)))
    least, most = np.where(known, -np.inf, lower), np.where(known, np.inf, upper)
    accepted = float(np.mean(within(there + normal @ root(wide).T, there, least, most)))
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


def _errors(
    fit: Fit, held: NDArray[np.bool_], rows: int, prior: Floats
) -> tuple[Floats, float, tuple[tuple[int, ...], ...]]:
    """Return covariance over the noise's variance, the noise, and unidentifiable groups."""
    shape, free = np.zeros((len(fit.theta),) * 2), np.flatnonzero(~held)
    if not len(free):
        return shape, 0.0, ()
    weights = fit.weights[:rows]
    square = float(np.sum(weights * fit.residuals[:rows] ** 2))
    believed = int(np.sum(prior[:, free].any(axis=0)))
    noise = float(np.sqrt(square / max(rows - (len(free) - believed), 1)))
    noise = max(noise, LEAST_NOISE) if believed else noise
    jacobian = fit.jacobian[:rows][:, free] * np.sqrt(weights)[:, None]
    jacobian = np.concatenate([jacobian, noise * prior[:, free]])
    norms = np.linalg.norm(jacobian, axis=0)
    safe = np.where(norms > 0, norms, 1.0)
    short = max(len(free) - len(jacobian), 0)  # rows of zeros complete the directions
    padded = np.concatenate([jacobian / safe, np.zeros((short, len(free)))])
    _, values, right = np.linalg.svd(padded, full_matrices=False)
    weak = values <= 1e-7 * max(float(values[0]), 1e-300)
    inverse = np.where(weak, 0.0, 1 / np.where(weak, 1.0, values) ** 2)
    shape[np.ix_(free, free)] = (right.T * inverse) @ right / np.outer(safe, safe)
    share = np.linalg.norm(right[weak], axis=0)  # of each parameter that no row tells
    several = free[(share > 0.1) & (share < 1 - 1e-6)].tolist()
    loose = [(k,) for k in free[share >= 1 - 1e-6].tolist()]
    return shape, noise, (*loose, *([tuple(several)] if several else []))


# --- parameters that the rows cannot tell: from priors, which are of logarithms ------------------


def towards(theta: Floats, params: Sequence[Parameter]) -> tuple[Floats, Floats]:
    """Return independent residuals (ln θ − ln median) / spread of priors, and their Jacobian."""
    jacobian = PRIOR_NOISE * prior_rows(params, theta)
    logs = np.zeros(len(theta))
    for k, p in enumerate(params):
        if p.prior is not None:
            more = max(theta[k] - p.prior.above, 1e-12 * p.prior.median)
            logs[k] = more * np.log(more / p.prior.median)
    return jacobian @ logs, jacobian


def prior_rows(params: Sequence[Parameter], theta: Floats) -> Floats:
    """Return the Jacobian (priors, parameters) of the independent priors in θ."""
    held = [(k, p.prior) for k, p in enumerate(params) if p.prior is not None]
    together = np.array([prior.together for _, prior in held])
    correlated = np.outer(together, together) + np.diag(1 - together**2)
    size = [prior.spread * max(theta[k] - prior.above, 1e-12 * prior.median) for k, prior in held]
    rows = np.zeros((len(held), len(theta)))
    rows[:, [k for k, _ in held]] = np.linalg.inv(np.linalg.cholesky(correlated)) / size
    return rows


def moved(theta: Floats, moves: Floats, params: Sequence[Parameter]) -> Floats:
    """Return (draws, parameters) values `moves` away, in logarithms if there is a prior."""
    held, above, more = _held(theta, params)
    in_logs = above + more * np.exp(np.clip(moves / more, -50, 50))
    return np.asarray(np.where(held, in_logs, theta + moves))


def movement(theta: Floats, values: Floats, params: Sequence[Parameter]) -> Floats:
    """Return the (draws, parameters) moves for which `moved` returns these values."""
    held, above, more = _held(theta, params)
    in_logs = more * np.log(np.maximum(values - above, 1e-22 * more) / more)
    return np.asarray(np.where(held, in_logs, values - theta))


def _held(theta: Floats, params: Sequence[Parameter]) -> tuple[NDArray[np.bool_], Floats, Floats]:
    """Return which parameters have a prior, its lower end, and their distance (1 for others)."""
    held = np.array([p.prior is not None for p in params], dtype=bool)
    above = np.array([p.prior.above if p.prior else 0.0 for p in params])
    return held, above, np.where(held, theta - above, 1.0)
