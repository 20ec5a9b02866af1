"""Draws of a fitted model: from its parameters, its residuals and its applications.

The same draws serve bands in plots and comparisons. Draws of a fit to several applications resample
the applications: each draw takes one application's parameters, with their own error, times a factor
on the level that corrects for few applications (the sample's variance is (k−1)/k of the
population's, and a new application is (k+1)/k of it away). Residuals are drawn as a factor on the
response, for which every model has parameters, or as its shape.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np

from optgap.fitting.estimator import Estimator
from optgap.fitting.groups import GroupedFit
from optgap.fitting.optimise import Floats, Parameter, bounds, root, within
from optgap.fitting.profile import Profile
from optgap.models.errors import InputError, NoQuote
from optgap.models.jsonio import Fields

E = TypeVar("E", bound=Estimator)
LEVEL, DRAWS = 0.9, 100
"""Share of the draws within an interval, and number of draws behind a sentence of a report."""
OVER, KIN = "application", "workload"
"""Columns between whose values draws are made, and columns of the whole that several values
belong to, such as one network under several power limits."""
NESTED = "time"
"""Fact that is itself a fitted estimator: the iteration time inside an energy model."""
LEVEL_SHARE: Mapping[str, float] = {"power-law-jct": 0.5}
"""Share of the residuals' variance that is drawn as a factor on the response; 1 by default.

Problems measure the level of a run time and fit only its slope, so half is drawn as its shape.
"""
NORMAL = 1e9
"""Degrees of freedom that stand for a normal distribution."""
RANKS, FEWEST = 60, 10
"""Number of draws in place of a covariance, for one fit, and at least for each of several."""
MOST_ROUNDS = 25
"""Rounds of draws, each 4 times the wanted number, until enough lie within the bounds."""
MOST_HALVINGS = 60
"""Largest number of halvings of a step in a direction that the rows hardly determine."""
PRIOR_DEGREES = 4.0
"""Weight of the residuals of all groups in the variance of each group's residuals."""


@dataclass(frozen=True)
class Member:
    """Application, or all rows; or a draw of a model that has its own draws.

    Parameters
    ----------
    name: application, or the workload that several members are parts of, such as power limits.
    theta, covariance: parameters, and their covariance with residuals included.
    degrees: degrees of freedom of the covariance.
    level: median ln of the predicted response over the whole table.
    """

    name: str
    theta: Floats
    covariance: Floats
    degrees: float
    level: float = 0.0


