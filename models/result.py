"""Result of a solver, a bound or a policy, with its proven quality.

A result has two levels of status. `Status` says what the result holds, and `Termination` says
why the work stopped. An incumbent at a time limit is ``feasible`` / ``time_limit`` and never
optimal. The bound of a search without an incumbent is kept.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from html import escape
from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal, get_args

from optgap.models.errors import NoQuote, shorten
from optgap.models.shown import MOST, VIEWS, html_lines, html_table

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from pandas import DataFrame

    from optgap.models.jsonio import Fields

SCHEMA = "optgap.result/1"
SERVES_PART = "serves only part of what is asked: bounds for all of it do not apply"
"""Message about a solution that rejects some of the demand."""

Sense = Literal["min", "max"]
Kind = Literal["exact", "bound", "offline", "policy"]


class Status(StrEnum):
    """Content of a result: a solution, a bound, a proof, or none of these.

    Examples
    --------
    >>> result = optgap.solve(optgap.generate("coscheduling", size=4))
    >>> result.status is optgap.Status.OPTIMAL, str(result.status)
    (True, 'optimal')
    """

    OPTIMAL = "optimal"
    """A solution that the referee accepts, proven best."""
    FEASIBLE = "feasible"
    """A solution that the referee accepts, not proven best."""
    BOUND_ONLY = "bound_only"
    """A proven bound and no solution."""
    INFEASIBLE = "infeasible"
    """A proof that there is no solution."""
    NO_SOLUTION = "no_solution"
    """Neither a solution nor a proof of any kind."""
    ERROR = "error"
    """The method failed; `Result.message` says how."""


class Termination(StrEnum):
    """Reason why the work stopped.

    Examples
    --------
    >>> result = optgap.solve(optgap.generate("coscheduling", size=4))
    >>> result.termination is optgap.Termination.COMPLETED, str(result.termination)
    (True, 'completed')
    """

    COMPLETED = "completed"
    """Nothing was cut short."""
    WORK_LIMIT = "work_limit"
    """A budget of work was used up: the same on every machine."""
    TIME_LIMIT = "time_limit"
    """The user's limit on time cut the work."""
    INTERRUPTED = "interrupted"
    ERROR = "error"


@dataclass(frozen=True, slots=True)
class Objective:
    """Name of the objective, with unit and direction."""

    name: str
    unit: str
    sense: Sense = "min"


@dataclass(frozen=True, slots=True)
class Violation:
    """Violated constraint, as the referee states it."""

    constraint: str
    where: str
    found: float | int | str
    limit: float | int | str

    def __str__(self) -> str:
        return f"{self.where}: {self.constraint}: found {self.found}, limit {self.limit}"


@dataclass(frozen=True, slots=True)
class Evaluation:
    """The referee's own numbers for a solution."""

    objective: float
    metrics: Mapping[str, float | int]


@dataclass(frozen=True, slots=True)
class Outcome:
    """Answer of a method or policy, before the referee has checked it.

    Parameters
    ----------
    solution: the family's solution, or None.
    status: content, as the method claims it.
    termination: reason why the method stopped.
    claimed: the objective by the method's own arithmetic, compared with the referee's.
    bound: a proven bound on the objective of every solution that serves what the problem asks.
    bound_by: proof and solver of the bound, in words.
    info: further figures (iterations, columns, nodes of a search tree).
    message: one line for a person, or "".
    """

    solution: Any | None
    status: Status
    termination: Termination = Termination.COMPLETED
    claimed: float | None = None
    bound: float | None = None
    bound_by: str | None = None
    info: Mapping[str, float | int | str] = field(default_factory=dict)
    message: str = ""


