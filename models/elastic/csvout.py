"""A schedule as CSV text: what happens to jobs, and power over time."""

from __future__ import annotations

import numpy as np

from optgap.models.csvout import csv_text
from optgap.models.elastic.problem import ElasticProblem
from optgap.models.elastic.referee import finished, powers, step_function
from optgap.models.elastic.solution import ElasticSolution, Kind
from optgap.models.times import slack_s


def timeline(problem: ElasticProblem, solution: ElasticSolution) -> str:
    """``time_s,job,event,gpus,frequency_mhz``, in order of time.

    Events: ``submit``, ``prerun``, ``restart``, ``profile``, ``run`` (or a change of clock),
    ``pause`` (GPUs taken away) and ``complete``.
    """
    clocks = np.append(problem.frequencies_mhz, 0.0)
    rows: list[tuple[float, int, int, str, int, float]] = []
    for j, t in enumerate(problem.jobs.submit_s.tolist()):
        rows.append((t, 0, j, "submit", 0, 0.0))
    done = finished(problem, solution)
    order = np.lexsort((solution.start_s, solution.job)).tolist()
    for position, s in enumerate(order):
        job, kind = int(solution.job[s]), Kind(int(solution.kind[s]))
        clock = float(clocks[solution.frequency[s]]) if kind is Kind.RUN else 0.0
        start, end = float(solution.start_s[s]), float(solution.end_s[s])
        rows.append((start, 2, job, kind.name.lower(), int(solution.gpus[s]), clock))
        after = order[position + 1] if position + 1 < len(order) else -1
        if after < 0 or solution.job[after] != job:
            rows.append((end, 1, job, "complete" if done[job] else "pause", 0, 0.0))
        elif kind is not Kind.PRERUN and solution.start_s[after] > end:
            rows.append((end, 1, job, "pause", 0, 0.0))
    rows.sort(key=lambda row: (row[0], row[1], row[2]))
    names = problem.jobs.names
    return csv_text(
        ("time_s", "job", "event", "gpus", "frequency_mhz"),
        ((t, names[j], event, n, f) for t, _, j, event, n, f in rows),
    )


def series(problem: ElasticProblem, solution: ElasticSolution) -> str:
    """``time_s,jobs_running,gpus_used,power_jobs_w,power_idle_w,power_limit_w`` per change.

    Idle power counts all nodes, or with switching off as few as hold the GPUs in use.
    """
    inside = solution.kind != Kind.PRERUN
    start, end = solution.start_s[inside], solution.end_s[inside]
    n = solution.gpus[inside].astype(float)
    columns = [
        step_function(start, end, value, 0.0)
        for value in (np.ones(len(n)), n, powers(problem, solution)[inside])
    ]
    times = columns[0][0]
    jobs, used, watts = (column[1] for column in columns)
    last = np.append(np.diff(times) > slack_s(times[1:]), True)
    per = problem.gpus_per_node
    on = np.ceil(used / per - 1e-6) * per if solution.switch_off else float(problem.gpus)
    idle = np.maximum(0.0, on - used) * problem.idle_w
    limit = problem.power_limit_w if np.isfinite(problem.power_limit_w) else ""
    return csv_text(
        ("time_s", "jobs_running", "gpus_used", "power_jobs_w", "power_idle_w", "power_limit_w"),
        (
            (f"{times[k]:.6f}", round(jobs[k]), round(used[k]), f"{max(0.0, watts[k]):.3f}",
             f"{idle[k]:.3f}", limit)
            for k in np.flatnonzero(last)
        ),
    )  # fmt: skip