@dataclass(frozen=True)
class Predictive:
    """Distribution from which parameters are drawn.

    Parameters
    ----------
    members: applications to resample; a single one if all rows belong together.
    over: column that separates the applications; None for no draws between applications.
    """

    members: tuple[Member, ...]
    over: str | None = None

    @property
    def parts(self) -> tuple[str, ...]:
        """Sources of uncertainty that are drawn, in words."""
        found = ["parameters", "residual"]
        if self.over is not None:
            found.append(f"between {len({m.name for m in self.members})} of {self.over}")
        return tuple(found)

    def draws(
        self,
        parameters: Sequence[Parameter],
        count: int,
        rng: np.random.Generator,
        which: Floats | None = None,
    ) -> Floats:
        """Return (count, parameters) values within the bounds.

        `which`, (count,) from 0 to 1, is the position in the table of each draw's application,
        so that several models of one table can use the same application.
        """
        chosen = ((rng.random(count) if which is None else which) * len(self.members)).astype(int)
        found = np.zeros((count, len(parameters)))
        for k, member in enumerate(self.members):
            rows = np.flatnonzero(chosen == k)
            found[rows] = self._of(member, parameters, len(rows), rng)
        if self.over is not None:
            # ln of a factor on the response: √(2/k) of the applications' spread, t-distributed
            apart: dict[str, list[float]] = {}
            for member in self.members:
                apart.setdefault(member.name, []).append(member.level)
            k = len(apart)
            spread = math.sqrt(2 / k) * float(np.std([*map(np.mean, apart.values())], ddof=1))
            found *= np.exp(spread * _student(rng, k - 1, (count, 1)) * levels(parameters))
        return np.asarray(np.clip(found, *bounds(parameters)))

    def _of(
        self, member: Member, parameters: Sequence[Parameter], count: int, rng: np.random.Generator
    ) -> Floats:
        """Return draws of one member; draws outside the bounds are rejected unless all are."""
        lower, upper = bounds(parameters)
        kept, turned = np.zeros((0, len(parameters))), root(member.covariance)
        for made in (count, *[4 * count] * MOST_ROUNDS):
            normal = _student(rng, member.degrees, (made, len(parameters)))
            drawn = member.theta + normal @ turned.T
            kept = np.concatenate([kept, drawn[within(drawn, member.theta, lower, upper)]])[:count]
            if len(kept) == count:
                break
        return np.asarray(np.concatenate([kept, drawn[: count - len(kept)]]))

    def to_json(self) -> dict[str, Any]:
        """As a saved fit keeps it."""
        members = [
            {"name": m.name, "theta": m.theta.tolist(),
             "covariance": m.covariance.tolist() if m.covariance.any() else [],
             "degrees": m.degrees, "level": m.level} for m in self.members
        ]  # fmt: skip
        return {"over": self.over, "members": members}

    @classmethod
    def from_json(cls, fields: Fields, size: int) -> Predictive:
        """Read the JSON form; raise InputError that names the field."""
        members = []
        scale = fields.number("scale", 0) if "scale" in fields.document else 1.0
        for item in fields.objects("members"):
            theta = np.array(item.numbers("theta", minimum=-math.inf))
            if len(theta) != size:
                raise item.fail("theta", NoQuote(f"{len(theta)} values"), f"{size} values")
            covariance = np.zeros((size, size))
            if item.array("covariance"):
                covariance = scale**2 * matrix(item, size)
            degrees = item.number("degrees", minimum=1e-6)
            level = item.number("level", minimum=-math.inf)
            name = item.text("kin", "") or item.text("name")
            members.append(Member(name, theta, covariance, degrees, level))
        if not members:
            raise fields.fail("members", NoQuote("nothing"), "at least one")
        over = None if fields.document.get("over") is None else fields.text("over")
        return cls(tuple(members), over)


def matrix(fields: Fields, size: int, unknown: bool = False) -> Floats:
    """Read a covariance; null is an unknown number, if `unknown` allows it."""
    expected = f"{size} rows of {size} numbers"
    try:
        found = np.array(fields.array("covariance"), dtype=float)
    except (TypeError, ValueError):
        raise fields.fail("covariance", NoQuote("something else"), expected) from None
    if found.shape != (size, size):
        raise fields.fail("covariance", NoQuote(f"shape {found.shape}"), expected)
    if not unknown and not np.isfinite(found).all():
        raise fields.fail("covariance", NoQuote("a number that is not finite"), expected)
    return found


def _student(rng: np.random.Generator, degrees: float, shape: tuple[int, int]) -> Floats:
    """Return t-distributed numbers, with one draw of the scale for each row."""
    normal = rng.standard_normal(shape)
    return np.asarray(normal / np.sqrt(rng.chisquare(degrees, (shape[0], 1)) / degrees))


def levels(parameters: Sequence[Parameter]) -> Floats:
    """Return each parameter's exponent in the response: 1, −1 for inverse, or 0 for neither."""

    def exponent(unit: str) -> float:
        if unit.startswith("1/s"):
            return -1.0
        return float(unit.split("/")[0] in ("W", "s", "J"))

    return np.array([exponent(p.unit) for p in parameters])


