"""The picture of an audit."""

from __future__ import annotations

from typing import TYPE_CHECKING

from optgap.auditing.result import Audit
from optgap.plotting.figures import axes_or_new, heading, legend_below, new_figure, titled
from optgap.plotting.gaps import gaps_figure, plot_gaps
from optgap.reporting.charts import draw_savings

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

SIZE = (8.0, 4.4)


def plot_audit(audit: Audit, ax: Axes | None = None) -> Axes:
    """Draw the saving over the number of moves, or every policy's gap beside ``logged``.

    Parameters
    ----------
    ax: where to draw; a new figure without it.
    """
    if audit.comparison is not None:
        return plot_gaps(audit.comparison, ax)
    own = ax is None
    ax = axes_or_new(ax, *SIZE)
    _curve(audit, ax)
    if own:
        legend_below(ax, 1)
    return ax


def audit_figure(audit: Audit) -> Figure:
    """The picture as a figure of its own, without touching pyplot's state."""
    if audit.comparison is not None:
        return gaps_figure(audit.comparison)
    figure = new_figure(*SIZE)
    legend_below(plot_audit(audit, figure.subplots()), 1)
    return figure


def _curve(audit: Audit, ax: Axes) -> None:
    points = audit.curve.points if audit.curve is not None else ()
    draw_savings(
        ax,
        [point.most for point in points],
        [point.power_w for point in points],
        [point.bound_w for point in points],
    )
    titled(ax, heading("placement", audit.problem.summary, audit.kind), audit.sentence)
