"""The picture of an overview: the gaps of every family, side by side."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from optgap.comparing.comparison import Comparison
from optgap.plotting.figures import new_figure
from optgap.plotting.gaps import meanings, plot_gaps

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

LEGEND = 2.4
"""Inches that the explanation of all panels takes."""


def overview_figure(comparisons: Sequence[Comparison]) -> Figure:
    """One panel per comparison in two columns, and below the shorter one what the marks mean.

    Panels are as tall as they have rows, and columns are stretched to the same height.
    """
    heights = [*(_height(comparison) for comparison in comparisons), LEGEND]
    columns = _columns(heights, 2 if len(comparisons) > 1 else 1)
    tall = max(sum(heights[k] for k in column) for column in columns)
    figure = new_figure(7.2 * len(columns), tall)
    grids = figure.subfigures(1, len(columns), squeeze=False)[0]
    drawn: list[Axes] = []
    for place, column in zip(grids, columns, strict=True):
        ratios = [heights[k] for k in column]
        panels = place.subplots(len(ratios), 1, squeeze=False, height_ratios=ratios)[:, 0]
        for k, panel in zip(column, panels, strict=True):
            if k < len(comparisons):
                drawn.append(plot_gaps(comparisons[k], panel))
            else:
                last = panel
    _explain(last, drawn)
    return figure


def _explain(ax: Axes, panels: Sequence[Axes]) -> None:
    """What the marks of all panels mean, on an axes of its own."""
    ax.axis("off")
    found = meanings(panels)
    ax.legend(
        found.values(), found, loc="upper left", bbox_to_anchor=(0.0, 0.95), frameon=False,
        fontsize=10, title=READING, title_fontsize=10, alignment="left",
    )  # fmt: skip


READING = (
    "0 is a proven bound: no solution is below it.\n"
    "A dot is at most so far from optimal; right of the\n"
    "dashed line it is proven not to be optimal.\n"
)


def _height(comparison: Comparison) -> float:
    """Inches."""
    return 1.4 + 0.26 * sum(row.gap_to_bound is not None for row in comparison.rows)


def _columns(heights: Sequence[float], count: int) -> list[list[int]]:
    """Panels by column, the tallest first into the shortest column, the last one at an end."""
    columns: list[list[int]] = [[] for _ in range(count)]
    filled = [0.0] * count
    for k in [*sorted(range(len(heights) - 1), key=lambda k: -heights[k]), len(heights) - 1]:
        place = filled.index(min(filled))
        columns[place].append(k)
        filled[place] += heights[k]
    return [sorted(column) for column in columns]
