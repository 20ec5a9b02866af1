"""Charts of a report that no other part of the package draws."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from optgap.comparing.comparison import PART
from optgap.models.figures import labelled
from optgap.plotting.figures import (
    COLOURS,
    EDGE,
    FILLS,
    GREY,
    end_labels,
    legend_below,
    new_figure,
    plain,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

LONGEST = 40
"""Characters of a name beside a chart."""
MOST_LINES = 12
"""Curves in one chart of a fit."""
SOLID = 5
"""Lines before they are dashed: on a dark page the first colour is near the sixth."""
FEW_POINTS = 12
"""Points of a curve that are marked."""


def spread(groups: Mapping[str, Sequence[float]], label: str, title: str = "") -> Figure:
    """One box per group, the lowest median first, with every run as a dot where they are few.

    Groups about an accepted part stand below the others.
    """
    from numpy import median

    names = sorted(groups, key=lambda n: (not n.endswith(f"({PART})"), -float(median(groups[n]))))
    figure = new_figure(8.0, 1.2 + 0.34 * len(names))
    ax = figure.subplots()
    for row, name in enumerate(names):
        values = [100 * value for value in groups[name]]
        ink = {"color": COLOURS[0]}
        ax.boxplot(
            [values], positions=[row], orientation="horizontal", widths=0.5, whis=(5, 95),
            showfliers=False, boxprops=ink, whiskerprops=ink, capprops=ink,
            medianprops={"color": COLOURS[1], "linewidth": 2},
        )  # fmt: skip
        if len(values) <= 50:
            ax.plot(values, [row] * len(values), ".", color=COLOURS[0], alpha=0.5, markersize=5)
    ax.set_yticks(range(len(names)), [f"{_cut(n)} ({len(groups[n]):,})" for n in names])
    ax.set_ylim(-0.6, len(names) - 0.4)
    ax.set_xlim(left=min(0.0, ax.get_xlim()[0]))
    ax.set_xlabel(f"{label} (%): median, quartiles, 5 % to 95 % of the runs")
    ax.set_title(title, loc="left", fontsize=10)
    plain(ax, "x")
    return figure


def errors(groups: Sequence[tuple[str, float | None, float | None]]) -> Figure:
    """Mean error of each group of a fit, in sample and held out."""
    figure = new_figure(8.0, 1.7 + 0.3 * len(groups))
    ax = figure.subplots()
    for row, (_, inside, outside) in enumerate(reversed(groups)):
        if inside is not None and outside is not None:
            ax.plot([100 * inside, 100 * outside], [row, row], color=GREY, linewidth=1)
        if inside is not None:
            ax.plot([100 * inside], [row], "o", color=COLOURS[0])
        if outside is not None:
            ax.plot([100 * outside], [row], "D", color=COLOURS[1])
    ax.plot([], [], "o", color=COLOURS[0], label="in sample")
    if any(group[2] is not None for group in groups):
        ax.plot([], [], "D", color=COLOURS[1], label="held out")
    ax.set_yticks(range(len(groups)), [_cut(name) or "all rows" for name, _, _ in reversed(groups)])
    ax.set_xlim(left=0)
    ax.set_xlabel("mean absolute error of the prediction (%)")
    legend_below(ax)
    plain(ax, "x")
    return figure


def fitted(curves: Sequence[tuple[str, Any, Any]], x_label: str, y_label: str) -> Figure:
    """Fitted curves over the range that was measured."""
    figure = new_figure(8.0, 4.4)
    ax = figure.subplots()
    ends = []
    for k, (name, xs, ys) in enumerate(curves[:MOST_LINES]):
        colour = COLOURS[k % len(COLOURS)]
        ax.plot(xs, ys, color=colour, linestyle="-" if k < SOLID else "--")
        ends.append((float(ys[-1]), float(xs[-1]), _cut(name) or "all rows", colour))
    ax.set_xlabel(x_label)
    ax.set_ylabel(y_label)
    plain(ax, "both")
    end_labels(ends, ax)
    return figure


def curves(panel: Mapping[str, Any]) -> Figure:
    """One panel of a reproduced figure: over load, or over what its ``x_label`` names."""
    figure = new_figure(8.0, 4.2)
    ax = figure.subplots()
    ends = []
    for k, curve in enumerate(panel["curves"]):
        points = [(x, y) for x, y in _points(curve) if x is not None and y is not None]
        if not points:
            continue
        xs, ys = zip(*points, strict=True)
        colour = COLOURS[k % len(COLOURS)]
        dots = "o" if len(points) <= FEW_POINTS else ""  # a curve of one point is a mark
        ax.plot(xs, ys, color=colour, linestyle="-" if k < SOLID else "--", marker=dots)
        ends.append((float(ys[-1]), float(xs[-1]), _cut(str(curve["label"])), colour))
    ax.set_title(_cut(str(panel.get("title", "")), 2 * LONGEST), loc="left", fontsize=10)
    ax.set_ylabel(_cut(str(panel.get("y_label", ""))))
    ax.set_xlabel(_cut(str(panel.get("x_label", "GPU demand arrived (% of the cluster's GPUs)"))))
    plain(ax, "both")
    end_labels(ends, ax)
    return figure


def _points(curve: Mapping[str, Any]) -> Iterator[tuple[Any, Any]]:
    if "x" in curve:
        return zip(curve["x"], curve["y"], strict=False)
    loads = (None if x is None else 100 * x for x in curve["load"])
    return zip(loads, curve["mean"], strict=False)


def schedule(panel: Mapping[str, Any]) -> Figure:
    """A schedule of one node: a line per GPU, a colour per application."""
    runs = panel["schedule"]
    gpus = 1 + max((g for run in runs for g in run["gpu_index"]), default=0)
    apps = sorted({str(run["app"]) for run in runs})  # one colour each in all schedules of a figure
    figure = new_figure(8.0, 1.6 + 0.4 * gpus)
    ax = figure.subplots()
    for app in apps:
        boxes = [run for run in runs if str(run["app"]) == app]
        places = [g for run in boxes for g in run["gpu_index"]]
        starts = [run["start_s"] for run in boxes for _ in run["gpu_index"]]
        lasts = [run["end_s"] - run["start_s"] for run in boxes for _ in run["gpu_index"]]
        colour = FILLS[apps.index(app) % len(FILLS)]
        ax.barh(places, lasts, left=starts, height=0.96, color=colour, edgecolor=EDGE,
                linewidth=0.6, label=labelled(_cut(app)))  # fmt: skip
    ax.set_yticks(range(gpus), [f"GPU {g}" for g in range(gpus)])
    ax.set_ylim(gpus - 0.45, -0.55)
    ax.set_xlim(left=0)
    ax.set_xlabel("time (s)")
    ax.set_title(_cut(str(panel.get("title", "")), 2 * LONGEST), loc="left", fontsize=10)
    if 0 < len(apps) <= len(FILLS):
        ax.legend(frameon=False, fontsize=8, loc="upper left", bbox_to_anchor=(1.0, 1.0))
    plain(ax, "x")
    return figure


def _cut(name: str, limit: int = LONGEST) -> str:
    return name if len(name) <= limit else name[: limit - 1] + "…"


def savings(moves: Sequence[float], power_w: Sequence[float], bound_w: Sequence[float]) -> Figure:
    """The power saved over the number of migrations, and what no plan can pass."""
    figure = new_figure(8.0, 4.2)
    ax = figure.subplots()
    draw_savings(ax, moves, power_w, bound_w)
    legend_below(ax)
    return figure


def draw_savings(
    ax: Axes, moves: Sequence[float], power_w: Sequence[float], bound_w: Sequence[float]
) -> None:
    """Savings in percent of the power now: reached, and at most; no legend."""
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
