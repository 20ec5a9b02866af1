"""Coverage of 90 % intervals: the share of held-out points inside."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from optgap.fitting.estimator import Estimator
from optgap.fitting.groups import GroupedFit, HeldOut
from optgap.fitting.optimise import Floats
from optgap.fitting.profile import Profile
from optgap.fitting.uncertainty import (
    NESTED,
    Predictive,
    between,
    interval,
    members_of,
    thetas,
    unknown,
)

LEVEL = 0.9
DRAWS = 100
MOST_JUDGED = 2000
"""Largest number of random held-out rows of a fold and group on which intervals are judged."""
LEAST_ROWS, SCALES = 10, (0.5, 5.0)
"""Least number of held-out rows for a scale of intervals, and the range of the scale."""
LEAST_OTHERS = 3
"""Least number of applications for judging the interval of another one."""
EXACT = 1e-9
"""Relative error that counts as zero."""
OVER, KIN = "application", "workload"
"""Columns between whose values draws are made, and columns of the whole that several values
belong to, such as one network under several power limits. The whole is held out together."""


@dataclass(frozen=True)
class Coverage:
    """Shares of held-out points within their intervals; None if none were held out.

    Parameters
    ----------
    rows, count: share of held-out rows of fitted groups, and number of such rows.
    others, applications: mean share of the rows of held-out applications, and number of these
        applications; each is held out once.
    """

    rows: float | None = None
    count: int = 0
    others: float | None = None
    applications: int = 0

    def to_json(self) -> dict[str, Any]:
        """As a saved fit keeps it."""
        return {
            "level": LEVEL,
            "rows": self.rows,
            "held_out_rows": self.count,
            f"{OVER}s": self.others,
            f"held_out_{OVER}s": self.applications,
        }

    def lines(self) -> list[str]:
        """Return the findings, a sentence each."""
        about, found = f"{100 * LEVEL:g} % intervals covered", []
        if self.others is not None:
            what = f"held-out {OVER}s' points ({self.applications}, one at a time)"
            found.append(f"{about} {100 * self.others:.0f} % of {what}")
        if self.rows is not None:
            found.append(f"{about} {100 * self.rows:.0f} % of {self.count} held-out rows")
        return found


def places(fits: Mapping[str, tuple[Estimator, Profile]], held: Mapping[str, Profile],
           seed: int) -> dict[str, Floats]:  # fmt: skip
    """Return the distance of held-out rows from the middle of intervals; 1 is an end."""
    found = {}
    rng, members = np.random.default_rng(seed), members_of(fits)
    for name, table in held.items():
        fit, part = fits[name]
        found[name] = np.full(len(table), np.nan)
        if name not in members:
            continue
        _draw(fit, Predictive(members[name]), part)
        some = np.sort(rng.permutation(len(table))[:MOST_JUDGED])
        found[name][some] = _places(fit, table.take(some), rng)
    return found


def _places(fit: Estimator, table: Profile, rng: np.random.Generator) -> Floats:
    """Return each row's distance from the middle of its draws; 0 for exact predictions."""
    measured = table.numbers(fit.response)
    low, high = interval(fit, DRAWS, rng, table, LEVEL)
    off, width = np.abs(np.log(measured**2 / (low * high))) / 2, np.log(high / low) / 2
    found = np.divide(off, width, out=np.full(len(off), np.inf), where=width > 1e-12)
    return np.where(off < EXACT, 0.0, found)


def judged(held: HeldOut | None, seed: int, scaled: bool = True) -> tuple[float, Coverage]:
    """Return the scale that makes intervals hold on held-out rows, and their coverage.

    Each fifth of the rows is judged by the scale of the others; without `scaled` the scale is 1.
    """
    found = np.zeros(0) if held is None else held.places[~np.isnan(held.places)]
    if not len(found):
        return 1.0, Coverage()
    part = np.random.default_rng(seed).integers(5, size=len(found))
    inside = [found[part == k] <= _scale(found[part != k], scaled) for k in range(5)]
    return _scale(found, scaled), Coverage(float(np.concatenate(inside).mean()), len(found))


