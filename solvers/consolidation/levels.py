"""Servers as counts of GPUs by level: a small model whose optimum bounds the power.

With one kind of GPU in equal servers a GPU costs as much as its dearest resident alone would. With
the tasks' own costs as levels, all that counts of server i is n_iq, how many of its GPUs cost level
q or more. What every placement keeps (see docs/consolidation-bounds.md):

    n_iq ≤ n_i,q−1 ≤ … ≤ W z_i
    n_iq ≥ v_l where task l of level q is in server i               (gang = server)
    Σ_{l in i, level ≥ q} a_lr v_l ≤ limit_r n_iq                   tasks of several GPUs
    Σ_{level ≥ q} a_lr v_l ≤ limit_r Σ_i n_iq                       all tasks
    Σ_i n_iq ≥ what the tasks of level q and above need             see counts.py
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from optgap.models.limits import Limits
from optgap.solvers.backends import cpsat
from optgap.solvers.consolidation.counts import MOST_ALPHAS, proven_count, quick_count
from optgap.solvers.consolidation.packing import QUANTUM_W, IntArray, Packing

MOST_LEVELS = 48
"""More are merged into so many: a level costs what its cheapest task does."""
MOST_COUNTS, MOST_ALPHAS_IN_ALL = 5000, 40_000
"""Rows times levels, and times α, that are counted at most."""
MOST_LITERALS = 60_000
"""Tasks of several GPUs times servers at most; with more, those tasks are only counted."""


@dataclass(frozen=True)
class Levels:
    """Costs as few integers.

    Parameters
    ----------
    quanta: (Q,) ascending cost of a GPU of each level, in `QUANTUM_W`, rounded down.
    of: (L,) the level of each task.
    exact: whether no level was merged.
    """

    quanta: tuple[int, ...]
    of: IntArray
    exact: bool

    def above(self, q: int) -> IntArray:
        """The tasks of level q or higher."""
        return np.flatnonzero(self.of >= q)


def levels(pack: Packing, most: int = MOST_LEVELS) -> Levels:
    """The levels of a packing with one kind of GPU; each task at the least it can cost."""
    each = np.floor(pack.least_watts / QUANTUM_W * (1 + 1e-15)).astype(np.int64)
    found = np.unique(each)
    exact = len(found) <= most
    if not exact:
        ranks = np.unique(np.linspace(0, len(found) - 1, most + 1).astype(int)[:-1])
        found = found[ranks]
    of = np.searchsorted(found, each, side="right") - 1
    return Levels(tuple(int(x) for x in found), of, exact)


@dataclass(frozen=True)
class LevelBound:
    """A proven bound in W, the counts that went into it, and who proved it."""

    watts: float
    counts: tuple[int, ...]
    by: str


def least_static(pack: Packing, gpus: int) -> float:
    """The least static power of servers with so many GPUs, W."""
    if pack.uniform:
        return float(pack.server_w[0]) * pack.servers_for(gpus)
    order = np.argsort(pack.server_w / pack.server_gpus, kind="stable")
    total, left = 0.0, float(gpus)
    for i in order.tolist():
        share = min(1.0, left / float(pack.server_gpus[i]))
        total += share * float(pack.server_w[i])
        left -= share * float(pack.server_gpus[i])
        if left <= 0:
            break
    return total


def counted(
    pack: Packing, own: Levels, limits: Limits, hoped: tuple[int, ...] | None = None
) -> tuple[int, ...]:
    """How many GPUs cost each level or more, at least; `hoped` are counts not worth exceeding."""
    counts = []
    rows, alphas = _looked_at(pack, len(own.quanta))
    for q in range(len(own.quanta)):
        tasks = own.above(q)
        if hoped is None:
            counts.append(quick_count(pack, tasks, rows, alphas))
        else:
            counts.append(proven_count(pack, tasks, hoped[q], limits))
    for q in range(len(counts) - 2, -1, -1):
        counts[q] = max(counts[q], counts[q + 1])
    return tuple(counts)


def _looked_at(pack: Packing, levels: int) -> tuple[IntArray, int]:
    """The fullest rows, and how many α, so that the counts of all levels take about a second."""
    full = np.argsort(-((pack.rows @ pack.width) / np.maximum(pack.most, 1)), kind="stable")
    rows = full[: max(1, MOST_COUNTS // levels)]
    return rows, int(np.clip(MOST_ALPHAS_IN_ALL // (levels * len(rows)), 1, MOST_ALPHAS))


def closed_bound(pack: Packing, own: Levels, counts: tuple[int, ...]) -> float:
    """Σ_q (c_q − c_{q−1})·counts_q and the static power of as many servers as that takes, W."""
    steps = np.diff([0, *own.quanta])
    gpus = sum(int(a) * b for a, b in zip(steps, counts, strict=True)) * QUANTUM_W
    return gpus * (1 - 1e-12) + least_static(pack, counts[0])


def dearer(
    pack: Packing, own: Levels, vector: tuple[int, ...], most: float, rng: np.random.Generator
) -> tuple[int, ...]:
    """More GPUs of some levels, drawn one by one as long as they cost no more than `most` W."""
    for _ in range(pack.gpus):
        more = [
            (*vector[:q], count + 1, *vector[q + 1 :])
            for q, count in enumerate(vector)
            if count < (vector[q - 1] if q else pack.gpus)
        ]
        more = [one for one in more if closed_bound(pack, own, one) <= most]
        if not more:
            break
        vector = more[int(rng.integers(len(more)))]
    return vector


def level_bound(
    pack: Packing,
    own: Levels,
    counts: tuple[int, ...],
    limits: Limits,
    *,
    watts: float = math.inf,
    workers: int = 0,
    seed: int = 0,
) -> LevelBound:
    """The least power of any servers by counts; in closed form where GPUs or servers differ.

    Parameters
    ----------
    watts: what a placement is known for: no more servers are looked at than it could pay.
    """
    closed = LevelBound(closed_bound(pack, own, counts), counts, "GPUs counted by level")
    if not pack.uniform or limits.stop is not None:
        return closed
    servers = server_limit(pack, closed.watts, watts, counts[0])
    model, _ = level_model(pack, own, counts, servers)
    answer = cpsat.run(
        model, limits, workers=workers, seed=seed, phase="servers by level",
        scale=lambda quanta: quanta * QUANTUM_W,
    )  # fmt: skip
    if answer.bound is None:
        return closed
    found = answer.bound * QUANTUM_W * (1 - 1e-12)
    if found <= closed.watts:
        return closed
    return LevelBound(found, counts, f"servers by counts of GPUs, {cpsat.solver_name()}")


def server_limit(pack: Packing, bound: float, watts: float, gpus: int) -> int:
    """How many of the equal servers a placement of at most `watts` can wake.

    More than the bound's own share of them has to be paid for out of the gap.
    """
    most = len(pack.server_w)
    each, least = float(pack.server_w[0]), pack.servers_for(gpus)
    if not math.isfinite(watts):
        return most
    if each <= 0:
        return min(most, max(least, int(watts / float(pack.least_watts.min())) + 1))
    without = bound - each * least
    return max(least, min(most, int((watts - without) / each + 1e-9)))


def level_model(
    pack: Packing, own: Levels, counts: tuple[int, ...], servers: int
) -> tuple[Any, list[list[Any]]]:
    """The CP-SAT model, and its n_iq."""
    from ortools.sat.python import cp_model

    model = cp_model.CpModel()
    width, top = int(pack.server_gpus[0]), range(len(own.quanta))
    n = [[model.new_int_var(0, width, "") for _ in top] for _ in range(servers)]
    awake = [model.new_bool_var("") for _ in range(servers)]
    for i in range(servers):
        for q in top[1:]:
            model.add(n[i][q] <= n[i][q - 1])
        model.add(n[i][0] <= width * awake[i])
        if i:
            model.add(n[i][0] <= n[i - 1][0])
    wide = np.flatnonzero(pack.width > 1).tolist()
    if pack.gang and len(wide) * servers <= MOST_LITERALS:
        _gangs(model, pack, own, n, wide)
    for q in top:
        total = sum(row[q] for row in n)
        tasks = own.above(q)
        model.add(total >= counts[q])
        for r, limit in enumerate(pack.most.tolist()):
            model.add(total * limit >= int((pack.rows[r, tasks] * pack.width[tasks]).sum()))
    steps = [int(x) for x in np.diff([0, *own.quanta])]
    static = math.floor(float(pack.server_w[0]) / QUANTUM_W)
    model.minimize(
        sum(steps[q] * row[q] for row in n for q in top) + sum(static * z for z in awake)
    )
    return model, n


def _gangs(model: Any, pack: Packing, own: Levels, n: list[list[Any]], wide: list[int]) -> None:
    """Which server each task of several GPUs is in."""
    inside: list[list[Any]] = [[model.new_bool_var("") for _ in wide] for _ in n]
    for k, ell in enumerate(wide):
        model.add_exactly_one(row[k] for row in inside)
        for i, row in enumerate(n):
            model.add(row[int(own.of[ell])] >= int(pack.width[ell])).only_enforce_if(inside[i][k])
    for q in range(len(own.quanta)):
        chosen = [k for k, ell in enumerate(wide) if own.of[ell] >= q]
        for r, limit in enumerate(pack.most.tolist()):
            sizes = [int(pack.rows[r, wide[k]] * pack.width[wide[k]]) for k in chosen]
            for i, row in enumerate(n):
                model.add(
                    sum(s * inside[i][k] for s, k in zip(sizes, chosen, strict=True))
                    <= limit * row[q]
                )
