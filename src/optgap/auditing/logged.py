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
from optgap.explaining.logged import NAME, logged_result
from optgap.models.limits import Limits
from optgap.models.result import Evaluation, Violation, relative_gap


@dataclass(frozen=True)
class Beside:
    """What is to stand beside what happened: as for `compare`.

    Parameters
    ----------
    time_limit: seconds after which each method is cut, where it is told.
    """

    policies: str
    methods: str
    time_limit: float | None
    effort: float
    seed: int
    limits: Limits

    def judge(self, problem: Problem, solution: Any) -> Logged:
        """What happened beside policies and methods."""
        comparison = compare(
            problem,
            self.policies,
            self.methods,
            time_limit=self.time_limit,
            effort=self.effort,
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
    result = logged_result(problem, solution, violations)
    now, serves = problem.evaluate(solution), problem.serves_all(solution)
    bound, sense = comparison.best_bound, result.sense
    result = replace(result, bound=bound, bound_by=comparison.bound_by)
    undercuts = bound is not None and ahead(now.objective, bound, sense)
    fair = serves and not violations
    known, by = comparison.best_known, comparison.known_by
    if fair and (known is None or ahead(now.objective, known, sense)):
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
