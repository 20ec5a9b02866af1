"""The referee: shares nothing with any method or policy, and recomputes everything."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from optgap.models.queueing.arrays import FloatArray, IntArray
from optgap.models.queueing.problem import STARVED_S, QueueingProblem
from optgap.models.queueing.solution import QueueingSolution
from optgap.models.queueing.sweep import over_time
from optgap.models.result import Evaluation, Violation
from optgap.models.times import freed_s, shown, slack_s

SHORT_S = 10.0
"""Run times below this count as this in a slowdown, as is the custom."""


def check(problem: QueueingProblem, solution: QueueingSolution) -> list[Violation]:
    """Return every broken constraint: job by job, and where no job is at fault, over time."""
    count = len(problem)
    if len(solution.start_s) != count or len(solution.held_at) != count + 1:
        return [Violation("number of jobs", "schedule", len(solution.start_s), count)]
    broken = _times(problem, solution)
    if problem.placement == "node":
        broken += _shapes(problem, solution)
    return broken or _capacity(problem, solution)


def _times(problem: QueueingProblem, solution: QueueingSolution) -> list[Violation]:
    """Starts before arrival, after patience or too late, and run times that are not the job's."""
    jobs, k = problem.jobs, np.flatnonzero(~np.isnan(solution.start_s))
    start, end = solution.start_s[k], solution.end_s[k]
    slack = slack_s(np.where(np.isfinite(start), start, 0.0))
    found: list[Violation] = []

    def say(constraint: str, bad: Any, values: FloatArray, limits: FloatArray) -> None:
        for i in np.flatnonzero(bad).tolist():
            where = f"job {jobs.names[int(k[i])]}"
            found.append(Violation(constraint, where, float(values[i]), float(limits[i])))

    say("start_s not before arrival", start < jobs.arrival_s[k] - slack, start, jobs.arrival_s[k])
    latest = jobs.arrival_s[k] + jobs.patience_s[k]
    say("start_s within patience", start > latest + slack, start, latest)
    latest = np.full(len(k), problem.latest_s)
    say("start_s not too late", start > latest, start, latest)
    with np.errstate(invalid="ignore"):
        lasted = end - start
    near = np.minimum(slack_s(start + jobs.duration_s[k]), jobs.duration_s[k] / 2)
    wrong = ~(np.abs(lasted - jobs.duration_s[k]) <= near)
    say("run time", wrong, lasted, jobs.duration_s[k])
    return found


