"""Bounds in closed form."""

from __future__ import annotations

import math
from collections.abc import Sequence

from optgap.models.coscheduling import Application, CoschedulingProblem, Mode
from optgap.models.limits import Limits
from optgap.models.result import Outcome, Status
from optgap.solvers.backends.safe import EPS, outwards


def least_makespan(problem: CoschedulingProblem) -> float:
    """Return the latest of: a job's release plus its fastest run; a release plus all work from then
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
    """Return Σ min_g (P − g·P_idle)·T over the jobs, J."""
    apps = (problem.application(job) for job in range(len(problem)))
    return math.fsum(min(problem.cost_j(m) for m in app.modes) for app in apps)


def energy_j(problem: CoschedulingProblem, modes: Sequence[Mode], makespan_s: float) -> float:
    """E of a schedule: active and idle GPUs apart, as costs beyond idle may nearly cancel, J."""
    active = [mode.energy_j for mode in modes]
    held = math.fsum(mode.gpu_count * mode.runtime_s for mode in modes)
    idle_s = max(0.0, problem.gpus * makespan_s - held)
    return math.fsum([*active, problem.idle_w * idle_s])


def cost_off_j(problem: CoschedulingProblem, mode: Mode) -> float:
    """Return what rounding may make of `cost_j`, J: its two terms may be large and nearly equal."""
    return 4 * EPS * (mode.power_w + problem.idle_w * mode.gpu_count) * mode.runtime_s


def cheapest_j(problem: CoschedulingProblem, app: Application) -> float:
    """Return min_g (P − g·P_idle)·T of an application, rounded down, J."""
    return min(problem.cost_j(mode) - cost_off_j(problem, mode) for mode in app.modes)


def safe_makespan(problem: CoschedulingProblem) -> float:
    """Return `least_makespan` less what its sums may have gained by rounding, s."""
    return least_makespan(problem) * (1 - max(1e-12, 4 * len(problem) * EPS))


def safe_energy(problem: CoschedulingProblem, costs_j: list[float], makespan_s: float) -> float:
    """Return Σ costs + P_idle·M·C, rounded down and no less than 0, J."""
    idle = problem.idle_w * problem.gpus * makespan_s
    return max(0.0, outwards([*costs_j, idle]))


def bound_area(problem: CoschedulingProblem, *, limits: Limits, seed: int) -> Outcome:
    """LB(C) from `least_makespan`, and LB(E) = Σ min_g (P − g·P_idle)·T + P_idle·M·LB(C)."""
    makespan = safe_makespan(problem)
    costs = [cheapest_j(problem, problem.application(job)) for job in range(len(problem))]
    bound = problem.value(safe_energy(problem, costs, makespan), makespan) * (1 - 2 * EPS)
    return Outcome(None, Status.BOUND_ONLY, bound=bound, bound_by="areas in closed form")
