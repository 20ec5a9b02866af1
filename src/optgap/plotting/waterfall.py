"""Picture of an explanation: a waterfall from the bound to the policy."""

from __future__ import annotations

from typing import TYPE_CHECKING

from optgap.explaining import Explanation
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
NOTHING = 1e-6
"""Share of the bound below which a part counts as rounding."""


def plot_explanation(explanation: Explanation, ax: Axes) -> Axes:
    """Draw the parts of a policy's gap as a waterfall: 0 is the bound, the last bar the policy.

    Without a bound the waterfall starts at the best known solution.
    """
    least = NOTHING * max(1.0, abs(explanation.bound or explanation.objective))
    known = [part for part in explanation.parts if part.amount(explanation.sense) is not None]
    place, names = 0.0, []
    for row, part in enumerate(known):
        amount = part.amount(explanation.sense) or 0.0
        amount = amount if abs(amount) > least else 0.0
        colour = PART_COLOURS.get(part.name, GREY)
        ax.barh(row, amount, left=place, height=0.62, color=colour)
        ax.plot([place + amount] * 2, [row, row + 1], color=GREY, linewidth=0.8, linestyle=":")
        place += amount
        _label(ax, place, row, _said(explanation, amount))
        names.append(part.title)
    row = len(known)
    ax.barh(row, place, height=0.62, color=COLOURS[0])
    _label(ax, place, row, _said(explanation, place))
    ax.set_yticks(range(row + 1), [*names, explanation.policy])
    ax.invert_yaxis()
    ax.set_xlim(0, 1.45 * place or 1.0)  # room for the words behind the bars
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


def explanation_figure(explanation: Explanation) -> Figure:
    """Return the waterfall as a figure, without touching pyplot's state."""
    figure = new_figure(8.0, 3.1)
    plot_explanation(explanation, figure.subplots())
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
