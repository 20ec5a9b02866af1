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

from optgap.fitting.coverage import Coverage
from optgap.fitting.estimator import Estimator, r2
from optgap.fitting.groups import GroupedFit, HeldOut
from optgap.fitting.profile import Profile
from optgap.models.errors import NoQuote, shorten
from optgap.models.performance.saved import SCHEMA
from optgap.models.shown import MOST, html_lines, html_table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

E = TypeVar("E", bound=Estimator)

MOST_ROWS, MOST_NOTES = 60, 12
"""Largest numbers of rows of a table of parameters in a notebook, and of notes below it."""

OVERFIT = 2.5
"""A held-out error this many times the one in sample says that the fit follows its noise."""


@dataclass(frozen=True, repr=False)
class FitReport(Generic[E]):
    """Grouped fit with its errors, held-out errors included if rows were held out.

    Parameters
    ----------
    fit: the estimators by group.
    profile: the rows that the estimators were fitted to.
    held_out: predictions of held-out rows, or None.
    split: description of the held-out rows.
    notes: findings of the audit.
    covered: number of held-out points in the intervals that are drawn from the fit.
    """

    fit: GroupedFit[E]
    profile: Profile
    held_out: HeldOut | None = None
    split: str = ""
    notes: tuple[str, ...] = field(default=())
    covered: Coverage = field(default_factory=Coverage)

    def overall(self) -> dict[str, float | int | None]:
        """Return n, R² and MAPE over all groups; the held-out MAPE is the mean of the groups'."""
        table = self.fit.estimator.prepare(self.profile)
        rows = self.fit.rows(table)
        measured = table.numbers(self.fit.estimator.response)[rows]
        predicted = self.fit.predict(table.take(rows))
        mapes = [fit.mape_ for fit in self.fit.fits.values()]
        return {
            "n": len(rows),
            "r2": r2(measured, predicted),
            "mape": float(np.mean(mapes)),
            "cv_mape": None if self.held_out is None else self.held_out.mape,
            "cv_r2": None if self.held_out is None else self.held_out.r2,
            "cv_median": None if self.held_out is None else self.held_out.median,
        }

    def predict(self, table: Any, group: str | None = None) -> Any:
        """Return the response at each row; a number if the table has numbers alone.

        Parameters
        ----------
        table: DataFrame or mapping of columns, ``{"frequency_mhz": 900}`` or lists of numbers.
        group: group whose fit predicts, if there are several and the table does not name one.

        Raises
        ------
        InputError: for a missing column, or a group that was not fitted.
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
        """Held-out error of each group that has one."""
        return {} if self.held_out is None else self.held_out.by_group()

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form, ``optgap.fit/1``, which `saved.load` reads back."""
        groups = [
            {
                "group": title,
                **described(one),
                "cv_mape": self._held.get(title),
                "correlations": [list(item) for item in one.correlations()],
                "not_identifiable": [[one.parameters_[k].name for k in m] for m in one.loose_],
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
            "coverage": self.covered.to_json(),
            "groups": groups,
            "notes": list(self.notes),
        }

    def __str__(self) -> str:
        return "\n".join([*self._head(), *(self._group(title) for title in self.fit.fits)])

    def _head(self) -> list[str]:
        overall = self.overall()
        lines = [f"{self.fit.estimator.name} fitted to {self.profile.source}"]
        parts = [f"{overall['n']} rows", f"R² {overall['r2']:.4f}", f"MAPE {overall['mape']:.2%}"]
        if overall["cv_mape"] is not None:
            mean, middle = overall["cv_mape"], overall["cv_median"]
            parts.append(f"held out {mean:.2%}, median {middle:.2%} ({self.split})")
        lines.append(", ".join(parts))
        lines += self.covered.lines()
        if self.held_out is not None:
            lines += [f"! not held out: {note}" for note in self.held_out.skipped]
        lines += [f"! {note}" for note in (*self.profile.notes, *self.notes)]
        return lines

    def _own(self, group: str) -> list[str]:
        """Return a group's warnings without those about the whole table."""
        return [note for note in self.warnings(group) if note not in self.profile.notes]

    def _group(self, title: str) -> str:
        estimator = self.fit.fits[title]
        error = self._held.get(title)
        held = "" if error is None else f", held out {error:.2%}"
        head = f"\n{title or 'all rows'}: n = {estimator.n_}, R² {estimator.r2_:.4f}, "
        head += f"MAPE {estimator.mape_:.2%}{held}, AICc {estimator.aicc_:.1f}"
        starts = (_short(float(start)) for start in estimator.start_)
        rows: list[tuple[str, ...]] = [("", "value", "± stderr", "start", "bounds", "unit")]
        rows += [
            (*told[:3], start, *told[3:5])
            for told, start in zip(_told(estimator), starts, strict=True)
        ]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = [head]
        lines += ["  " + "  ".join(map(str.ljust, row, widths)).rstrip() for row in rows]
        lines += [f"  correlation {a}, {b}: {r:+.3f}" for a, b, r in estimator.correlations()]
        ranges = [f"{k} {v[0]:g}…{v[1]:g}" for k, v in estimator.validity_.items()]
        lines += [f"  valid for {', '.join(ranges)}"] if ranges else []
        lines += [f"  ! {note}" for note in self._own(title)]
        return "\n".join(lines)

    def __repr__(self) -> str:
        by = f" by {self.fit.by}" if self.fit.by else ""
        words = f"{self.fit.estimator.name}{by}: {'; '.join(self._head()[:2])}"
        return shorten(NoQuote(f"<FitReport {words}>"), MOST)

    def plot(self, path: str | os.PathLike[str] | None = None) -> Figure:
        """Return a figure of curves with bands and of residuals, and write it to `path` if given.

        Raises
        ------
        InputError: for an ending that cannot be drawn, or a place that cannot be written to.
        """
        from optgap.fitting.plots import drawn_report

        return drawn_report(self, path)

    def _repr_html_(self) -> str:
        head = list(map(escape, self._head()))
        several = len(self.fit.fits) > 1
        header = ("group", "parameter", "value", "± stderr", "bounds", "unit", "meaning")
        rows: list[tuple[str, ...]] = []
        notes: list[str] = []
        for title, estimator in self.fit.fits.items():
            rows += [(title or "all rows", *told)[not several :] for told in _told(estimator)]
            notes += [f"{title}: {note}" if several else note for note in self._own(title)]
        right = (2, 3) if several else (1, 2)
        parts = [html_lines([f"<b>{head[0]}</b>", *head[1:]])]
        parts.append(html_table(header[not several :], rows[:MOST_ROWS], right))
        if len(rows) > MOST_ROWS:
            parts.append(f"<div>… and {len(rows) - MOST_ROWS} more rows: print() has them</div>")
        parts.append(html_lines([f"! {escape(note)}" for note in notes[:MOST_NOTES]]))
        if len(notes) > MOST_NOTES:
            parts.append(f"<div>… and {len(notes) - MOST_NOTES} more notes</div>")
        return "".join(parts)


def described(estimator: Estimator) -> dict[str, Any]:
    """Return the JSON form of a fitted estimator, for a group or the facts of another."""
    return {
        "n": estimator.n_,
        "params": params_json(estimator),
        "r2": estimator.r2_,
        "mape": estimator.mape_,
        "aicc": estimator.aicc_,
        "validity": {k: list(v) for k, v in estimator.validity_.items()},
        "levels": estimator.levels_,
        "warnings": list(estimator.warnings_),
        "state": _state(estimator),
    }


def _state(estimator: Estimator) -> dict[str, Any]:
    """Return what prediction needs beyond the parameters: facts from the data, and the draws."""
    facts: dict[str, Any] = {}
    for name, value in estimator.facts_.items():
        if isinstance(value, Estimator):
            own = {"model": value.name, "settings": value.get_params()}
            facts[name] = {**own, **described(value)}
        else:
            facts[name] = value if not isinstance(value, float) or math.isfinite(value) else "inf"
    state = {"facts": facts, "covariance": estimator.covariance_.tolist()}
    predictive = getattr(estimator, "predictive_", None)
    return state if predictive is None else {**state, "predictive": predictive.to_json()}


def params_json(estimator: Estimator) -> dict[str, dict[str, Any]]:
    """Value, standard error, start, bounds and flags of each parameter, by name."""
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
    """Name, value, error, bounds, unit and meaning of each parameter, as tables show them."""
    found: list[tuple[str, ...]] = []
    for name, item in params_json(estimator).items():
        flag = " fixed" if item["fixed"] else " at bound" if item["at_bound"] else ""
        bounds = f"[{_bound(item['lower'])}, {_bound(item['upper'])}]{flag}"
        error = "—" if item["fixed"] else _short(item["stderr"])
        value = _short(item["value"])
        found.append((name, value, error, bounds, item["unit"], item["meaning"]))
    return found


def _short(value: float) -> str:
    return f"{value:.5g}" if math.isfinite(value) else "unknown"


def _bound(value: float) -> str:
    return f"{value:.4g}" if math.isfinite(value) else ("∞" if value > 0 else "−∞")
