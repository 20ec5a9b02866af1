"""The formulation as printed, Eq. 6-14, with its gaps filled: the reference, not the method."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from optgap.models.consolidation import ConsolidationProblem
from optgap.models.errors import InputError, NoQuote
from optgap.models.limits import Limits
from optgap.models.result import Outcome
from optgap.solvers.consolidation.instance import instance_of
from optgap.solvers.formulation import Formulation, Program, chosen, solved

MOST_LITERALS = 200_000


def formulation(
    problem: ConsolidationProblem, *, limits: Limits | None = None, big_m: bool = True
) -> Formulation:
    """CATS, Eq. 6-14: min power, with x_l_i_j, y_i_j, z_i, f_i_j; o_l_i where tasks are gangs.

    Parameters
    ----------
    big_m: (14) with M = f_max as printed; else (14'), equal at x = 1 and tighter at x = 0.

    Raises
    ------
    InputError: for a problem too large to write down.
    Stopped: at a limit.
    """
    if len(problem) * len(problem.places) > MOST_LITERALS:
        found = NoQuote(f"{len(problem)} tasks on {len(problem.places)} GPUs")
        raise InputError("printed", "tasks", found, f"at most {MOST_LITERALS} pairs")
    instance = instance_of(problem)
    program, x = power(problem, big_m, limits)

    def decode(values: Mapping[str, float]) -> Any:
        places: list[list[int]] = [[] for _ in problem.tasks]
        for ell, i, j in chosen(values, x):
            places[ell].append(problem.numbers[i, j])
        return instance.solution([tuple(gpus) for gpus in places])

    return Formulation(program, decode)


def power(
    problem: ConsolidationProblem, big_m: bool, limits: Limits | None
) -> tuple[Program, dict[Any, Any]]:
    """Return the program, and x_lij by (task, server, GPU in it)."""
    m = Program("CATS", limits=limits)
    tasks, servers, gpus = range(len(problem)), range(len(problem.servers)), problem.places
    kind = {(i, j): int(problem.gpu_kind[problem.numbers[i, j]]) for i, j in gpus}
    gpu = {(i, j): problem.kinds[k] for (i, j), k in kind.items()}
    d = [task.memory_gb for task in problem.tasks]
    v = [task.gpus for task in problem.tasks]

    x = {(ell, i, j): m.binary(f"x_{ell}_{i}_{j}") for ell in tasks for i, j in gpus}
    y = {(i, j): m.binary(f"y_{i}_{j}") for i, j in gpus}
    z = [m.binary(f"z_{i}") for i in servers]
    f = {(i, j): m.continuous(f"f_{i}_{j}") for i, j in gpus}

    for ell in tasks:
        m.row(f"gpus_7_{ell}", m.sum(x[ell, i, j] for i, j in gpus) == v[ell])
        if problem.rules.gang == "server" and v[ell] > 1:
            o = [m.binary(f"o_{ell}_{i}") for i in servers]
            m.row(f"gang_{ell}", m.sum(o) == 1)
            for i in servers:
                here = m.sum(x[ell, i, j] for k, j in gpus if k == i)
                m.row(f"gang_{ell}_{i}", here == v[ell] * o[i])
    for i, j in gpus:
        c = gpu[i, j].memory_gb
        m.row(f"memory_8_{i}_{j}", m.sum(d[ell] * x[ell, i, j] for ell in tasks) <= c * y[i, j])
        for ell in tasks:
            m.row(f"gpu_on_9_{ell}_{i}_{j}", x[ell, i, j] <= y[i, j])
        m.row(f"server_on_10_{i}_{j}", y[i, j] <= z[i])
        for t, u in enumerate(problem.rows / problem.limit_micro):
            used = m.sum(float(u[ell]) * x[ell, i, j] for ell in tasks)
            m.row(f"capacity_{t}_{i}_{j}", used <= y[i, j])
    for i in servers:
        m.row(f"server_off_11_{i}", z[i] <= m.sum(y[k, j] for k, j in gpus if k == i))
    for i, j in gpus:
        f_min, f_max = gpu[i, j].f_min_mhz, gpu[i, j].f_max_mhz
        m.row(f"f_min_13_{i}_{j}", f_min * y[i, j] <= f[i, j])
        m.row(f"f_max_13_{i}_{j}", f[i, j] <= f_max * y[i, j])
        for ell in tasks:
            floor = problem.floors_mhz[kind[i, j]][ell]  # f_max κ_l^(-1/β)
            big = f_max if big_m else floor
            m.row(f"sla_14_{ell}_{i}_{j}", f[i, j] >= floor - big * (1 - x[ell, i, j]))
        if steps := gpu[i, j].frequencies_mhz:
            s = [m.binary(f"s_{i}_{j}_{k}") for k in range(len(steps))]
            m.row(f"one_clock_{i}_{j}", m.sum(s) == y[i, j])
            clock = m.sum(mhz * s[k] for k, mhz in enumerate(steps))
            m.row(f"clock_{i}_{j}", f[i, j] == clock)

    P_srv = [server.static_w for server in problem.servers]
    P_gpu = {place: gpu_power(m, problem, place, x=x, y=y, f=f) for place in gpus}
    m.objective("power_6", m.sum(P_srv[i] * z[i] for i in servers) + m.sum(P_gpu.values()))
    return m, x


def gpu_power(
    m: Program, problem: ConsolidationProblem, place: tuple[int, int], *, x: Any, y: Any, f: Any
) -> Any:
    """P_gs + α f of a GPU; of residents with lines of their own the highest."""
    kind = problem.kinds[int(problem.gpu_kind[problem.numbers[place]])]
    if not any(task.power for task in problem.tasks):
        return kind.power.static_w * y[place] + kind.power.slope_w_per_mhz * f[place]
    i, j = place
    P = m.continuous(f"P_{i}_{j}")
    for ell, task in enumerate(problem.tasks):
        line = task.power or kind.power
        clock = f[place] - kind.f_max_mhz * (1 - x[ell, i, j])
        watts = line.static_w * x[ell, i, j] + line.slope_w_per_mhz * clock
        m.row(f"line_{ell}_{i}_{j}", watts <= P)
    return P


def printed(
    problem: ConsolidationProblem,
    *,
    limits: Limits,
    seed: int,
    backend: str = "highs",
    big_m: bool = True,
) -> Outcome:
    """Eq. 6-14 on a MILP solver; the paper used PuLP with CBC and a tolerance of 1e-6.

    Parameters
    ----------
    backend: ``highs`` or ``cbc``.
    big_m: see `formulation`.

    Raises
    ------
    InputError: as `formulation`, and for a back end that is not there.
    """
    made = partial(formulation, big_m=big_m)
    return solved(problem, made, limits=limits, seed=seed, backend=backend)
