"""Curves with axes of their own as the picture of a report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from optgap.plotting.figures import COLOURS, MARKERS, plain
from optgap.reproduce.panels import Panel

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True)
class Curve:
    """One named curve; a single point is a mark.

    Parameters
    ----------
    kind: points joined by a line, a step function, points alone, or a line alone.
    """

    label: str
    x: Sequence[float]
    y: Sequence[float]
    kind: Literal["joined", "step", "points", "line"] = "joined"


@dataclass(frozen=True)
class Chart(Panel):
    """Curves over `x_label`, or bars over `names`.

    Parameters
    ----------
    linear_to: beyond it the horizontal axis is logarithmic.
    log: both axes are logarithmic, or the vertical one alone.
    paired: a curve and the next have one colour, and the first of them a name.
    names: what the places on the horizontal axis are, for bars; curves' x are not looked at.
    """

    SIZE: ClassVar = (8.0, 3.8)

    x_label: str = ""
    curves: tuple[Curve, ...] = ()
    linear_to: float | None = None
    log: Literal["", "both", "y"] = ""
    paired: bool = False
    names: tuple[str, ...] = ()

    def draw(self, ax: Axes) -> None:
        """The curves or bars, with a legend beside them where they have names."""
        _draw(self, ax)

    def to_json(self) -> Mapping[str, Any]:
        """The curves as lists."""
        return {
            "title": self.title,
            "x_label": self.x_label,
            "y_label": self.y_label,
            "names": list(self.names),
            "curves": [{"label": c.label, "x": list(c.x), "y": list(c.y)} for c in self.curves],
        }


def chart(title: str, x_label: str, y_label: str, curves: Sequence[Curve], **look: Any) -> Chart:
    """One set of axes; `look` as in `Chart`."""
    return Chart(title, y_label, x_label=x_label, curves=tuple(curves), **look)


LOOKS: dict[str, dict[str, Any]] = {
    "joined": {"markersize": 5, "linewidth": 1.4},
    "points": {"markersize": 4, "linestyle": ""},
    "line": {"linewidth": 1.2},
}


def _some(value: float, _: float) -> str:
    """Names for 2, 3 and 5 of each power of ten, as all nine run into one another."""
    text = f"{value:g}"
    return text if text.strip("0.") in ("2", "3", "5") else ""


def _draw(panel: Chart, ax: Axes) -> None:
    for place, curve in enumerate(panel.curves):
        k = place // 2 if panel.paired else place
        colour, marker = COLOURS[k % len(COLOURS)], MARKERS[k % len(MARKERS)]
        label = "" if panel.paired and place % 2 else curve.label
        if panel.names:
            width = 0.8 / len(panel.curves)
            x = [at + (k - (len(panel.curves) - 1) / 2) * width for at in range(len(curve.y))]
            ax.bar(x, curve.y, width, color=colour, label=label)
        elif curve.kind == "step":
            ax.step(curve.x, curve.y, where="post", color=colour, linewidth=1.1, label=label)
        else:
            look = LOOKS[curve.kind] | ({} if curve.kind == "line" else {"marker": marker})
            ax.plot(curve.x, curve.y, color=colour, label=label, **look)
    ax.set_title(panel.title, loc="left", fontsize=9.5)
    ax.set_xlabel(panel.x_label)
    ax.set_ylabel(panel.y_label)
    if panel.names:
        ax.set_xticks(range(len(panel.names)), panel.names, rotation=60, ha="right", fontsize=8)
    if panel.linear_to is not None:
        ax.set_xscale("symlog", linthresh=panel.linear_to)
        ax.set_xlim(left=0)
        ax.xaxis.set_major_formatter("{x:g}")
    elif not panel.names and all(x == round(x) for curve in panel.curves for x in curve.x):
        ax.locator_params("x", integer=True)
    if panel.log:
        ax.set_yscale("log")
        if panel.log == "both":
            ax.set_xscale("log")
        for axis in (ax.xaxis, ax.yaxis)[0 if panel.log == "both" else 1 :]:
            axis.set_major_formatter("{x:g}")
            axis.set_minor_formatter(_some)
            axis.set_tick_params(which="minor", labelsize=7)
    elif all(min(curve.y, default=0) >= 0 for curve in panel.curves):
        ax.set_ylim(bottom=0)
    if any(curve.label for curve in panel.curves):
        ax.legend(fontsize=8, frameon=False, loc="upper left", bbox_to_anchor=(1.0, 1.0))
    plain(ax, "both")
