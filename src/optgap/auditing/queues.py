"""What a queue's scheduler did, as a row beside every policy and the bound; whose jobs paid."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from optgap.api import close
from optgap.auditing.logged import Beside
from optgap.auditing.result import Audit, Covered
from optgap.comparing.comparison import ACCEPTED, Comparison
from optgap.explaining.logged import NAME
from optgap.models.queueing.log import QueueLog
from optgap.render import duration, number, percent

MOST_USERS = 20
SIZES = ((1, 1), (2, 2), (3, 4), (5, 8), (9, 16), (17, 64), (65, 10**9))
"""Jobs by the GPUs they hold, from and to."""


def audit_queue(kind: str, source: str, log: QueueLog, beside: Beside) -> Audit:
    """Audit a log of jobs that ran.

    Parameters
    ----------
    kind: what the log is.
    """
    judged = beside.judge(log.problem, log.logged)
    best = _best_policy(judged.comparison)
    return judged.audit(
        kind,
        source,
        Covered(log.records, len(log.problem), log.reasons),
        _sentence(judged.comparison, judged.now.objective, best),
        _facts(log, best),
        _waits(log, judged.comparison, best),
        log.warnings,
    )


def _best_policy(comparison: Comparison) -> str:
    """The policy with the least objective, what happened apart; "" when none ran."""
    rows = [
        row.result
        for row in comparison.rows
        if row.result.kind == "policy" and row.result.method != NAME
        and row.result.objective is not None and row.bound_scope != ACCEPTED
    ]  # fmt: skip
    return min(rows, key=lambda r: r.objective or 0.0).method if rows else ""


def _sentence(comparison: Comparison, now: float, best: str) -> str:
    text = f"the mean wait was {duration(now)}"
    bound = comparison.best_bound
    if best:
        value = comparison.row(best).result.objective
        text += f"; {best} would have had {duration(value or 0.0)}"
    if bound is not None and now > 0:
        share = percent(max(0.0, (now - bound) / now), 1)
        text += f", and no schedule less than {duration(bound)}: at most {share} could be saved"
    return text


def _facts(log: QueueLog, best: str) -> Sequence[tuple[str, str]]:
    wait = log.logged.start_s - log.problem.jobs.arrival_s
    since = log.logged.start_s - log.submit_s
    size = f"{log.problem.gpus:,}: {log.problem.nodes:,} x {log.problem.gpus_per_node:,}"
    facts = [
        ("GPUs", f"{size}, as the log shows unless told"),
        ("mean wait", f"{duration(float(wait.mean()))}, median {duration(float(np.median(wait)))}"),
        ("load", percent(min(log.problem.load, 99.0), 1)),
    ]
    if not close(float(since.mean()), float(wait.mean())):
        facts.append(("from submission", duration(float(since.mean()))))
    if len(log.pools) > 1:
        told = [f"{name}: {jobs:,} jobs, {number(hours)} GPU-h" for name, (jobs, hours) in
                sorted(log.pools.items(), key=lambda p: -p[1][1])]  # fmt: skip
        facts.append(("pools (--set pool=NAME)", "; ".join(told)))
    if best:
        facts.append(("best policy", best))
    return facts


def _waits(
    log: QueueLog, comparison: Comparison, best: str
) -> Mapping[str, Sequence[Mapping[str, Any]]]:
    """Waits by size, user and hour, really and under the best policy."""
    jobs = log.problem.jobs
    waits = {
        "waited (s)": log.logged.start_s - jobs.arrival_s,
        "since submission (s)": log.logged.start_s - log.submit_s,
    }
    if best:
        solution: Any = comparison.row(best).result.solution
        waits[f"under {best} (s)"] = solution.start_s - jobs.arrival_s

    def row(name: str, what: str, inside: Any) -> dict[str, Any]:
        means = {key: float(np.mean(values[inside])) for key, values in waits.items()}
        paid = {}
        if best:
            paid["paid (s)"] = means["waited (s)"] - means[f"under {best} (s)"]
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
    hour = (log.submit_s % 86_400 // 3600).astype(int)
    hours = [row(f"{h:02d}:00", "submitted at", hour == h) for h in sorted(set(hour.tolist()))]
    return {
        "Waits by the GPUs of a job": sizes,
        "Waits by user, the most waiting first": users[:MOST_USERS],
        "Waits by the hour of submission": hours,
    }
