"""Bounds in closed form."""

from __future__ import annotations

import math

from optgap.models.coscheduling import CoschedulingProblem
from optgap.models.limits import Limits
from optgap.models.result import Outcome, Status


def least_makespan(problem: CoschedulingProblem) -> float:
    """The latest of: a job's release plus its fastest run; a release plus what comes from then
    on, as GPU-seconds over M or as job-seconds over K; counted from the first release, s."""
    jobs = sorted(range(len(problem)), key=problem.delay_s, reverse=True)
    latest = area = lane = 0.0
    for job in jobs:
        app, release = problem.application(job), problem.delay_s(job)
        fastest = app.fastest.runtime_s
        area += min(m.gpu_count * m.runtime_s for m in app.modes) / problem.gpus
        lane += fastest / problem.numa
        latest = max(latest, release + max(fastest, area, lane))
    return latest


def least_cost_j(problem: CoschedulingProblem) -> float:
    """Σ min_g (P − g·P_idle)·T over the jobs, J."""
    apps = (problem.application(job) for job in range(len(problem)))
    return math.fsum(min(problem.cost_j(m) for m in app.modes) for app in apps)


def bound_area(problem: CoschedulingProblem, *, limits: Limits, seed: int) -> Outcome:
    """LB(C) from `least_makespan`, and LB(E) = Σ min_g (P − g·P_idle)·T + P_idle·M·LB(C)."""
    makespan = least_makespan(problem)
    energy = least_cost_j(problem) + problem.idle_w * problem.gpus * makespan
    bound = problem.value(energy, makespan) * (1 - 1e-12)  # sums of floats
    return Outcome(None, Status.BOUND_ONLY, bound=bound, bound_by="areas in closed form")
