"""What a fit found and how far it can be trusted: text, HTML and ``optgap.fit/1``."""

from __future__ import annotations

import html
import math
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

import numpy as np

from optgap.fitting import metrics
from optgap.fitting.estimator import Estimator
from optgap.fitting.groups import GroupedFit, HeldOut
from optgap.fitting.profile import Profile
from optgap.models.performance.saved import SCHEMA

E = TypeVar("E", bound=Estimator)

OVERFIT = 2.5
"""A held-out error this many times the one in sample says that the fit follows its noise."""


@dataclass(frozen=True)
class FitReport(Generic[E]):
    """A grouped fit with its errors, held out ones included where they were taken.

    Parameters
    ----------
    fit: the estimators by group.
    profile: the rows they were fitted to.
    held_out: predictions of rows not seen, or None.
    split: what was held out, in words.
    notes: findings of the audit.
    """

    fit: GroupedFit[E]
    profile: Profile
    held_out: HeldOut | None = None
    split: str = ""
    notes: tuple[str, ...] = field(default=())

    def overall(self) -> dict[str, float | int | None]:
        """n, R² and MAPE over all groups; the held-out MAPE is the mean of the groups'."""
        table = self.fit.estimator.prepare(self.profile)
        rows = self.fit.rows(table)
        measured = table.numbers(self.fit.estimator.response)[rows]
        predicted = self.fit.predict(table.take(rows))
        mapes = [fit.mape_ for fit in self.fit.fits.values()]
        return {
            "n": len(rows),
            "r2": metrics.r2(measured, predicted),
            "mape": float(np.mean(mapes)),
            "cv_mape": None if self.held_out is None else self.held_out.mape,
            "cv_r2": None if self.held_out is None else self.held_out.r2,
            "cv_median": None if self.held_out is None else self.held_out.median,
        }

    def warnings(self, group: str) -> list[str]:
        """What stands in the way of trusting a group's fit."""
        estimator = self.fit.fits[group]
        found = list(dict.fromkeys(estimator.warnings_))
        error = self._cv(group)
        if error is not None and error > OVERFIT * max(estimator.mape_, 1e-6) and error > 0.02:
            found.append(
                f"held-out error {error:.1%} against {estimator.mape_:.1%} in sample: "
                "too few rows for this many parameters; measure more points"
            )
        return found

    def _cv(self, group: str) -> float | None:
        return None if self.held_out is None else self.held_out.by_group().get(group)

    def to_json(self) -> dict[str, Any]:
        """The schema ``optgap.fit/1``, which `saved.load` reads back."""
        from optgap.fitting.saved import group_state, settings_of

        groups = []
        for title, estimator in self.fit.fits.items():
            groups.append(
                {
                    "group": title,
                    "n": estimator.n_,
                    "params": params_json(estimator),
                    "r2": estimator.r2_,
                    "mape": estimator.mape_,
                    "cv_mape": self._cv(title),
                    "aicc": estimator.aicc_,
                    "validity": {k: list(v) for k, v in estimator.validity_.items()},
                    "levels": estimator.levels_,
                    "correlations": [list(item) for item in estimator.correlations()],
                    "not_identifiable": [
                        [estimator.parameters_[k].name for k in members]
                        for members in estimator.loose_
                    ],
                    "warnings": self.warnings(title),
                    "state": group_state(estimator),
                }
            )
        return {
            "schema": SCHEMA,
            "model": self.fit.estimator.name,
            "source": self.profile.source,
            "by": self.fit.by,
            "response": self.fit.estimator.response,
            "settings": settings_of(self.fit.estimator),
            "skipped": list(self.fit.skipped),
            "held_out": self.split or None,
            "overall": self.overall(),
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
        lines.append("  ".join(parts))
        if self.held_out is not None:
            lines += [f"! not held out: {note}" for note in self.held_out.skipped]
        lines += [f"! {note}" for note in self.notes]
        return lines

    def _group(self, title: str) -> str:
        estimator = self.fit.fits[title]
        error = self._cv(title)
        held = "" if error is None else f", held out {error:.2%}"
        head = f"\n{title or 'all rows'}: n = {estimator.n_}, R² {estimator.r2_:.4f}, "
        head += f"MAPE {estimator.mape_:.2%}{held}, AICc {estimator.aicc_:.1f}"
        rows = [("", "value", "± stderr", "start", "bounds", "unit")]
        for name, item in params_json(estimator).items():
            flag = "fixed" if item["fixed"] else "at bound" if item["at_bound"] else ""
            bounds = f"[{_bound(item['lower'])}, {_bound(item['upper'])}] {flag}".strip()
            error_text = "—" if item["fixed"] else _short(item["stderr"])
            start = _short(item["start"])
            rows.append((name, _short(item["value"]), error_text, start, bounds, item["unit"]))
        widths = [max(len(row[k]) for row in rows) for k in range(len(rows[0]))]
        lines = [head]
        for row in rows:
            cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
            lines.append(("  " + "  ".join(cells)).rstrip())
        for a, b, value in estimator.correlations():
            lines.append(f"  correlation {a}, {b}: {value:+.3f}")
        ranges = [f"{k} {v[0]:g}…{v[1]:g}" for k, v in estimator.validity_.items()]
        if ranges:
            lines.append("  valid for " + ", ".join(ranges))
        lines += [f"  ! {note}" for note in self.warnings(title)]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        lines = [f"<p>{html.escape(line)}</p>" for line in self._head()]
        for title, estimator in self.fit.fits.items():
            head = "<tr><th>" + "</th><th>".join(
                ("parameter", "value", "stderr", "start", "bounds", "unit", "meaning")
            )
            body = [head + "</th></tr>"]
            meanings = {p.name: p.meaning for p in estimator.parameters_}
            for name, item in params_json(estimator).items():
                cells = (
                    name,
                    _short(item["value"]),
                    _short(item["stderr"]),
                    _short(item["start"]),
                    f"[{_bound(item['lower'])}, {_bound(item['upper'])}]",
                    item["unit"],
                    meanings[name],
                )
                body.append(
                    "<tr>" + "".join(f"<td>{html.escape(str(c))}</td>" for c in cells) + "</tr>"
                )
            lines.append(f"<h4>{html.escape(title or 'all rows')}</h4>")
            lines.append(f"<table>{''.join(body)}</table>")
            notes = "".join(f"<li>{html.escape(note)}</li>" for note in self.warnings(title))
            lines.append(f"<ul>{notes}</ul>" if notes else "")
        return "\n".join(lines)


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


def _short(value: float) -> str:
    return f"{value:.5g}" if math.isfinite(value) else "unknown"


def _bound(value: float) -> str:
    return f"{value:.4g}" if math.isfinite(value) else ("∞" if value > 0 else "−∞")
