"""The row ``logged``: what really happened, held against policies, methods and bounds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from optgap.api import ahead
from optgap.auditing.result import Audit, Covered, Records
from optgap.comparing.comparison import ALL, Comparison, ComparisonRow
from optgap.comparing.gaps import compare
from optgap.contract import Problem
from optgap.models.limits import Limits
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


@dataclass(frozen=True)
class Beside:
    """What is to stand beside what happened: as for `compare`.

    Parameters
    ----------
    time_limit: seconds for each method and policy, where it is told.
    """

    policies: str
    methods: str
    time_limit: float | None
    seed: int
    limits: Limits

    def judge(self, problem: Problem, solution: Any, share_s: float) -> Logged:
        """What happened beside policies and methods, which get `share_s` unless told otherwise."""
        comparison = compare(
            problem,
            self.policies,
            self.methods,
            time_limit=self.time_limit or share_s,
            limits=self.limits,
            seed=self.seed,
        )
        return with_logged(problem, solution, comparison)


@dataclass(frozen=True)
class Logged:
    """What happened, judged.

    Parameters
    ----------
    comparison: with what happened as its first row.
    now: the referee's numbers for it.
    violations: constraints that it breaks.
    """

    problem: Problem
    solution: Any
    comparison: Comparison
    now: Evaluation
    violations: tuple[Violation, ...]

    def audit(
        self,
        kind: str,
        source: str,
        covered: Covered,
        sentence: str,
        facts: Sequence[tuple[str, str]],
        tables: Mapping[str, Records] | None = None,
        warnings: Sequence[str] = (),
    ) -> Audit:
        """The audit that says so."""
        found = self.comparison
        return Audit(
            kind,
            source,
            self.problem,
            self.solution,
            self.now,
            self.violations,
            found.best_known,
            found.known_by or "",
            found.best_bound,
            found.bound_by or "",
            covered,
            sentence,
            tuple(facts),
            tables or {},
            tuple(warnings),
            found.termination,
            comparison=found,
        )


def with_logged(problem: Problem, solution: Any, comparison: Comparison) -> Logged:
    """The comparison with what happened as its first row.

    A schedule that breaks a constraint (a real log has overlaps: reservations, draining, drift)
    keeps its row, which says so; a gap to a bound that it undercuts by them is left out, and
    it does not count as the best known.
    """
    violations = tuple(problem.check(solution))
    now = problem.evaluate(solution)
    serves = problem.serves_all(solution)
    goal = problem.objective.described
    bound = comparison.best_bound
    undercuts = bound is not None and ahead(now.objective, bound, goal.sense)
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
    if fair and (known is None or ahead(now.objective, known, goal.sense)):
        known, by = now.objective, NAME
    gap = None if undercuts or not serves else relative_gap(now.objective, bound)
    own = ComparisonRow(result, ALL if serves else None, gap, None)
    rows = [
        replace(row, gap_to_best=relative_gap(row.result.objective, known))
        if row.bound_scope == ALL
        else row
        for row in (own, *comparison.rows)
    ]
    made = replace(comparison, rows=tuple(rows), best_known=known, known_by=by)
    return Logged(problem, solution, made, now, violations)
