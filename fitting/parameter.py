"""A parameter of a fitted model, and what is believed of it where the rows cannot tell it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from optgap.fitting.optimise import Floats
from optgap.models.performance.priors import Prior


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
    """Residuals (ln θ − ln median) / spread of the priors, and their Jacobian."""
    held = [(k, p.prior) for k, p in enumerate(params) if p.prior is not None]
    if not held:
        return None
    jacobian, residuals = np.zeros((len(held), len(theta))), np.zeros(len(held))
    for row, (k, prior) in enumerate(held):
        more = max(theta[k] - prior.above, 1e-12 * prior.median)
        residuals[row] = PRIOR_NOISE * np.log(more / prior.median) / prior.spread
        jacobian[row, k] = PRIOR_NOISE / (prior.spread * more)
    return residuals, jacobian


def prior_spread(params: Sequence[Parameter], theta: Floats) -> Floats:
    """(parameters,) standard deviation that the priors leave, infinite where there is none."""
    spreads = [
        np.inf if p.prior is None else p.prior.spread * max(t - p.prior.above, 1e-12)
        for p, t in zip(params, theta, strict=True)
    ]
    return np.array(spreads, dtype=float)


def moved(theta: Floats, moves: Floats, params: Sequence[Parameter]) -> Floats:
    """(draws, parameters) values `moves` away; of parameters with a prior, in their logarithms."""
    held, above, more, fall = _held(theta, params)
    logs = np.where(moves < 0, fall * moves, moves) / more
    in_logs = above + more * np.exp(np.clip(logs, -50, 50))
    return np.asarray(np.where(held, in_logs, theta + moves))


def movement(theta: Floats, values: Floats, params: Sequence[Parameter]) -> Floats:
    """(draws, parameters) what `moved` was given for these values."""
    held, above, more, fall = _held(theta, params)
    logs = np.log(np.maximum(values - above, 1e-22 * more) / more)
    return np.asarray(np.where(held, more * np.where(logs < 0, logs / fall, logs), values - theta))


def _held(
    theta: Floats, params: Sequence[Parameter]
) -> tuple[NDArray[np.bool_], Floats, Floats, Floats]:
    """Which parameters have a prior, above what, how far above (1 for the others), and its fall."""
    held = np.array([p.prior is not None for p in params], dtype=bool)
    above = np.array([p.prior.above if p.prior else 0.0 for p in params])
    fall = np.array([p.prior.fall if p.prior else 1.0 for p in params])
    return held, above, np.where(held, theta - above, 1.0), fall
