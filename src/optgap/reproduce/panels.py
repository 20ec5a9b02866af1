"""What reports show: one set of axes each, and the ones whose curves are over load."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np

from optgap.models.placement.arrays import FloatArray
from optgap.plotting.figures import end_labels, plain

if TYPE_CHECKING:
    from matplotlib.axes import Axes

INK = "#000000"
X_LABEL = "GPU demand arrived (% of the cluster's GPUs)"


@dataclass(frozen=True, eq=False)
class Line:
    """One curve.

    Parameters
    ----------
    label: its name, written at its right end.
    load: (X,) share of capacity.
    mean: (X,) what is drawn; NaN where there is nothing.
    std: (X,) half-width of the band around it; NaN for none.
    colour, dash, width: how; dash is a matplotlib line style. Thin ones lie on top.
    """

    label: str
    load: FloatArray
    mean: FloatArray
    std: FloatArray
    colour: str
    dash: str = "-"
    width: float = 1.6


@dataclass(frozen=True, slots=True)
class Mark:
    """What the paper states, as a dotted segment from load `low` to load `high` at `y`."""

    low: float
    high: float
    y: float


@dataclass(frozen=True)
class Panel:
    """One set of axes: its title, and what its vertical axis is, with the unit."""

    SIZE: ClassVar[tuple[float, float]] = (8.0, 4.2)
    """Width and height in inches, where nothing is beside it."""

    title: str
    y_label: str

    def to_json(self) -> Mapping[str, Any]:
        """What is shown, as lists."""
        raise NotImplementedError

    def draw(self, ax: Axes) -> None:
        """Draw it on these axes."""
        raise NotImplementedError


@dataclass(frozen=True)
class LoadPanel(Panel):
    """Curves over load.

    Parameters
    ----------
    note: above it, below the title.
    lines: the curves; with kind ``stack``, areas on top of one another, bottom first.
    x_range: loads at both ends.
    y_range: values at both ends; None to fit.
    marks: what the paper states.
    right: curves against the right axis, which `right_label` names and `right_range` bounds.
    """

    lines: tuple[Line, ...]
    note: str = ""
    x_range: tuple[float, float] = (0.0, 1.0)
    y_range: tuple[float, float] | None = None
    marks: tuple[Mark, ...] = ()
    kind: Literal["lines", "stack"] = "lines"
    right: tuple[Line, ...] = ()
    right_label: str = ""
    right_range: tuple[float, float] | None = None

    def to_json(self) -> Mapping[str, Any]:
        """The curves as lists."""
        return {
            "title": self.title,
            "y_label": self.y_label,
            "curves": [
                {"label": c.label, "load": c.load, "mean": c.mean, "std": c.std}
                for c in (*self.lines, *self.right)
            ],
        }

    def draw(self, ax: Axes) -> None:
        """Lines with their spread, or areas on top of one another."""
        _draw(self, ax)


def _draw(panel: LoadPanel, ax: Axes) -> None:
    words = "\n".join(filter(None, (panel.title, panel.note)))
    ax.set_title(words, loc="left", fontsize=9.5)
    ax.set_xlabel(X_LABEL)
    ax.set_ylabel(panel.y_label)
    ax.set_xlim(100 * panel.x_range[0], 100 * panel.x_range[1])
    plain(ax, "both")
    if panel.kind == "stack":
        _stack(panel, ax)
        return
    ends = []
    for line in panel.lines:
        shown = (line.load >= panel.x_range[0]) & (line.load <= panel.x_range[1])
        x, y, std = 100 * line.load[shown], line.mean[shown], line.std[shown]
        ax.plot(
            x,
            y,
            color=line.colour,
            linestyle=line.dash,
            linewidth=line.width,
            zorder=5 - line.width,
        )
        if np.isfinite(std).any():
            ax.fill_between(x, y - std, y + std, color=line.colour, alpha=0.13, linewidth=0)
        ends.append((float(y[-1]), float(x[-1]), line.label, line.colour))
    if panel.y_range is not None:
        ax.set_ylim(*panel.y_range)
    for mark in panel.marks:
        ax.hlines(
            mark.y,
            100 * mark.low,
            100 * mark.high,
            color=INK,
            linestyle=":",
            linewidth=1.8,
            zorder=6,
        )
    end_labels(ends, ax)


def _stack(panel: LoadPanel, ax: Axes) -> None:
    """Areas with their names inside, and the curves of the right axis."""
    base = np.zeros(len(panel.lines[0].mean))
    for line in panel.lines:
        top = base + line.mean
        ax.fill_between(100 * line.load, base, top, color=line.colour, alpha=0.75, linewidth=0)
        k = round(0.8 * (len(top) - 1))
        middle = float(base[k] + top[k]) / 2
        ax.text(100 * line.load[k], middle, line.label, ha="center", va="center")
        base = top
    if panel.y_range is not None:
        ax.set_ylim(*panel.y_range)
    if not panel.right:
        return
    twin = ax.twinx()
    twin.spines[["top"]].set_visible(False)
    twin.set_ylabel(panel.right_label)
    if panel.right_range is not None:
        twin.set_ylim(*panel.right_range)
    for line in panel.right:
        twin.plot(100 * line.load, line.mean, color=line.colour, linestyle=line.dash, linewidth=1.6)
        k = round(0.3 * (len(line.mean) - 1))
        twin.annotate(
            line.label,
            (100 * line.load[k], line.mean[k]),
            xytext=(0, 6),
            textcoords="offset points",
            ha="center",
            color=line.colour,
            fontsize=9,
        )
