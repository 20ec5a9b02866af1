"""Brute force as an oracle: every GPU count of every job in every order."""

from __future__ import annotations

import math

from optgap.models.coscheduling import CoschedulingProblem
from optgap.models.coscheduling.gpus import placed as solution_of
from optgap.models.limits import Limits
from optgap.models.result import Outcome, Status
from optgap.solvers.coscheduling.area import cheapest_j, cost_off_j, energy_j, safe_energy

Placed = tuple[int, int, float, float]
"""Job, GPUs, start and end."""


def earliest(
    problem: CoschedulingProblem, placed: list[Placed], count: int, runtime: float, release: float
) -> float:
    """The first time from `release` on from which a job fits among the others until its end."""

    def fits(t: float) -> bool:
        now = [held for _, held, s, e in placed if s <= t < e]
        return sum(now) + count <= problem.gpus and len(now) < problem.numa

    for start in sorted({release, *(end for *_, end in placed if end > release)}):
        inside = [s for _, _, s, _ in placed if start < s < start + runtime]
        if all(fits(t) for t in (start, *inside)):
            return start
    raise AssertionError("after the last end everything fits")


def exhaustive(problem: CoschedulingProblem, *, limits: Limits, seed: int) -> Outcome:
    """Return the best of all schedules of a tiny problem, each job as early as it fits.

    Schedules in which no job can start earlier without moving another are enough, as no
    objective gets worse when a job ends earlier; each is built by adding its jobs by start.
    """
    best, found, placed = math.inf, [], []

    def place(left: frozenset[int], cost: float, makespan: float) -> None:
        nonlocal best, found
        # even with the cheapest counts of the jobs left, and all of them at once
        costs = [cost, *(cheapest_j(problem, problem.application(job)) for job in left)]
        if problem.value(safe_energy(problem, costs, makespan), makespan) >= best:
            return
        if not left:
            modes = [problem.application(job).mode(count) for job, count, _, _ in placed]
            energy = energy_j(problem, [mode for mode in modes if mode is not None], makespan)
            if (value := problem.value(energy, makespan)) < best:
                best, found = value, [one[:3] for one in placed]
            return
        alike = {(problem.jobs[j], problem.release_s(j)): j for j in left}
        for (_, release), job in alike.items():
            for mode in problem.application(job).modes:
                start = earliest(problem, placed, mode.gpu_count, mode.runtime_s, release)
                placed.append((job, mode.gpu_count, start, start + mode.runtime_s))
                more = cost + problem.cost_j(mode) - cost_off_j(problem, mode)
                last = max(makespan, start - problem.epoch_s + mode.runtime_s)
                place(left - {job}, more, last)
                placed.pop()

    place(frozenset(range(len(problem))), 0.0, 0.0)
    solution = solution_of(problem, found)
    return Outcome(solution, Status.OPTIMAL, claimed=best, bound=best, bound_by="enumeration")
