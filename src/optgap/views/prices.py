"""What a GPU and a kilowatt are worth over a schedule of the elastic family."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from optgap.plotting.figures import COLOURS, axes_or_new, heading, new_figure, plain, titled
from optgap.solvers.elastic.worth import Worth
from optgap.solvers.elastic.worth import worth as worth_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from optgap.models.elastic import ElasticProblem, ElasticSolution


def draw(problem: ElasticProblem, solution: ElasticSolution) -> Figure:
    """Both prices over a schedule, as a figure."""
    figure = new_figure(8.0, 3.4)
    ax = figure.subplots()
    titled(ax, heading(problem.family, problem.summary))
    plot_prices(worth_of(problem, solution), ax)
    return figure


def plot_prices(worth: Worth, ax: Axes | None = None) -> Axes:
    """Draw both prices over time, in s that the jobs then there would save together.

    Parameters
    ----------
    ax: where to draw; a new figure without it.
    """
    ax = axes_or_new(ax, 8.0, 3.1)
    curves = ((worth.kilowatt_s, "another kW"), (worth.gpu_s, "another GPU"))
    for colour, (values, name) in zip(COLOURS, curves, strict=False):
        shown = np.where(values > 0, values, np.nan)
        label = name if values.any() else f"{name}: never short"
        ax.plot(worth.time_s / 3600, shown, marker=".", color=colour, label=label)
    ax.set_yscale("log")
    ax.set_xlabel("time (h)")
    ax.set_ylabel("would save (s)")
    ax.legend(frameon=False)
    plain(ax, "both")
    return ax
