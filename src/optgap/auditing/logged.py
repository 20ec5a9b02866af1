"""The row ``logged``: what really happened, held against policies, methods and bounds."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from optgap.comparison import ALL, Comparison, ComparisonRow
from optgap.contract import Problem
from optgap.models.result import (
    Evaluation,
    Result,
    Status,
    Termination,
    Violation,
    relative_gap,
)
from optgap.versions import versions

NAME = "logged"


def beside(
    problem: Problem, solution: Any, comparison: Comparison
) -> tuple[Comparison, Evaluation, tuple[Violation, ...]]:
    """The comparison with what happened as its first row, the referee's numbers, and violations.

    A schedule that breaks a constraint (a real log has overlaps: reservations, draining, drift)
    keeps its row, which says so; a gap to a bound that it undercuts by them is left out, and
    it does not count as the best known.
    """
    violations = tuple(problem.check(solution))
    now = problem.evaluate(solution)
    serves = problem.serves_all(solution)
    goal = problem.objective.described
    bound = comparison.best_bound
    ahead = bound is not None and _better(now.objective, bound, goal.sense)
    fair = serves and not violations
    message = f"breaks {len(violations)} constraints" if violations else ""
    if not serves:
        message = "; ".join(filter(None, [message, "does not serve all"]))
    result = Result(
        problem.family, NAME, "policy", Status.FEASIBLE, Termination.COMPLETED, now.objective,
        goal.unit, goal.sense, bound, comparison.bound_by, 0.0, None, versions(),
        dict(now.metrics), solution, message, problem,
    )  # fmt: skip
    known, by = comparison.best_known, comparison.known_by
    if fair and (known is None or _better(now.objective, known, goal.sense)):
        known, by = now.objective, NAME
    gap = None if ahead or not serves else relative_gap(now.objective, bound)
    own = ComparisonRow(result, ALL if serves else None, gap, None)
    rows = [
        replace(row, gap_to_best=relative_gap(row.result.objective, known))
        if row.bound_scope == ALL
        else row
        for row in (own, *comparison.rows)
    ]
    made = replace(comparison, rows=tuple(rows), best_known=known, known_by=by)
    return made, now, violations


def _better(a: float, b: float, sense: str) -> bool:
    """Whether `a` beats `b` by more than rounding."""
    least = 1e-6 * max(1.0, abs(a), abs(b))
    return b - a > least if sense == "min" else a - b > least
