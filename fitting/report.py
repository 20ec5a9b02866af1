"""Report of a fit, with its errors and warnings: text, HTML and ``optgap.fit/1``."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from html import escape
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import numpy as np

from optgap.fitting.estimator import Estimator, r2
from optgap.fitting.groups import GroupedFit, HeldOut
from optgap.fitting.profile import Profile
from optgap.models.errors import NoQuote, shorten
from optgap.models.performance.saved import SCHEMA
from optgap.models.shown import MOST, html_lines, html_table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

E = TypeVar("E", bound=Estimator)

OVERFIT = 2.5
"""Ratio of held-out to in-sample error above which the fit follows noise."""


@dataclass(frozen=True, repr=False)
class FitReport(Generic[E]):
    """Grouped fit with its errors, on held-out rows, too, if there are any.

    Parameters
    ----------
    fit: the estimators by group.
    profile: the fitted rows.
    held_out: predictions of held-out rows, or None.
    split: description of the held-out rows.
    notes: findings of the audit.

    Examples
    --------
    >>> table = {"frequency_mhz": [600, 900, 1200, 1400], "power_w": [80, 107, 134, 152]}
    >>> power = optgap.fit(table, "linear-power", cv=0)
    >>> power.to_frame().set_index("parameter")["value"].round(3).to_dict()
    {'P_gs': 26.0, 'alpha': 0.09}
    >>> power.predict({"frequency_mhz": [700, 1000]}).round(3)
    array([ 89., 116.])
    """

    fit: GroupedFit[E]
    profile: Profile
    held_out: HeldOut | None = None
    split: str = ""
    notes: tuple[str, ...] = field(default=())

    def fitted_rows(self) -> Profile:
        """Return the rows of the groups that were fitted."""
        table: Profile = self.fit.estimator.prepare(self.profile)
        return table.take(self.fit.rows(table))

    def overall(self) -> dict[str, float | int | None]:
        """Return n, R² and MAPE over all groups; the held-out MAPE is the mean of the groups'."""
        table, held = self.fitted_rows(), self.held_out
        measured = table.numbers(self.fit.estimator.response)
        return {
            "n": len(table),
            "r2": r2(measured, self.fit.predict(table)),
            "mape": float(np.mean([fit.mape_ for fit in self.fit.fits.values()])),
            "cv_mape": None if held is None else held.mape,
            "cv_r2": None if held is None else held.r2,
            "cv_median": None if held is None else held.median,
        }

    def predict(self, table: Any, group: str | None = None) -> Any:
        """Return the response at each row; a number if the table has numbers alone.

        Parameters
        ----------
        table: DataFrame or mapping of columns, ``{"frequency_mhz": 900}`` or lists of numbers.
        group: group whose fit serves, if there are several and the table does not decide.

        Raises
        ------
        InputError: for a column that is missing, or a group that was not fitted.
        """
        found = self.fit.predict(table, group)
        single = isinstance(table, Mapping) and all(np.ndim(v) == 0 for v in table.values())
        return float(found[0]) if single else found

    def to_frame(self) -> Any:
        """Return a DataFrame of the parameters, a row for each group and parameter."""
        import pandas as pd

        rows = [
            {"group": title, "parameter": name, **item}
            for title, one in self.fit.fits.items()
            for name, item in params_json(one).items()
        ]
        return pd.DataFrame(rows)

    def plot(self, path: str | os.PathLike[str] | None = None) -> Figure:
        """Return a figure of the curve, or of predicted over measured values; write to `path`.

        Raises
        ------
        InputError: for an ending that cannot be drawn, or a place that cannot be written to.
        """
        from optgap.fitting.plots import drawn_report

        return drawn_report(self, path)

    def warnings(self, group: str) -> list[str]:
        """Return warnings against trust in a group's fit."""
        estimator = self.fit.fits[group]
        found = list(dict.fromkeys(estimator.warnings_))
        error = self._held.get(group)
        if error is not None and error > OVERFIT * max(estimator.mape_, 1e-6) and error > 0.02:
            found.append(
                f"held-out error {error:.1%} against {estimator.mape_:.1%} in sample: "
                "too few rows for this many parameters; measure more points"
            )
        return found

    @cached_property
    def _held(self) -> dict[str, float]:
        """Return the held-out error of each group that has one."""
        return {} if self.held_out is None else self.held_out.by_group()

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form, ``optgap.fit/1``, which `saved.load` reads back."""
        groups = [
            {
                "group": title,
                **described(one),
                "cv_mape": self._held.get(title),
                "not_identifiable": [
                    [one.parameters_[k].name for k in m] for m in one.scatter_.loose
                ],
                "warnings": self.warnings(title),
            }
            for title, one in self.fit.fits.items()
        ]
        return {
            "schema": SCHEMA,
            "model": self.fit.estimator.name,
            "source": self.profile.source,
            "by": self.fit.by,
            "response": self.fit.estimator.response,
            "settings": self.fit.estimator.get_params(),
            "skipped": list(self.fit.skipped),
            "held_out": self.split or None,
            "overall": self.overall(),
            "groups": groups,
            "notes": list(self.notes),
        }

    def title(self) -> str:
        """Return two lines on the model, its table, the number of rows, and the errors."""
        overall, source = self.overall(), self.profile.source
        words = f"{self.fit.estimator.name} fitted to {source}\n{overall['n']} rows, "
        words += f"R² {overall['r2']:.4f}, MAPE {overall['mape']:.2%}"
        if overall["cv_mape"] is None:
            return words
        held = f"held out {overall['cv_mape']:.2%}, median {overall['cv_median']:.2%}"
        return f"{words}, {held} ({self.split})"

    def _head(self) -> list[str]:
        lines = self.title().split("\n")
        if self.held_out is not None:
            lines += [f"! not held out: {note}" for note in self.held_out.skipped]
        return lines + [f"! {note}" for note in (*self.profile.notes, *self.notes)]

    def _own(self, group: str) -> list[str]:
        """Return a group's warnings without those about the whole table."""
        return [note for note in self.warnings(group) if note not in self.profile.notes]

    def __str__(self) -> str:
        return "\n".join([*self._head(), *(self._group(title) for title in self.fit.fits)])

    def _group(self, title: str) -> str:
        one = self.fit.fits[title]
        error = self._held.get(title)
        held = "" if error is None else f", held out {error:.2%}"
        head = f"\n{title or 'all rows'}: n = {one.n_}, R² {one.r2_:.4f}, "
        head += f"MAPE {one.mape_:.2%}{held}"
        rows = [("", "value", "± stderr", "bounds", "unit"), *(told[:5] for told in _told(one))]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = [head]
        lines += ["  " + "  ".join(map(str.ljust, row, widths)).rstrip() for row in rows]
        ranges = [f"{k} {v[0]:g}…{v[1]:g}" for k, v in one.validity_.items()]
        lines += [f"  valid for {', '.join(ranges)}"] if ranges else []
        return "\n".join([*lines, *(f"  ! {note}" for note in self._own(title))])

    def __repr__(self) -> str:
        by = f" by {self.fit.by}" if self.fit.by else ""
        words = f"{self.fit.estimator.name}{by}: {'; '.join(self._head()[:2])}"
        return shorten(NoQuote(f"<FitReport {words}>"), MOST)

    def _repr_html_(self) -> str:
        fits, first = self.fit.fits, int(len(self.fit.fits) == 1)
        head, *more = list(map(escape, self._head()))
        rows = [(title, *told)[first:] for title, one in fits.items() for told in _told(one)]
        notes = [f"{title}: {note}" if title and not first else note
                 for title in fits for note in self._own(title)]  # fmt: skip
        header = ("group", "parameter", "value", "± stderr", "bounds", "unit", "meaning")[first:]
        table = html_table(header, rows, (2 - first, 3 - first))
        below = html_lines([f"! {escape(note)}" for note in notes])
        return html_lines([f"<b>{head}</b>", *more]) + table + below


