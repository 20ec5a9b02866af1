"""The picture of an explanation: a waterfall from the bound to the policy, and costly decisions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from optgap.explaining import Explanation
from optgap.models.regret import Regret
from optgap.plotting.figures import (
    COLOURS,
    GREY,
    aim,
    heading,
    new_figure,
    plain,
    titled,
)
from optgap.render import number, percent

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PART_COLOURS = {
    "unproven": GREY,
    "online": COLOURS[4],
    "heuristic": COLOURS[1],
    "online+heuristic": COLOURS[3],
}
GAIN = COLOURS[2]
NOTHING = 1e-6
"""Of the bound: what floating point makes of equal numbers."""
NAMED = 4
"""How many of the costliest decisions carry a name in the picture."""


def plot_explanation(explanation: Explanation, ax: Axes) -> Axes:
    """Draw the parts of a policy's gap as a waterfall: 0 is the bound, the last bar the policy.

    Without a bound the waterfall starts at the best known solution. A log that breaks constraints
    may end before it: its bar goes back, in green and hatched.
    """
    least = NOTHING * max(1.0, abs(explanation.bound or explanation.objective))
    known = [part for part in explanation.parts if part.amount(explanation.sense) is not None]
    place, names, widest, lowest = 0.0, [], 0.0, 0.0
    for row, part in enumerate(known):
        amount = part.amount(explanation.sense) or 0.0
        amount = amount if abs(amount) > least else 0.0
        gain = amount < 0
        colour = GAIN if gain else PART_COLOURS.get(part.name, GREY)
        ax.barh(
            row, amount, left=place, height=0.62, color=colour, hatch="//" if gain else None,
            edgecolor="white" if gain else colour, linewidth=0.5,
        )  # fmt: skip
        ax.plot([place + amount] * 2, [row, row + 1], color=GREY, linewidth=0.8, linestyle=":")
        _label(ax, max(place, place + amount), row, _said(explanation, amount))
        place += amount
        widest, lowest = max(widest, place, place - amount), min(lowest, place)
        names.append(part.title)
    row = len(known)
    ax.barh(row, place, height=0.62, color=COLOURS[0])
    _label(ax, place, row, _said(explanation, place))
    ax.set_yticks(range(row + 1), [*names, explanation.policy])
    ax.invert_yaxis()
    ax.set_xlim(1.15 * lowest, 1.45 * widest or 1.0)  # room for the words behind the bars
    ax.axvline(0, color=GREY, linewidth=1)
    ax.set_xlabel(_axis(explanation))
    served = ", the part it served" if explanation.scope == "accepted" else ""
    summary = explanation.problem_summary
    titled(
        ax,
        heading(explanation.family, summary, explanation.policy),
        f"its gap in parts{served}; {aim(summary)}",
    )
    plain(ax, "x")
    return ax


def plot_decisions(explanation: Explanation, ax: Axes) -> Axes:
    """Draw what single decisions cost when they were taken, over time; the costliest by name."""
    costly = explanation.costly
    times, costs = [r.time for r in costly], [r.cost for r in costly]
    ax.vlines(times, 0, costs, color=COLOURS[1], linewidth=1, alpha=0.7)
    ax.plot(times, costs, ".", color=COLOURS[1], markersize=4)
    for k, regret in enumerate(_worst(explanation)):
        ax.annotate(
            regret.subject,
            (regret.time, regret.cost),
            xytext=(0, 4 + 10 * (k % 2)),  # neighbours do not overlap
            textcoords="offset points",
            ha="center",
            fontsize=8,
        )
    ax.margins(x=0.08, y=0.35)
    ax.set_ylim(bottom=0)
    ax.set_ylabel(f"cost ({explanation.unit})")
    ax.set_xlabel("when the decision was taken: s, or the arrival's number without a clock")
    plain(ax, "both")
    return ax


def explanation_figure(explanation: Explanation) -> Figure:
    """Both pictures in one figure, without touching pyplot's state."""
    if not explanation.costly:
        figure = new_figure(8.0, 3.1)
        plot_explanation(explanation, figure.subplots())
        return figure
    figure = new_figure(8.0, 5.8)
    upper, lower = figure.subplots(2, height_ratios=(1.1, 1))
    plot_explanation(explanation, upper)
    plot_decisions(explanation, lower)
    return figure


def _said(explanation: Explanation, amount: float) -> str:
    text = f"{number(amount)} {explanation.unit}" if amount else f"0 {explanation.unit}"
    if explanation.bound:
        text += f", {percent(amount / abs(explanation.bound))}"
    return text


def _axis(explanation: Explanation) -> str:
    worse = "above" if explanation.sense == "min" else "below"
    if explanation.bound is None:
        known = number(explanation.best_known)
        return f"{worse} the best known solution, {known} {explanation.unit}; nothing is proven"
    bound = number(explanation.bound)
    return f"{worse} the proven bound of {bound} {explanation.unit} ({explanation.unit})"


def _label(ax: Axes, x: float, y: float, text: str) -> None:
    ax.annotate(text, (x, y), xytext=(6, 0), textcoords="offset points", va="center", fontsize=9)


def _worst(explanation: Explanation) -> list[Regret]:
    """The costliest decisions about different subjects, in time order."""
    worst: dict[str, Regret] = {}
    for regret in sorted(explanation.costly, key=lambda regret: -regret.cost):
        worst.setdefault(regret.subject, regret)
    return sorted(list(worst.values())[:NAMED], key=lambda regret: regret.time)
