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
from optgap.models.errors import RefereeError
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

    def judge(self, problem: Problem, solution: Any, *, alone: str = "") -> Logged:
        """What happened beside policies and methods.

        Parameters
        ----------
        alone: why nothing may stand beside it: nothing runs, then, and nothing is proven.
        """
        if alone:
            goal = problem.objective.described
            nothing = (None, None, None, None, ())
            comparison = Comparison(
                problem.family, problem.name, problem.summary, goal.unit, goal.sense, *nothing
            )
            return with_logged(problem, solution, comparison)
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

    A schedule that breaks a constraint keeps its row, which says so; it has no gap, as the bound
    is one for schedules that break none, and it does not count as the best known.

    Raises
    ------
    RefereeError: when what happened breaks no constraint and is better than the bound.
    """
    violations = tuple(problem.check(solution))
    result = logged_result(problem, solution, violations)
    now, bound, sense = problem.evaluate(solution), comparison.best_bound, result.sense
    serves = problem.serves_all(solution)
    fair = serves and not violations
    known, by = comparison.best_known, comparison.known_by
    if fair and bound is not None:
        if ahead(now.objective, bound, sense):
            told = f"the bound {bound:g} of {comparison.bound_by} is beyond {now.objective:g}"
            raise RefereeError(f"{told}, which is what happened")
        bound = (min if sense == "min" else max)(bound, now.objective)  # rounding apart
    result = replace(result, bound=bound, bound_by=comparison.bound_by)
    if fair and (known is None or ahead(now.objective, known, sense)):
        known, by = now.objective, NAME
    gap = relative_gap(now.objective, bound) if fair else None
    own = ComparisonRow(result, ALL if serves else None, gap, None)
    rows = [
        replace(row, gap_to_best=relative_gap(row.result.objective, known))
        if row.bound_scope == ALL and not (row is own and violations)
        else row
        for row in (own, *comparison.rows)
    ]
    made = replace(comparison, rows=tuple(rows), best_bound=bound, best_known=known, known_by=by)
    return Logged(problem, solution, made, now, violations)
