"""Draws of a fitted model: its parameters, its residuals, the applications that it was fitted to.

One way to draw serves bands in plots, the coverage that a report states and the draws of a
comparison. A fit to rows of several applications is drawn by resampling them: one application's
parameters, with their own error, times a factor for the level that makes up for there being few
(the sample's variance is (k−1)/k of the population's, an application not seen is (k+1)/k of it
away). Residuals are drawn as a factor on the response, which every model has parameters for, or as
its shape.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from optgap.fitting.estimator import Estimator
from optgap.fitting.optimise import Floats, Parameter, bounds, moved, movement, root
from optgap.fitting.profile import Profile
from optgap.models.errors import InputError, NoQuote
from optgap.models.jsonio import Fields

E = TypeVar("E", bound=Estimator)
NESTED = "time"
"""The fact that is itself a fitted estimator: the iteration time inside an energy model."""
LEVEL_SHARE: Mapping[str, float] = {"power-law-jct": 0.5}
"""Of the residuals' variance, what is drawn as a factor on the response; all of it elsewhere.

A run time's level is measured in a problem and only its slope is fitted: there half is its shape.
"""
NORMAL = 1e9
"""Degrees of freedom of a normal."""
RANKS, FEWEST = 60, 10
"""Draws that stand for what no covariance says: of one fit, and of each of several at least."""
MOST_ROUNDS = 25
"""Of draws, 4 times as many as are wanted each, for those within the bounds: 1 in 100 will do."""
MOST_HALVINGS = 60
"""Of a step in a direction that the rows hardly tell; then it is not drawn in."""
PRIOR_DEGREES = 4.0
"""What the residuals of all groups together count for in the variance of each one's."""


@dataclass(frozen=True)
class Member:
    """One application, or all rows; or one draw of a model that has its own.

    Parameters
    ----------
    theta, covariance: of the parameters, residuals counted in.
    degrees: of freedom of the covariance.
    level: median ln of the response that it predicts for the whole table.
    kin: what it is measured of with others, as a workload under several power limits.
    """

    name: str
    theta: Floats
    covariance: Floats
    degrees: float
    level: float = 0.0
    kin: str = ""

    @property
    def whose(self) -> str:
        """What is held out together, and told apart."""
        return self.kin or self.name


