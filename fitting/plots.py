"""Pictures of a fit: measured against predicted, residuals, the curve with its band."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from optgap.fitting.estimator import Estimator
from optgap.fitting.optimise import Floats
from optgap.fitting.profile import QUANTITIES, Profile
from optgap.fitting.report import FitReport
from optgap.fitting.uncertainty import interval, samples
from optgap.models.errors import InputError
from optgap.models.figures import image, labelled
from optgap.models.jsonio import write_bytes

if TYPE_CHECKING:
    from matplotlib.axes import Axes

BAND_SAMPLES = 200
MANY_LINES = 6
MANY_GROUPS = 20
"""With more groups than this, lines share colours and there is no legend."""


def _axes(ax: Axes | None) -> Axes:
    if ax is not None:
        return ax
    from matplotlib.figure import Figure

    return Figure(figsize=(5, 4), layout="constrained").add_subplot()


def _fitted(report: FitReport[Any]) -> Profile:
    """The rows of the groups that were fitted."""
    table: Profile = report.fit.estimator.prepare(report.profile)
    return table.take(report.fit.rows(table))


def _unit(name: str) -> str:
    quantity = QUANTITIES.get(name)
    return f"{name} ({quantity.unit})" if quantity else name


def plot_measured(report: FitReport[Any], ax: Axes | None = None) -> Axes:
    """Predicted over measured, held out where the report has it."""
    axes = _axes(ax)
    estimator = report.fit.estimator
    if report.held_out is not None:
        measured, predicted = report.held_out.measured, report.held_out.predicted
        title = "held out"
    else:
        table = _fitted(report)
        measured, predicted = table.numbers(estimator.response), report.fit.predict(table)
        title = "in sample"
    axes.scatter(measured, predicted, s=8, alpha=0.5)
    ends = [min(measured.min(), predicted.min()), max(measured.max(), predicted.max())]
    axes.plot(ends, ends, color="black", linewidth=1)
    if ends[0] > 0 and ends[1] > 30 * ends[0]:
        axes.set_xscale("log")
        axes.set_yscale("log")
    axes.set_xlabel(f"measured {_unit(estimator.response)}")
    axes.set_ylabel(f"predicted {_unit(estimator.response)}")
    axes.set_title(title, fontsize="medium")
    return axes


def plot_residuals(report: FitReport[Any], ax: Axes | None = None) -> Axes:
    """Relative error over the first input, in percent."""
    axes = _axes(ax)
    estimator = report.fit.estimator
    table = _fitted(report)
    over = estimator.needs[0]
    measured = table.numbers(estimator.response)
    error = 100 * (report.fit.predict(table) / measured - 1)
    axes.scatter(table.numbers(over), error, s=8, alpha=0.5)
    axes.axhline(0, color="black", linewidth=1)
    axes.set_xlabel(_unit(over))
    axes.set_ylabel("predicted − measured (%)")
    return axes


def plot_curve(report: FitReport[Any], ax: Axes | None = None, seed: int = 0) -> Axes:
    """Each group's fitted curve over its first input, with the 90 % band of the parameters.

    A model of one input is drawn on a fine grid, the columns it may use besides held at the
    values of the group's middle row. A model of several is drawn through the rows measured,
    one line per value of its second input.
    """
    axes = _axes(ax)
    estimator = report.fit.estimator
    table = _fitted(report)
    rng = np.random.default_rng(seed)
    palette = "tab10" if len(report.fit.fits) <= 10 else "tab20"
    for k, (title, rows) in enumerate(table.groups(report.fit.by)):
        fit: Estimator = report.fit.fits[title]
        part = table.take(rows)
        over = part.numbers(estimator.needs[0])
        several = len(fit.needs) > 1
        dots = "0.7" if several else _colour(palette, k)
        axes.scatter(over, part.numbers(fit.response), s=8, alpha=0.5, color=dots)
        lines = _lines(part, fit) if several else [(title, _grid(part, estimator.needs[0]))]
        drawn = samples(fit, BAND_SAMPLES, rng)
        for number, (name, line) in enumerate(lines):
            colour = _colour(palette, k + number)
            shown = name if k < MANY_GROUPS and name else None
            low, high = interval(drawn, line)
            places, middle = _by_place(line.numbers(fit.needs[0]), fit.predict(line))
            axes.plot(places, middle, color=colour, label=shown and labelled(shown))
            bottom = _by_place(line.numbers(fit.needs[0]), low)[1]
            top = _by_place(line.numbers(fit.needs[0]), high)[1]
            axes.fill_between(places, bottom, top, color=colour, alpha=0.2, linewidth=0)
    axes.set_xlabel(_unit(estimator.needs[0]))
    axes.set_ylabel(_unit(estimator.response))
    if axes.get_legend_handles_labels()[1] and len(report.fit.fits) <= MANY_GROUPS:
        _legend(axes)
    return axes


def _colour(palette: str, k: int) -> Any:
    from matplotlib import colormaps

    colours = colormaps[palette]
    return colours(k % colours.N)


def _legend(axes: Axes) -> None:
    """Beside the axes, in the order in which the lines end."""
    handles, names = axes.get_legend_handles_labels()
    lines: list[Any] = list(handles)
    ends = [float(line.get_ydata()[-1]) for line in lines]
    order = np.argsort(ends)[::-1]
    axes.legend(
        [handles[k] for k in order],
        [names[k] for k in order],
        fontsize="x-small",
        frameon=False,
        loc="upper left",
        bbox_to_anchor=(1, 1),
    )


def _grid(part: Profile, over: str) -> Profile:
    """A hundred points over one input, everything else as in its middle row."""
    values = part.numbers(over)
    points = np.linspace(values.min(), values.max(), 100)
    middle = int(np.argsort(values, kind="stable")[len(values) // 2])
    columns = {
        name: np.repeat(column[middle : middle + 1], 100) for name, column in part.columns.items()
    }
    return Profile({**columns, over: points}, part.source)


def _by_place(places: Floats, values: Floats) -> tuple[Floats, Floats]:
    """The mean value at each distinct place (placements of the same GPUs, say)."""
    distinct, index = np.unique(places, return_inverse=True)
    return distinct, np.bincount(index, weights=values) / np.bincount(index)


def _lines(part: Profile, fit: Estimator) -> list[tuple[str, Profile]]:
    """Rows with the same second input, and its value; a few values out of many."""
    second = part.numbers(fit.needs[1])
    values = np.unique(second)
    chosen = values[np.unique(np.linspace(0, len(values) - 1, MANY_LINES).astype(int))]
    found = []
    for value in chosen:
        rows = np.flatnonzero(second == value)
        found.append((f"{fit.needs[1]} {value:g}", part.take(rows)))
    return found


ENDINGS = ("png", "pdf", "svg", "jpg", "jpeg")


def require_ending(path: str | os.PathLike[str]) -> None:
    """Refuse a picture that cannot be drawn before anything is fitted.

    Raises
    ------
    InputError: for an ending other than `ENDINGS`.
    """
    ending = Path(path).suffix.lstrip(".").lower()
    if ending not in ENDINGS:
        raise InputError(str(path), "", ending, "an ending like png, pdf or svg")


def save_plot(path: str | os.PathLike[str], report: FitReport[Any]) -> None:
    """The three pictures side by side, as PNG, PDF or SVG by the file's ending.

    Raises
    ------
    InputError: for an ending that cannot be drawn.
    """
    from matplotlib.figure import Figure

    require_ending(path)
    figure = Figure(figsize=(14, 4.2), layout="constrained")
    left, middle, right = figure.subplots(1, 3)
    plot_curve(report, left)
    plot_measured(report, middle)
    plot_residuals(report, right)
    figure.suptitle(report.fit.estimator.name)
    write_bytes(path, image(figure, Path(path).suffix.lstrip(".").lower(), dpi=110))
