"""Curves with axes of their own as the picture of a report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from optgap.plotting.figures import COLOURS, MARKERS, plain
from optgap.reproduce.panels import Panel
from optgap.reproduce.report import Report

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class Curve:
    """One named curve; a single point is a mark."""

    label: str
    x: Sequence[float]
    y: Sequence[float]
    step: bool = False


@dataclass(frozen=True)
class Chart(Panel):
    """Curves over `x_label`; on a logarithmic axis beyond `linear_to`, where that is given."""

    x_label: str = ""
    curves: tuple[Curve, ...] = ()
    linear_to: float | None = None

    def to_json(self) -> Mapping[str, Any]:
        """The curves as lists."""
        return {
            "title": self.title,
            "x_label": self.x_label,
            "y_label": self.y_label,
            "curves": [{"label": c.label, "x": list(c.x), "y": list(c.y)} for c in self.curves],
        }


def chart(
    title: str,
    x_label: str,
    y_label: str,
    curves: Sequence[Curve],
    linear_to: float | None = None,
) -> Chart:
    """One set of axes."""
    own = tuple(curves)
    return Chart(title, y_label, (), x_label=x_label, curves=own, linear_to=linear_to)


@dataclass(frozen=True)
class CurvesReport(Report):
    """A report whose panels are all charts."""

    def draw(self, figure: Figure | None = None) -> Figure:
        """Draw the charts below one another."""
        from matplotlib.figure import Figure as NewFigure

        charts = [panel for panel in self.panels if isinstance(panel, Chart)]
        if figure is None:
            figure = NewFigure(figsize=(8.0, 3.8 * len(charts)), layout="constrained")
        axes = figure.subplots(len(charts), 1, squeeze=False)[:, 0]
        for panel, ax in zip(charts, axes, strict=True):
            for k, curve in enumerate(panel.curves):
                colour, marker = COLOURS[k % len(COLOURS)], MARKERS[k % len(MARKERS)]
                if curve.step:
                    ax.step(curve.x, curve.y, where="post", color=colour, linewidth=1.1,
                            label=curve.label)  # fmt: skip
                else:
                    ax.plot(curve.x, curve.y, color=colour, marker=marker, markersize=5,
                            linewidth=1.4, label=curve.label)  # fmt: skip
            ax.set_title(panel.title, loc="left", fontsize=9.5)
            ax.set_xlabel(panel.x_label)
            ax.set_ylabel(panel.y_label)
            if panel.linear_to is not None:
                ax.set_xscale("symlog", linthresh=panel.linear_to)
                ax.set_xlim(left=0)
                ax.xaxis.set_major_formatter("{x:g}")
            ax.set_ylim(bottom=0)
            ax.legend(fontsize=8, frameon=False, loc="upper left", bbox_to_anchor=(1.0, 1.0))
            plain(ax, "both")
        return figure