@dataclass(frozen=True, slots=True, repr=False)
class Result:
    """Solution with the referee's objective and a proven bound.

    `objective` is the referee's; `bound` is in the same unit and sense. `seconds` is wall
    time of the method alone, without reading files, compiling or refereeing. `problem` is the
    solved problem, if known: the JSON form needs its names. `repeatable` says that
    another run, on any number of cores, gives the same result.

    Examples
    --------
    >>> result = optgap.solve(optgap.generate("coscheduling", size=4))
    >>> round(result.objective), round(result.bound), result.unit, round(result.gap, 6)
    (98349, 98349, 'J', 0.0)
    >>> len(result.to_frame())
    4
    """

    family: str
    method: str
    kind: Kind
    status: Status
    termination: Termination
    objective: float | None
    unit: str
    sense: Sense
    bound: float | None
    bound_by: str | None
    seconds: float
    seed: int | None
    versions: Mapping[str, str]
    metrics: Mapping[str, float | int | str] = field(default_factory=dict)
    solution: Any | None = None
    message: str = ""
    problem: Any | None = field(default=None, repr=False, compare=False)
    repeatable: bool = True

    def __repr__(self) -> str:
        unit = f" {self.unit}" if self.unit else ""
        parts = [f"{self.family} by {self.method}: {self.status}"]
        parts += [f"{self.objective:,.6g}{unit}"] if self.objective is not None else []
        parts += [f"bound {self.bound:,.6g}{unit}"] if self.bound is not None else []
        parts += [f"gap {100 * self.gap:.2f} %"] if self.gap is not None else []
        return f"<Result {shorten(NoQuote(', '.join(parts)), MOST)}>"

    def to_frame(self, table: str | None = None) -> DataFrame:
        """Return the solution as a DataFrame: the place and time of every task.

        Parameters
        ----------
        table: name of a table that `optgap run` writes for the family. Default: the first.

        Raises
        ------
        InputError: for a result without a solution, or an unknown table.
        """
        frame: DataFrame = _face("result_frame")(self, table)
        return frame

    def plot(self, path: str | os.PathLike[str] | None = None) -> Figure:
        """Return a figure of the solution, and write it to `path` (.png, .svg or .pdf) if given.

        Raises
        ------
        InputError: for a result without a solution, or a place that cannot be written to.
        """
        figure: Figure = _face("plot_result")(self, path)
        return figure

    def _repr_html_(self) -> str:
        lines = [escape(repr(self).strip("<>"))]
        lines += [f"bound by {escape(self.bound_by)}"] if self.bound_by else []
        lines += [escape(self.message)] if self.message else []
        known = [(k, v if isinstance(v, str) else f"{v:,.6g}") for k, v in self.metrics.items()]
        return html_lines(lines) + (html_table(("metric", "value"), known, (1,)) if known else "")

    @property
    def gap(self) -> float | None:
        """Gap |objective − bound| / |bound|; None if one is unknown, or for a missed bound of 0."""
        return relative_gap(self.objective, self.bound)

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form, ``optgap.result/1``."""
        solution = self.solution
        if solution is not None and not isinstance(solution, Mapping):
            solution = solution.to_json(self.problem)
        return {
            "schema": SCHEMA,
            "family": self.family,
            "method": self.method,
            "kind": self.kind,
            "status": str(self.status),
            "termination": str(self.termination),
            "objective": self.objective,
            "unit": self.unit,
            "sense": self.sense,
            "bound": self.bound,
            "bound_by": self.bound_by,
            "gap": self.gap,
            "seconds": self.seconds,
            "seed": self.seed,
            "message": self.message,
            "repeatable": self.repeatable,
            "versions": dict(self.versions),
            "metrics": dict(self.metrics),
            "solution": solution,
        }

    @classmethod
    def from_json(
        cls,
        fields: Fields,
        decode: Callable[[Fields], Any] | None = None,
        problem: Any | None = None,
    ) -> Result:
        """Read the JSON form.

        `decode` turns the JSON form of the solution into the family's own; without it the
        solution stays a plain dictionary.

        Raises
        ------
        InputError: with the name of a field that is missing or wrong.
        """
        fields.schema(SCHEMA)
        solution: Any | None = None
        if fields.known("solution"):
            inner = fields.object("solution")
            solution = decode(inner) if decode else dict(inner.document)
        return cls(
            family=fields.text("family"),
            method=fields.text("method"),
            kind=fields.choice("kind", get_args(Kind)),  # type: ignore[arg-type]  # checked
            status=Status(fields.choice("status", list(Status))),
            termination=Termination(fields.choice("termination", list(Termination))),
            objective=fields.known_number("objective"),
            unit=fields.text("unit"),
            sense=fields.choice("sense", get_args(Sense)),  # type: ignore[arg-type]  # checked
            bound=fields.known_number("bound"),
            bound_by=fields.known_text("bound_by"),
            seconds=fields.number("seconds"),
            seed=fields.integer("seed", minimum=-(2**62)) if fields.known("seed") else None,
            versions=dict(fields.object("versions").document),
            metrics=dict(fields.object("metrics").document),
            solution=solution,
            message=fields.text("message", ""),
            problem=problem,
            repeatable=fields.document.get("repeatable", True) is not False,
        )


def _face(name: str) -> Any:
    """Import a function of the face, which draws pictures and makes tables."""
    return getattr(import_module(VIEWS), name)


def relative_gap(objective: float | None, reference: float | None) -> float | None:
    """Return |objective − reference| / |reference|, or None if that is not a number."""
    if objective is None or reference is None:
        return None
    if not (math.isfinite(objective) and math.isfinite(reference)):
        return None
    if objective == reference:
        return 0.0
    if reference == 0:
        return None
    return abs(objective - reference) / abs(reference)
