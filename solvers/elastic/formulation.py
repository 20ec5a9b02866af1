"""PowerFlow's decision, Eq. 18-19, as a PuLP problem."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from itertools import groupby
from operator import itemgetter
from typing import Any

import numpy as np

from optgap.models.elastic import ElasticProblem, ElasticSolution, Kind, Segment
from optgap.models.elastic.arrays import Floats
from optgap.models.errors import InputError, NoQuote
from optgap.models.limits import Limits
from optgap.models.result import Outcome, Status
from optgap.solvers.elastic.area import SAFE, closed_form
from optgap.solvers.formulation import Formulation, Program, chosen, solved

Configuration = tuple[int, int, int]
"""Job, GPUs, and index of the clock."""


def formulation(
    problem: ElasticProblem, *, limits: Limits | None = None, at_s: float = -1.0
) -> Formulation:
    """Eq. 18-19: x_j_n_f, one configuration for each job from one moment on until it is done.

    The objective is the mean JCT of exactly this schedule, starts that cost time included. That
    jobs change their GPUs and make room for others is beyond what the equations say.

    Parameters
    ----------
    at_s: the moment, s after the first submission: jobs submitted by then have done nothing yet,
        and later ones are left out; −1 for the last submission.

    Raises
    ------
    InputError: for jobs that cannot all run at once for want of GPUs, a moment before any is
        there, and a problem too large to write down.
    Stopped: at a limit.
    """
    submitted = problem.jobs.submit_s
    moment = float(submitted.max()) if at_s == -1 else problem.epoch_s + at_s
    jobs = np.flatnonzero(submitted <= moment).tolist()
    if not jobs:
        raise InputError("Eq. 18-19", "at_s", at_s, "-1, or s after the first submission")
    fewest = sum(min(problem.classes[problem.jobs.of_class[j]].counts) for j in jobs)
    if fewest > problem.gpus:
        found = NoQuote(f"{len(jobs)} jobs that take {fewest} GPUs or more")
        expected = f"at most {problem.gpus}, as all run at once; or an earlier moment, at_s"
        raise InputError("Eq. 18-19", "field jobs", found, expected)
    program, x = decision(problem, jobs, moment, limits)
    run = running_s(problem, jobs)

    def decode(values: Mapping[str, float]) -> ElasticSolution:
        segments = []
        for j, n, f in chosen(values, x):
            begins = moment + problem.overhead.seconds(n)
            if begins > moment:
                segments.append(Segment(j, moment, begins, Kind.RESTART, n))
            segments.append(Segment(j, begins, begins + run[j, n, f], Kind.RUN, n, f))
        return ElasticSolution.of(segments)

    return Formulation(program, decode)


def of_jobs(problem: ElasticProblem, jobs: list[int], table: Floats) -> dict[Configuration, float]:
    """Return a (C, K, F) table by job, GPUs and clock, where a job may run so."""
    of, counts = problem.jobs.of_class, problem.counts.tolist()
    clocks = range(len(problem.frequencies_mhz))
    return {
        (j, n, f): float(table[of[j], k, f])
        for j in jobs
        for k, n in enumerate(counts)
        for f in clocks
        if math.isfinite(problem.time_s[of[j], k, f])
    }


def running_s(problem: ElasticProblem, jobs: list[int]) -> dict[Configuration, float]:
    """Return iterations × T_iter, s."""
    work = problem.jobs.iterations
    return {c: float(work[c[0]]) * t for c, t in of_jobs(problem, jobs, problem.time_s).items()}


def decision(
    problem: ElasticProblem, jobs: list[int], moment: float, limits: Limits | None
) -> tuple[Program, dict[Configuration, Any]]:
    """Return the program of these jobs from a moment on, and x_jnf."""
    m = Program("PowerFlow", limits=limits)
    G, P_idle, r = problem.gpus, problem.idle_w, problem.jobs.submit_s
    run, P_run = running_s(problem, jobs), of_jobs(problem, jobs, problem.power_w)
    start = {c: problem.overhead.seconds(c[1]) for c in run}
    held = {c: start[c] + run[c] for c in run}
    JCT = {c: moment - float(r[c[0]]) + held[c] for c in run}
    P = {c: max(P_run[c], P_idle * c[1]) if start[c] else P_run[c] for c in run}

    x = {(j, n, f): m.binary(f"x_{j}_{n}_{f}") for j, n, f in JCT}
    for j, own in groupby(x, key=itemgetter(0)):
        m.row(f"one_configuration_{j}", m.sum(x[c] for c in own) == 1)
    m.row("gpus_18", m.sum(c[1] * x[c] for c in x) <= G)
    if math.isfinite(problem.power_allowed_w):  # η·G·P_max
        m.row("power_19", m.sum(P[c] * x[c] for c in x) <= problem.power_allowed_w)
    m.objective("mean_jct_18", (1 / len(jobs)) * m.sum(JCT[c] * x[c] for c in x))
    return m, x


def best_decision(
    problem: ElasticProblem,
    *,
    limits: Limits,
    seed: int,
    backend: str = "highs",
    at_s: float = -1.0,
) -> Outcome:
    """Return the best schedule by Eq. 18-19, whose optimum bounds no schedule that decides again.

    Parameters
    ----------
    backend: ``highs`` or ``cbc``.
    at_s: see `formulation`.
    """
    made = partial(formulation, at_s=at_s)
    found = solved(problem, made, limits=limits, seed=seed, backend=backend)
    bound, by = closed_form(problem)
    told = found.message
    if found.solution is None:
        status = Status.BOUND_ONLY
        told = told.replace("no solution exists", "not all jobs can run at once")
    else:
        status = Status.FEASIBLE
        proof = "the best" if found.status is Status.OPTIMAL else "not proven the best"
        told = f"{proof} decision by Eq. 18-19 that jobs keep to the end; no bound on others"
    return replace(found, status=status, bound=bound * (1 - SAFE), bound_by=by, message=told)
