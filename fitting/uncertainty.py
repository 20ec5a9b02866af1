"""Samples of a fitted model, so that a gap can be shown with the fit's own uncertainty.

One way to draw serves bands in plots, the coverage that a report states and the draws of a
comparison.
"""

from __future__ import annotations

from typing import Literal, TypeVar

import numpy as np

from optgap.fitting.estimator import Estimator
from optgap.fitting.optimise import Floats
from optgap.fitting.parameter import moved, movement
from optgap.fitting.profile import Profile
from optgap.models.errors import InputError, NoQuote

E = TypeVar("E", bound=Estimator)
Method = Literal["covariance", "bootstrap"]
NESTED = "time"
"""The fact that is itself a fitted estimator: the iteration time inside an energy model."""


def samples(
    estimator: E,
    count: int,
    rng: np.random.Generator,
    *,
    method: Method = "covariance",
    table: object = None,
    which: Floats | None = None,
) -> list[E]:
    """Fitted copies of `estimator` whose parameters scatter as the data leave them open.

    Parameters
    ----------
    method: ``covariance`` draws from what a report found (`predictive.Predictive`: parameters,
        residuals, applications), or, for an estimator of none and in a file from before, from
        a normal with the fit's covariance: parameter error alone. Both are cut at the bounds.
        The iteration time inside an energy model is drawn, too. ``bootstrap`` refits, from
        where the fit ended, to rows drawn with replacement from `table`, the rows it was
        fitted to.
    which: (count,) from 0 to 1, the application of each draw, see `predictive.Predictive.draws`.

    Raises
    ------
    InputError: for a bootstrap without its table.
    NotFittedError: before `fit`.
    """
    estimator._check_fitted()
    if method == "covariance":
        which = rng.random(count) if which is None else which
        found = [estimator.with_theta(theta) for theta in thetas(estimator, count, rng, which)]
        nested = estimator.facts_.get(NESTED)
        if nested is not None:
            times = samples(nested, count, rng, which=which)
            return [_with_time(one, time) for one, time in zip(found, times, strict=True)]
        return found
    if table is None:
        raise InputError(estimator.name, "table", NoQuote("nothing"), "the rows that were fitted")
    profile = estimator.prepare(table)
    return [_refit(estimator, profile, rng) for _ in range(count)]


def _with_time(estimator: E, time: Estimator) -> E:
    """The draw of an energy model with the draw of its iteration time.

    Where rows leave open what part of an iteration computes, power as measured goes with the time
    as fitted: coefficients are brought to where both give the same at a measured row.
    """
    facts = {**estimator.facts_, NESTED: time}
    reference = estimator.reference()
    if reference is not None and any(p.prior is not None for p in time.parameters_):
        row, scaled = reference
        both = (estimator.facts_, facts)
        old, new = (estimator.curve(estimator.theta_, estimator.design(row, f))[0] for f in both)
        theta = estimator.theta_.copy()
        theta[list(scaled)] *= np.exp(old[0] - new[0])
        estimator = estimator.with_theta(theta)
    estimator.facts_ = facts
    return estimator


def thetas(
    estimator: Estimator, count: int, rng: np.random.Generator, which: Floats | None = None
) -> Floats:
    """(count, parameters) values drawn for a fitted estimator."""
    found = getattr(estimator, "predictive_", None)
    if found is not None:
        values = np.asarray(found.draws(estimator.parameters_, count, rng, which))
        return values if len(found.members) > 1 else _levelled(estimator, values)
    values, vectors = np.linalg.eigh(estimator.covariance_)
    root = vectors * np.sqrt(np.maximum(values, 0))
    moves = rng.standard_normal((count, len(values))) @ root.T
    return _levelled(estimator, moved(estimator.theta_, moves, estimator.parameters_))


def _levelled(estimator: Estimator, drawn: Floats) -> Floats:
    """Draws of parameters with priors that keep to what was measured.

    The logarithms of such parameters are drawn, and a sum of log-normals lies above that of their
    medians. So the prediction at a measured row is brought to where the linear draw has it.
    """
    reference = estimator.reference()
    if reference is None or all(p.prior is None for p in estimator.parameters_):
        return drawn
    row, scaled = reference
    design = estimator.design(row, estimator.facts_)
    log, slope = estimator.curve(estimator.theta_, design)
    lower, upper = np.array([[p.lower, p.upper] for p in estimator.parameters_]).T
    found = np.clip(drawn, lower, upper)
    moves = movement(estimator.theta_, found, estimator.parameters_)
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
    return _ends(np.array([fit.predict(table) for fit in fits]), level)


def drawn_interval(
    estimator: Estimator, count: int, rng: np.random.Generator, table: Profile, level: float = 0.9
) -> tuple[Floats, Floats]:
    """`interval` of `samples`, which differ in parameters alone where nothing is nested: quick."""
    if NESTED in estimator.facts_:
        return interval(samples(estimator, count, rng), table, level)
    design = estimator.design(table, estimator.facts_)
    drawn = thetas(estimator, count, rng)
    logs = (estimator.curve(theta, design)[0] for theta in drawn)
    return _ends(np.array([estimator.output(log, design) for log in logs]), level)


def _ends(predictions: Floats, level: float) -> tuple[Floats, Floats]:
    if not 0 < level < 1:
        raise InputError("interval", "level", level, "a share between 0 and 1")
    tail = 50 * (1 - level)
    low, high = np.percentile(predictions, [tail, 100 - tail], axis=0)
    return low, high
