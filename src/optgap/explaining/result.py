"""Explanation of a policy's gap: its parts and costliest decisions, as text, table and JSON."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from optgap.comparing.comparison import ACCEPTED
from optgap.models.errors import NoQuote, shorten
from optgap.models.figures import delivered
from optgap.models.regret import Regret
from optgap.models.result import Sense, Termination, relative_gap
from optgap.models.shown import MOST
from optgap.models.spec import imported
from optgap.render import (
    Row,
    Table,
    filled,
    html_table,
    in_column,
    number,
    percent,
    percents,
    text_table,
)

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

SCHEMA = "optgap.explain/1"
TOP = 10
"""Number of the costliest decisions that are shown."""

WORDS = ("family", "unit", "sense", "policy", "per_event", "scope")
NAMES = ("bound_by", "known_by", "online_by")
NUMBERS = ("bound", "best_known", "per_event_objective", "online_objective")
"""Fields that stand in JSON as they are."""
TITLES: Mapping[str, str] = {
    "unproven": "unproven",
    "online": "price of being online",
    "heuristic": "price of the heuristic",
    "online+heuristic": "prices of online and heuristic",
}


@dataclass(frozen=True, slots=True)
class Part:
    """Part of the gap between the bound and the policy.

    Parameters
    ----------
    name: a key of `TITLES`.
    start, end: objectives between which the part lies, in the problem's unit; None if unknown.
    because: the methods or policies at its two ends, and what that does and does not prove.
    """

    name: str
    start: float | None
    end: float | None
    because: str

    @property
    def title(self) -> str:
        """Name of the part in words."""
        return TITLES.get(self.name, self.name)

    def amount(self, sense: Sense) -> float | None:
        """Loss from `start` to `end`, in the problem's unit."""
        if self.start is None or self.end is None:
            return None
        return self.end - self.start if sense == "min" else self.start - self.end


