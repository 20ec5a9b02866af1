"""BestFit and DotProd: servers by what is free in them, sleeping ones included."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from optgap.heuristics.consolidation.engine import Choice, Decide, State
from optgap.heuristics.consolidation.parameters import DotProdParams, PackingParams
from optgap.heuristics.consolidation.selection import run
from optgap.models.consolidation import ConsolidationProblem
from optgap.models.consolidation.tasks import FloatArray
from optgap.models.errors import InputError
from optgap.models.limits import Limits
from optgap.models.result import Outcome

Rank = Callable[[FloatArray, FloatArray], FloatArray]
"""(free (…, 2), request (2,)), both as shares of the largest → rank, the least is taken."""


def admitted(state: State, task: int, u_max: float) -> np.ndarray:
    """(G,) memory fits, and means stay within u_max."""
    own = state.problem.mean_micro[task]
    return np.asarray(state.fits(task) & (state.mean_micro + own <= round(u_max * 1e6)))


def by_rank(rank: Rank, u_max: float) -> Decide:
    """The server of least rank that has v GPUs for the task, then its GPUs of least rest."""

    def decide(state: State, task: int) -> Choice:
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


def bestfit(problem: ConsolidationProblem, *, limits: Limits, seed: int, **given: Any) -> Outcome:
    """Least Σ w·(free − request)/max over utilisation and memory, w = ½ each.

    `given` as in `PackingParams`.
    """
    options = PackingParams(**given)
    decide = by_rank(lambda free, request: 0.5 * (free - request).sum(axis=1), options.u_max)
    return run(problem, decide, limits, options)


def dotprod(problem: ConsolidationProblem, *, limits: Limits, seed: int, **given: Any) -> Outcome:
    """Least free·request; `dp_sign` −1 takes the largest, as Tetris does.

    `given` as in `DotProdParams`.

    Raises
    ------
    InputError: for another `dp_sign` than these.
    """
    options = DotProdParams(**given)
    sign = options.dp_sign
    if sign not in (1, -1):
        raise InputError("dotprod", "dp_sign", sign, "1 or -1")
    decide = by_rank(lambda free, request: sign * (free @ request), options.u_max)
    return run(problem, decide, limits, options)
