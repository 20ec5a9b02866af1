"""Pictures of a fit: predicted against measured, the curve with its band, and the samples."""

from __future__ import annotations

import os
import textwrap
from typing import TYPE_CHECKING, Any

import numpy as np

from optgap.fitting.estimator import Estimator
from optgap.fitting.profile import QUANTITIES, Profile
from optgap.fitting.uncertainty import interval, unknown
from optgap.models.errors import InputError, NoQuote
from optgap.models.figures import LONGEST, delivered, labelled

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from optgap.fitting.report import FitReport

BAND_SAMPLES = 200
MANY_LINES = 6
MANY_SAMPLES = 20_000
MANY_GROUPS = 20
"""Largest number of groups with colours of their own and a legend."""
LEGEND: dict[str, Any] = {
    "fontsize": "x-small", "title_fontsize": "x-small", "frameon": False, "loc": "upper left",
    "bbox_to_anchor": (1, 1),
}  # fmt: skip
"""Arguments of a legend beside the axes."""


def _words(name: str, unit: bool = True) -> str:
    """Return a column's name in words: ``frequency (MHz)`` for ``frequency_mhz``."""
    own = QUANTITIES[name].unit if name in QUANTITIES else ""
    if own.lower() == name:
        return own
    text = name.removesuffix(f"_{own.lower()}").removesuffix("_percent").replace("_", " ")
    return f"{text} ({own})" if unit and own else text


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
    """Plot each group's fitted curve over its first input, with the 90 % band of the parameters.

    A model of one input is drawn on a fine grid; optional columns stay at the values of the
    group's middle row. A model of several inputs is drawn through the measured rows, with a line
    for each value of its second input. Each line of a single group has its own colour; with
    several groups, each group has one.
    """
    estimator, fits = report.fit.estimator, report.fit.fits
    table, over = report.fitted_rows(), estimator.needs[0]
    rng = np.random.default_rng(0)
    several, alone = len(estimator.needs) > 1, len(fits) == 1
    for k, (title, rows) in enumerate(table.groups(report.fit.by)):
        fit: Estimator = fits[title]
        part = table.take(rows)
        dots = "0.7" if several else _colour(len(fits), k)
        axes.scatter(part.numbers(over), part.numbers(fit.response), s=8, alpha=0.5, color=dots)
        lines = _lines(part, fit) if several else [(title, _grid(part, over))]
        for number, (name, line) in enumerate(lines):
            colour = _colour(len(fits), number if several and alone else k)
            shown = name if alone else title if number == len(lines) - 1 else ""  # each once
            band = () if unknown(fit) else interval(fit, BAND_SAMPLES, rng, line)
            # the mean at each distinct place: placements of the same GPUs, say
            places, index = np.unique(line.numbers(over), return_inverse=True)
            curves = (fit.predict(line), *band)
            middle, *ends = [np.bincount(index, v) / np.bincount(index) for v in curves]
            axes.plot(places, middle, color=colour, label=labelled(shown) if shown else None)
            if ends:
                axes.fill_between(places, ends[0], ends[1], color=colour, alpha=0.2, linewidth=0)
    if axes.get_legend_handles_labels()[0] and len(fits) <= MANY_GROUPS:
        title = _words(estimator.needs[1], False) if several and alone else report.fit.by or ""
        axes.legend(**LEGEND, title=title)
    _named(axes, "fitted, with its 90 % band", _words(over), _words(estimator.response))


def _grid(part: Profile, over: str) -> Profile:
    """Return a hundred points over one input; the other columns are as in the middle row."""
    values = part.numbers(over)
    middle = int(np.argsort(values, kind="stable")[len(values) // 2])
    points = np.linspace(values.min(), values.max(), 100)
    return part.take(np.full(100, middle)).with_columns(**{over: points})


def _lines(part: Profile, fit: Estimator) -> list[tuple[str, Profile]]:
    """Return rows with the same second input and its value, for a few of many values."""
    second = part.numbers(fit.needs[1])
    values = np.unique(second)
    chosen = values[np.unique(np.linspace(0, len(values) - 1, MANY_LINES).astype(int))]
    return [(f"{value:g}", part.take(np.flatnonzero(second == value))) for value in chosen]


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
    """Draw the curve beside predicted against measured values, above the samples of the rows.

    A notebook shows the figure; it is also written to `path`.

    Raises
    ------
    InputError: for an ending that cannot be drawn, or a place that cannot be written to.
    """
    from matplotlib.figure import Figure

    traces = report.profile.traces
    figure = Figure(figsize=(11, 7 if traces else 4.2), layout="constrained")
    grid = figure.add_gridspec(2 if traces else 1, 2)
    plot_curve(report, figure.add_subplot(grid[0, 0]))
    plot_measured(report, figure.add_subplot(grid[0, 1]))
    if traces:
        plot_samples(report.profile, figure.add_subplot(grid[1, :]))
    title = "\n".join(textwrap.wrap(report.title(), LONGEST))
    figure.suptitle(title, x=0.01, ha="left", fontsize="medium")
    return delivered(figure, path)