@dataclass(frozen=True, repr=False)
class Explanation:
    """Gap of a policy, divided into parts, with its costliest decisions.

    Parameters
    ----------
    policy, per_event: the policy, and the policy that optimises every event by itself with the
        knowledge of that time ("" if the family has none).
    scope: ``all``, or ``accepted`` if the policy rejected some of the demand. The explanation is
        then about the part that it accepted.
    objective: objective of the policy, in `unit`.
    bound, bound_by: the best proven bound, and who proved it.
    best_known, known_by: the best solution found by anyone.
    per_event_objective: objective of `per_event`; None if that policy does not serve the scope.
    online_by, online_objective: the best online policy that ran and serves all of the scope; None
        if only `policy` does.
    parts: from the bound to the policy; their amounts add up to |objective − bound|.
    regrets: every decision that was judged, in time order.
    notes: lines that a reader of the numbers needs.

    Examples
    --------
    >>> why = optgap.explain(optgap.generate("coscheduling", size=4), "marble")
    >>> round(why.gap, 3), round(why.of_bound(why.part("heuristic")), 3), len(why.costly)
    (0.281, 0.281, 4)
    """

    family: str
    problem_name: str
    problem_summary: str
    unit: str
    sense: Sense
    policy: str
    per_event: str
    scope: str
    objective: float
    bound: float | None
    bound_by: str | None
    best_known: float | None
    known_by: str | None
    per_event_objective: float | None
    online_by: str | None
    online_objective: float | None
    parts: tuple[Part, ...]
    regrets: tuple[Regret, ...]
    notes: tuple[str, ...]
    seed: int | None
    termination: Termination
    versions: Mapping[str, str]

    @property
    def gap(self) -> float | None:
        """Gap |objective − bound| / |bound|."""
        return relative_gap(self.objective, self.bound)

    @property
    def whole(self) -> Part:
        """Whole gap as one part, from the bound to the policy."""
        return Part("", self.bound, self.objective, "")

    @property
    def costly(self) -> tuple[Regret, ...]:
        """Decisions of positive cost, in time order."""
        return tuple(regret for regret in self.regrets if regret.cost > 0)

    def top(self, count: int = TOP) -> tuple[Regret, ...]:
        """Return the costliest decisions, in time order."""
        by_cost = sorted(self.costly, key=lambda regret: -regret.cost)[:count]
        return tuple(regret for regret in self.costly if any(regret is r for r in by_cost))

    def part(self, name: str) -> Part:
        """Return the part of this name; raise KeyError if there is none."""
        for part in self.parts:
            if part.name == name:
                return part
        raise KeyError(name)

    # -- forms ----------------------------------------------------------------------------

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form, ``optgap.explain/1``, with the `TOP` costliest decisions."""
        parts = [
            {**asdict(part), "amount": part.amount(self.sense), "of_bound": self.of_bound(part)}
            for part in self.parts
        ]
        plain = {name: getattr(self, name) for name in (*WORDS, "objective", *NAMES, *NUMBERS)}
        return {
            "schema": SCHEMA,
            **plain,
            "problem": {"name": self.problem_name, "summary": self.problem_summary},
            "gap": self.gap,
            "parts": parts,
            "decisions": {
                "judged": len(self.regrets),
                "costly": len(self.costly),
                "cost": sum(regret.cost for regret in self.costly),
                "top": [asdict(regret) for regret in self.top()],
            },
            "notes": list(self.notes),
            "seed": self.seed,
            "termination": str(self.termination),
            "versions": dict(self.versions),
        }

    def to_frame(self) -> pd.DataFrame:
        """Return a row for each part, with the objectives between which it lies.

        Returns
        -------
        pandas.DataFrame
            Indexed by name: `start`, `end` and `lost` in the problem's unit, `of_bound` as a share.
        """
        import pandas as pd

        rows = {
            part.name: (part.start, part.end, part.amount(self.sense), self.of_bound(part))
            for part in self.parts
        }
        columns = ["start", "end", "lost", "of_bound"]
        frame = pd.DataFrame.from_dict(rows, orient="index", columns=columns, dtype=float)
        return frame.rename_axis("name")

    def __repr__(self) -> str:
        parts = ", ".join(f"{p.name} {percent(self.of_bound(p))}" for p in self.parts)
        return shorten(
            NoQuote(f"<Explanation {self.policy} on {self.problem_name}: {parts}>"), MOST
        )

    def head(self) -> list[str]:
        """Return one line each about problem, policy and bound."""
        part = " (the part it served)" if self.scope == ACCEPTED else ""
        gap = "" if self.gap is None else f", {percent(self.gap)} from the bound"
        bound = "no bound is proven"
        if self.bound is not None:
            bound = f"bound {number(self.bound)} {self.unit}, by {self.bound_by}"
        return [
            f"{self.problem_name}: {self.problem_summary}",
            f"{self.policy}{part}: {number(self.objective)} {self.unit}{gap}",
            bound,
        ]

    def table(self) -> Table:
        """Return the parts as a table."""
        unit, parts = f" ({self.unit})" if self.unit else "", [*self.parts, self.whole]
        ends = in_column([*(part.start for part in parts), *(part.end for part in parts)])
        columns = {
            "": [*(part.title for part in self.parts), "gap"],
            f"from{unit}": ends[: len(parts)],
            f"to{unit}": ends[len(parts) :],
            f"lost{unit}": _signed([part.amount(self.sense) for part in parts]),
            "of the bound (%)": percents([*map(self.of_bound, self.parts), self.gap]),
        }
        return tuple(columns), list(zip(*columns.values(), strict=True)), (1, 2, 3, 4)

    def reasons(self) -> list[str]:
        """Return one line per part: its two ends, and their meaning."""
        return [f"{part.title}: {part.because}" for part in self.parts]

    def decisions(self) -> Table:
        """Return the costliest decisions in time order, as a table."""
        header = ("when", "about", "chosen", "better", f"cost ({self.unit})")
        costs = in_column(r.cost for r in self.top())
        rows: list[Row] = [
            (f"{r.time:,.10g}", r.subject, r.chosen, r.better, cost)
            for r, cost in zip(self.top(), costs, strict=True)
        ]
        return header, rows, (0, 4)

    def about_decisions(self) -> str:
        """Return one line with the number of decisions of positive cost."""
        costly = len(self.costly)
        if not costly:
            return "decisions: none cost anything when it was taken; whatever is lost shows later"
        line = f"decisions: {costly:,} cost something when they were taken"
        if costly > TOP:
            line += f"; the {TOP} that cost most, in time order:"
        return line

    def __str__(self) -> str:
        parts = [filled(self.head()), text_table(*self.table())]
        parts += [filled([*self.reasons(), *self.notes]), filled([self.about_decisions()])]
        if self.costly:
            parts.append(text_table(*self.decisions()))
        return "\n\n".join(parts)

    def _repr_html_(self) -> str:
        header, rows, right = self.table()
        html = html_table(header, rows, self.head(), right, notes=[*self.reasons(), *self.notes])
        if self.costly:
            header, rows, right = self.decisions()
            html += html_table(header, rows, [self.about_decisions()], right)
        return html

    def plot(self, path: str | os.PathLike[str] | None = None) -> Figure:
        """Return a figure of the parts, and write it to `path` (.png, .svg or .pdf) if given.

        Raises
        ------
        InputError: for another ending, or a place that cannot be written to.
        """
        figure: Figure = imported("optgap.plotting.waterfall:explanation_figure")(self)
        return delivered(figure, path)

    def of_bound(self, part: Part) -> float | None:
        """Return the loss of a part, as a share of the bound."""
        amount = part.amount(self.sense)
        if amount is None or not self.bound:
            return None
        return amount / abs(self.bound)


def _signed(amounts: Sequence[float | None]) -> list[str]:
    """Write differences of one column with their signs; one that rounds to 0 has no sign."""
    texts = in_column(None if amount is None else abs(amount) for amount in amounts)
    signs = ["+" if (amount or 0.0) > 0 else "-" for amount in amounts]
    return [
        sign + text if any("1" <= digit <= "9" for digit in text) else text
        for sign, text in zip(signs, texts, strict=True)
    ]
