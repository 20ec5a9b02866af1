"""Starts and nodes of jobs as a mixed-integer program, a PuLP problem."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from optgap.models.limits import Limits
from optgap.models.queueing import QueueingProblem
from optgap.models.queueing.solution import QueueingSolution
from optgap.models.result import Outcome
from optgap.solvers.formulation import Formulation, Program, chosen, earliest_starts, solved


def formulation(problem: QueueingProblem, *, limits: Limits | None = None) -> Formulation:
    """Build the assignment of jobs to nodes and times: s_j, w_j_k (whole nodes), q_j_k (the rest).

    Times count from the problem's own clock. Every job starts, within its patience.

    Raises
    ------
    InputError: for a problem too large to write down.
    Stopped: at a limit.
    """
    r, d = problem.jobs.arrival_s.tolist(), problem.jobs.duration_s.tolist()
    program, o, w, q = assignment(problem, limits)

    def decode(values: Mapping[str, float]) -> QueueingSolution:
        start = earliest_starts(r, d, chosen(values, o))
        nodes: list[list[tuple[int, int]]] = [[] for _ in r]
        g = problem.shape[1]
        for whole, table in ((True, w), (False, q)):
            for j, k in chosen(values, table):
                nodes[j].append((k, g if whole else int(problem.jobs.gpus[j]) % g or g))
        return QueueingSolution.on_nodes(problem, np.array(start), nodes)

    return Formulation(program, decode)


def assignment(
    problem: QueueingProblem, limits: Limits | None
) -> tuple[Program, dict[Any, Any], dict[Any, Any], dict[Any, Any]]:
    """Return the program with o_ij, w_jk and q_jk; with placement=count the cluster is one node."""
    m = Program("queueing", limits=limits)
    jobs, (N, g) = range(len(problem)), problem.shape
    r, d = problem.jobs.arrival_s.tolist(), problem.jobs.duration_s.tolist()
    n = problem.jobs.gpus.tolist()
    # in some optimal schedule no job starts later than after all others, one by one
    latest = [min(r[j] + float(problem.jobs.patience_s[j]), max(r) + sum(d) - d[j]) for j in jobs]

    s = [m.continuous(f"s_{j}", r[j], latest[j]) for j in jobs]
    o = m.sequence(s, d, d, r, latest=latest)
    w = {(j, k): m.binary(f"w_{j}_{k}") for j in jobs if n[j] > g for k in range(N)}
    q = {(j, k): m.binary(f"q_{j}_{k}") for j in jobs if n[j] <= g or n[j] % g for k in range(N)}
    rest = [n[j] % g if n[j] > g else n[j] for j in jobs]
    a = {
        (j, k): m.sum([g * w[j, k]] if (j, k) in w else [])
        + m.sum([rest[j] * q[j, k]] if (j, k) in q else [])
        for j in jobs
        for k in range(N)
    }

    for j in jobs:
        if n[j] > g:
            m.row(f"whole_nodes_{j}", m.sum(w[j, k] for k in range(N)) == n[j] // g)
        if (j, 0) in q:
            m.row(f"rest_{j}", m.sum(q[j, k] for k in range(N)) == 1)
        for k in range(N):
            if (j, k) in w and (j, k) in q:
                m.row(f"different_nodes_{j}_{k}", w[j, k] + q[j, k] <= 1)
    for k in range(N):
        m.handed_on(f"gpus_{k}", [a[j, k] for j in jobs], [min(n[j], g) for j in jobs], g, o=o)

    J, goal = len(problem), problem.objective.goal
    if goal == "makespan":
        C = m.continuous("C_max")
        for j in jobs:
            m.row(f"makespan_{j}", s[j] + d[j] <= C)
        m.objective("makespan", C - min(r))
    elif goal == "mean_jct":
        m.objective("mean_jct", m.sum((1 / J) * (s[j] + d[j] - r[j]) for j in jobs))
    else:
        m.objective("mean_wait", m.sum((1 / J) * (s[j] - r[j]) for j in jobs))
    return m, o, w, q


def best_assignment(
    problem: QueueingProblem, *, limits: Limits, seed: int, backend: str = "highs"
) -> Outcome:
    """Return the best schedule by this formulation: the reference, not the method.

    Parameters
    ----------
    backend: ``highs`` or ``cbc``.
    """
    return solved(problem, formulation, limits=limits, seed=seed, backend=backend)