@dataclass(frozen=True)
class Predictive:
    """What parameters are drawn from.

    Parameters
    ----------
    members: the applications resampled; one where all rows are of one.
    over: the column that tells them apart; None for no draw between applications.
    scale: that makes 90 % intervals cover 90 % of held-out rows; 1 where none were.
    """

    members: tuple[Member, ...]
    over: str | None = None
    scale: float = 1.0

    @property
    def parts(self) -> tuple[str, ...]:
        """What is drawn, in words."""
        found = ["parameters", "residual"]
        if self.over is not None:
            found.append(f"between {len({m.whose for m in self.members})} of {self.over}")
        return tuple(found)

    def without(self, whose: str) -> Predictive:
        """The same as if one application, or all that a workload has, had not been measured."""
        return replace(self, members=tuple(m for m in self.members if m.whose != whose))

    def draws(
        self,
        parameters: Sequence[Parameter],
        count: int,
        rng: np.random.Generator,
        which: Floats | None = None,
    ) -> Floats:
        """(count, parameters) values, within their bounds.

        `which`, (count,) from 0 to 1, is the application of each draw by its place in the table,
        so that models of one table may be drawn for the same.
        """
        lower, upper = bounds(parameters)
        chosen = ((rng.random(count) if which is None else which) * len(self.members)).astype(int)
        found = np.zeros((count, len(parameters)))
        for k, member in enumerate(self.members):
            rows = np.flatnonzero(chosen == k)
            found[rows] = self._of(member, parameters, len(rows), rng)
        if self.over is not None:
            found *= np.exp(self._level(parameters, chosen, rng))
        return np.asarray(np.clip(found, lower, upper))

    def _of(
        self, member: Member, parameters: Sequence[Parameter], count: int, rng: np.random.Generator
    ) -> Floats:
        """Draws of one member; those outside the bounds are rejected, as long as some are not."""
        lower, upper = bounds(parameters)
        slack = 1e-9 * np.abs(member.theta)
        kept, made, turned = np.zeros((0, len(parameters))), count, root(member.covariance)
        drawn = kept
        for _ in range(MOST_ROUNDS):
            normal = _student(rng, member.degrees, (made, len(parameters)))
            drawn = moved(member.theta, self.scale * normal @ turned.T, parameters)
            inside = np.all((drawn >= lower - slack) & (drawn <= upper + slack), axis=1)
            kept = np.concatenate([kept, drawn[inside]])[:count]
            if len(kept) == count:
                break
            made = 4 * count
        rest = drawn[: count - len(kept)]
        return np.asarray(np.clip(np.concatenate([kept, rest]), lower, upper))

    def _level(
        self, parameters: Sequence[Parameter], chosen: NDArray[np.int64], rng: np.random.Generator
    ) -> Floats:
        """ln of the factor on each parameter: √(2/k) of the applications' spread, t-distributed.

        And, where a file from before scales these draws, the member's own distance from the mean.
        """
        apart: dict[str, list[float]] = {}
        for member in self.members:
            apart.setdefault(member.whose, []).append(member.level)
        means = [float(np.mean(own)) for own in apart.values()]
        k, own = len(means), np.array([m.level for m in self.members])
        spread = math.sqrt(2 / k) * float(np.std(means, ddof=1))
        moves = self.scale * spread * _student(rng, k - 1, (len(chosen), 1))
        moves += (self.scale - 1) * (own[chosen] - np.mean(means))[:, None]
        return np.asarray(moves * levels(parameters))

    def to_json(self) -> dict[str, Any]:
        """As a saved fit keeps it."""
        members = [
            {"name": m.name, "theta": m.theta.tolist(),
             "covariance": m.covariance.tolist() if m.covariance.any() else [],
             "degrees": m.degrees, "level": m.level, "kin": m.kin} for m in self.members
        ]  # fmt: skip
        return {"over": self.over, "scale": self.scale, "residual": True,
                "members": members}  # fmt: skip

    @classmethod
    def from_json(cls, fields: Fields, size: int) -> Predictive:
        """Read `to_json` back; raises InputError naming the field."""
        members = []
        for item in fields.objects("members"):
            theta = np.array(item.numbers("theta", minimum=-math.inf))
            try:
                covariance = np.array(item.array("covariance") or np.zeros((size, size)), float)
            except (TypeError, ValueError):
                covariance = np.zeros(0)
            if theta.shape != (size,) or covariance.shape != (size, size):
                expected = f"{size} values, and {size} rows of {size} numbers"
                found = NoQuote(f"shapes {theta.shape} and {covariance.shape}")
                raise item.fail("covariance", found, expected)
            if not np.isfinite(covariance).all():
                raise item.fail("covariance", NoQuote("a number that is not finite"), "numbers")
            degrees = item.number("degrees", minimum=1e-6)
            level = item.number("level", minimum=-math.inf)
            kin = item.text("kin", "")
            members.append(Member(item.text("name"), theta, covariance, degrees, level, kin))
        if not members:
            raise fields.fail("members", NoQuote("nothing"), "at least one")
        over = None if fields.document.get("over") is None else fields.text("over")
        return cls(tuple(members), over, fields.number("scale", minimum=0))


def _student(rng: np.random.Generator, degrees: float, shape: tuple[int, int]) -> Floats:
    """t-distributed numbers, one draw of their scale for each row."""
    normal = rng.standard_normal(shape)
    return np.asarray(normal / np.sqrt(rng.chisquare(degrees, (shape[0], 1)) / degrees))


def levels(parameters: Sequence[Parameter]) -> Floats:
    """How each parameter goes with the response: 1 in proportion, −1 inversely, 0 not at all."""

    def exponent(unit: str) -> float:
        if unit.startswith("1/s"):
            return -1.0
        return float(unit.split("/")[0] in ("W", "s", "J"))

    return np.array([exponent(p.unit) for p in parameters])


