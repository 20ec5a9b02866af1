"""Pictures of gaps: data in, axes drawn on."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from optgap.comparison import PART, PART_NOTE, Comparison, ComparisonSet
from optgap.models.errors import InputError
from optgap.models.figures import image
from optgap.models.jsonio import write_bytes
from optgap.models.result import Status
from optgap.render import number

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Okabe and Ito's colours, told apart with any colour vision; yellow is too pale for a line.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*", "<", ">")
GREY = "#666666"
WIDEST = 1e9
"""Percent: a gap that is larger is drawn there."""


def plot_gaps(comparison: Comparison | ComparisonSet, ax: Axes | None = None) -> Axes:
    """Draw gaps to the best proven bound, in percent.

    One comparison gives one dot per policy or method, sorted, with its value beside it; a set
    gives one line per policy over the parameter's values, labelled at its end. Hollow marks
    are gaps against a bound for the accepted part alone.

    Parameters
    ----------
    ax: where to draw; a new figure without it.
    """
    if ax is None:
        from matplotlib import pyplot

        _, ax = pyplot.subplots(figsize=figure_size(comparison), layout="constrained")
    if isinstance(comparison, ComparisonSet):
        return _lines(comparison, ax)
    return _dots(comparison, ax)


def figure_size(comparison: Comparison | ComparisonSet) -> tuple[float, float]:
    """Width and height in inches that give every label room."""
    if isinstance(comparison, ComparisonSet):
        return 8.0, max(4.5, 0.32 * len(comparison.methods))
    return 8.0, 1.6 + 0.32 * len(comparison.rows)


def gaps_png(comparison: Comparison | ComparisonSet) -> bytes:
    """The picture as a PNG file, without touching pyplot's state."""
    return png(gaps_figure(comparison))


