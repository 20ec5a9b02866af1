"""The row ``logged``: the schedule that really ran, beside policies, methods and bounds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from optgap.api import ahead
from optgap.auditing.result import Audit, Covered
from optgap.comparing.comparison import ALL, Comparison, ComparisonRow
from optgap.contract import Problem
from optgap.models.errors import RefereeError
from optgap.models.result import (
    Evaluation,
    Result,
    Status,
    Termination,
    Violation,
    relative_gap,
)
from optgap.models.shown import counted
from optgap.versions import versions

NAME = "logged"
"""Name of the row of the schedule that really ran."""
Beside = Callable[[Problem], Comparison]
"""Function that compares policies and methods on the problem of a log."""


def alone(problem: Problem) -> Comparison:
    """Return a comparison in which nothing ran and nothing is proven."""
    goal = problem.objective.described
    name, summary = problem.name, problem.summary
    nothing = (None, None, None, None, ())
    return Comparison(problem.family, name, summary, goal.unit, goal.sense, *nothing)


def judged(
    kind: str, source: str, problem: Problem, solution: Any, covered: Covered, beside: Beside
) -> Audit:
    """Return the audit with the logged schedule as the first row, but without a sentence.

    A schedule that breaks a constraint keeps its row, which says so. It has no gap, as the bound
    holds for schedules that break none, and it does not count as the best known.

    Raises
    ------
    RefereeError: when the logged schedule breaks no constraint and is better than the bound.
    """
    violations = tuple(problem.check(solution))
    comparison = beside(problem)
    now, serves = problem.evaluate(solution), problem.serves_all(solution)
    result = _result(problem, solution, now, violations, serves)
    bound, sense = comparison.best_bound, result.sense
    fair = serves and not violations
    known, by = comparison.best_known, comparison.known_by
    if fair and bound is not None:
        if ahead(now.objective, bound, sense):
            told = f"the bound {bound:g} of {comparison.bound_by} is beyond {now.objective:g}"
            raise RefereeError(f"{told}, which is what happened")
        bound = (min if sense == "min" else max)(bound, now.objective)  # rounding apart
    if fair and (known is None or ahead(now.objective, known, sense)):
        known, by = now.objective, NAME
    own = ComparisonRow(
        replace(result, bound=bound, bound_by=comparison.bound_by),
        ALL if serves else None,
        relative_gap(now.objective, bound) if fair else None,
        relative_gap(now.objective, known) if fair else None,
    )
    rows = [
        replace(row, gap_to_best=relative_gap(row.result.objective, known))
        if row.bound_scope == ALL
        else row
        for row in comparison.rows
    ]
    made = replace(comparison, rows=(own, *rows), best_bound=bound, best_known=known, known_by=by)
    return Audit(
        kind, source, problem, solution, now, violations, known, by or "", bound,
        made.bound_by or "", covered, "", termination=made.termination, comparison=made,
    )  # fmt: skip


def _result(
    problem: Problem, solution: Any, now: Evaluation, broken: Sequence[Violation], serves: bool
) -> Result:
    """Return the logged schedule as a result; its message counts the `broken` constraints."""
    goal = problem.objective.described
    message = f"breaks {counted(len(broken), 'constraint')}" if broken else ""
    if not serves:
        message = "; ".join(filter(None, [message, "does not serve all"]))
    return Result(
        problem.family, NAME, "policy", Status.FEASIBLE, Termination.COMPLETED, now.objective,
        goal.unit, goal.sense, None, None, 0.0, None, versions(), dict(now.metrics), solution,
        message, problem,
    )  # fmt: skip
