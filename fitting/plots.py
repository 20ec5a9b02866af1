"""Pictures of a fit: measured against predicted, residuals, the curve with its band."""

from __future__ import annotations

import os
import textwrap
from typing import TYPE_CHECKING, Any

import numpy as np

from optgap.fitting.estimator import Estimator
from optgap.fitting.profile import QUANTITIES, Profile
from optgap.fitting.uncertainty import interval, samples, unknown
from optgap.models.errors import InputError, NoQuote
from optgap.models.figures import LONGEST, delivered, labelled, save_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from optgap.fitting.report import FitReport

BAND_SAMPLES = 200
MANY_LINES = 6
MANY_SAMPLES = 20_000
MANY_GROUPS = 20
"""With more groups than this, lines share colours and there is no legend."""
LEGEND: dict[str, Any] = {
    "fontsize": "x-small", "title_fontsize": "x-small", "frameon": False, "loc": "upper left",
    "bbox_to_anchor": (1, 1),
}  # fmt: skip
"""A legend beside the axes."""


def _axes(ax: Axes | None) -> Axes:
    from matplotlib.figure import Figure

    return ax or Figure(figsize=(5, 4), layout="constrained").add_subplot()


def _fitted(report: FitReport[Any]) -> Profile:
    """The rows of the groups that were fitted."""
    table: Profile = report.fit.estimator.prepare(report.profile)
    return table.take(report.fit.rows(table))


def _unit(name: str) -> str:
    """A column as an axis names it: ``frequency (MHz)`` for ``frequency_mhz``, ``GPUs``."""
    quantity = QUANTITIES.get(name)
    if quantity is None or quantity.unit.lower() == name:
        return quantity.unit if quantity else name
    return f"{_words(name)} ({quantity.unit})"


def _words(name: str) -> str:
    """``frequency`` for ``frequency_mhz``, ``local batch`` for ``local_batch``."""
    quantity = QUANTITIES.get(name)
    ending = f"_{quantity.unit.lower()}" if quantity else ""
    return name.removesuffix(ending).removesuffix("_percent").replace("_", " ")


def _named(axes: Axes, title: str, over: str, response: str) -> Axes:
    axes.set(xlabel=over, ylabel=response)
    axes.set_title(title, fontsize="medium")
    return axes


def plot_measured(report: FitReport[Any], ax: Axes | None = None) -> Axes:
    """Predicted over measured, held out where the report has it."""
    axes = _axes(ax)
    response = report.fit.estimator.response
    if report.held_out is not None:
        measured, predicted = report.held_out.measured, report.held_out.predicted
    else:
        table = _fitted(report)
        measured, predicted = table.numbers(response), report.fit.predict(table)
    axes.scatter(measured, predicted, s=8, alpha=0.5)
    ends = [min(measured.min(), predicted.min()), max(measured.max(), predicted.max())]
    axes.plot(ends, ends, color="black", linewidth=1)
    if ends[0] > 0 and ends[1] > 30 * ends[0]:
        axes.set(xscale="log", yscale="log")
    title = "the rows fitted to" if report.held_out is None else "rows held out"
    return _named(axes, title, f"measured {_unit(response)}", f"predicted {_unit(response)}")


def plot_residuals(report: FitReport[Any], ax: Axes | None = None) -> Axes:
    """Relative error over the first input, in percent."""
    axes = _axes(ax)
    estimator, table = report.fit.estimator, _fitted(report)
    over = estimator.needs[0]
    error = 100 * (report.fit.predict(table) / table.numbers(estimator.response) - 1)
    axes.scatter(table.numbers(over), error, s=8, alpha=0.5)
    axes.axhline(0, color="black", linewidth=1)
    title = "residuals of the rows fitted to"
    return _named(axes, title, _unit(over), "predicted − measured (%)")


