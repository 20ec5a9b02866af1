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
            ends = [self.descend(start) for start in starts]
        return min(ends, key=lambda fit: np.inf if np.isnan(fit.cost) else fit.cost)


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
) -> Spread:
    """Standard errors from the Jacobian at the solution; NaN for what cannot be identified.

    Parameters
    ----------
    held: parameters at a bound or fixed; of one at a bound the error is unknown.
    rows: how many of the residuals are measurements (priors follow them).
    lower, upper: the bounds.
    prior: (priors, parameters) what was believed before there were rows, as rows of the Jacobian.
    cost: of parameters, beyond their bounds, too; the step there has to lower it, or the curve is
        too bent for one.
    """
    prior = np.zeros((0, len(fit.theta))) if prior is None else prior
    known = prior.any(axis=0)
    fixed = lower == upper
    spare = rows > int(np.sum(~fixed & ~known))
    shape, noise, loose = _errors(fit, held, rows, prior)
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


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter with its unit, physical bounds and meaning; fixed when the bounds meet."""

    name: str
    unit: str
    lower: float
    upper: float
    meaning: str
    measure: str = ""
    """What to measure when the data cannot tell it."""
    prior: Prior | None = None
    """Where the data cannot tell it: what published jobs say."""

    @property
    def fixed(self) -> bool:
        return self.lower == self.upper


def bounds(params: Sequence[Parameter]) -> tuple[Floats, Floats]:
    """Lower and upper bounds of the parameters."""
    lower, upper = np.array([[p.lower, p.upper] for p in params], dtype=float).reshape(-1, 2).T
    return lower, upper


PRIOR_NOISE = 0.03
"""Relative error of a measurement that priors are weighed against."""


def at_priors(theta: Floats, params: Sequence[Parameter]) -> Floats:
    """A start with the medians of the priors."""
    medians = [t if p.prior is None else p.prior.above + p.prior.median
               for t, p in zip(theta, params, strict=True)]  # fmt: skip
    return np.array(medians, dtype=float)


def towards(theta: Floats, params: Sequence[Parameter]) -> tuple[Floats, Floats] | None:
    """Residuals (ln θ − ln median) / spread of the priors, made independent, and their Jacobian."""
    jacobian = PRIOR_NOISE * prior_rows(params, theta)
    if not len(jacobian):
        return None
    logs = np.zeros(len(theta))
    for k, p in enumerate(params):
        if p.prior is not None:
            more = max(theta[k] - p.prior.above, 1e-12 * p.prior.median)
            logs[k] = more * np.log(more / p.prior.median)
    return jacobian @ logs, jacobian


def prior_rows(params: Sequence[Parameter], theta: Floats) -> Floats:
    """(priors, parameters) how each prior, made independent of the others, goes with θ."""
    held = [(k, p.prior) for k, p in enumerate(params) if p.prior is not None]
    together = np.array([prior.together for _, prior in held])
    correlated = np.outer(together, together) + np.diag(1 - together**2)
    size = [prior.spread * max(theta[k] - prior.above, 1e-12 * prior.median) for k, prior in held]
    rows = np.zeros((len(held), len(theta)))
    rows[:, [k for k, _ in held]] = np.linalg.inv(np.linalg.cholesky(correlated)) / size
    return rows


def moved(theta: Floats, moves: Floats, params: Sequence[Parameter]) -> Floats:
    """(draws, parameters) values `moves` away; of parameters with a prior, in their logarithms."""
    held, above, more = _held(theta, params)
    in_logs = above + more * np.exp(np.clip(moves / more, -50, 50))
    return np.asarray(np.where(held, in_logs, theta + moves))


def movement(theta: Floats, values: Floats, params: Sequence[Parameter]) -> Floats:
    """(draws, parameters) what `moved` was given for these values."""
    held, above, more = _held(theta, params)
    in_logs = more * np.log(np.maximum(values - above, 1e-22 * more) / more)
    return np.asarray(np.where(held, in_logs, values - theta))


def _held(theta: Floats, params: Sequence[Parameter]) -> tuple[NDArray[np.bool_], Floats, Floats]:
    """Which parameters have a prior, above what, and how far above (1 for the others)."""
    held = np.array([p.prior is not None for p in params], dtype=bool)
    above = np.array([p.prior.above if p.prior else 0.0 for p in params])
    return held, above, np.where(held, theta - above, 1.0)
