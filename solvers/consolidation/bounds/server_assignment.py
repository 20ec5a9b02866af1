"""Servers as counts of GPUs by level: a small integer program whose optimum bounds the power.

With one kind of GPU in equal servers a GPU costs as much as its dearest resident alone would. With
the tasks' own costs as levels, all that counts of server i is n_iq, how many of its GPUs cost level
q or more. What every placement keeps (see docs/consolidation-bounds.md):

    n_iq ≤ n_i,q−1 ≤ … ≤ W z_i
    n_iq ≥ v_l where task l of level q is in server i               (gang = server)
    Σ_{l in i, level ≥ q} a_lr v_l ≤ limit_r n_iq                   tasks of several GPUs
    Σ_{level ≥ q} a_lr v_l ≤ limit_r Σ_i n_iq                       all tasks
    Σ_i n_iq ≥ what the tasks of level q and above need             `level_counts`
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from optgap.models.limits import Limits
from optgap.solvers.backends import cpsat
from optgap.solvers.consolidation.bounds.level_counts import (
    CostLevels,
    closed_form_bound,
    server_limit,
)
from optgap.solvers.consolidation.config import DEFAULT, BoundParams
from optgap.solvers.consolidation.instance import Instance
from optgap.solvers.consolidation.numerics import QUANTUM_W, Counts
from optgap.solvers.consolidation.outcome import Bound


def server_assignment_bound(
    instance: Instance,
    levels: CostLevels,
    counts: Counts,
    limits: Limits,
    *,
    watts: float = math.inf,
    workers: int = 0,
    seed: int = 0,
    params: BoundParams = DEFAULT.bounds,
) -> Bound:
    """The least power of any servers by counts; in closed form where GPUs or servers differ.

    Parameters
    ----------
    watts: what a placement is known for: no more servers are looked at than it could pay.
    workers: CP-SAT's threads; 0 for one per core.
    """
    closed = closed_form_bound(instance, levels, counts)
    if not instance.identical_servers or limits.stop is not None:
        return closed
    servers = server_limit(instance, closed.watts, watts, counts[0])
    model = server_model(instance, levels, counts, servers, params)
    answer = cpsat.run(
        model, limits, workers=workers, seed=seed, phase="servers by level",
        scale=lambda quanta: quanta * QUANTUM_W,
    )  # fmt: skip
    if answer.bound is None:
        return closed
    found = answer.bound * QUANTUM_W * (1 - 1e-12)
    return closed.raised(found, f"servers by counts of GPUs, {cpsat.solver_name()}")


def server_model(
    instance: Instance, levels: CostLevels, counts: Counts, servers: int, params: BoundParams
) -> Any:
    """The CP-SAT model."""
    from ortools.sat.python import cp_model

    model = cp_model.CpModel()
    width, top = int(instance.server_gpus[0]), range(len(levels.quanta))
    n = [[model.new_int_var(0, width, "") for _ in top] for _ in range(servers)]
    awake = [model.new_bool_var("") for _ in range(servers)]
    for i in range(servers):
        for q in top[1:]:
            model.add(n[i][q] <= n[i][q - 1])
        model.add(n[i][0] <= width * awake[i])
        if i:
            model.add(n[i][0] <= n[i - 1][0])
    wide = np.flatnonzero(instance.width > 1).tolist()
    if instance.gang and len(wide) * servers <= params.gang_literals:
        _gangs(model, instance, levels, n, wide)
    for q in top:
        total = sum(row[q] for row in n)
        tasks = levels.above(q)
        model.add(total >= counts[q])
        for r, limit in enumerate(instance.max_capacity.tolist()):
            demand = int((instance.demand[r, tasks] * instance.width[tasks]).sum())
            model.add(total * limit >= demand)
    steps = [int(x) for x in np.diff([0, *levels.quanta])]
    static = math.floor(float(instance.server_w[0]) / QUANTUM_W)
    model.minimize(
        sum(steps[q] * row[q] for row in n for q in top) + sum(static * z for z in awake)
    )
    return model


def _gangs(
    model: Any, instance: Instance, levels: CostLevels, n: list[list[Any]], wide: list[int]
) -> None:
    """Which server each task of several GPUs is in."""
    inside: list[list[Any]] = [[model.new_bool_var("") for _ in wide] for _ in n]
    for k, ell in enumerate(wide):
        model.add_exactly_one(row[k] for row in inside)
        for i, row in enumerate(n):
            width = int(instance.width[ell])
            model.add(row[int(levels.of[ell])] >= width).only_enforce_if(inside[i][k])
    for q in range(len(levels.quanta)):
        chosen = [k for k, ell in enumerate(wide) if levels.of[ell] >= q]
        for r, limit in enumerate(instance.max_capacity.tolist()):
            sizes = [int(instance.demand[r, wide[k]] * instance.width[wide[k]]) for k in chosen]
            for i, row in enumerate(n):
                held = sum(s * inside[i][k] for s, k in zip(sizes, chosen, strict=True))
                model.add(held <= limit * row[q])