def _residual(fit: Estimator, table: Profile) -> tuple[float, int, float]:
    """Sum of squared residuals, their degrees of freedom, and the mean variance that parameters'
    errors give to predictions of the rows.
    """
    _, jacobian = fit.curve(fit.theta_, fit.design(table, fit.facts_))
    drawn = fit.scatter_.drawn
    told = np.array([p.prior is None for p in fit.parameters_]) & (np.diag(drawn) > 0)
    leverage = float(np.mean(np.sum(jacobian @ drawn * jacobian, axis=1)))
    return float(fit.residuals_ @ fit.residuals_), len(fit.residuals_) - int(told.sum()), leverage


def members_of(
    fits: Mapping[str, tuple[Estimator, Profile]],
    whole: Profile | None = None,
    kin: Mapping[str, str] | None = None,
) -> dict[str, tuple[Member, ...]]:
    """What each of several fits of one model is drawn from, with the rows it was fitted to.

    `whole` is the table that their levels are compared on, `kin` what some of them have in common.
    Residual variances are drawn towards that of all together, which also serves a fit with no row
    to spare. A model that has draws of its own is drawn from these instead.
    """
    residuals = {name: _residual(fit, rows) for name, (fit, rows) in fits.items()}
    spare = sum(max(degrees, 0) for _, degrees, _ in residuals.values())
    common = sum(sq for sq, degrees, _ in residuals.values() if degrees > 0) / max(spare, 1)
    prior = PRIOR_DEGREES if len(fits) > 1 and spare else 0.0
    found: dict[str, tuple[Member, ...]] = {}
    for name, (fit, rows) in fits.items():
        level = 0.0 if whole is None else float(np.median(np.log(fit.predict(whole))))
        whose = "" if kin is None else kin.get(name, "")
        count = RANKS if whole is None else max(RANKS // len(fits), FEWEST)
        own_draws = fit.own_draws(rows, count)
        if own_draws is not None:
            none = np.zeros_like(fit.covariance_)
            found[name] = tuple(Member(name, t, none, 1.0, level, whose) for t in own_draws)
            continue
        (squares, free, leverage), known = residuals[name], np.isfinite(fit.covariance_).all()
        own = max(free, 0) if known else 0
        degrees = max(own + prior, 1.0)
        variance = (prior * common + (squares if own else 0.0)) / degrees
        if not known and not common:
            continue  # no row to spare, here or in any other group: errors are unknown
        size = 1.0 if known else variance
        shape = fit.scatter_.drawn * size
        covariance = _tamed(fit, rows, shape, math.sqrt(variance))
        covariance = covariance + _of_residual(fit, variance, leverage * size, shape)
        found[name] = (Member(name, fit.scatter_.centre, covariance, degrees, level, whose),)
    return found


def _tamed(fit: Estimator, table: Profile, covariance: Floats, sd: float) -> Floats:
    """The parameters' covariance, shorter where the rows' predictions would not bear it.

    In a direction that the rows hardly tell, a step of one standard error ends far beyond where the
    curve is straight, or at bounds. It is halved until it moves predictions by no more than twice
    what its slope says, or than the residuals are.
    """
    design = fit.design(table, fit.facts_)
    here, jacobian = fit.curve(fit.theta_, design)
    lower, upper = bounds(fit.parameters_)
    size = np.sqrt(np.maximum(np.diag(covariance), 0))
    safe = np.where(size > 0, size, 1.0)
    values, vectors = np.linalg.eigh(covariance / np.outer(safe, safe))
    found = np.zeros_like(covariance)
    for value, vector in zip(values, vectors.T, strict=True):
        step = math.sqrt(max(value, 0.0)) * vector * safe
        for _ in range(MOST_HALVINGS):
            ends = (np.clip(fit.theta_ + sign * step, lower, upper) for sign in (-1, 1))
            moved = max(_rms(fit.curve(end, design)[0] - here) for end in ends)
            if moved <= 2 * _rms(jacobian @ step) + sd:
                found += np.outer(step, step)
                break
            step = step / 2
    return found


def _rms(values: Floats) -> float:
    return math.sqrt(float(np.mean(values**2)))


def _of_residual(fit: Estimator, variance: float, leverage: float, covariance: Floats) -> Floats:
    """The covariance that moves predictions by the residuals' variance, on average over rows."""
    direction = levels(fit.parameters_) * fit.theta_
    share = LEVEL_SHARE.get(fit.name, 1.0) if direction.any() else 0.0
    found = np.zeros_like(covariance)
    if share < 1 and leverage > 0:
        found += (1 - share) * variance / leverage * covariance
    elif share < 1:
        share = 1.0
    return found + share * variance * np.outer(direction, direction)


def between(fit: Estimator, table: Profile, over: str) -> dict[str, tuple[Estimator, Profile]]:
    """The same model fitted to each value of a column, with what the whole table settled."""
    found = {}
    for name, rows in table.groups(over):
        part, copy = table.take(rows), fit.clone()
        try:
            copy._enough(part, fit.parameters_)
            starts = np.stack([fit.theta_, copy.guess(part, fit.facts_)])
            found[name] = copy._solve(part, fit.facts_, fit.parameters_, starts), part
        except InputError:  # one clock, say: nothing to learn from it here
            continue
    return found


def samples(
    estimator: E,
    count: int,
    rng: np.random.Generator,
    *,
    which: Floats | None = None,
) -> list[E]:
    """Return fitted copies of `estimator` whose parameters scatter as the data leave them open.

    Draws are from what a report found (`Predictive`: parameters, residuals, applications) or, for
    an estimator of none and in a file from before, from a normal with the fit's covariance:
    parameter error alone. Both are cut at the bounds. The iteration time inside an energy model is
    drawn, too.

    Parameters
    ----------
    which: (count,) from 0 to 1, the application of each draw, see `Predictive.draws`.

    Raises
    ------
    NotFittedError: before `fit`.
    """
    estimator._check_fitted()
    which = rng.random(count) if which is None else which
    found = [estimator.with_theta(theta) for theta in thetas(estimator, count, rng, which)]
    nested = estimator.facts_.get(NESTED)
    if nested is None:
        return found
    times = samples(nested, count, rng, which=which)
    return [_with_time(one, time) for one, time in zip(found, times, strict=True)]


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
    if found is None:
        why = unknown(estimator)
        if why:
            raise InputError(estimator.name, "draws", NoQuote(why), "a row more than parameters")
        found = Predictive((Member("", estimator.theta_, estimator.covariance_, NORMAL),))
    values = np.asarray(found.draws(estimator.parameters_, count, rng, which))
    return values if len(found.members) > 1 else _levelled(estimator, values)


def unknown(estimator: Estimator) -> str:
    """Why nothing can be drawn of a fit, in words; "" where something can."""
    if hasattr(estimator, "predictive_") or np.isfinite(estimator.covariance_).all():
        return ""
    free = sum(1 for p in estimator.parameters_ if not p.fixed and p.prior is None)
    return f"no interval: {estimator.n_} rows for {free} parameters"


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
    lower, upper = bounds(estimator.parameters_)
    found = np.clip(drawn, lower, upper)
    moves = movement(estimator.theta_, found, estimator.parameters_)
    for theta, move in zip(found, moves, strict=True):
        off = float(log[0] + slope[0] @ move - estimator.curve(theta, design)[0][0])
        theta[list(scaled)] *= np.exp(off)
    return np.asarray(found)


def interval(fits: list[E], table: object, level: float = 0.9) -> tuple[Floats, Floats]:
    """Lower and upper end of the central `level` interval of the predictions at each row."""
    return _ends([fit.predict(table) for fit in fits], level)


def drawn_interval(
    estimator: Estimator, count: int, rng: np.random.Generator, table: Profile, level: float = 0.9
) -> tuple[Floats, Floats]:
    """`interval` of `samples`, which differ in parameters alone where nothing is nested: quick."""
    if NESTED in estimator.facts_:
        return interval(samples(estimator, count, rng), table, level)
    design = estimator.design(table, estimator.facts_)
    drawn = thetas(estimator, count, rng)
    logs = (estimator.curve(theta, design)[0] for theta in drawn)
    return _ends([estimator.output(log, design) for log in logs], level)


def _ends(predictions: list[Floats], level: float) -> tuple[Floats, Floats]:
    if not 0 < level < 1:
        raise InputError("interval", "level", level, "a share between 0 and 1")
    low, high = np.quantile(np.array(predictions), [(1 - level) / 2, (1 + level) / 2], axis=0)
    return low, high
