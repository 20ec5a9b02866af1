"""Which modes an optimal schedule may have: the others only blur a solver's numbers."""

from __future__ import annotations

import math
from dataclasses import replace

from optgap.models.coscheduling import Application, CoschedulingProblem, Mode
from optgap.solvers.coscheduling.area import (
    cheapest_j,
    cost_off_j,
    energy_j,
    safe_energy,
    safe_makespan,
)

MARGIN = 1e-9
"""Relative: modes that are above what is known to be possible by less are kept."""


def one_by_one(problem: CoschedulingProblem) -> float:
    """The objective of a schedule: one job after another, each on its fastest mode, its cheapest,
    or the one that is cheapest with the idle node; the best of the three."""
    idle = problem.idle_w * problem.gpus
    latest = max(problem.delay_s(job) for job in range(len(problem)))
    rules = (
        lambda mode: mode.runtime_s,
        problem.cost_j,
        lambda mode: problem.cost_j(mode) + idle * mode.runtime_s,
    )
    values = []
    for rule in rules:
        modes = [min(problem.application(job).modes, key=rule) for job in range(len(problem))]
        makespan = math.fsum([latest, *(m.runtime_s for m in modes)])
        values.append(problem.value(energy_j(problem, modes, makespan), makespan))
    return min(values)


def promising(problem: CoschedulingProblem) -> CoschedulingProblem:
    """The problem without modes that make a schedule worse than `one_by_one` whatever else it has.

    A schedule with the mode costs at least that, and for the other jobs the least; it ends no
    earlier than the mode does, started when the first job of the application comes.
    """
    known = one_by_one(problem) * (1 + MARGIN)
    shortest = safe_makespan(problem)
    least = [cheapest_j(problem, problem.application(job)) for job in range(len(problem))]
    applications = list(problem.applications)
    for a in set(problem.jobs):
        jobs = [job for job, kind in enumerate(problem.jobs) if kind == a]
        comes = min(problem.delay_s(job) for job in jobs)
        others = [cost for job, cost in enumerate(least) if job != jobs[0]]

        def worth(mode: Mode, comes: float = comes, others: list[float] = others) -> bool:
            makespan = max(shortest, (comes + mode.runtime_s) * (1 - MARGIN))
            own = problem.cost_j(mode) - cost_off_j(problem, mode)
            return problem.value(safe_energy(problem, [own, *others], makespan), makespan) <= known

        app = applications[a]
        applications[a] = Application(app.name, tuple(m for m in app.modes if worth(m)))
    return replace(problem, applications=tuple(applications))
