"""PowerFlow's decision, Eq. 18-19, as a PuLP problem."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from optgap.models.elastic import ElasticProblem, ElasticSolution, Kind
from optgap.models.elastic.problem import Floats
from optgap.models.errors import InputError, NoQuote
from optgap.models.limits import Limits
from optgap.solvers.formulation import Formulation, Program, chosen

Configuration = tuple[int, int, int]
"""Job, GPUs, and index of the clock."""


def formulation(problem: ElasticProblem, *, limits: Limits | None = None) -> Formulation:
    """Eq. 18-19: x_j_n_f, each job's one configuration until it is done, all from one moment on.

    The objective is the mean JCT of exactly this schedule, starts that cost time included. Whole
    traces, in which jobs come over time or change their GPUs, are beyond what the equations say.

    Raises
    ------
    InputError: for jobs that are submitted at several times, or that cannot all run at once for
        want of GPUs; and for a problem too large to write down.
    Stopped: at a limit.
    """
    source = "Eq. 18-19"
    submitted = problem.jobs.submit_s
    if (submitted != submitted[0]).any():
        found = NoQuote(f"jobs from {submitted.min():g} to {submitted.max():g} s")
        raise InputError(source, "field jobs.submit_s", found, "one time: they decide one moment")
    least = sum(
        min(n for j, n, _ in configurations(problem) if j == k) for k in range(len(problem))
    )
    if least > problem.gpus:
        found = NoQuote(f"{len(problem)} jobs on {problem.gpus} GPUs")
        raise InputError(source, "field jobs", found, "no more than can all run at once")
    program, x = decision(problem, limits)

    def decode(values: Mapping[str, float]) -> ElasticSolution:
        segments = []
        for j, n, f in chosen(values, x):
            since = float(submitted[j])
            starts = since + problem.overhead.seconds(n)
            ends = starts + running_s(problem)[j, n, f]
            if starts > since:
                segments.append((j, since, starts, int(Kind.RESTART), n, -1, -1))
            segments.append((j, starts, ends, int(Kind.RUN), n, f, -1))
        return ElasticSolution.of(segments)

    return Formulation(program, decode)


def configurations(problem: ElasticProblem) -> list[Configuration]:
    """(j, n, f) of all that a job may run on."""
    possible = np.isfinite(problem.time_s)[problem.jobs.of_class]
    return [(int(j), int(problem.counts[k]), int(f)) for j, k, f in np.argwhere(possible).tolist()]


def _of(problem: ElasticProblem, table: Floats) -> dict[Configuration, float]:
    """A (C, K, F) table by configuration."""
    row = {int(n): k for k, n in enumerate(problem.counts)}
    of = problem.jobs.of_class
    return {(j, n, f): float(table[of[j], row[n], f]) for j, n, f in configurations(problem)}


def running_s(problem: ElasticProblem) -> dict[Configuration, float]:
    """iterations × T_iter, s."""
    work = problem.jobs.iterations
    return {c: float(work[c[0]]) * t for c, t in _of(problem, problem.time_s).items()}


def decision(
    problem: ElasticProblem, limits: Limits | None
) -> tuple[Program, dict[Configuration, Any]]:
    """The program of all jobs from their submission on, and x_jnf."""
    m = Program("PowerFlow", limits=limits)
    J, G, P_idle = len(problem), problem.gpus, problem.idle_w
    run, P_run = running_s(problem), _of(problem, problem.power_w)
    start = {c: problem.overhead.seconds(c[1]) for c in run}
    JCT = {c: start[c] + run[c] for c in run}
    P = {c: max(P_run[c], P_idle * c[1]) if start[c] else P_run[c] for c in run}

    x, total = eq_18_19(m, JCT, P, G, problem.power_allowed_w)
    if problem.cap == "energy":
        C_max = m.continuous("C_max")
        for j in range(J):
            m.row(f"makespan_{j}", C_max >= m.sum(JCT[c] * x[c] for c in x if c[0] == j))
        E = {c: P_run[c] * run[c] + P_idle * c[1] * start[c] for c in x}
        busy = m.sum((E[c] - P_idle * c[1] * JCT[c]) * x[c] for c in x)
        m.row("energy_budget", busy + P_idle * G * C_max <= problem.energy_budget_j)
    m.objective("mean_jct_18", (1 / J) * total)
    return m, x


def eq_18_19(
    m: Program,
    JCT: Mapping[Configuration, float],
    P: Mapping[Configuration, float],
    G: int,
    limit_w: float,
    H: float = math.inf,
) -> tuple[dict[Configuration, Any], Any]:
    """x_jnf and Σ JCT; with a finite H a job may wait, and counts for H."""
    x = {(j, n, f): m.binary(f"x_{j}_{n}_{f}") for j, n, f in JCT}
    of: dict[int, list[Configuration]] = {}
    for c in x:
        of.setdefault(c[0], []).append(c)

    for j in of:
        runs = m.sum(x[c] for c in of[j])
        m.row(f"one_configuration_{j}", runs <= 1 if math.isfinite(H) else runs == 1)
    m.row("gpus_18", m.sum(c[1] * x[c] for c in x) <= G)
    if math.isfinite(limit_w):  # η·G·P_max
        m.row("power_19", m.sum(P[c] * x[c] for c in x) <= limit_w)

    total = m.sum(JCT[c] * x[c] for c in x)
    if math.isfinite(H):
        total = total + H * m.sum(1 - m.sum(x[c] for c in of[j]) for j in of)
    return x, total
