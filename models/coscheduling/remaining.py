"""Rest of a problem at some time, as a problem of its own."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from optgap.models.coscheduling import Application, CoschedulingProblem, Mode

LEAST_S = 1e-6
"""Run time of a job that is about to end, s, because a run time is positive."""


def remaining(
    problem: CoschedulingProblem,
    jobs: Sequence[int],
    running: Sequence[tuple[int, int, float]],
    now_s: float,
) -> CoschedulingProblem:
    """First what runs, for as long as it still does, and then `jobs`; time 0 is now.

    Parameters
    ----------
    jobs: which have not started; those that are still to come keep their release.
    running: (job, GPU count, start in s) of what runs.
    """
    applications: list[Application] = []
    for job, count, start in running:
        mode = problem.mode(job, count)
        left = max(start + mode.runtime_s - now_s, LEAST_S)
        power = Mode(count, left, mode.power_per_gpu_w)
        applications.append(Application(f"runs: {problem.job_names[job]}", (power,)))
    before = len(applications)
    releases = [0.0] * before + [max(0.0, problem.release_s(job) - now_s) for job in jobs]
    return dataclasses.replace(
        problem,
        applications=(*applications, *problem.applications),
        jobs=(*range(before), *(before + problem.jobs[job] for job in jobs)),
        releases=tuple(releases) if any(releases) else (),
    )
