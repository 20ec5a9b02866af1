"""Bounds in closed form."""

from __future__ import annotations

import math

from optgap.models.coscheduling import CoschedulingProblem
from optgap.models.limits import Limits
from optgap.models.result import Outcome, Status


def least_makespan(problem: CoschedulingProblem) -> float:
    """Longest job at its fastest, GPU-seconds over M, job-seconds over K: the largest, s."""
    apps = [problem.application(job) for job in range(len(problem))]
    return max(
        max(app.fastest.runtime_s for app in apps),
        math.fsum(min(m.gpu_count * m.runtime_s for m in app.modes) for app in apps) / problem.gpus,
        math.fsum(app.fastest.runtime_s for app in apps) / problem.numa,
    )


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