def plot_curve(report: FitReport[Any], ax: Axes | None = None, seed: int = 0) -> Axes:
    """Each group's fitted curve over its first input, with the 90 % band of the parameters.

    A model of one input is drawn on a fine grid, the columns it may use besides held at the
    values of the group's middle row. A model of several is drawn through the rows measured,
    one line per value of its second input: of one group each in a colour of its own, of several
    all in the group's.
    """
    axes = _axes(ax)
    estimator, fits = report.fit.estimator, report.fit.fits
    table, over = _fitted(report), estimator.needs[0]
    rng = np.random.default_rng(seed)
    several, alone = len(estimator.needs) > 1, len(fits) == 1
    for k, (title, rows) in enumerate(table.groups(report.fit.by)):
        fit: Estimator = fits[title]
        part = table.take(rows)
        dots = "0.7" if several else _colour(len(fits), k)
        axes.scatter(part.numbers(over), part.numbers(fit.response), s=8, alpha=0.5, color=dots)
        lines = _lines(part, fit) if several else [(title, _grid(part, over))]
        drawn = [] if unknown(fit) else samples(fit, BAND_SAMPLES, rng)
        for number, (name, line) in enumerate(lines):
            colour = _colour(len(fits), number if several and alone else k)
            shown = name if alone else title if number == len(lines) - 1 else ""  # each once
            curves = [fit.predict(line), *(interval(drawn, line) if drawn else ())]
            # the mean at each distinct place: placements of the same GPUs, say
            places, index = np.unique(line.numbers(over), return_inverse=True)
            middle, *band = (np.bincount(index, v) / np.bincount(index) for v in curves)
            axes.plot(places, middle, color=colour, label=labelled(shown) if shown else None)
            if band:
                axes.fill_between(places, band[0], band[1], color=colour, alpha=0.2, linewidth=0)
    handles, names = axes.get_legend_handles_labels()
    if handles and len(fits) <= MANY_GROUPS:  # in the order in which the lines end
        order = np.argsort([float(line.get_ydata()[-1]) for line in handles])[::-1]  # type: ignore[attr-defined]  # lines
        axes.legend(
            [handles[k] for k in order], [names[k] for k in order], **LEGEND,
            title=_words(estimator.needs[1]) if several and alone else report.fit.by,
        )  # fmt: skip
    return _named(axes, "fitted, with its 90 % band", _unit(over), _unit(estimator.response))


def _colour(many: int, k: int) -> Any:
    from matplotlib import colormaps

    colours = colormaps["tab10" if many <= 10 else "tab20"]
    return colours(k % colours.N)


def _grid(part: Profile, over: str) -> Profile:
    """A hundred points over one input, everything else as in its middle row."""
    values = part.numbers(over)
    middle = int(np.argsort(values, kind="stable")[len(values) // 2])
    points = np.linspace(values.min(), values.max(), 100)
    return part.take(np.full(100, middle)).with_columns(**{over: points})


def _lines(part: Profile, fit: Estimator) -> list[tuple[str, Profile]]:
    """Rows with the same second input, and its value; a few values out of many."""
    second = part.numbers(fit.needs[1])
    values = np.unique(second)
    chosen = values[np.unique(np.linspace(0, len(values) - 1, MANY_LINES).astype(int))]
    return [(f"{value:g}", part.take(np.flatnonzero(second == value))) for value in chosen]


def _title(report: FitReport[Any]) -> str:
    """The model, what it predicts, how many rows and groups, and the error."""
    fit, overall = report.fit, report.overall()
    over = ", ".join(_unit(name) for name in fit.estimator.needs)
    words = f"{fit.estimator.name}: {_unit(fit.estimator.response)} over {over}"
    words += f"; {overall['n']:,} rows"
    words += f" in {len(fit.fits)} groups by {fit.by}" if len(fit.fits) > 1 else ""
    words += f"; mean error {100 * (overall['mape'] or 0.0):.1f} %"
    held = overall["cv_mape"]
    return words if held is None else f"{words}, held out {100 * held:.1f} %"


def plot_samples(profile: Profile, ax: Axes | None = None) -> Axes:
    """Power over time of each device, with its runs marked."""
    axes = _axes(ax)
    many = len(profile.traces)
    for k, trace in enumerate(profile.traces):
        colour = _colour(many, k)
        every = max(1, len(trace.times) // MANY_SAMPLES)
        axes.plot(trace.times[::every], trace.power_w[::every], color=colour, linewidth=0.8,
                  label=labelled(f"GPU {trace.device}"))  # fmt: skip
        for start, stop in trace.runs:
            axes.axvspan(trace.times[start], trace.times[stop - 1], color=colour, alpha=0.15)
    runs = sum(len(trace.runs) for trace in profile.traces)
    if 1 < many <= MANY_GROUPS:
        axes.legend(**LEGEND)
    title = f"samples, and the {runs} runs cut from them"
    return _named(axes, title, "time (s)", _unit("power_w"))


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
    save_figure(path, figure)


def drawn_report(report: FitReport[Any], path: str | os.PathLike[str] | None = None) -> Figure:
    """The three pictures side by side, above the samples that the rows were cut from.

    A notebook shows them without further ado; they are written to `path`, too.

    Raises
    ------
    InputError: for an ending that cannot be drawn, or a place that cannot be written to.
    """
    from matplotlib.figure import Figure

    traces = report.profile.traces
    figure = Figure(figsize=(14, 7 if traces else 4.2), layout="constrained")
    grid = figure.add_gridspec(2 if traces else 1, 3)
    for k, plot in enumerate((plot_curve, plot_measured, plot_residuals)):
        plot(report, figure.add_subplot(grid[0, k]))
    if traces:
        plot_samples(report.profile, figure.add_subplot(grid[1, :]))
    title = "\n".join(textwrap.wrap(_title(report), LONGEST))
    figure.suptitle(title, x=0.01, ha="left", fontsize="medium")
    return delivered(figure, path)
