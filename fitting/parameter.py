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
