"""Picture of an audit."""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import fill
from typing import TYPE_CHECKING

from optgap.auditing.result import Audit
from optgap.plotting.figures import (
    COLOURS,
    GREY,
    heading,
    legend_below,
    new_figure,
    plain,
    titled,
)
from optgap.plotting.gaps import gaps_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

SIZE = (8.0, 4.4)


def audit_figure(audit: Audit) -> Figure:
    """Draw the saving over the number of moves, or every policy's gap beside ``logged``."""
    if audit.comparison is not None and audit.best_bound is not None:
        return gaps_figure(audit.comparison)
    figure = new_figure(*SIZE)
    ax = figure.subplots()
    if audit.comparison is not None:  # nothing is proven, and the sentence says why
        ax.set_axis_off()
        ax.text(0.5, 0.5, fill(audit.sentence, 70), ha="center", transform=ax.transAxes)
        return figure
    points = audit.curve.points if audit.curve is not None else ()
    columns = ([p.most for p in points], [p.power_w for p in points], [p.bound_w for p in points])
    draw_savings(ax, *columns)
    titled(ax, heading("placement", audit.problem.summary, audit.kind), audit.sentence)
    legend_below(ax, 1)
    return figure


def draw_savings(
    ax: Axes, moves: Sequence[float], power_w: Sequence[float], bound_w: Sequence[float]
) -> None:
    """Draw the savings reached and the most possible, in percent of the power now; no legend."""
    now = power_w[0] or 1.0
    reached = [100 * (now - power) / now for power in power_w]
    most = [100 * (now - bound) / now for bound in bound_w]
    ax.fill_between(
        moves, reached, most, color=GREY, alpha=0.13, linewidth=0,
        label="not proven: between what was found and the bound",
    )  # fmt: skip
    ax.plot(moves, most, "--", color=GREY, linewidth=1.2, label="no plan saves more (proven)")
    ax.plot(moves, reached, "-o", color=COLOURS[0], markersize=5, label="saved by the moves found")
    ax.annotate(
        f"{reached[-1]:.1f} %", (moves[-1], reached[-1]), xytext=(7, 0),
        textcoords="offset points", fontsize=9, va="center", ha="left",
    )  # fmt: skip
    far = moves[-1] > 20
    if far:
        ax.set_xscale("symlog", linthresh=10)
        ticks = [m for m in (0, 1, 2, 5, 10, 100, 1000, 10_000, 100_000) if m <= moves[-1]]
        ax.set_xticks(ticks, [f"{m:,}" for m in ticks], minor=False)
    else:
        from matplotlib.ticker import MaxNLocator

        ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    ax.set_xlim(0, max(1, moves[-1]) * (1.7 if far else 1.12))
    ax.set_ylim(0, max(1.0, ax.get_ylim()[1]))  # what cannot be saved is not blown up
    ax.set_xlabel("migrations, at most")
    ax.set_ylabel("power saved (%)")
    plain(ax, "both")