def members_of(
    fits: Mapping[str, tuple[Estimator, Profile]],
    whole: Profile | None = None,
) -> dict[str, tuple[Member, ...]]:
    """Return the members of several fits of one model, given with their rows.

    `whole` is the table on which levels are compared. Residual variances shrink towards the pooled
    one, which also serves a fit without spare rows.
    A model that has draws of its own uses these instead.
    """
    squares = {name: float(fit.residuals_ @ fit.residuals_) for name, (fit, _) in fits.items()}
    free = {name: _free(fit) for name, (fit, _) in fits.items()}
    spare = sum(free.values())
    common = sum(squares[name] for name in fits if free[name]) / max(spare, 1)
    prior = PRIOR_DEGREES if len(fits) > 1 and spare else 0.0
    found: dict[str, tuple[Member, ...]] = {}
    for name, (fit, rows) in fits.items():
        level = 0.0 if whole is None else float(np.median(np.log(fit.predict(whole))))
        own_draws = fit.own_draws(rows, RANKS if whole is None else max(RANKS // len(fits), FEWEST))
        if own_draws is not None:
            none = np.zeros_like(fit.covariance_)
            found[name] = tuple(Member(name, t, none, 1.0, level) for t in own_draws)
            continue
        known = bool(np.isfinite(fit.covariance_).all())
        own = free[name] if known else 0
        degrees = max(own + prior, 1.0)
        variance = (prior * common + (squares[name] if own else 0.0)) / degrees
        if not known and not common:
            continue  # no row to spare, here or in any other group: errors are unknown
        covariance = _covariance(fit, rows, variance, 1.0 if known else variance)
        found[name] = (Member(name, fit.scatter_.centre, covariance, degrees, level),)
    return found


def _free(fit: Estimator) -> int:
    """Return the number of rows left for the residuals' variance."""
    return max(len(fit.residuals_) - int(np.sum(np.diag(fit.scatter_.drawn) > 0)), 0)


def _covariance(fit: Estimator, table: Profile, variance: float, size: float) -> Floats:
    """Return the parameters' covariance plus a part that moves predictions by the residuals.

    In a direction that the rows hardly determine, a step of one standard error leaves the range
    where the curve is straight, or the bounds. The step is halved until it moves predictions by no
    more than twice what its slope says, or by no more than the residuals.
    """
    design, drawn = fit.design(table, fit.facts_), size * fit.scatter_.drawn
    here, jacobian = fit.curve(fit.theta_, design)
    lower, upper = bounds(fit.parameters_)
    scale = np.sqrt(np.maximum(np.diag(drawn), 0))
    safe = np.where(scale > 0, scale, 1.0)
    values, vectors = np.linalg.eigh(drawn / np.outer(safe, safe))
    found = np.zeros_like(drawn)
    for step in (np.sqrt(np.maximum(values, 0)) * vectors).T * safe:
        for _ in range(MOST_HALVINGS):
            ends = (np.clip(fit.theta_ + sign * step, lower, upper) for sign in (-1, 1))
            moves = max(_rms(fit.curve(end, design)[0] - here) for end in ends)
            if moves <= 2 * _rms(jacobian @ step) + math.sqrt(variance):
                found += np.outer(step, step)
                break
            step = step / 2
    # residuals: a factor on the response, which every model has parameters for, or its shape
    direction = levels(fit.parameters_) * fit.theta_
    leverage = float(np.mean(np.sum(jacobian @ drawn * jacobian, axis=1)))
    share = LEVEL_SHARE.get(fit.name, 1.0) if direction.any() else 0.0
    share = share if leverage > 0 else 1.0
    if share < 1:
        found += (1 - share) * variance / leverage * drawn
    return np.asarray(found + share * variance * np.outer(direction, direction))


def _rms(values: Floats) -> float:
    return math.sqrt(float(np.mean(values**2)))


def between(fit: Estimator, table: Profile, over: str) -> dict[str, tuple[Estimator, Profile]]:
    """Return the model fitted to each value of a column, with the facts of the whole table."""
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


def draw_from(fit: GroupedFit[Any], table: Profile) -> None:
    """Store what every fit is drawn from, and say where draws of parameters at a bound end.

    If a group has rows of several applications, draws are between applications, too.
    """
    parts = {title: (fit.fits[title], table.take(rows))
             for title, rows in table.groups(fit.by) if title in fit.fits}  # fmt: skip
    for title, own in members_of(parts).items():
        one, part = parts[title]
        _draw(one, own, part)
        one.warnings_ += _at_bounds(one)


def _draw(fit: Any, own: tuple[Member, ...], table: Profile) -> None:
    """Store what a fit is drawn from, also for the iteration time inside an energy model."""
    fit.predictive_ = _of_several(fit, table) or Predictive(own)
    time = fit.facts_.get(NESTED)
    if time is not None:
        rows = time.prepare(table)
        for members in members_of({"": (time, rows)}).values():
            _draw(time, members, rows)


def _of_several(fit: Estimator, table: Profile) -> Predictive | None:
    """Return draws between the applications of a fit's rows, if there are several."""
    over = KIN if KIN in table else OVER
    if OVER not in table or len(set(table[over].tolist())) < 2:
        return None
    several = between(fit, table, OVER)
    whole = {name: str(part[over][0]) for name, (_, part) in several.items()}
    each = members_of(several, table).items()
    found = tuple(replace(member, name=whole[name]) for name, own in each for member in own)
    return Predictive(found, over) if len({member.name for member in found}) > 1 else None


def _at_bounds(fit: Estimator) -> list[str]:
    """Return sentences with the ends of the draws of parameters that are at their bounds."""
    held = [k for k, p in enumerate(fit.parameters_) if fit.at_bound_[k] and not p.fixed]
    if not held or np.array_equal(fit.scatter_.centre, fit.theta_):
        return []
    drawn = thetas(fit, DRAWS, np.random.default_rng(fit.seed))
    found = []
    for k in held:
        below = fit.theta_[k] <= fit.parameters_[k].lower
        end = np.quantile(drawn[:, k], LEVEL if below else 1 - LEVEL)
        side = "below" if below else "above"
        found.append(f"{fit.parameters_[k].name}: {100 * LEVEL:g} % of draws {side} {end:.3g}")
    return found


def carried(fit: GroupedFit[Any]) -> list[str]:
    """Return in words the sources of uncertainty that intervals of the fits include."""
    known = (one.predictive_ for one in fit.fits.values() if not unknown(one))
    return list(dict.fromkeys(part for predictive in known for part in predictive.parts))


def samples(
    estimator: E,
    count: int,
    rng: np.random.Generator,
    *,
    which: Floats | None = None,
) -> list[E]:
    """Return fitted copies of `estimator` whose parameters scatter as the data leave them open.

    Draws come from the `Predictive` of a report (parameters, residuals, applications). Without one,
    as in an old file, they come from a normal with the fit's covariance, the parameter error alone.
    Both are cut at the bounds. The iteration time inside an energy model is drawn, too.

    Parameters
    ----------
    which: (count,) from 0 to 1, application of each draw, see `Predictive.draws`.
    """
    which = rng.random(count) if which is None else which
    found = [estimator.with_theta(theta) for theta in thetas(estimator, count, rng, which)]
    nested = estimator.facts_.get(NESTED)
    if nested is None:
        return found
    for one, time in zip(found, samples(nested, count, rng, which=which), strict=True):
        one.facts_ = {**one.facts_, NESTED: time}
    return found


def thetas(
    estimator: Estimator, count: int, rng: np.random.Generator, which: Floats | None = None
) -> Floats:
    """Return (count, parameters) values drawn for a fitted estimator."""
    found = getattr(estimator, "predictive_", None)
    if found is None:
        why = unknown(estimator)
        if why:
            raise InputError(estimator.name, "draws", NoQuote(why), "a row more than parameters")
        found = Predictive((Member("", estimator.theta_, estimator.covariance_, NORMAL),))
    return found.draws(estimator.parameters_, count, rng, which)


def unknown(estimator: Estimator) -> str:
    """Return in words why a fit has no draws; "" if it has draws."""
    if hasattr(estimator, "predictive_") or np.isfinite(estimator.covariance_).all():
        return ""
    free = sum(1 for p in estimator.parameters_ if not p.fixed)
    return f"no interval: {estimator.n_} rows for {free} parameters"


def interval(
    estimator: Estimator, count: int, rng: np.random.Generator, table: Profile
) -> tuple[Floats, Floats]:
    """Return the ends of the central 90 % interval of predictions at each row."""
    if NESTED in estimator.facts_:
        found = [one.predict(table) for one in samples(estimator, count, rng)]
    else:  # draws differ in parameters alone: quick
        design = estimator.design(table, estimator.facts_)
        logs = (estimator.curve(theta, design)[0] for theta in thetas(estimator, count, rng))
        found = [estimator.output(log, design) for log in logs]
    low, high = np.quantile(np.array(found), [(1 - LEVEL) / 2, (1 + LEVEL) / 2], axis=0)
    return low, high
