"""What a GPU and a kilowatt are worth over a schedule of the elastic family."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from optgap.plotting.figures import COLOURS, plain
from optgap.solvers.elastic.worth import Worth

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def plot_prices(worth: Worth, ax: Axes | None = None) -> Axes:
    """Draw both prices over time, in s that the jobs then there would save together.

    Parameters
    ----------
    ax: where to draw; a new figure without it.
    """
    if ax is None:
        from matplotlib import pyplot

        _, ax = pyplot.subplots(figsize=(8.0, 3.1), layout="constrained")
    curves = ((worth.kilowatt_s, "another kW"), (worth.gpu_s, "another GPU"))
    for colour, (values, name) in zip(COLOURS, curves, strict=False):
        shown = np.where(values > 0, values, np.nan)
        ax.plot(worth.time_s / 3600, shown, marker=".", color=colour, label=name)
    ax.set_yscale("log")
    ax.set_xlabel("time (h)")
    ax.set_ylabel("would save (s)")
    ax.legend(frameon=False)
    plain(ax, "both")
    return ax
