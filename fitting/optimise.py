"""Bounded, robust Levenberg-Marquardt with analytic Jacobians, from several starts.

scipy's solvers factorise the whole Jacobian in every step and know nothing of one another's
starts. A profile has many rows and few parameters, so the normal equations are tiny, and
starts that trail after a few steps are not worth finishing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Loss = Literal["linear", "soft_l1"]
Residuals = Callable[[Floats], tuple[Floats, Floats]]
"""``f(theta) -> (residuals (rows,), jacobian (rows, parameters))``."""

PROBE_STEPS = 10
"""Steps that every start is given before the trailing ones are dropped."""

FINISHERS = 3
"""Starts that are finished."""

HOP_ROUNDS = 4
"""Times that a solution is left for a neighbouring valley."""


LEAST_NOISE = 1e-6
"""Relative error below which measurements are not believed, where a prior is weighed."""


@dataclass(frozen=True, slots=True)
class Fit:
    """Where a fit ended: parameters, cost (half the robust sum), Jacobian and row weights."""

    theta: Floats
    cost: float
    residuals: Floats
    jacobian: Floats
    weights: Floats
    steps: int
    start: Floats


@dataclass(frozen=True, slots=True)
class _Point:
    """A parameter vector with everything a step needs to know there."""

    theta: Floats
    residuals: Floats
    jacobian: Floats
    cost: float
    weights: Floats
    """ρ' of each residual: the gradient is Jᵀ(ρ'·r), the curvature is taken as Jᵀ(ρ'·J).

    With ρ'' in it, as it should be near the end, rows far off would count for nothing at the
    start and pull no more.
    """


class _Problem:
    """Robust least squares within bounds, with one way to look at a point and one to step."""

    def __init__(
        self, evaluate: Residuals, lower: Floats, upper: Floats, loss: Loss, scale: float
    ) -> None:
        self.evaluate, self.lower, self.upper = evaluate, lower, upper
        self.loss, self.scale = loss, scale

    def at(self, theta: Floats) -> _Point:
        residuals, jacobian = self.evaluate(theta)
        if self.loss == "linear":
            ones = np.ones_like(residuals)
            cost = 0.5 * float(residuals @ residuals)
            return _Point(theta, residuals, jacobian, cost, ones)
        square = (residuals / self.scale) ** 2
        root = np.sqrt(1 + square)
        # z²/(1+√(1+z²)) is √(1+z²)−1 without its cancellation near zero
        cost = self.scale**2 * float(np.sum(square / (root + 1)))
        return _Point(theta, residuals, jacobian, cost, 1 / root)

    def step(self, here: _Point, damping: float) -> tuple[_Point, float] | None:
        """The next point and its damping, or None where no step lowers the cost.

        A parameter at a bound whose gradient points outwards is held; the others move by a
        damped Gauss-Newton step, cut at the bounds.
        """
        theta = here.theta
        gradient = here.jacobian.T @ (here.weights * here.residuals)
        outwards = ((theta <= self.lower) & (gradient >= 0)) | (
            (theta >= self.upper) & (gradient <= 0)
        )
        free = np.flatnonzero(~outwards)
        if not len(free):
            return None
        columns = here.jacobian[:, free]
        normal = columns.T @ (columns * here.weights[:, None])
        size = np.sqrt(np.maximum(np.diag(normal), 1e-300))
        normal /= np.outer(size, size)
        slope = gradient[free] / size
        identity = np.eye(len(free))
        for _ in range(16):
            move = -np.linalg.solve(normal + damping * identity, slope) / size
            trial = theta.copy()
            trial[free] = np.clip(theta[free] + move, self.lower[free], self.upper[free])
            there = self.at(trial)
            if np.isfinite(there.cost) and there.cost < here.cost:
                return there, max(damping / 5, 1e-14)
            damping = max(damping * 4, 1e-10)
        return None


def descend(
    evaluate: Residuals,
    start: Floats,
    lower: Floats,
    upper: Floats,
    *,
    loss: Loss = "soft_l1",
    scale: float = 0.02,
    steps: int = 200,
    tolerance: float = 1e-10,
) -> Fit:
    """Minimise the robust sum of squares from one start, within the bounds."""
    problem = _Problem(evaluate, lower, upper, loss, scale)
    here = problem.at(np.clip(start, lower, upper))
    damping = 1e-3
    taken = 0
    while taken < steps and here.cost > 1e-28 * len(here.residuals):
        found = problem.step(here, damping)
        if found is None:
            break
        taken += 1
        there, damping = found
        settled = here.cost - there.cost <= tolerance * here.cost
        here = there
        if settled:
            break
    return Fit(here.theta, here.cost, here.residuals, here.jacobian, here.weights, taken, start)


def multi_start(
    evaluate: Residuals,
    starts: Floats,
    lower: Floats,
    upper: Floats,
    *,
    loss: Loss = "soft_l1",
    scale: float = 0.02,
    tolerance: float = 1e-10,
    hop: Callable[[Floats], Floats] | None = None,
) -> Fit:
    """The best of several starts: all are probed, the leading few are finished.

    Parameters
    ----------
    starts: shape (starts, parameters); equal costs go to the earlier one.
    hop: further starts from a solution found, tried until none lowers the cost (at most
        `HOP_ROUNDS` times); for models whose valleys lie a known step apart.
    """

    def go(start: Floats, steps: int = 200) -> Fit:
        return descend(
            evaluate, start, lower, upper, loss=loss, scale=scale, steps=steps, tolerance=tolerance
        )

    if len(starts) == 1:
        return go(starts[0])
    probes = sorted((go(start, PROBE_STEPS) for start in starts), key=lambda fit: fit.cost)
    finished = [replace(go(probe.theta), start=probe.start) for probe in probes[:FINISHERS]]
    best = min(finished, key=lambda fit: fit.cost)
    if hop is None:
        return best
    for _ in range(HOP_ROUNDS):
        found = min((go(row) for row in hop(best.theta)), key=lambda fit: fit.cost, default=best)
        if found.cost >= best.cost * (1 - 1e-6):
            break
        best = found
    return best


@dataclass(frozen=True, slots=True)
class Spread:
    """Covariance of the free parameters (zero rows and columns elsewhere) and what it cannot say.

    `loose` lists groups of parameters of which the data fix fewer combinations than there are.
    """

    covariance: Floats
    stderr: Floats
    loose: tuple[tuple[int, ...], ...]


def spread(fit: Fit, held: NDArray[np.bool_], rows: int, prior: Floats | None = None) -> Spread:
    """Standard errors from the Jacobian at the solution; NaN for what cannot be identified.

    Parameters
    ----------
    held: parameters at a bound or fixed; they carry no error.
    rows: how many of the residuals are measurements (regularisers follow them).
    prior: (parameters,) standard deviation of each before there were rows; infinite for none.
    """
    size = len(fit.theta)
    covariance = np.zeros((size, size))
    stderr = np.zeros(size)
    free = np.flatnonzero(~held)
    if not len(free):
        return Spread(covariance, stderr, ())
    weights, residuals = fit.weights[:rows], fit.residuals[:rows]
    jacobian = fit.jacobian[:rows][:, free] * np.sqrt(weights)[:, None]
    known = np.zeros(0, dtype=int) if prior is None else np.flatnonzero(np.isfinite(prior[free]))
    noise = 0.0
    if prior is not None and len(known):
        degrees = max(rows - (len(free) - len(known)), 1)
        noise = max(float(np.sqrt(np.sum(weights * residuals**2) / degrees)), LEAST_NOISE)
        before = np.zeros((len(known), len(free)))
        before[np.arange(len(known)), known] = noise / prior[free][known]
        jacobian = np.concatenate([jacobian, before])
    norms = np.linalg.norm(jacobian, axis=0)
    safe = np.where(norms > 0, norms, 1.0)
    short = max(len(free) - len(jacobian), 0)  # rows of zeros complete the directions
    padded = np.concatenate([jacobian / safe, np.zeros((short, len(free)))])
    _, values, right = np.linalg.svd(padded, full_matrices=False)
    weak = values <= 1e-7 * max(float(values[0]), 1e-300)
    if not len(known):
        degrees = max(rows - (len(free) - int(weak.sum())), 1)
        noise = float(np.sqrt(np.sum(weights * residuals**2) / degrees))
    weak |= values == 0
    inverse = np.where(weak, 0.0, 1 / np.where(weak, 1.0, values) ** 2)
    scaled = (right.T * inverse) @ right * noise**2
    covariance[np.ix_(free, free)] = scaled / np.outer(safe, safe)
    stderr[free] = np.sqrt(np.maximum(np.diag(covariance)[free], 0))
    loose: list[tuple[int, ...]] = []
    for vector in right[weak]:
        members = free[np.abs(vector) > 0.1]
        stderr[members] = np.nan
        loose.append(tuple(int(k) for k in members))
    return Spread(covariance, stderr, tuple(loose))
