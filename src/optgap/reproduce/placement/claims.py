"""Statements about curves, put as numbers: what the rows of the tables are made of.

The paper states what can be read off a plot, mostly with a "~". Loads may therefore be 2.5 points
off. ``yes`` means that ours, rounded like the paper's number, is the paper's number; ``nearly``
that it is within half a percentage point of savings, or one hundredth of GRAR. The row shows the
number in any case.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np

from optgap.reproduce.grid import Curve
from optgap.reproduce.placement import COUNTS, pods
from optgap.reproduce.placement.runs import Runs, Trace
from optgap.reproduce.report import Item, Row, Study, Verdict, holds
from optgap.reproduce.report import statement as stated

POINTS = 0.5
"""Slack on power savings, percentage points."""
LOAD = 0.025
"""Slack on loads, share of the GPU capacity."""
RATIO = 0.01
"""Slack on GRAR."""
RULE = (
    "yes where ours, rounded like the paper's number, is the paper's number; nearly within "
    f"{POINTS:g} points of savings or {RATIO:g} of GRAR, loads within {100 * LOAD:g} points"
)
RAMP = 0.15
"""Load at which the paper's first phase, the initial gain, is over."""

NAMES: Mapping[str, str] = {
    "fgd": "FGD",
    "pwr": "PWR",
    "pwr+fgd(alpha=0.05)": "α=0.05",
    "pwr+fgd(alpha=0.1)": "α=0.1",
    "pwr+fgd(alpha=0.2)": "α=0.2",
    "pwr+fgd(alpha=0.5)": "α=0.5",
    "bestfit": "BestFit",
    "dotprod": "DotProd",
    "gpupacking": "GpuPacking",
    "gpuclustering": "GpuClustering",
}
"""As the paper calls them."""

FEWER = "fewer seeds than the paper's ten"


def runs_of(item: Item, study: Study, trace: str = "default") -> tuple[Runs, str]:
    """The runs on a trace, and what they are made from, in words."""
    data = None if item.missing(study.data) else study.data
    source = COUNTS if data is None else Path(pods(trace)).name
    return Runs(study, Trace(trace), data), source


statement = partial(stated, rule=RULE)
"""A row for something that the paper states of its curves."""


def told(rows: Iterable[Row], study: Study) -> tuple[Row, ...]:
    """The rows; where ours is not what is stated, and nothing says why, there may be few seeds."""
    fewer = FEWER if len(study.seeds) < 10 else ""
    return tuple(
        replace(row, note=fewer) if row.agrees == "no" and not row.note else row for row in rows
    )


def until(curve: Curve, level: float, start: float = RAMP) -> float:
    """The last load up to which the mean stays at or above `level`, from `start` on."""
    first = int(np.argmin(np.abs(curve.load - start)))
    below = np.flatnonzero(curve.mean[first:] < level)
    return float(curve.load[first + below[0] - 1]) if below.size else float(curve.load[-1])


def stays_above(
    curves: Mapping[str, Curve], level: float, load: float, start: float = RAMP
) -> tuple[str, Verdict]:
    """Whether all curves stay above `level` until `load`: our numbers in words, and the verdict."""
    ends = [until(curve, level, start) for curve in curves.values()]
    lowest = min(float(curve.between(start, load).min()) for curve in curves.values())
    before = min(float(curve.between(start, load - LOAD).min()) for curve in curves.values())
    words = f"until {loads_text(ends)}; at least {lowest:.1f} % up to {100 * load:g} %"
    return words, holds(before >= level, before >= level - POINTS)


def peak(curves: Mapping[str, Curve], start: float = 0.0) -> tuple[str, float, float]:
    """The largest mean among curves from `start` on: whose, how much, at which load."""
    best = ("", -np.inf, 0.0)
    for name, curve in curves.items():
        values = np.where(curve.load >= start, curve.mean, -np.inf)
        k = int(np.argmax(values))
        if values[k] > best[1]:
            best = (name, float(values[k]), float(curve.load[k]))
    return best


def first_failure(curves: Mapping[str, Curve]) -> tuple[str, float]:
    """The policy that fails a task at the smallest load in any run, and that load."""
    found: dict[str, float] = {}
    for name, curve in curves.items():
        failed = (curve.runs < 1).any(axis=0)
        found[name] = float(curve.load[int(np.argmax(failed))]) if failed.any() else np.inf
    name = min(found, key=lambda key: found[key])
    return name, found[name]


def loads_text(values: Iterable[float]) -> str:
    """Loads as one percentage, or as a range of two."""
    return span([100 * value for value in values], 1) + " %"


def span(values: Iterable[float], digits: int) -> str:
    """The smallest and the largest value, or the one that both are."""
    low, high = (f"{pick:.{digits}f}" for pick in _ends(values))
    return low if low == high else f"{low} to {high}"


def _ends(values: Iterable[float]) -> tuple[float, float]:
    found = list(values)
    return min(found), max(found)


def with_spread(curves: Mapping[str, Curve], load: float, digits: int = 1) -> str:
    """Every curve's mean ± standard deviation over seeds at one load."""
    parts = []
    for name, curve in curves.items():
        text = f"{NAMES[name]} {curve.at(load):.{digits}f}"
        if len(curve.runs) > 1:
            text += f" ± {curve.spread_at(load):.{digits}f}"
        parts.append(text)
    return ", ".join(parts)