def gaps_figure(comparison: Comparison | ComparisonSet) -> Figure:
    """The picture as a figure of its own, without touching pyplot's state."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=figure_size(comparison), layout="constrained")
    plot_gaps(comparison, figure.subplots())
    return figure


ENDINGS = (".png", ".svg", ".pdf")


def require_ending(path: str | os.PathLike[str] | None) -> None:
    """Refuse a picture that cannot be drawn, before any work goes into it.

    Raises
    ------
    InputError: for a name with another ending than `ENDINGS`.
    """
    if path is not None and Path(path).suffix.lower() not in ENDINGS:
        expected = "a file that ends in " + ", ".join(ENDINGS[:-1]) + f" or {ENDINGS[-1]}"
        raise InputError("--plot", "", str(path), expected)


def save_figure(path: str | os.PathLike[str], figure: Figure) -> None:
    """Write a figure as PNG, SVG or PDF, by the file's ending, in one step.

    Raises
    ------
    InputError: for another ending, or a place that cannot be written to.
    """
    require_ending(path)
    write_bytes(path, image(figure, Path(path).suffix.lower().removeprefix(".")))


def png(figure: Figure) -> bytes:
    """A figure as a PNG file."""
    return image(figure, "png")


def _dots(comparison: Comparison, ax: Axes) -> Axes:
    rows = [row for row in comparison.rows if row.gap_to_bound is not None]
    # what is about a part stands below the others, not among them
    rows.sort(key=lambda row: (not row.partial, -(row.gap_to_bound or 0.0)))
    for place, row in enumerate(rows):
        gap = _percent(row.gap_to_bound)
        proven = row.result.status is Status.OPTIMAL
        colour = COLOURS[2] if proven else COLOURS[0 if row.result.kind == "policy" else 1]
        ax.hlines(place, 0, gap, color=colour, linewidth=1, alpha=0.5)
        hollow = row.partial
        face = "white" if hollow else colour
        ax.plot(
            [gap], [place], "o", color=colour, markerfacecolor=face, markersize=7,
            clip_on=False, zorder=3,
        )  # fmt: skip
        text = f"{gap:.2f} %" + (", proven optimal" if proven else "")
        text += f", {PART}" if hollow else ""
        ax.annotate(
            text, (gap, place), xytext=(8, 0), textcoords="offset points", va="center", fontsize=9
        )
    below = sum(row.partial for row in rows)
    if 0 < below < len(rows):
        ax.axhline(below - 0.5, color=GREY, linewidth=0.8, linestyle=":")
    ax.set_yticks(range(len(rows)), [row.label for row in rows])
    ax.set_ylim(-0.7, max(0.3, len(rows) - 0.3))
    widest = max((_percent(row.gap_to_bound) for row in rows), default=0.0)
    ax.set_xlim(0, 1.4 * widest or 1.0)  # room for the words beside the last dot
    bound = comparison.best_bound
    which = "" if bound is None else f", {number(bound)} {comparison.unit}"
    ax.set_xlabel(f"gap to the best proven bound{which} (%)")
    ax.set_title(comparison.problem_name, loc="left", fontsize=10)
    plain(ax, "x")
    return ax


def _lines(comparisons: ComparisonSet, ax: Axes) -> Axes:
    numeric = all(isinstance(value, (int, float)) for value in comparisons.values)
    places: Sequence[Any] = comparisons.values if numeric else range(len(comparisons.values))
    ends: list[tuple[float, float, str, str]] = []
    for k, method in enumerate(comparisons.measured):
        points = [
            (x, _percent(gap))
            for x, gap in zip(places, comparisons.gaps(method), strict=True)
            if gap is not None
        ]
        if not points:
            continue
        colour = COLOURS[k % len(COLOURS)]
        xs, ys = zip(*points, strict=True)
        ax.plot(xs, ys, color=colour, linewidth=1.5, linestyle="-" if k < len(COLOURS) else "--")
        _marks(comparisons, method, places, colour, MARKERS[k % len(MARKERS)], ax)
        ends.append((float(ys[-1]), float(xs[-1]), method, colour))
    if not numeric:
        ax.set_xticks(places, [str(value) for value in comparisons.values])
    elif len(places) <= 8:
        ax.set_xticks(places)
    ax.set_xlabel(comparisons.parameter)
    ax.set_ylabel("gap to the best proven bound (%)")
    ax.set_ylim(bottom=0)
    if any(row.partial for c in comparisons.comparisons for row in c.rows):
        ax.set_title(f"hollow: {PART_NOTE}", fontsize=9)
    plain(ax, "both")
    end_labels(ends, ax)
    return ax


def _marks(
    comparisons: ComparisonSet,
    method: str,
    places: Sequence[Any],
    colour: str,
    marker: str,
    ax: Axes,
) -> None:
    for x, comparison in zip(places, comparisons.comparisons, strict=True):
        for row in comparison.rows:
            if row.result.method == method and row.gap_to_bound is not None:
                face = "white" if row.partial else colour
                y = _percent(row.gap_to_bound)
                ax.plot([x], [y], marker, color=colour, markerfacecolor=face, markersize=6)


def _percent(gap: float | None) -> float:
    """A gap in percent, where an axis can still show it."""
    return min(100 * (gap or 0.0), WIDEST)


def end_labels(ends: list[tuple[float, float, str, str]], ax: Axes) -> None:
    """Names at the ends of lines, pushed apart where they would overlap."""
    if not ends:
        return
    low, high = ax.get_ylim()
    step = (high - low) / 26
    right = max(end[1] for end in ends)
    ends = sorted(ends)
    places = _apart([end[0] for end in ends], step)
    for (y, x, method, colour), place in zip(ends, places, strict=True):
        ax.annotate(
            method,
            xy=(x, y),
            xytext=(1.03, place),
            textcoords=("axes fraction", "data"),
            color=colour,
            fontsize=9,
            va="center",
            annotation_clip=False,
            arrowprops=_leader(colour) if x < right or abs(place - y) > step / 2 else None,
        )


def _leader(colour: str) -> dict[str, Any]:
    # from the left edge of the words, not through them
    return {"arrowstyle": "-", "color": colour, "linewidth": 0.6, "alpha": 0.6, "relpos": (0, 0.5)}


def _apart(values: list[float], step: float) -> list[float]:
    """The places closest to ascending `values` that are at least `step` apart.

    Neighbours that are too close move apart as one block around their mean.
    """
    blocks: list[tuple[float, int]] = []  # mean of value − rank × step, and how many
    for rank, value in enumerate(values):
        mean, size = value - rank * step, 1
        while blocks and blocks[-1][0] >= mean:
            before, count = blocks.pop()
            mean, size = (before * count + mean * size) / (count + size), count + size
        blocks.append((mean, size))
    levels = [mean for mean, size in blocks for _ in range(size)]
    return [level + rank * step for rank, level in enumerate(levels)]


def plain(ax: Axes, axis: Literal["x", "both"]) -> None:
    ax.spines[["top", "right"]].set_visible(False)
    ax.grid(axis=axis, color=GREY, alpha=0.15)
    ax.set_axisbelow(True)
