"""Parts that all pictures share: colours, titles and legends."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from optgap.models.figures import (
    LONGEST,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Okabe and Ito's colours, told apart with any colour vision; yellow is too pale for a line.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*", "<", ">")
GREY = "#666666"
FILLS = ("#8ecae6", "#ffd6a5", "#b7e4c7", "#e0bbe4", "#fdffb6", "#f4acb7", "#cfd8dc", "#d9c7a3")
EDGE, IDLE = "#555555", "#f4f4f4"
"""Colours of the edge of boxes that stand for work, and of the background behind them."""


def new_figure(width: float, height: float) -> Figure:
    """Return an empty figure of this size in inches; pyplot's state stays as it is."""
    from matplotlib.figure import Figure as NewFigure

    return NewFigure(figsize=(width, height), layout="constrained")


LETTERS = 10.4
"""Letters of a title per inch of a figure, with room for names of `NAMES` letters beside it."""
NAMES = 20


LEGEND_LETTERS = 13.0
"""Letters of a legend, which is smaller, per inch of a figure."""


def titled(ax: Axes, *lines: str, beside: int = 0) -> None:
    """Write a title on the left, in lines that the figure has room for.

    Parameters
    ----------
    beside: letters of the longest name on the left of the axes.
    """
    figure: Any = ax.figure  # a part of one, maybe
    room = int(LETTERS * figure.bbox.width / figure.dpi) - max(0, beside - NAMES)
    width = max(NAMES, min(LONGEST, room))
    ax.set_title(wrapped(*lines, width=width), loc="left", fontsize=9.5)


def headed(figure: Figure, *lines: str) -> None:
    """Write a title above all of a figure's axes."""
    figure.suptitle(wrapped(*lines), fontsize=9.5, x=0.01, ha="left")


def wrapped(*lines: str, width: int = LONGEST) -> str:
    """Wrap lines to at most `width` characters."""
    return "\n".join(part for line in lines for part in textwrap.wrap(line, width))


def heading(family: str, summary: str, by: str = "") -> str:
    """Return a title: the family, the policy or method, and the sizes in a problem's summary."""
    sizes = summary.partition("; ")[0]
    return f"{family}, {by}: {sizes}" if by else f"{family}: {sizes}"


def aim(summary: str) -> str:
    """Return the objective with its unit from a problem's summary: ``minimise power (W)``."""
    return summary.partition("; ")[2].partition("; ")[0]


def legend_below(ax: Axes, columns: int = 3, marks: Mapping[str, Any] | None = None) -> None:
    """Draw a legend of `marks`, or of an axes' labelled ones, below the figure.

    The legend has so many columns, or fewer where the figure is too narrow for them.
    """
    found = labelled([ax]) if marks is None else marks
    figure: Any = ax.get_figure()
    if found and figure is not None:
        room = LEGEND_LETTERS * figure.get_figwidth()
        while columns > 1 and _letters(list(found), columns) > room:
            columns -= 1
        figure.legend(
            found.values(), found, loc="outside lower center", ncols=columns, frameon=False,
            fontsize=9,
        )  # fmt: skip


def _letters(names: list[str], columns: int) -> int:
    """Return the width of a legend in letters; a mark and its margin count 6."""
    parts = np.array_split(np.array([len(name) for name in names]), min(columns, len(names)))
    return sum(int(part.max()) + 6 for part in parts)


def labelled(panels: Iterable[Axes]) -> dict[str, Any]:
    """Return the labelled marks of some axes, each label once."""
    found: dict[str, Any] = {}
    for ax in panels:
        handles, names = ax.get_legend_handles_labels()
        found |= dict(zip(names, handles, strict=True))
    return found


def twin_steps(ax: Axes, x: Any, left: Any, right: Any, *, labels: tuple[str, str]) -> None:
    """Draw two curves that stay as they are from each x to the next, against two axes."""
    widths = (1.8, 0.9)  # both are seen where one covers the other
    for on, values, label, colour, width in zip(
        (ax, ax.twinx()), (left, right), labels, COLOURS[:2], widths, strict=True
    ):
        on.step(x, values, where="post", color=colour, linewidth=width)
        on.set_ylabel(label, color=colour)
        on.set_ylim(bottom=0)
    plain(ax, "both")


def plain(ax: Axes, axis: Literal["x", "both"]) -> None:
    ax.spines[["top", "right"]].set_visible(False)
    ax.grid(axis=axis, color=GREY, alpha=0.15)
    ax.set_axisbelow(True)
