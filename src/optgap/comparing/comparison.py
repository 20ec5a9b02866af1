"""The gap table: methods and policies on one problem, or on several."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, get_args

from optgap.models.errors import NoQuote, shorten
from optgap.models.figures import delivered
from optgap.models.jsonio import Fields
from optgap.models.result import SCHEMA as RESULT
from optgap.models.result import SERVES_PART, Result, Sense, Status, Termination, relative_gap
from optgap.models.shown import MOST
from optgap.models.spec import imported
from optgap.render import (
    GAP_TO_BEST,
    GAP_TO_BOUND,
    RULE,
    SECONDS,
    Answer,
    Row,
    Table,
    durations,
    in_column,
    number,
    percent,
    percents,
)

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

ALL, ACCEPTED = "all", "accepted"
PART = "accepted part"
"""Words in tables for a row about the part of the demand that a policy accepted."""
PART_NOTE = (
    f"{PART}: the policy rejected some of the demand. Its gap is to a bound for the part that it "
    "accepted, so do not rank it with other rows."
)
STOPPED = "*"
"""Mark behind the name of a run that a limit or an interrupt stopped."""
OF_PART = "†"
"""Mark of a gap to a bound for the accepted part, in the table of a set."""
FRAME = ("objective", "bound", "gap_to_bound", "gap_to_best", "low", "high", "seconds")
"""Columns of `to_frame`."""
CLOSED = 1e-6
"""Largest gap of the best known solution that counts as none."""
HOT = "--effort 0.2 gives a quick answer: a search that a time limit cuts has not cooled down"
NOT_RUN = "not run"
UNSERVED = "no solution serves all that is asked"
NO_PARTS = "policies have no gap, as nothing serves all (--parts bounds what each accepts)"
Failure = Literal["", "objective", "input", "fault"]
SCHEMA = "optgap.compare/1"
SET_SCHEMA = "optgap.compare-set/1"


SEARCH = "search"
CUT = (Termination.INTERRUPTED, Termination.TIME_LIMIT, Termination.WORK_LIMIT)
"""Reasons why a run was cut short, the gravest first."""


@dataclass(frozen=True, slots=True)
class Unfinished:
    """Bound or search that was cut short.

    Parameters
    ----------
    why: `time_limit`, `work_limit` or `interrupted`.
    share_of_work: share of its budget that was spent; None if it has no budget.
    units: the work that was done.
    limit: the time limit (s) or the budget (units); None for an interrupt.
    kind: ``bound``, or a ``search``, which lowers no gap to the bound.
    accepted_by: the policy whose accepted tasks were to be bounded; "" for all that is asked.
    """

    method: str
    why: Termination
    share_of_work: float | None
    units: float
    limit: float | None
    kind: str = "bound"
    accepted_by: str = ""

    @classmethod
    def of(
        cls, result: Result, units: float, time_limit: float | None, budget: float | None
    ) -> Unfinished | None:
        """Describe a method's unfinished run; return None for a policy, or a run that ended."""
        proven = result.status in (Status.OPTIMAL, Status.INFEASIBLE)
        if result.kind == "policy" or proven or result.termination not in CUT:
            return None
        share = min(1.0, units / budget) if budget else None
        limit = {Termination.TIME_LIMIT: time_limit, Termination.WORK_LIMIT: budget}
        kind = SEARCH if result.kind == "offline" and result.bound is None else "bound"
        why = result.termination
        return cls(result.method, why, share, units, limit.get(why), kind)

    def __str__(self) -> str:
        if self.why is Termination.TIME_LIMIT:
            said = f"was stopped by --time-limit {self.limit:g}" if self.limit else "was stopped"
            said += f" after {self.units:.3g} units of work"
            if self.share_of_work is not None:
                said += f", {percent(self.share_of_work, 0)} of its budget"
        elif self.why is Termination.WORK_LIMIT:
            budget = f" ({self.limit:g} units; " if self.limit else " ("
            said = f"was stopped by its work budget{budget}--effort 4 goes on)"
        else:
            said = "was interrupted"
        if self.accepted_by:
            words = "by how much that gap is too large is not known"
            return f"! bound of {self.accepted_by}'s part unfinished: {self.method} {said}; {words}"
        if self.kind == SEARCH:
            said += ": it can lower no gap to the bound"
            return f"! best known unfinished: {self.method} {said}"
        return f"! bound unfinished: {self.method} {said}"

    def to_json(self) -> dict[str, Any]:
        """Return the fields by name."""
        return {**asdict(self), "why": str(self.why)}

    @classmethod
    def from_json(cls, fields: Fields) -> Unfinished:
        """Read the JSON form; raise InputError that names the field."""
        return cls(
            fields.text("method"),
            Termination(fields.choice("why", list(Termination))),
            fields.known_number("share_of_work"),
            fields.number("units"),
            fields.known_number("limit"),
            fields.text("kind", "bound"),
            fields.text("accepted_by", ""),
        )