def _shapes(problem: QueueingProblem, solution: QueueingSolution) -> list[Violation]:
    """Nodes that do not exist, are listed twice, or are not what the job's size asks for."""
    g, found = problem.gpus_per_node, []
    sizes = np.diff(solution.held_at)
    for k in solution.started.tolist():
        n = int(problem.jobs.gpus[k])
        at = int(solution.held_at[k])
        whole = sizes[k] == 1 and n <= g and solution.held_gpus[at] == n
        if whole and 0 <= solution.held_node[at] < problem.nodes:
            continue  # most jobs
        pairs = solution.nodes_of(k)
        where = f"job {problem.jobs.names[k]}"
        wanted = [g] * (n // g) + [n % g] * (n % g > 0)
        if sorted((gpus for _, gpus in pairs), reverse=True) != wanted:
            shown = "+".join(str(gpus) for _, gpus in pairs) or "none"
            found.append(Violation("GPUs per node", where, shown, "+".join(map(str, wanted))))
        if len({node for node, _ in pairs}) != len(pairs):
            found.append(Violation("different nodes", where, len(pairs), "each node once"))
        for node, _ in pairs:
            if not 0 <= node < problem.nodes:
                found.append(Violation("node", where, node, problem.nodes - 1))
    return found


def _capacity(problem: QueueingProblem, solution: QueueingSolution) -> list[Violation]:
    """Nodes (or the cluster) with more GPUs held than there are; each shown once."""
    k = solution.started
    if problem.placement == "node":
        sizes = np.diff(solution.held_at)
        job = np.repeat(np.arange(len(problem)), sizes)
        running = np.isfinite(solution.start_s)[job]
        job, node = job[running], solution.held_node[running]
        gpus, most = solution.held_gpus[running], problem.gpus_per_node
    else:
        job, node = k, np.zeros_like(k)
        gpus, most = problem.jobs.gpus[k], problem.gpus
    start, end = solution.start_s[job], solution.end_s[job]
    # a job that ends when another starts has left, rounding or not
    time = np.concatenate([freed_s(start, end), start])
    change = np.concatenate([-gpus, gpus])
    where = np.concatenate([node, node])
    order = np.lexsort((change, time, where))
    held = np.cumsum(change[order])  # every node's changes add up to nothing
    over = np.flatnonzero(held > most)
    found: list[Violation] = []
    seen: set[int] = set()
    for i in over.tolist():
        at = int(where[order[i]])
        if at not in seen:
            seen.add(at)
            place = f"node {at}" if problem.placement == "node" else "cluster"
            where_and_when = f"{place} at {shown(time[order[i]])} s"
            found.append(Violation("GPUs held", where_and_when, int(held[i]), most))
    return found


def evaluate(problem: QueueingProblem, solution: QueueingSolution) -> Evaluation:
    """Objective and metrics; jobs that never start have no wait, only `mean_wait_all_s`."""
    jobs, k = problem.jobs, solution.started
    if not k.size:
        return Evaluation(0.0, {"jobs": len(problem), "jobs_started": 0, "success_rate": 0.0})
    wait = np.maximum(solution.start_s[k] - jobs.arrival_s[k], 0.0)
    end = solution.start_s[k] + jobs.duration_s[k]
    span = float(end.max() - jobs.arrival_s[0])
    jct = end - jobs.arrival_s[k]
    work = float((jobs.gpus[k] * jobs.duration_s[k]).sum())
    metrics: dict[str, float | int] = {
        "mean_wait_s": float(wait.mean()),
        "mean_jct_s": float(jct.mean()),
        "makespan_s": span,
        "utilisation": work / (problem.gpus * span),
        "throughput_per_h": 3600 * len(k) / span,
        "wait_variance_s2": float(wait.var()),
        "wait_variance_min2": float(wait.var()) / 3600,
        **_percentiles("wait", wait),
        **_percentiles("jct", jct),
        **_outcomes(problem, solution, wait),
        "jain_wait": jain(wait),
        "jain_slowdown": jain(np.maximum(jct / np.maximum(jobs.duration_s[k], SHORT_S), 1.0)),
        **over_time(problem, solution, _left(problem, solution)),
    }
    goals = {"mean_wait": "mean_wait_s", "mean_jct": "mean_jct_s", "makespan": "makespan_s"}
    return Evaluation(float(metrics[goals[problem.objective.goal]]), metrics)


def _left(problem: QueueingProblem, solution: QueueingSolution) -> FloatArray:
    """Return when each job that never starts leaves, s; infinite if never, NaN if started."""
    jobs = problem.jobs
    never = ~np.isfinite(solution.start_s)
    left: FloatArray = np.where(never, jobs.arrival_s + jobs.patience_s, math.nan)
    return left


def _outcomes(
    problem: QueueingProblem, solution: QueueingSolution, wait: FloatArray
) -> dict[str, float | int]:
    jobs, count = problem.jobs, len(problem)
    patience = jobs.patience_s[~np.isfinite(solution.start_s)]
    cancelled = patience[np.isfinite(patience)]
    everyone = np.concatenate([wait, cancelled])
    return {
        "jobs": count,
        "jobs_started": len(wait),
        "success_rate": len(wait) / count,
        "starved": int((wait > STARVED_S).sum() + (patience > STARVED_S).sum()),
        "mean_wait_all_s": float(everyone.mean()),
    }


def _percentiles(name: str, values: FloatArray) -> dict[str, float]:
    points = np.percentile(values, [50, 95, 99])
    found = {f"{name}_p{p}_s": float(x) for p, x in zip((50, 95, 99), points, strict=True)}
    return {**found, f"{name}_max_s": float(values.max())}


def jain(values: FloatArray) -> float:
    """Return (Σx)²/(n·Σx²): 1 when all are equal, 1/n when one has everything; 1 when all are 0."""
    squares = float((values * values).sum())
    return float(values.sum()) ** 2 / (len(values) * squares) if squares else 1.0


def queue_length(
    problem: QueueingProblem, solution: QueueingSolution
) -> tuple[FloatArray, IntArray]:
    """Return when the number of waiting jobs changes, s, and what it is from then on."""
    left = _left(problem, solution)
    leave = np.where(np.isnan(left), solution.start_s, left)
    leave = leave[np.isfinite(leave)]
    arrival = problem.jobs.arrival_s
    return _steps([arrival, leave], [np.ones(len(arrival), int), -np.ones(len(leave), int)])


def _steps(times: list[Any], changes: list[Any]) -> tuple[FloatArray, IntArray]:
    time, change = np.concatenate(times), np.concatenate(changes)
    order = np.argsort(time, kind="stable")
    total = np.cumsum(change[order])
    last = np.append(np.flatnonzero(np.diff(time[order])), len(time) - 1)
    return time[order][last], total[last]
