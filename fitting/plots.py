"""Pictures of a fit: its curve with its band, or predicted over measured, and the samples."""

from __future__ import annotations

import os
import textwrap
from typing import TYPE_CHECKING, Any

import numpy as np

from optgap.fitting.profile import QUANTITIES, Profile
from optgap.fitting.uncertainty import interval, unknown
from optgap.models.errors import InputError, NoQuote
from optgap.models.figures import LONGEST, delivered, labelled

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from optgap.fitting.report import FitReport

BAND_SAMPLES = 200
MANY_SAMPLES = 20_000
MANY_GROUPS = 20
"""Largest number of groups with colours of their own and a legend."""
LEGEND: dict[str, Any] = {
    "fontsize": "x-small", "title_fontsize": "x-small", "frameon": False, "loc": "upper left",
    "bbox_to_anchor": (1, 1),
}  # fmt: skip
"""Arguments of a legend beside the axes."""


def _words(name: str) -> str:
    """Return a column's name in words: ``frequency (MHz)`` for ``frequency_mhz``."""
    unit = QUANTITIES[name].unit if name in QUANTITIES else ""
    if unit.lower() == name:
        return unit
    text = name.removesuffix(f"_{unit.lower()}").removesuffix("_percent").replace("_", " ")
    return f"{text} ({unit})" if unit else text


def _named(axes: Axes, title: str, over: str, response: str) -> None:
    axes.set(xlabel=over, ylabel=response)
    axes.set_title(title, fontsize="medium")


def _colour(many: int, k: int) -> Any:
    from matplotlib import colormaps

    colours = colormaps["tab10" if many <= 10 else "tab20"]
    return colours(k % colours.N)


def plot_measured(report: FitReport[Any], axes: Axes) -> None:
    """Plot predicted over measured values, those of held-out rows if the report has these."""
    response, title = report.fit.estimator.response, "rows held out"
    if report.held_out is not None:
        measured, predicted = report.held_out.measured, report.held_out.predicted
    else:
        table, title = report.fitted_rows(), "the rows fitted to"
        measured, predicted = table.numbers(response), report.fit.predict(table)
    axes.scatter(measured, predicted, s=8, alpha=0.5)
    ends = [min(measured.min(), predicted.min()), max(measured.max(), predicted.max())]
    axes.plot(ends, ends, color="black", linewidth=1)
    if ends[0] > 0 and ends[1] > 30 * ends[0]:
        axes.set(xscale="log", yscale="log")
    _named(axes, title, f"measured {_words(response)}", f"predicted {_words(response)}")


def plot_curve(report: FitReport[Any], axes: Axes) -> None:
    """Plot each group's fitted curve over its input, with the 90 % band of the parameters.

    Optional columns stay at the values of the group's middle row.
    """
    fits, over = report.fit.fits, report.fit.estimator.needs[0]
    table, rng = report.fitted_rows(), np.random.default_rng(0)
    for k, (title, rows) in enumerate(table.groups(report.fit.by)):
        fit, part, colour = fits[title], table.take(rows), _colour(len(fits), k)
        values = part.numbers(over)
        axes.scatter(values, part.numbers(fit.response), s=8, alpha=0.5, color=colour)
        middle = int(np.argsort(values, kind="stable")[len(values) // 2])
        points = np.linspace(values.min(), values.max(), 100)
        line = part.take(np.full(100, middle)).with_columns(**{over: points})
        axes.plot(points, fit.predict(line), color=colour, label=labelled(title))
        if not unknown(fit):
            low, high = interval(fit, BAND_SAMPLES, rng, line)
            axes.fill_between(points, low, high, color=colour, alpha=0.2, linewidth=0)
    if 1 < len(fits) <= MANY_GROUPS:
        axes.legend(**LEGEND, title=report.fit.by)
    _named(axes, "fitted, with its 90 % band", _words(over), _words(report.fit.estimator.response))


def plot_samples(profile: Profile, axes: Axes) -> None:
    """Plot the power of each device over time, with its runs marked."""
    many = len(profile.traces)
    for k, trace in enumerate(profile.traces):
        colour = _colour(many, k)
        every = max(1, len(trace.times) // MANY_SAMPLES)
        axes.plot(trace.times[::every], trace.power_w[::every], color=colour,
                  linewidth=0.8, label=labelled(f"GPU {trace.device}"))  # fmt: skip
        for start, stop in trace.runs:
            axes.axvspan(trace.times[start], trace.times[stop - 1], color=colour, alpha=0.15)
    runs = sum(len(trace.runs) for trace in profile.traces)
    if 1 < many <= MANY_GROUPS:
        axes.legend(**LEGEND)
    _named(axes, f"samples, and the {runs} runs cut from them", "time (s)", _words("power_w"))


def save_samples(path: str | os.PathLike[str], profile: Profile) -> None:
    """Draw the samples of a profile to a file.

    Raises
    ------
    InputError: for a profile without samples, or an ending that cannot be drawn.
    """
    from matplotlib.figure import Figure

    if not profile.traces:
        found = NoQuote("no samples")
        raise InputError(profile.source, "", found, "a log of samples to draw (a fit has --plot)")
    figure = Figure(figsize=(14, 4.2), layout="constrained")
    plot_samples(profile, figure.add_subplot())
    delivered(figure, path)


def drawn_report(report: FitReport[Any], path: str | os.PathLike[str] | None = None) -> Figure:
    """Draw the curve, or predicted over measured values, above the samples of the rows.

    A model of one input is drawn as its curve. A notebook shows the figure; it is also written
    to `path`.

    Raises
    ------
    InputError: for an ending that cannot be drawn, or a place that cannot be written to.
    """
    from matplotlib.figure import Figure

    traces = report.profile.traces
    figure = Figure(figsize=(8, 7 if traces else 4.2), layout="constrained")
    first, *more = figure.subplots(2 if traces else 1, squeeze=False)[:, 0]
    (plot_curve if len(report.fit.estimator.needs) == 1 else plot_measured)(report, first)
    for axes in more:
        plot_samples(report.profile, axes)
    title = "\n".join(textwrap.wrap(report.title(), LONGEST))
    figure.suptitle(title, x=0.01, ha="left", fontsize="medium")
    return delivered(figure, path)