@dataclass(frozen=True, slots=True)
class ComparisonRow:
    """Row of one method or policy, with its gaps.

    Parameters
    ----------
    result: the result with the referee's objective. A policy's `bound` and `bound_by` are those
        that its gap is measured against; a method keeps the bound that it proved itself.
    bound_scope: ``all`` when `gap_to_bound` is against the best bound for everything that the
        problem asks; ``accepted`` when the policy rejected some of the demand, and the bound is
        one for the accepted part; None without a gap.
    gap_to_bound: |objective − best bound| / |best bound| in that scope.
    gap_to_best: |objective − best known| / |best known| in that scope.
    failure: why there is no result: the method does not treat this ``objective``, its
        ``input`` (a user's own policy, say) was at fault, or the method itself (``fault``).
    units: the work that the run took, with that of the bound for what the policy accepted.
    """

    result: Result
    bound_scope: str | None = None
    gap_to_bound: float | None = None
    gap_to_best: float | None = None
    failure: Failure = ""
    units: float = 0.0

    @property
    def partial(self) -> bool:
        """Whether the gap is about the accepted part of the demand."""
        return self.bound_scope == ACCEPTED

    @property
    def stopped(self) -> bool:
        """Whether a limit or an interrupt ended the run."""
        return self.result.termination in CUT

    @property
    def gap_at_least(self) -> float | None:
        """Gap if the best known solution were optimal; the true gap is no smaller."""
        return None if self.partial else self.gap_to_best

    @property
    def label(self) -> str:
        """Name in a table, marked if the run was stopped."""
        return self.result.method + (STOPPED if self.stopped else "")

    @property
    def cell(self) -> str:
        """Gap to the bound (%) for the table of a set, with marks for a part and a stopped run."""
        gap = "" if self.gap_to_bound is None else f"{100 * self.gap_to_bound:,.2f}"
        return gap + OF_PART * self.partial + STOPPED * self.stopped

    def to_json(self) -> dict[str, Any]:
        """Return the result's keys without ``solution``, and the gaps."""
        document = replace(self.result, solution=None).to_json()
        del document["solution"]
        return {
            **document,
            "bound_scope": self.bound_scope,
            "gap_to_bound": self.gap_to_bound,
            "gap_to_best": self.gap_to_best,
            "gap_at_least": self.gap_at_least,
        }

    @classmethod
    def from_json(cls, fields: Fields) -> ComparisonRow:
        """Read the JSON form; why a row failed is not part of it."""
        document = {"schema": RESULT, **fields.document}
        return cls(
            Result.from_json(Fields(document, fields.source, fields.prefix)),
            fields.choice("bound_scope", (ALL, ACCEPTED)) if fields.known("bound_scope") else None,
            fields.known_number("gap_to_bound", 0.0),
            fields.known_number("gap_to_best", 0.0),
        )