def _scale(found: Floats, scaled: bool) -> float:
    known = found[np.isfinite(found)]
    if len(known) < LEAST_ROWS or not scaled:
        return 1.0
    share = min(np.ceil((len(known) + 1) * LEVEL) / len(known), 1.0)
    return float(np.clip(np.quantile(known, share, method="higher"), *SCALES))


def _draw(fit: Any, predictive: Predictive, table: Profile) -> None:
    """Store what a fit is drawn from, also for the iteration time inside an energy model."""
    fit.predictive_ = predictive
    time = fit.facts_.get(NESTED)
    if time is not None:
        members = members_of({"": (time, time.prepare(table))})
        if members:
            time.predictive_ = Predictive(members[""])


def drawn_from(fit: GroupedFit[Any], table: Profile, held: HeldOut | None, seed: int) -> Coverage:
    """Store what every fit is drawn from; return the coverage of held-out points.

    If a group has rows of several applications, draws are between applications, too.
    """
    parts = {title: (fit.fits[title], table.take(rows))
             for title, rows in table.groups(fit.by) if title in fit.fits}  # fmt: skip
    members = members_of(parts)
    scale, coverage = judged(held, seed, scaled=all(len(own) == 1 for own in members.values()))
    shares: list[float] = []
    for title, own in members.items():
        one, part = parts[title]
        several = _of_several(one, part) if fit.by != OVER else {}
        if several:
            shares += _left_out(one, several, seed)
        else:
            _draw(one, Predictive(own, None, scale), part)
        one.warnings_ += _at_bounds(one, seed)
    return Coverage(None, 0, float(np.mean(shares)), len(shares)) if shares else coverage


def _at_bounds(fit: Estimator, seed: int) -> list[str]:
    """Return sentences with the ends of the draws of parameters that are at their bounds."""
    held = [k for k, p in enumerate(fit.parameters_) if fit.at_bound_[k] and not p.fixed]
    if not held or np.array_equal(fit.scatter_.centre, fit.theta_):
        return []
    drawn = thetas(fit, DRAWS, np.random.default_rng(seed))
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


def _of_several(fit: Any, table: Profile) -> dict[str, list[Profile]]:
    """Return the rows of each application, if there are several and draws are between them.

    A workload with several parts has a table for each part.
    """
    over = KIN if KIN in table else OVER
    if OVER not in table or len(set(table[over].tolist())) < 2:
        return {}
    several = between(fit, table, OVER)
    kin = {name: str(part[over][0]) for name, (_, part) in several.items()}
    found: dict[str, list[Profile]] = {}
    for name, (_, part) in several.items():
        found.setdefault(kin[name], []).append(part)
    if len(found) < 2:
        return {}
    each = members_of(several, table, kin).values()
    members = Predictive(tuple(member for own in each for member in own), over)
    time = fit.facts_.get(NESTED)
    if time is None or _of_several(time, time.prepare(table)):
        fit.predictive_ = members
    else:
        _draw(fit, members, table)
    return found


def _left_out(fit: Estimator, several: Mapping[str, list[Profile]], seed: int) -> list[float]:
    """Return the share of each application's rows in the interval drawn from the others."""
    if len(several) <= LEAST_OTHERS:
        return []
    shares = []
    for name, tables in several.items():
        rng, others = np.random.default_rng(seed), _without(fit, name)
        found = [_places(others, table, rng) for table in tables]
        shares.append(float(np.mean(np.concatenate(found) <= 1)))
    return shares


def _without(fit: Any, name: str) -> Any:
    """Return the fit with draws as if one application had not been measured."""
    copy = fit.with_theta(fit.theta_)
    copy.predictive_ = copy.predictive_.without(name)
    time = fit.facts_.get(NESTED)
    if time is not None:
        copy.facts_ = {**fit.facts_, NESTED: _without(time, name)}
    return copy
