"""Shares of a GPU that no set of tasks exceeds together, in closed form."""

from __future__ import annotations

import numpy as np

from optgap.models.consolidation import ConsolidationProblem
from optgap.solvers.consolidation.numerics import FloatArray, IntArray
from optgap.solvers.consolidation.over_time.parameters import TUNING


def sizes(problem: ConsolidationProblem) -> tuple[IntArray, IntArray]:
    """(R, L) memory and the capacity row where there is one, and (R,) what a GPU has of each."""
    limits = [int(problem.gpu_memory.max()), *[problem.limit_micro] * len(problem.rows)]
    return np.concatenate([problem.memory[None, :], problem.rows]), np.array(limits)


def closed_forms(demand: IntArray, limits: IntArray) -> FloatArray:
    """(n, L) shares of each row: sizes over the limit, and dual feasible functions of them.

    Those are ⌊(n + 1)x⌋/n, and Martello and Toth's: 0 below a threshold, 1 above one less it.
    """
    rows: list[FloatArray] = []
    for taken, limit in zip(demand, limits.tolist(), strict=True):
        rows.append(taken / limit)
        for n in TUNING.multiples:
            whole = (n + 1) * taken // limit
            rows.append(np.where((n + 1) * taken % limit == 0, taken / limit, whole / n))
        for threshold in TUNING.thresholds:
            edge = int(threshold * limit)
            least = np.where(taken < edge, 0.0, taken / limit)
            rows.append(np.where(taken > limit - edge, 1.0, least))
    kept: list[FloatArray] = []
    for row in rows:
        if row.any() and not any((row <= other).all() for other in kept):
            kept = [other for other in kept if not (other <= row).all()] + [row]
    return np.array(kept).reshape(len(kept), demand.shape[1])