@dataclass(frozen=True, repr=False)
class Comparison(Answer):
    """Gap table of one problem.

    `best_bound` and `best_known` hold for everything that the problem asks, and are None where
    there is none. `unfinished` has the bounds and searches that were cut.

    Examples
    --------
    >>> gaps = optgap.compare(optgap.generate("coscheduling", size=4), "marble")
    >>> gaps
    <Comparison synthetic pool, 4 jobs, seed 0: 2 rows, best known within 0.00 %>
    >>> round(gaps.row("marble").gap_to_bound, 3), list(gaps.to_frame().index)
    (0.281, ['oracle', 'marble'])
    """

    family: str
    problem_name: str
    problem_summary: str
    unit: str
    sense: Sense
    best_bound: float | None
    bound_by: str | None
    best_known: float | None
    known_by: str | None
    rows: tuple[ComparisonRow, ...]
    termination: Termination = Termination.COMPLETED
    unfinished: tuple[Unfinished, ...] = ()

    @property
    def gap(self) -> float | None:
        """Gap between the best known solution and the best bound."""
        return relative_gap(self.best_known, self.best_bound)

    @property
    def infeasible(self) -> Result | None:
        """Proof that no solution serves all that the problem asks; None without such a proof."""
        proofs = (row.result for row in self.rows if row.result.status is Status.INFEASIBLE)
        return next(proofs, None)

    @property
    def ranked(self) -> tuple[ComparisonRow, ...]:
        """Rows as tables show them: methods, policies, accepted parts; each sorted by gap."""
        return tuple(sorted(self.rows, key=rank))

    @property
    def blocks(self) -> tuple[ComparisonRow, ...]:
        """Rows of `ranked` that ran."""
        return tuple(row for row in self.ranked if row.result.message != NOT_RUN)

    def row(self, method: str) -> ComparisonRow:
        """Return the row of this method or policy; raise KeyError if there is none."""
        for row in self.rows:
            if row.result.method == method:
                return row
        raise KeyError(method)

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form, ``optgap.compare/1``."""
        return {
            "schema": SCHEMA,
            "family": self.family,
            "problem": {"name": self.problem_name, "summary": self.problem_summary},
            "unit": self.unit,
            "sense": self.sense,
            "best_bound": self.best_bound,
            "bound_by": self.bound_by,
            "best_known": self.best_known,
            "known_by": self.known_by,
            "gap": self.gap,
            "infeasible_by": self.infeasible.method if self.infeasible else None,
            "termination": str(self.termination),
            "unfinished": [one.to_json() for one in self.unfinished],
            "rows": [row.to_json() for row in self.rows],
        }

    @classmethod
    def from_json(cls, fields: Fields) -> Comparison:
        """Read the JSON form.

        Raises
        ------
        InputError: naming the field that is missing or not what it should be.
        """
        fields.schema(SCHEMA)
        problem = fields.object("problem")
        return cls(
            fields.text("family"),
            problem.text("name"),
            problem.text("summary"),
            fields.text("unit"),
            fields.choice("sense", get_args(Sense)),  # type: ignore[arg-type]  # checked
            fields.known_number("best_bound"),
            fields.known_text("bound_by"),
            fields.known_number("best_known"),
            fields.known_text("known_by"),
            tuple(ComparisonRow.from_json(row) for row in fields.objects("rows")),
            Termination(fields.choice("termination", list(Termination), "completed")),
            tuple(
                Unfinished.from_json(one)
                for one in (fields.objects("unfinished") if fields.known("unfinished") else ())
            ),
        )

    def to_frame(self, full: bool = False) -> pd.DataFrame:
        """Return a DataFrame with a row for each method and policy, ranked as in the table.

        Parameters
        ----------
        full
            Whether to add every other field of the JSON form, and the metrics. Default False.

        Returns
        -------
        pandas.DataFrame
            Indexed by name, with `objective`, `bound`, `gap_to_bound`, `gap_to_best`, `low` and
            `high` (ends of the interval of `gap_to_bound`; NaN without uncertainty), `seconds`.
        """
        import pandas as pd

        lines = []
        for row in self.ranked:
            document = {"low": None, "high": None, **row.to_json()}
            flat = {k: v for k, v in document.items() if not isinstance(v, Mapping)}
            lines.append({**flat, **document["metrics"]} if full else flat)
        names = pd.Index([line.pop("method") for line in lines], name="name")
        more = dict.fromkeys(key for line in lines if full for key in line if key not in FRAME)
        frame = pd.DataFrame(lines, index=names, columns=[*FRAME, *more])
        return frame.astype(dict.fromkeys(FRAME, float))

    def head(self) -> list[str]:
        """Return lines on the problem, the best bound and solution, and what was cut."""
        lines = [f"{self.problem_name}: {self.problem_summary}"]
        if self.infeasible:
            lines.append(f"{UNSERVED}, as {self.infeasible.method} proves")
        bound = "none" if self.best_bound is None else self._amount(self.best_bound)
        lines.append(f"best bound {bound}" + (f", by {self.bound_by}" if self.bound_by else ""))
        lines.append(f"best known {self._known()}")
        if (open_share := percent(self.gap)) not in ("", percent(0.0)):
            lines[-1] += f"; {open_share} from the bound, unproven and part of every gap"
        return [*lines, *self._in_every_row(), *self.announced()]

    def _amount(self, value: float) -> str:
        """Write a value with as many digits as objectives have in the table."""
        return f"{in_column([value, *(r.result.objective for r in self.blocks)])[0]} {self.unit}"

    def _known(self) -> str:
        """Describe the best known solution, or a method's for a part if none serves everything."""
        if self.best_known is not None:
            by = f", by {self.known_by}" if self.known_by else ""
            return self._amount(self.best_known) + by
        found = (row.result for row in self.rows if row.partial and row.result.kind != "policy")
        part = next((one for one in found if one.objective is not None), None)
        if part is None:
            return "none"
        return f"of a part {number(part.objective)} {self.unit}, by {part.method}: {part.message}"

    @property
    def loose(self) -> bool:
        """Whether a bound for everything was cut, so that gaps to it may be too large."""
        cut = (one.kind != SEARCH and not one.accepted_by for one in self.unfinished)
        return any(cut) and not (self.gap is not None and self.gap <= CLOSED)

    def announced(self) -> list[str]:
        """Return lines on what was cut, and by how much gaps are too large; none if all ended."""
        closed = self.gap is not None and self.gap <= CLOSED
        lines = [str(one) for one in self.unfinished if one.accepted_by or not closed]
        rows = [
            (row, shown - least)
            for row in self.rows
            if row.result.kind == "policy"
            and (shown := row.gap_to_bound) is not None
            and (least := row.gap_at_least) is not None
        ]
        if not self.loose or not rows:
            return lines
        best = min(rows, key=lambda pair: pair[0].gap_to_bound or 0.0)
        worst = max(rows, key=lambda pair: pair[1])
        row, points = best
        said = (
            f"{row.result.method}'s by {100 * points:.2f} points at most "
            f"({percent(row.gap_to_bound)} shown, at least {percent(row.gap_at_least)})"
        )
        if worst is not best:
            said += f", {worst[0].result.method}'s by {100 * worst[1]:.2f}"
        words = f"! gaps below may be too large: {said}"
        return [*lines, f"{words}; each is at least the gap to best known"]

    def _columns(self) -> dict[str, list[str]]:
        """Return the cells of the table by column, constant columns included."""
        rows = self.blocks
        statuses = [
            f"{r.result.status} ({r.result.termination})" if r.stopped else str(r.result.status)
            for r in rows
        ]
        return {
            "kind": [row.result.kind for row in rows],
            "status": statuses,
            f"objective ({self.unit})": in_column(row.result.objective for row in rows),
            f"bound ({self.unit})": in_column(row.result.bound for row in rows),
            GAP_TO_BOUND: percents(row.gap_to_bound for row in rows),
            GAP_TO_BEST: percents(row.gap_to_best for row in rows),
            "bound for": [PART if row.partial else row.bound_scope or "" for row in rows],
            SECONDS: durations([row.result.seconds for row in rows]),
        }

    def _constant(self, name: str, cells: Sequence[str]) -> bool:
        """Tell whether a column says the same in every row, so that it belongs in the head."""
        return len(cells) > 1 and len(set(cells)) == 1 and name not in (GAP_TO_BOUND, SECONDS)

    def _in_every_row(self) -> list[str]:
        """Return one line about constant columns that the head has not told already."""
        bound = in_column([self.best_bound])
        told = [
            f"{head} {cells[0]} {unit.rstrip(')')}".rstrip()
            for name, cells in self._columns().items()
            for head, _, unit in [name.partition(" (")]
            if self._constant(name, cells) and cells[0] not in ("", ALL, *bound)
        ]
        return [f"in every row: {', '.join(told)}"] if told else []

    def table(self) -> Table:
        """Return a line for each method and policy, ranked; `head` has what all share."""
        rows, columns = self.blocks, self._columns()
        shown = {name: cells for name, cells in columns.items() if not self._constant(name, cells)}
        lines = list(zip([row.label for row in rows], *shown.values(), strict=True))
        header = ("", *shown)
        numbers = [k for k, name in enumerate(header) if name.endswith(")")]
        return header, in_groups(lines, [rank(row)[0] for row in rows]), tuple(numbers)

    def notes(self) -> list[str]:
        """Return the meanings of marks and words, and the messages of rows."""
        unbounded = self.infeasible and any(row.result.message == SERVES_PART for row in self.rows)
        return [
            *legend(self.rows),
            *([NO_PARTS] if unbounded and not any(row.partial for row in self.rows) else []),
            *(
                f"{row.result.method}: {row.result.message}"
                for row in self.blocks
                if row.result.message and not (row.partial and row.result.message == SERVES_PART)
            ),
        ]

    def __repr__(self) -> str:
        gap = "no gap known" if self.gap is None else f"best known within {percent(self.gap)}"
        return shorten(
            NoQuote(f"<Comparison {self.problem_name}: {len(self.rows)} rows, {gap}>"), MOST
        )

    def plot(self, path: str | os.PathLike[str] | None = None) -> Figure:
        """Return a figure of the gaps, and write it to `path` (.png, .svg or .pdf) if given.

        Raises
        ------
        InputError: for another ending, or a place that cannot be written to.
        """
        return drawn(self, path)