def described(estimator: Estimator) -> dict[str, Any]:
    """Return the JSON form of a fitted estimator, for a group or the facts of another."""
    facts: dict[str, Any] = {}
    for name, value in estimator.facts_.items():
        if isinstance(value, Estimator):
            own = {"model": value.name, "settings": value.get_params()}
            facts[name] = {**own, **described(value)}
        else:
            facts[name] = value if not isinstance(value, float) or math.isfinite(value) else "inf"
    state = {"facts": facts, "covariance": estimator.covariance_.tolist()}
    predictive = getattr(estimator, "predictive_", None)
    return {
        "n": estimator.n_,
        "params": params_json(estimator),
        "r2": estimator.r2_,
        "mape": estimator.mape_,
        "validity": {k: list(v) for k, v in estimator.validity_.items()},
        "levels": estimator.levels_,
        "warnings": list(estimator.warnings_),
        # what prediction needs beyond the parameters, and what is drawn from
        "state": state if predictive is None else {**state, "predictive": predictive.to_json()},
    }


def params_json(estimator: Estimator) -> dict[str, dict[str, Any]]:
    """Return value, standard error, start, bounds and flags of each parameter, by name."""
    return {
        p.name: {
            "value": float(estimator.theta_[k]),
            "stderr": float(estimator.stderr_[k]),
            "start": float(estimator.start_[k]),
            "lower": p.lower,
            "upper": p.upper,
            "at_bound": bool(estimator.at_bound_[k]),
            "fixed": p.fixed,
            "unit": p.unit,
            "meaning": p.meaning,
        }
        for k, p in enumerate(estimator.parameters_)
    }


def _told(estimator: Estimator) -> list[tuple[str, ...]]:
    """Return name, value, error, bounds, unit and meaning of each parameter as text."""
    found: list[tuple[str, ...]] = []
    for name, item in params_json(estimator).items():
        flag = " fixed" if item["fixed"] else " at bound" if item["at_bound"] else ""
        ends = [f"{v:.4g}".replace("inf", "∞") for v in (item["lower"], item["upper"])]
        error = "—" if item["fixed"] else _short(item["stderr"])
        bounds = f"[{', '.join(ends)}]{flag}"
        found.append((name, _short(item["value"]), error, bounds, item["unit"], item["meaning"]))
    return found


def _short(value: float) -> str:
    return f"{value:.5g}" if math.isfinite(value) else "unknown"
