"""Audit of a queue's log: a row beside every policy and the bound, and the waits of each user."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from optgap.auditing.logged import Beside, alone, judged
from optgap.auditing.result import Audit, Covered, Records
from optgap.comparing.comparison import ACCEPTED, Comparison
from optgap.models.queueing.log import QueueLog
from optgap.models.result import Result
from optgap.models.shown import counted
from optgap.render import number, percent

MOST_USERS = 20
SIZES = ((1, 1), (2, 2), (3, 4), (5, 8), (9, 16), (17, 64), (65, 10**9))
"""Classes of jobs by GPU count, from and to."""
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
    found = judged(kind, source, log.problem, log.logged, covered, alone if log.lacks else beside)
    best = _best_policy(found.comparison)
    return replace(
        found,
        sentence=log.lacks or _sentence(log, found, best),
        facts=_facts(log),
        tables=_waits(log, best),
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


def _sentence(log: QueueLog, found: Audit, best: Result | None) -> str:
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
    if best:
        told.append(f"{best.method} gives {_seconds(best.objective or 0.0)}")
    if bound is not None:
        share = percent(max(0.0, (now - bound) / now), 1)
        told.append(f"the lower bound is {_seconds(bound)}, so at most {share} could be saved")
    where = "as told" if log.pool == "as told" else "in the log"
    gpus = f"{log.problem.gpus:,} GPU" + "s" * (log.problem.gpus > 1)
    return f"{text}. With the {gpus} {where}, {' and '.join(told)}." if told else f"{text}."


def _facts(log: QueueLog) -> tuple[tuple[str, str], ...]:
    wait = log.logged.start_s - log.problem.jobs.arrival_s
    facts = [
        ("GPUs", f"{log.problem.gpus:,}, {log.pool}"),
        ("mean wait", f"{_seconds(float(wait.mean()))}, median {_seconds(float(np.median(wait)))}"),
        ("load", percent(log.load, 1)),
    ]
    if len(log.pools) > 1:
        told = [f"{name}: {counted(jobs, 'job')}, {number(hours)} GPU-h" for name, (jobs, hours) in
                sorted(log.pools.items(), key=lambda p: -p[1][1])]  # fmt: skip
        facts.append(("pools (--set pool=NAME)", "; ".join(told)))
    return tuple(facts)


def _waits(log: QueueLog, best: Result | None) -> Mapping[str, Records]:
    """Return the waits by size and user, as logged and under the best policy."""
    jobs = log.problem.jobs
    waits = {"waited (s)": log.logged.start_s - jobs.arrival_s}
    if best:
        solution: Any = best.solution
        waits[f"under {best.method} (s)"] = solution.start_s - jobs.arrival_s

    def row(name: str, what: str, inside: Any) -> dict[str, Any]:
        means = {key: float(np.mean(values[inside])) for key, values in waits.items()}
        first, *under = means.values()
        paid = {"paid (s)": first - under[0]} if under else {}
        held = float(jobs.gpu_seconds[inside].sum()) / 3600
        return {what: name, "jobs": int(np.sum(inside)), "GPU-h": held, **means, **paid}

    sizes = [
        row(f"{a}" if a == b else f"{a} to {b}" if b < 10**9 else f"{a} and more", "GPUs", inside)
        for a, b in SIZES
        if (inside := (jobs.gpus >= a) & (jobs.gpus <= b)).any()
    ]
    names = np.array(log.users, dtype=object)
    users = [row(str(name) or "?", "user", names == name) for name in dict.fromkeys(log.users)]
    users.sort(key=lambda r: -r["jobs"] * r["waited (s)"])
    return {
        "Waits by the GPUs of a job": sizes,
        "Waits by user, the most waiting first": users[:MOST_USERS],
    }
