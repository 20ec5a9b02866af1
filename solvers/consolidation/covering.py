"""Set covering by an integer program, where GPUs, servers or power lines differ.

y_iS counts the GPUs of server i that hold the set S, of all sets that fit one GPU of a kind k. The
power c_kS of such a GPU is exact, so that the optimum of the program is the optimum:

    min  Σ c_kS·y_iS + Σ P_i·z_i
    Σ_i Σ_{S∋l} y_iS ≥ v_l                       every task l
    Σ_S y_iS ≤ W_ik·z_i                          the W_ik GPUs of kind k in server i
    Σ_{S∋l} y_iS ≥ v_l·o_li ;   Σ_i o_li = 1     every task l whose GPUs are in one server

Where no task needs one server, equal servers are one row of servers, z_i of which are awake.
"""

from __future__ import annotations

import itertools
from typing import NamedTuple

import numpy as np

from optgap.models.limits import Limits
from optgap.models.result import Status, Termination
from optgap.solvers.backends import solve
from optgap.solvers.backends.linear import LinearBuilder
from optgap.solvers.backends.safe import solver_slack
from optgap.solvers.consolidation.bounds import server_limit
from optgap.solvers.consolidation.config import DEFAULT
from optgap.solvers.consolidation.instance import Instance
from optgap.solvers.consolidation.numerics import BOUND_SAFETY, Column, FloatArray, Placement
from optgap.solvers.consolidation.outcome import Bound, Incumbent

TOLERANCE = 1e-10
"""The solver's own, on costs relative to that of the dearest GPU."""


class CoverAnswer(NamedTuple):
    """The best bound known, why the solver ended, and whether there is no placement at all."""

    bound: Bound
    termination: Termination
    infeasible: bool


class _Use(NamedTuple):
    """A variable y_iS: its column, the GPUs that it may count, and S."""

    column: int
    gpus: tuple[int, ...]
    tasks: Column