@dataclass(frozen=True, repr=False)
class ComparisonSet(Answer):
    """Comparisons for several values of one parameter of the problem.

    Examples
    --------
    >>> gaps = optgap.sweep("coscheduling", "size", [3, 4], policies="marble")
    >>> [round(gap, 3) for gap in gaps.gaps("marble")], [len(one.rows) for one in gaps.comparisons]
    ([0.267, 0.281], [2, 2])
    """

    parameter: str
    values: tuple[Any, ...]
    comparisons: tuple[Comparison, ...]

    @property
    def methods(self) -> tuple[str, ...]:
        """Names of all rows, in order of first appearance."""
        names = (row.result.method for c in self.comparisons for row in c.rows)
        return tuple(dict.fromkeys(names))

    @property
    def measured(self) -> tuple[str, ...]:
        """Names with a gap or a failure at some value; a bound alone has neither."""
        return tuple(
            name
            for name in self.methods
            if any(row and (row.gap_to_bound is not None or row.failure) for row in self.row(name))
        )

    def row(self, method: str) -> list[ComparisonRow | None]:
        """Return the row of this method or policy at each value; None where there is none."""
        return [
            next((row for row in comparison.rows if row.result.method == method), None)
            for comparison in self.comparisons
        ]

    def gaps(self, method: str) -> list[float | None]:
        """Return the gap to the bound of this method or policy at each value."""
        return [row.gap_to_bound if row else None for row in self.row(method)]

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form, ``optgap.compare-set/1``."""
        return {
            "schema": SET_SCHEMA,
            "parameter": self.parameter,
            "values": list(self.values),
            "comparisons": [comparison.to_json() for comparison in self.comparisons],
        }

    @classmethod
    def from_json(cls, fields: Fields) -> ComparisonSet:
        """Read the JSON form; raise InputError as `Comparison.from_json` does."""
        fields.schema(SET_SCHEMA)
        comparisons = tuple(Comparison.from_json(part) for part in fields.objects("comparisons"))
        values = fields.array("values")
        if len(values) != len(comparisons):
            raise fields.fail("values", values, f"{len(comparisons)}, one per comparison")
        return cls(fields.text("parameter"), tuple(values), comparisons)

    def to_frame(self, full: bool = False) -> pd.DataFrame:
        """Return the frames of all comparisons, indexed by the parameter's value and by name.

        Parameters
        ----------
        full
            As for `Comparison.to_frame`.

        Returns
        -------
        pandas.DataFrame
            ``frame["gap_to_bound"].unstack(0)`` has a column for each value.
        """
        import pandas as pd

        frames = [comparison.to_frame(full) for comparison in self.comparisons]
        return pd.concat(frames, keys=list(self.values), names=[self.parameter, "name"])

    @property
    def blocks(self) -> tuple[str, ...]:
        """Names of `measured` as tables show them, sorted by kind of row and mean gap."""
        return tuple(sorted(self.measured, key=self._rank))

    def _rank(self, name: str) -> tuple[int, float]:
        """Return the last group of `rank` among the rows of this name, and their mean gap."""
        ranks = [rank(row) for row in self.row(name) if row]
        return max(group for group, _ in ranks), sum(gap for _, gap in ranks) / len(ranks)

    def head(self) -> list[str]:
        """Return lines on what was cut, and by how much at most gaps are too large."""
        return [
            f"{self.parameter}={value}: {line}"
            for value, comparison in zip(self.values, self.comparisons, strict=True)
            for line in comparison.announced()
        ]

    def table(self) -> Table:
        """Return the gaps to the bound: a line for each method or policy, a column for a value."""
        header = (GAP_TO_BOUND, *(f"{self.parameter}={value}" for value in self.values))
        lines = [
            (name, *(row.cell if row else "" for row in self.row(name))) for name in self.blocks
        ]
        groups = [self._rank(name)[0] for name in self.blocks]
        return header, in_groups(lines, groups), tuple(range(1, len(header)))

    def notes(self) -> list[str]:
        """Return the meanings of marks and words in the table, and the messages of rows."""
        lines = [
            f"{self.parameter}={value}: {UNSERVED}, as {comparison.infeasible.method} proves"
            for value, comparison in zip(self.values, self.comparisons, strict=True)
            if comparison.infeasible
        ]
        shown = set(self.measured)
        rows = (row for comparison in self.comparisons for row in comparison.rows)
        marks = legend(row for row in rows if row.result.method in shown)
        lines += [f"{OF_PART} {line}" if line == PART_NOTE else line for line in marks]
        for value, comparison in zip(self.values, self.comparisons, strict=True):
            lines += [
                f"{self.parameter}={value}: {row.result.method}: {row.result.message}"
                for row in comparison.rows
                if row.result.status is Status.ERROR
            ]
        return lines

    def __repr__(self) -> str:
        values = ", ".join(map(str, self.values))
        return shorten(NoQuote(f"<ComparisonSet {self.parameter} = {values}>"), MOST)

    def plot(self, path: str | os.PathLike[str] | None = None) -> Figure:
        """Return a figure of the gaps over the parameter; `path` is as for `Comparison.plot`."""
        return drawn(self, path)


def drawn(answer: Any, path: str | os.PathLike[str] | None) -> Figure:
    """Return the picture of a comparison of any kind; import the plotting only now."""
    figure: Figure = imported("optgap.plotting.gaps:gaps_figure")(answer)
    return delivered(figure, path)


def rank(row: ComparisonRow) -> tuple[int, float]:
    """Return the place of a row: methods, then policies, then accepted parts; each by its gap."""
    group = 2 if row.partial else row.result.kind == "policy"
    return int(group), math.inf if row.gap_to_bound is None else row.gap_to_bound


def in_groups(lines: Sequence[Row], groups: Sequence[int]) -> list[Row]:
    """Return the lines of a table with a rule wherever their group changes."""
    found: list[Row] = []
    for k, line in enumerate(lines):
        if k and groups[k] != groups[k - 1]:
            found.append(RULE)
        found.append(line)
    return found


def legend(rows: Iterable[ComparisonRow]) -> list[str]:
    """Return the meanings of those marks and words that some row uses."""
    rows = list(rows)
    said: dict[str, Callable[[Result], bool]] = {
        f"{STOPPED} stopped by its time limit": lambda r: r.termination is Termination.TIME_LIMIT,
        f"{STOPPED} stopped by its work budget": lambda r: r.termination is Termination.WORK_LIMIT,
        f"{STOPPED} interrupted": lambda r: r.termination is Termination.INTERRUPTED,
        f"{NOT_RUN}, as nothing serves all": lambda r: r.message == NOT_RUN,
        "not repeatable": lambda r: (
            not r.repeatable and r.kind != "policy" and r.termination is not Termination.TIME_LIMIT
        ),
    }
    lines = [PART_NOTE] if any(row.partial for row in rows) else []
    cut = (row.result.termination is Termination.TIME_LIMIT for row in rows)
    lines += [HOT] if any(cut) else []
    for words, holds in said.items():
        names = dict.fromkeys(row.result.method for row in rows if holds(row.result))
        if names:
            lines.append(f"{words}: {', '.join(names)}")
    return lines
