"""Audit of a queue's log: a row beside every policy and the bound."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np

from optgap.auditing.logged import Beside, judged
from optgap.auditing.result import Audit, Covered
from optgap.comparing.comparison import ACCEPTED, Comparison
from optgap.models.queueing.log import QueueLog
from optgap.models.result import Result
from optgap.models.shown import counted
from optgap.render import number, percent

IDLE = 0.5
"""Share of idle waiting above which a log does not show the possible saving."""


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