def solve_covering(
    incumbent: Incumbent, bound: Bound, limits: Limits, seed: int
) -> CoverAnswer | None:
    """Look for better placements by the program; None where it has too many variables.

    The incumbent is an artificial column that covers all tasks, and the start solution.

    Parameters
    ----------
    bound: the closed-form bound, which limits the servers of a better placement.
    """
    instance, known = incumbent.instance, incumbent.watts
    found = incumbent.placement is not None
    rows = _server_rows(instance, bound, known)
    kinds = len(instance.capacity)
    sets = [_sets(instance, k, DEFAULT.exact.cover_columns // len(rows)) for k in range(kinds)]
    if sum(map(len, sets)) * len(rows) > DEFAULT.exact.cover_columns:
        return None
    builder, uses, unit = LinearBuilder(), list[_Use](), float(instance.least_watts.max())
    cover: list[list[tuple[int, float]]] = [[] for _ in range(instance.tasks)]
    inside: list[list[list[tuple[int, float]]]]
    inside = [[[] for _ in rows] for _ in range(instance.tasks)]
    awake = []
    for i, servers in enumerate(rows):
        static = float(instance.server_w[servers[0]]) / unit
        awake.append(builder.variable(upper=float(len(servers)), cost=static, integer=True))
        gpus = np.flatnonzero(np.isin(instance.gpu_server, servers))
        for k in np.unique(instance.gpu_kind[gpus]).tolist():
            own = tuple(gpus[instance.gpu_kind[gpus] == k].tolist())
            first = len(uses)
            for tasks in sets[k]:
                most = min(len(own), int(instance.width[list(tasks)].min()))
                cost = instance.cost(own[0], list(tasks)) / unit
                uses.append(_Use(builder.variable(0.0, most, cost, integer=True), own, tasks))
                for ell in tasks:
                    cover[ell].append((uses[-1].column, 1.0))
                    inside[ell][i].append((uses[-1].column, 1.0))
            each = -float(len(own) // len(servers))
            here = [(use.column, 1.0) for use in uses[first:]]
            builder.row([*here, (awake[i], each)], upper=0.0)
    homes: dict[tuple[int, int], int] = {}
    artificial = builder.variable(
        upper=float(found), cost=known / unit if found else 0.0, integer=True
    )
    for ell, v in enumerate(instance.width.tolist()):
        builder.row([*cover[ell], (artificial, float(v))], lower=float(v))
        if instance.gang and v > 1:
            for (server, *_), here in zip(rows, inside[ell], strict=True):
                homes[ell, server] = home = builder.variable(upper=1.0, integer=True)
                builder.row([*here, (home, -float(v))], lower=0.0)
            builder.row([*((homes[ell, row[0]], 1.0) for row in rows), (artificial, 1.0)], 1.0)
    if instance.identical_servers:
        for one, other in itertools.pairwise(awake):
            builder.row([(one, 1.0), (other, -1.0)], lower=0.0)
    model = builder.build()
    start = np.zeros(model.variables)
    start[artificial] = 1.0
    answer = solve(
        model,
        backend="highs",
        limits=limits,
        seed=seed,
        start=start if found else None,
        tolerance=TOLERANCE,
    )
    if answer.values is not None and not answer.values[artificial]:
        incumbent.offer(_placed(instance, uses, homes, answer.values))
    watts = 0.0
    if answer.bound is not None:
        watts = (answer.bound - solver_slack(model, TOLERANCE)) * unit * (1 - BOUND_SAFETY)
    # servers beyond those of the program, and placements no better than the incumbent, are left out
    bound = bound.raised(min(watts, known), f"sets of tasks that fit a GPU, {answer.solver}")
    infeasible = answer.status is Status.INFEASIBLE and not found
    return CoverAnswer(bound, answer.termination, infeasible)


def _server_rows(instance: Instance, bound: Bound, known: float) -> list[list[int]]:
    """Return the servers of each z: one, or where no task needs one server, all that are equal."""
    count = len(instance.server_w)
    if instance.identical_servers:
        count = server_limit(instance, bound.watts, known, bound.counts[0])
    rows: dict[object, list[int]] = {}
    for i in range(count):
        kinds = instance.gpu_kind[instance.server_start[i] : instance.server_start[i + 1]]
        key = i if instance.gang else (float(instance.server_w[i]), tuple(sorted(kinds.tolist())))
        rows.setdefault(key, []).append(i)
    return list(rows.values())


def _sets(instance: Instance, kind: int, most: int) -> list[Column]:
    """Return all sets of tasks that fit a GPU of a kind, or more than `most` of them."""
    found: list[Column] = []
    stack: list[tuple[Column, np.ndarray]] = [((), instance.capacity[kind])]
    while stack and len(found) <= most:
        tasks, left = stack.pop()
        first = tasks[-1] + 1 if tasks else 0
        fits = (instance.demand[:, first:] <= left[:, None]).all(axis=0)
        for ell in (first + np.flatnonzero(fits)).tolist():
            found.append((*tasks, ell))
            stack.append((found[-1], left - instance.demand[:, ell]))
    return found


def _placed(
    instance: Instance,
    uses: list[_Use],
    homes: dict[tuple[int, int], int],
    values: FloatArray,
) -> Placement:
    """Return the placement behind the values; a task that is covered too often leaves some GPUs."""
    server = {ell: i for (ell, i), home in homes.items() if values[home]}
    left, taken = instance.width.copy(), set[int]()
    placement: list[list[int]] = [[] for _ in range(instance.tasks)]
    for use in uses:
        for _ in range(round(values[use.column])):
            gpu = next(g for g in use.gpus if g not in taken)
            taken.add(gpu)
            here = instance.gpu_server[gpu]
            for ell in use.tasks:
                if left[ell] and server.get(ell, here) == here:
                    left[ell] -= 1
                    placement[ell].append(gpu)
    return [tuple(gpus) for gpus in placement]
