"""Shared parts of BestFit, DotProd and FGD; GPUs asleep are candidates like active ones."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from optgap.heuristics.consolidation.state import Choice, ConsolidationState, Decide
from optgap.models.consolidation.tasks import FloatArray

Rank = Callable[[FloatArray, FloatArray], FloatArray]
"""Rank of n servers by free (n, 2) and request (2,), as shares of the largest server."""


def admitted(state: ConsolidationState, task: int, u_max: float) -> np.ndarray:
    """Tell for each GPU whether memory fits and mean utilisation stays within u_max, shape (G,)."""
    own = state.problem.mean_micro[task]
    return np.asarray(state.fits(task) & (state.mean_micro + own <= round(u_max * 1e6)))


def by_rank(rank: Rank, u_max: float) -> Decide:
    """Return a rule: the server of least rank with v GPUs, then its GPUs with least left."""

    def decide(state: ConsolidationState, task: int) -> Choice:
        problem = state.problem
        room = admitted(state, task, u_max)
        v = problem.tasks[task].gpus
        free = np.stack([u_max - state.mean_micro / 1e6, state.free_bytes / 1e9], axis=1)
        request = np.array([problem.mean_micro[task] / 1e6, problem.memory[task] / 1e9])
        width = np.diff(state.first_gpu)
        largest = np.array([u_max, float(problem.gpu_memory.max()) / 1e9])
        rest = 0.5 * ((free - request) / largest).sum(axis=1)
        if problem.rules.gang == "free" and v > 1:
            found = np.flatnonzero(room)
            chosen = found[np.argsort(rest[found], kind="stable")[:v]]
            return tuple(chosen.tolist()) if len(chosen) == v else None
        counts = np.add.reduceat(room.astype(np.int64), state.first_gpu[:-1])
        nodes = np.flatnonzero(counts >= v)
        if not nodes.size:
            return None
        node_free = np.add.reduceat(free, state.first_gpu[:-1], axis=0)[nodes]
        most = largest * int(width.max())
        best = int(nodes[np.argmin(rank(node_free / most, request * v / most))])
        own = np.arange(state.first_gpu[best], state.first_gpu[best + 1])
        own = own[room[own]]
        return tuple(own[np.argsort(rest[own], kind="stable")[:v]].tolist())

    return decide
