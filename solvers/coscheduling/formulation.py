"""The Oracle as a mixed-integer program: a PuLP problem."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from optgap.models.coscheduling import CoschedulingProblem
from optgap.models.coscheduling.gpus import placed
from optgap.models.coscheduling.solution import CoschedulingSolution
from optgap.models.limits import Limits
from optgap.models.result import Outcome
from optgap.solvers.formulation import Formulation, Program, chosen, earliest_starts, solved


def formulation(problem: CoschedulingProblem, *, limits: Limits | None = None) -> Formulation:
    """EcoSched's Oracle: x_i_g (the GPU count of each job), s_i, C_max.

    Times count from the problem's own clock, C_max from its first release.

    Raises
    ------
    InputError: for a problem too large to write down.
    Stopped: at a limit.
    """
    program, x, o = oracle(problem, limits)
    release = [problem.release_s(i) for i in range(len(problem))]

    def decode(values: Mapping[str, float]) -> CoschedulingSolution:
        modes = dict(sorted(chosen(values, x)))
        length = [
            next(m.runtime_s for m in problem.application(i).modes if m.gpu_count == g)
            for i, g in modes.items()
        ]
        start = earliest_starts(release, length, chosen(values, o))
        return placed(problem, [(i, g, start[i]) for i, g in modes.items()])

    return Formulation(program, decode)


def oracle(
    problem: CoschedulingProblem, limits: Limits | None
) -> tuple[Program, dict[Any, Any], dict[Any, Any]]:
    """Return the program with x_ig and o_ij."""
    m = Program("Oracle", limits=limits)
    jobs, M, K, P_idle = range(len(problem)), problem.gpus, problem.numa, problem.idle_w
    modes = [problem.application(i).modes for i in jobs]
    T = {(i, mode.gpu_count): mode.runtime_s for i in jobs for mode in modes[i]}
    P = {(i, mode.gpu_count): mode.power_w for i in jobs for mode in modes[i]}
    G = [[mode.gpu_count for mode in modes[i]] for i in jobs]
    r = [problem.release_s(i) for i in jobs]
    longest = [max(T[i, g] for g in G[i]) for i in jobs]
    # in some optimal schedule no job starts later than after all others, one by one
    latest = [max(r) + sum(longest) - longest[i] for i in jobs]

    x = {(i, g): m.binary(f"x_{i}_{g}") for i, g in T}
    s = [m.continuous(f"s_{i}", r[i], latest[i]) for i in jobs]
    C_max = m.continuous("C_max")
    length = [m.sum(T[i, g] * x[i, g] for g in G[i]) for i in jobs]
    o = m.sequence(s, length, longest, r, latest=latest)

    for i in jobs:
        m.row(f"one_mode_{i}", m.sum(x[i, g] for g in G[i]) == 1)
        m.row(f"makespan_{i}", C_max >= s[i] + length[i] - min(r))
    gpus = [m.sum(g * x[i, g] for g in G[i]) for i in jobs]
    m.handed_on("gpus", gpus, [max(G[i]) for i in jobs], M, o=o)
    if len(problem) > K:
        m.handed_on("numa", [m.sum(x[i, g] for g in G[i]) for i in jobs], [1 for _ in jobs], K, o=o)

    if problem.objective.goal == "makespan":
        m.objective("makespan", C_max + 0)
    else:
        active = m.sum((P[i, g] - P_idle * g) * T[i, g] * x[i, g] for i, g in x)
        m.objective("oracle_energy", active + P_idle * M * C_max)
    return m, x, o


def milp(
    problem: CoschedulingProblem, *, limits: Limits, seed: int, backend: str = "highs"
) -> Outcome:
    """Return the best schedule by this formulation: the reference, not the method.

    Parameters
    ----------
    backend: ``highs`` or ``cbc``.
    """
    return solved(problem, formulation, limits=limits, seed=seed, backend=backend)
