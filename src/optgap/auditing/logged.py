"""Row ``logged``, the schedule that really ran, beside policies, methods and bounds."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from optgap.api import ahead
from optgap.auditing.result import Audit, Covered
from optgap.auditing.tables import UNTOLD, LoggedRows, read_log, require
from optgap.comparing.comparison import ALL, Comparison, ComparisonRow
from optgap.contract import Problem
from optgap.documents import ProblemLike, as_problem, as_solution
from optgap.models.errors import InputError, RefereeError
from optgap.models.limits import Limits
from optgap.models.placement.migrations import MigrationProblem
from optgap.models.placement.solution import PlacementSolution
from optgap.models.queueing.solution import QueueingSolution
from optgap.models.result import Result, Status, Termination, relative_gap
from optgap.models.shown import counted
from optgap.render import number, percent
from optgap.solvers.placement.migrations import curve
from optgap.versions import versions

NAME = "logged"
"""Name of the row of the schedule that really ran."""
Beside = Callable[..., Comparison]
"""Function that compares policies and methods on the problem of a log."""


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
    broken = tuple(problem.check(solution))
    comparison = beside(problem)
    now, serves = problem.evaluate(solution), problem.serves_all(solution)
    goal = problem.objective.described
    message = [f"breaks {counted(len(broken), 'constraint')}"] if broken else []
    message += [] if serves else ["does not serve all"]
    bound, sense = comparison.best_bound, goal.sense
    fair = serves and not broken
    known, by = comparison.best_known, comparison.known_by
    if fair and bound is not None:
        if ahead(now.objective, bound, sense):
            told = f"the bound {bound:g} of {comparison.bound_by} is beyond {now.objective:g}"
            raise RefereeError(f"{told}, which is what happened")
        bound = (min if sense == "min" else max)(bound, now.objective)  # rounding apart
    if fair and (known is None or ahead(now.objective, known, sense)):
        known, by = now.objective, NAME
    result = Result(
        problem.family, NAME, "policy", Status.FEASIBLE, Termination.COMPLETED, now.objective,
        goal.unit, sense, bound, comparison.bound_by, 0.0, None, versions(), dict(now.metrics),
        solution, "; ".join(message), problem,
    )  # fmt: skip
    own = ComparisonRow(
        result,
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
        kind, source, problem, solution, now, broken, known, by or "", bound,
        made.bound_by or "", covered, "", termination=made.termination, comparison=made,
    )  # fmt: skip


def audit_solution(
    kind: str,
    problem: ProblemLike,
    log: Any,
    beside: Beside,
    *,
    moves: int | None,
    limits: Limits,
    seed: int,
    columns: Mapping[str, str] | None,
) -> Audit:
    """Audit a logged solution of a problem.

    Parameters
    ----------
    kind: the problem's family.
    log: a path, or a solution.
    columns: our names for the log's own columns.
    moves: for placements the number of migrations to plan from there, within `limits`.

    Raises
    ------
    InputError: for a problem of another family, or a file that is no log of the problem.
    """
    subject: Any = as_problem(problem)
    if subject.family != kind:
        raise InputError("audit", "problem", subject.family, f"a problem of {kind}")
    if isinstance(log, (str, os.PathLike)):
        source, found = str(log), read_log(log, subject, columns)
    else:
        source, found = "log", LoggedRows(as_solution(log, subject), len(subject.subjects), {})
    require(found, source)
    reasons = dict(found.reasons)
    count = len(subject.subjects)
    subject, solution = _served(subject, found.solution)
    left = count - len(subject.subjects) - reasons.get(UNTOLD, 0)
    if left:
        reasons.pop("not placed", None)  # they are among those that are left
        reasons["not in the log, or not placed"] = left
    covered = Covered(max(found.records, count), len(subject.subjects), reasons)
    audit = judged(kind, source, subject, solution, covered, beside)
    facts = tuple((name, number(value)) for name, value in audit.now.metrics.items())
    audit = replace(audit, sentence=_sentence(audit), facts=facts)
    if moves is None or subject.family != "placement" or audit.violations:
        return audit
    migration = MigrationProblem.of(subject, solution)
    plan = curve(migration, limits=limits, seed=seed, wanted=(moves,))
    names = subject.cluster.names
    return replace(audit, migration=migration, curve=plan, node_names=names, asked=moves)


def _served(problem: Any, solution: Any) -> tuple[Any, Any]:
    """Return problem and solution without unserved tasks, if these can be taken out."""
    if problem.serves_all(solution):
        return problem, solution
    if isinstance(solution, PlacementSolution) and (kept := solution.node >= 0).any():
        placed = PlacementSolution.of_arrays(solution.node[kept], solution.gpu_mask[kept])
        return problem.restrict(solution), placed
    if isinstance(solution, QueueingSolution) and solution.started.size:
        started, part = solution.started, problem.restrict(solution)
        held = [solution.nodes_of(k) for k in started.tolist()]
        start, end = solution.start_s[started], solution.end_s[started]
        return part, QueueingSolution.on_nodes(part, start, held, end)
    return problem, solution


def _sentence(audit: Audit) -> str:
    """Say how far the logged schedule is from the bound."""
    comparison: Any = audit.comparison
    unit = comparison.unit
    text = f"the logged schedule comes to {number(audit.now.objective)} {unit}"
    if audit.violations:
        text += f" and breaks {counted(len(audit.violations), 'constraint')}"
    gap = comparison.rows[0].gap_to_bound
    if gap is not None:
        word = "above" if comparison.sense == "min" else "below"
        text += f", {percent(gap, 1)} {word} the proven bound of {number(audit.best_bound)} {unit}"
        if audit.known_by not in ("", NAME):
            text += f"; {audit.known_by} reaches {number(audit.best_known)} {unit}"
    return text
