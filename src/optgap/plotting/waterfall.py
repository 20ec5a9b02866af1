"""Picture of an explanation: a waterfall from the bound to the policy."""

from __future__ import annotations

from typing import TYPE_CHECKING

from optgap.explaining import Explanation
from optgap.plotting.figures import COLOURS, GREY, aim, heading, new_figure, plain, titled
from optgap.render import number, percent

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PART_COLOURS = {
    "unproven": GREY,
    "online": COLOURS[4],
    "heuristic": COLOURS[1],
    "online+heuristic": COLOURS[3],
}
NOTHING = 1e-6
"""Share of the bound below which a part counts as rounding."""


def explanation_figure(explanation: Explanation) -> Figure:
    """Draw the parts of a policy's gap as a waterfall: 0 is the bound, the last bar the policy.

    Without a bound the waterfall starts at the best known solution.
    """
    bound, unit = explanation.bound, explanation.unit
    least = NOTHING * max(1.0, abs(bound or explanation.objective))
    bars, at = [], 0.0
    for part in explanation.parts:
        if (amount := part.amount(explanation.sense)) is not None:
            amount = amount if abs(amount) > least else 0.0
            bars.append((part.title, at, amount, PART_COLOURS.get(part.name, GREY)))
            at += amount
    figure = new_figure(8.0, 3.1)
    ax = figure.subplots()
    for row, (_, start, amount, _) in enumerate(bars):
        ax.plot([start + amount] * 2, [row, row + 1], color=GREY, linewidth=0.8, linestyle=":")
    bars.append((explanation.policy, 0.0, at, COLOURS[0]))
    for row, (_, start, amount, colour) in enumerate(bars):
        ax.barh(row, amount, left=start, height=0.62, color=colour)
        text = f"{number(amount)} {unit}" if amount else f"0 {unit}"
        text += f", {percent(amount / abs(bound))}" if bound else ""
        place = (start + amount, row)
        ax.annotate(text, place, xytext=(6, 0), textcoords="offset points", va="center", fontsize=9)
    ax.set_yticks(range(len(bars)), [title for title, *_ in bars])
    ax.invert_yaxis()
    ax.set_xlim(0, 1.45 * at or 1.0)  # room for the words behind the bars
    ax.axvline(0, color=GREY, linewidth=1)
    worse = "above" if explanation.sense == "min" else "below"
    known = f"the best known solution, {number(explanation.best_known)} {unit}; nothing is proven"
    proven = f"the proven bound of {number(bound)} {unit} ({unit})"
    ax.set_xlabel(f"{worse} {known if bound is None else proven}")
    served = ", the part it served" if explanation.scope == "accepted" else ""
    summary = explanation.problem_summary
    titled(
        ax,
        heading(explanation.family, summary, explanation.policy),
        f"its gap in parts{served}; {aim(summary)}",
    )
    plain(ax, "x")
    return figure
