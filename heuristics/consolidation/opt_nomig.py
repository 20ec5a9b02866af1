"""Least added power for each arriving task, without migration of residents.

S_g are the residents of GPU g, and P_g(S) its power at the lowest clock that κ allows (Eq. 1 at
14'). Task l gets the v GPUs of the least

    Σ_g [P_g(S_g ∪ {l}) − P_g(S_g)] + static power of the servers that wake,

W; ties go to the GPUs with the least memory left.
"""

from __future__ import annotations

import numpy as np

from optgap.heuristics.consolidation.clocks import lowest
from optgap.heuristics.consolidation.engine import simulate
from optgap.heuristics.consolidation.state import Choice, ConsolidationState
from optgap.models.consolidation import ConsolidationProblem
from optgap.models.consolidation.tasks import FloatArray
from optgap.models.limits import Limits
from optgap.models.result import Outcome


def opt_nomig(problem: ConsolidationProblem, *, limits: Limits, seed: int) -> Outcome:
    """Choose the least added power, with frequencies as low as κ allows."""
    return simulate(problem, decide, limits, lowest)


def decide(state: ConsolidationState, task: int) -> Choice:
    """Choose the GPUs for an arriving task."""
    return cheapest(state, task, added_watts(state, task, state.fits(task)))[1]


def added_watts(state: ConsolidationState, task: int, room: np.ndarray) -> FloatArray:
    """Return the added power of each GPU with room, without static power, W, shape (G,)."""
    problem = state.problem
    added = np.full(len(room), np.inf)
    empty: dict[int, float] = {}
    for g in np.flatnonzero(room).tolist():
        kind = int(problem.gpu_kind[g])
        floors = problem.floors_mhz[kind]
        own = state.residents(g)
        if not own:
            if kind not in empty:
                empty[kind] = problem.watts(kind, [task], floors[task])
            added[g] = empty[kind]
            continue
        before = problem.watts(kind, own, max(floors[ell] for ell in own))
        everyone = [*own, task]
        added[g] = problem.watts(kind, everyone, max(floors[ell] for ell in everyone)) - before
    return added


def cheapest(state: ConsolidationState, task: int, added: FloatArray) -> tuple[float, Choice]:
    """Return the least added power, servers that wake included, and GPUs that reach it."""
    problem = state.problem
    v = problem.tasks[task].gpus
    static = np.array([server.static_w for server in problem.servers])
    rank = np.lexsort((np.arange(len(added)), state.free_bytes, added))
    if problem.rules.gang == "free" and v > 1:
        return _spread(state, added, rank, static, v=v)
    best: tuple[float, float, int] | None = None
    chosen: Choice = None
    position = np.empty(len(rank), dtype=np.int64)
    position[rank] = np.arange(len(rank))
    if v == 1:
        total = added + np.where(state.awake > 0, 0.0, static)[problem.gpu_server]
        g = int(np.lexsort((np.arange(len(total)), state.free_bytes, np.round(total, 9)))[0])
        return float(total[g]), (g,) if np.isfinite(total[g]) else None
    for i in range(len(static)):
        own = np.arange(state.first_gpu[i], state.first_gpu[i + 1])
        own = own[np.argsort(position[own], kind="stable")][:v]
        if len(own) < v or not np.isfinite(added[own]).all():
            continue
        cost = float(added[own].sum()) + (0.0 if state.awake[i] else float(static[i]))
        key = (round(cost, 9), float(state.free_bytes[own].sum()), i)
        if best is None or key < best:
            best, chosen = key, tuple(sorted(own.tolist()))
    return (np.inf, None) if best is None else (best[0], chosen)


def _spread(
    state: ConsolidationState, added: FloatArray, rank: np.ndarray, static: FloatArray, *, v: int
) -> tuple[float, Choice]:
    """Choose GPUs on any servers: active ones by added power, then servers that wake.

    This adds the least power if static powers are equal. Otherwise servers of low static power
    wake first.
    """
    asleep = state.awake[state.problem.gpu_server] == 0
    share = static[state.problem.gpu_server]
    fits = [g for g in rank.tolist() if np.isfinite(added[g])]
    best: tuple[float, tuple[int, ...]] | None = None
    order = sorted(set(state.problem.gpu_server[asleep].tolist()), key=lambda i: static[i])
    for woken in range(len(order) + 1):
        allowed = set(order[:woken])
        pool = [g for g in fits if not asleep[g] or int(state.problem.gpu_server[g]) in allowed]
        if len(pool) >= v:
            chosen = tuple(sorted(pool[:v]))
            servers = {int(state.problem.gpu_server[g]) for g in chosen if asleep[g]}
            cost = float(added[list(chosen)].sum()) + sum(float(static[i]) for i in servers)
            if best is None or cost < best[0] - 1e-9:
                best = (cost, chosen)
            if share.max(initial=0.0) >= 0 and woken > v:
                break
    return (np.inf, None) if best is None else best
