"""Samples of a fitted model, so that a gap can be shown with the fit's own uncertainty."""

from __future__ import annotations

from typing import Literal, TypeVar

import numpy as np

from optgap.fitting.estimator import Estimator
from optgap.fitting.optimise import Floats
from optgap.fitting.profile import Profile
from optgap.models.errors import InputError, NoQuote

E = TypeVar("E", bound=Estimator)
Method = Literal["covariance", "bootstrap"]


def samples(
    estimator: E,
    count: int,
    rng: np.random.Generator,
    *,
    method: Method = "covariance",
    table: object = None,
) -> list[E]:
    """Fitted copies of `estimator` whose parameters scatter as the data leave them open.

    Parameters
    ----------
    method: ``covariance`` draws from a normal with the fit's covariance, cut at the bounds;
        parameters at a bound stay. ``bootstrap`` refits, from where the fit ended, to rows
        drawn with replacement from `table`, the rows it was fitted to.

    Raises
    ------
    InputError: for a bootstrap without its table.
    NotFittedError: before `fit`.
    """
    estimator._check_fitted()
    if method == "covariance":
        return [estimator.with_theta(theta) for theta in _normal(estimator, count, rng)]
    if table is None:
        raise InputError(estimator.name, "table", NoQuote("nothing"), "the rows that were fitted")
    profile = estimator.prepare(table)
    return [_refit(estimator, profile, rng) for _ in range(count)]


def _normal(estimator: Estimator, count: int, rng: np.random.Generator) -> Floats:
    """(count, parameters) draws; of parameters with a prior, the logarithms are normal."""
    values, vectors = np.linalg.eigh(estimator.covariance_)
    root = vectors * np.sqrt(np.maximum(values, 0))
    moves = rng.standard_normal((count, len(values))) @ root.T
    held = np.array([p.prior is not None for p in estimator.parameters_], dtype=bool)
    found, reference = estimator.theta_ + moves, estimator.reference()
    if not held.any() or reference is None:
        return np.asarray(found)
    above = np.array([p.prior.above if p.prior else 0.0 for p in estimator.parameters_])
    more = np.where(held, estimator.theta_ - above, 1.0)
    found = np.where(held, above + more * np.exp(np.clip(moves / more, -50, 50)), found)
    # the sum of log-normals is above that of their medians: what was measured stays as it was
    row, scaled = reference
    design = estimator.design(row, estimator.facts_)
    log, slope = estimator.curve(estimator.theta_, design)
    lower = np.array([p.lower for p in estimator.parameters_])
    found = np.maximum(found, lower)
    for theta, move in zip(found, moves, strict=True):
        off = float(log[0] + slope[0] @ move - estimator.curve(theta, design)[0][0])
        theta[list(scaled)] *= np.exp(off)
    return np.asarray(found)


def _refit(estimator: E, profile: Profile, rng: np.random.Generator) -> E:
    rows = rng.integers(0, len(profile), len(profile))
    copy = estimator.clone()
    start = estimator.theta_[None, :]
    try:
        part = profile.take(rows)
        params = tuple(copy.parameters(part, estimator.facts_))
        copy._enough(part, params)
        return copy._solve(part, estimator.facts_, params, start)
    except InputError:  # a draw without two clocks: the fit it came from stands in
        return estimator.with_theta(estimator.theta_)


def interval(fits: list[E], table: object, level: float = 0.9) -> tuple[Floats, Floats]:
    """Lower and upper end of the central `level` interval of the predictions at each row."""
    if not 0 < level < 1:
        raise InputError("interval", "level", level, "a share between 0 and 1")
    predictions = np.array([fit.predict(table) for fit in fits])
    tail = 50 * (1 - level)
    low, high = np.percentile(predictions, [tail, 100 - tail], axis=0)
    return low, high
