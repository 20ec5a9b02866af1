"""Row ``logged``, the schedule that really ran, beside policies, methods and bounds."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from optgap.api import ahead
from optgap.auditing.result import Audit, Covered
from optgap.auditing.tables import UNTOLD, LoggedRows, read_log, require
from optgap.comparing.comparison import ACCEPTED, ALL, Comparison, ComparisonRow
from optgap.contract import Problem
from optgap.documents import ProblemLike, as_problem, as_solution
from optgap.models.errors import InputError, RefereeError
from optgap.models.limits import Limits
from optgap.models.placement.migrations import MigrationProblem
from optgap.models.placement.solution import PlacementSolution
from optgap.models.queueing.log import QueueLog
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
IDLE = 0.5
"""Share of idle waiting above which a log does not show the possible saving."""


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
    audit = replace(audit, sentence=_solution_sentence(audit), facts=facts)
    if moves is None or subject.family != "placement" or audit.violations:
        return audit
    migration = MigrationProblem.of(subject, solution)
    plan = curve(migration, limits=limits, seed=seed, wanted=(moves,))
    return replace(audit, curve=plan, asked=moves)


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


def _solution_sentence(audit: Audit) -> str:
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


# -- logs of jobs that ran ------------------------------------------------------------------------


def audit_queue(kind: str, source: str, log: QueueLog, beside: Beside) -> Audit:
    """Audit a log of jobs that ran.

    The schedule may need more GPUs than the pool was said to have. The audit then compares it
    with nothing.

    Parameters
    ----------
    kind: format of the log, ``slurm`` or ``swf``.
    """
    covered = Covered(log.records, len(log.problem), log.reasons)
    if log.lacks:
        beside = partial(beside, policies=(), methods=())
    found = judged(kind, source, log.problem, log.logged, covered, beside)
    return replace(
        found,
        sentence=log.lacks or _sentence(log, found),
        facts=_facts(log),
        warnings=log.warnings,
    )


def _seconds(value: float) -> str:
    """Write seconds with three digits, or as a whole number from 100 on."""
    return f"{value:.3g} s" if value < 100 else f"{value:,.0f} s"


def _best_policy(comparison: Comparison | None) -> Result | None:
    """Return the policy with the least objective, apart from the log; None if none ran."""
    rows = [
        row.result
        for row in (comparison.rows[1:] if comparison else ())
        if row.result.kind == "policy"
        and row.result.objective is not None
        and row.bound_scope != ACCEPTED
    ]
    return min(rows, key=lambda result: result.objective or 0.0, default=None)


def _sentence(log: QueueLog, found: Audit) -> str:
    now, bound = found.now.objective, found.best_bound
    text = f"The mean wait was {_seconds(now)}"
    if now <= 0:
        return f"{text}: no job waited, and nothing could be saved."
    if log.idle_waiting >= IDLE:
        return (
            f"{text}. During {percent(log.idle_waiting, 0)} of the waiting time enough GPUs were "
            "free for every waiting job, so the log does not show what a better schedule could "
            "save (limits, priorities, CPUs, memory, reservations and other jobs are not in the "
            "file)."
        )
    told = []
    if best := _best_policy(found.comparison):
        told.append(f"{best.method} gives {_seconds(best.objective or 0.0)}")
    if bound is not None:
        share = percent(max(0.0, (now - bound) / now), 1)
        told.append(f"the lower bound is {_seconds(bound)}, so at most {share} could be saved")
    where = "as told" if log.pool.said == "as told" else "in the log"
    gpus = f"{log.problem.gpus:,} GPU" + "s" * (log.problem.gpus > 1)
    return f"{text}. With the {gpus} {where}, {' and '.join(told)}." if told else f"{text}."


def _facts(log: QueueLog) -> tuple[tuple[str, str], ...]:
    wait = log.logged.start_s - log.problem.jobs.arrival_s
    facts = [
        ("GPUs", f"{log.problem.gpus:,}, {log.pool.said}"),
        ("mean wait", f"{_seconds(float(wait.mean()))}, median {_seconds(float(np.median(wait)))}"),
        ("load", percent(log.load, 1)),
    ]
    if len(log.pools) > 1:
        told = [f"{name}: {counted(jobs, 'job')}, {number(hours)} GPU-h" for name, (jobs, hours) in
                sorted(log.pools.items(), key=lambda p: -p[1][1])]  # fmt: skip
        facts.append(("pools (--set pool=NAME)", "; ".join(told)))
    return tuple(facts)
