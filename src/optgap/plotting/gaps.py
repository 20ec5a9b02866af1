"""Pictures of gaps: data in, axes drawn on."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from optgap.comparing.comparison import PART, STOPPED, Comparison, ComparisonRow, ComparisonSet
from optgap.models.figures import labelled as named
from optgap.models.result import Status
from optgap.plotting.figures import (
    COLOURS,
    GREY,
    MARKERS,
    aim,
    heading,
    labelled,
    legend_below,
    new_figure,
    plain,
    titled,
)
from optgap.render import number

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from optgap.comparing.uncertain import UncertainComparison

WIDEST = 1e9
"""Largest gap that is drawn, in percent; larger ones are drawn there."""


def gaps_figure(answer: Comparison | ComparisonSet | UncertainComparison) -> Figure:
    """Draw gaps to the best proven bound, in percent.

    One comparison gives one dot per policy or method, sorted, with its value beside it, and with an
    interval below it under the uncertainty of fits; a set gives one line per policy over the
    parameter's values. The unproven part between the bound (0) and the best known solution is grey.
    Hollow marks are gaps against a bound for the accepted part alone.
    """
    if isinstance(answer, ComparisonSet):
        figure = new_figure(8.0, max(4.5, 0.32 * len(answer.methods)))
        legend_below(_lines(answer, figure.subplots()))
        return figure
    comparison = answer if isinstance(answer, Comparison) else answer.comparison
    figure = new_figure(8.0, 2.0 + 0.32 * len(comparison.rows))
    ax = figure.subplots()
    _dots(comparison, ax)
    if not isinstance(answer, Comparison):
        _intervals(answer, ax)
    legend_below(ax, marks=meanings([ax]))
    return figure


def overview_figure(comparisons: Sequence[Comparison]) -> Figure:
    """Draw one panel per comparison, with a height by its rows, above a legend for all."""
    drawn = [_drawn(comparison) for comparison in comparisons]
    heights = [1.4 + 0.26 * len(rows) for rows in drawn]
    figure = new_figure(8.0, 0.8 + sum(heights))
    if comparisons:
        panels = figure.subplots(len(heights), 1, squeeze=False, height_ratios=heights)[:, 0]
        longest = max([0, *(len(name) for rows in drawn for name in _names(rows))])
        for comparison, ax in zip(comparisons, panels, strict=True):
            _dots(comparison, ax, longest)
        legend_below(panels[0], marks=meanings(panels))
    return figure


def _intervals(answer: UncertainComparison, ax: Axes) -> None:
    """Draw a line below each dot from the low to the high end of its interval."""
    rows = _drawn(answer.comparison)
    methods = dict(zip(_names(rows), [row.result.method for row in rows], strict=True))
    places = {methods[label.get_text()]: y
              for y, label in zip(ax.get_yticks(), ax.get_yticklabels(), strict=True)}  # fmt: skip
    known = [one for one in answer.intervals if one.count and one.method in places]
    if not known:
        return
    ys = [places[one.method] for one in known]
    lows, highs = ([_percent(getattr(one, end)) for one in known] for end in ("low", "high"))
    label = f"{100 * answer.level:g} % interval of the fits"
    below = [y - 0.24 for y in ys]  # the value stands beside the dot
    ax.hlines(below, lows, highs, color="black", linewidth=2.5, alpha=0.55, zorder=2, label=label)
    ax.set_xlim(right=max(ax.get_xlim()[1], 1.15 * max(highs)))


DOTS = {
    "optimal": ("proven optimal", COLOURS[2], COLOURS[2], ", proven optimal"),
    "policy": ("online policy", COLOURS[0], COLOURS[0], ""),
    "offline": ("found with hindsight", COLOURS[1], COLOURS[1], ""),
    "part": (f"{PART}: against a bound for that alone", COLOURS[0], "white", f", {PART}"),
}
"""Meaning of each kind of dot, its colour, the colour inside, and words behind the value."""
UNPROVEN, KNOWN = "unproven: between the bound and the best known", "best known"
MEANINGS = (*(meaning for meaning, *_ in DOTS.values()), UNPROVEN, KNOWN)
"""Entries of a legend, in their order."""
LEAST_RANGE = 1e-4
"""Gaps below this are rounding, and no axis is stretched to show them."""


def meanings(panels: Iterable[Axes]) -> dict[str, Any]:
    """Return the marks of gaps in some axes, each meaning once, in the order of `MEANINGS`."""
    found = labelled(panels)
    known = [name for name in MEANINGS if name in found]
    known += [name for name in found if name.endswith("of the fits")]
    return {name: found[name] for name in known}


def _drawn(comparison: Comparison) -> list[ComparisonRow]:
    """Return the rows that have a gap, and so a dot."""
    return [row for row in comparison.rows if row.gap_to_bound is not None]


def _names(rows: Sequence[ComparisonRow]) -> list[str]:
    """Return the names of rows, without parameters if the name alone tells a row from others."""
    short = [row.result.method.partition("(")[0] for row in rows]
    return [
        name + STOPPED * row.stopped if short.count(name) == 1 else row.label
        for name, row in zip(short, rows, strict=True)
    ]


def _kind(row: ComparisonRow) -> str:
    if row.partial:
        return "part"
    if row.result.status is Status.OPTIMAL:
        return "optimal"
    return "policy" if row.result.kind == "policy" else "offline"


def _dots(comparison: Comparison, ax: Axes, beside: int = 0) -> None:
    rows = _drawn(comparison)
    # what is about a part stands below the others, not among them
    rows.sort(key=lambda row: (not row.partial, -(row.gap_to_bound or 0.0)))
    widest = max((_percent(row.gap_to_bound) for row in rows), default=0.0)
    known = comparison.gap
    if known is not None and known > LEAST_RANGE:
        ax.axvspan(0, _percent(known), color=GREY, alpha=0.13, linewidth=0, label=UNPROVEN)
        ax.axvline(_percent(known), color=GREY, linestyle="--", linewidth=1.2, label=KNOWN)
    for kind, (meaning, colour, face, words) in DOTS.items():
        places = [place for place, row in enumerate(rows) if _kind(row) == kind]
        if not places:
            continue
        gaps = [_percent(rows[place].gap_to_bound) for place in places]
        ax.hlines(places, 0, gaps, color=colour, linewidth=1, alpha=0.5)
        ax.plot(
            gaps, places, "o", color=colour, markerfacecolor=face, markersize=7, clip_on=False,
            zorder=3, label=meaning,
        )  # fmt: skip
        for place, gap in zip(places, gaps, strict=True):
            ax.annotate(
                f"{gap:.2f} %{words}", (gap, place), xytext=(8, 0), textcoords="offset points",
                va="center", fontsize=9,
            )  # fmt: skip
    below = sum(row.partial for row in rows)
    if 0 < below < len(rows):
        ax.axhline(below - 0.5, color=GREY, linewidth=0.8, linestyle=":")
    ax.set_yticks(range(len(rows)), names := _names(rows))
    ax.set_ylim(-0.7, max(0.3, len(rows) - 0.3))
    # room for the words beside the last dot
    room = 1.75 if below else 1.3
    ax.set_xlim(0, room * widest if widest > 100 * LEAST_RANGE else 1.0)
    ax.set_xlabel(_scale(comparison))
    beside = max([beside, *map(len, names)])
    lines = heading(comparison.family, comparison.problem_summary), _aimed(comparison)
    titled(ax, *lines, beside=beside)
    plain(ax, "x")


def _scale(comparison: Comparison) -> str:
    """Return the label of the axis: its origin, and the best known solution."""
    unit, bound, known = comparison.unit, comparison.best_bound, comparison.best_known
    words = "gap to the best proven bound (%)"
    if bound is None:
        return words
    words = f"gap to the best proven bound, {number(bound)} {unit} (%)"
    if known is None or comparison.gap is None:
        return words
    if comparison.gap <= LEAST_RANGE:
        return f"gap to the proven optimum, {number(known)} {unit} (%)"
    return f"{words}\nbest known {number(known)} {unit}"


def _aimed(comparison: Comparison) -> str:
    words = ["gaps to the best proven bound", aim(comparison.problem_summary)]
    words += [f"{STOPPED} stopped by a limit"] * any(row.stopped for row in comparison.rows)
    return "; ".join(filter(None, words))


def _lines(comparisons: ComparisonSet, ax: Axes) -> Axes:
    numeric = all(isinstance(value, (int, float)) for value in comparisons.values)
    places: Sequence[Any] = comparisons.values if numeric else range(len(comparisons.values))
    known = [_percent(c.gap) for c in comparisons.comparisons]
    unproven = max(known, default=0.0) > 100 * LEAST_RANGE
    if unproven:
        ax.fill_between(places, 0, known, color=GREY, alpha=0.13, linewidth=0)
        ax.plot(places, known, color=GREY, linestyle="--", linewidth=1.2)
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
        style = "-" if k < len(COLOURS) else "--"
        mark = MARKERS[k % len(MARKERS)]
        ax.plot(xs, ys, style, color=colour, marker=mark, markersize=6, label=named(method))
        part = [
            (x, _percent(row.gap_to_bound))
            for x, row in zip(places, comparisons.row(method), strict=True)
            if row is not None and row.partial
        ]
        for x, y in part:
            ax.plot([x], [y], mark, color=colour, markerfacecolor="white", markersize=6)
    if not numeric:
        ax.set_xticks(places, [str(value) for value in comparisons.values])
    elif len(places) <= 8:
        ax.set_xticks(places)
    ax.set_xlabel(comparisons.parameter)
    ax.set_ylabel("gap to the best proven bound (%)")
    ax.set_ylim(bottom=0)
    hollow = any(row.partial for c in comparisons.comparisons for row in c.rows)
    first, last = comparisons.comparisons[0], comparisons.comparisons[-1]
    marks = ["grey: unproven, up to the best solution known"] * unproven
    marks += [f"hollow: {PART}, against a bound for that alone"] * hollow
    titled(
        ax,
        f"{first.family}: gaps to the best proven bound over {comparisons.parameter}; "
        + aim(first.problem_summary),
        *(
            f"{comparisons.parameter}={value}: {c.problem_summary.partition('; ')[0]}"
            for value, c in zip(comparisons.values, comparisons.comparisons, strict=True)
            if c in (first, last)
        ),
        "; ".join(marks),
    )
    plain(ax, "both")
    return ax


def _percent(gap: float | None) -> float:
    """Return a gap in percent, at most what an axis can show."""
    return min(100 * (gap or 0.0), WIDEST)
