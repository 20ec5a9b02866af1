"""Shares of a GPU that no set of tasks exceeds together: closed forms, and those of a program."""

from __future__ import annotations

import numpy as np

from optgap.models.consolidation import ConsolidationProblem
from optgap.models.limits import Limits
from optgap.solvers.backends.growing import quiet_highs, solve_within
from optgap.solvers.consolidation.numerics import FloatArray, IntArray
from optgap.solvers.consolidation.over_time.knapsack_kernels import heaviest
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


def best_share(
    weight: FloatArray, demand: IntArray, limits: IntArray, nodes: int, stop: Limits
) -> FloatArray:
    """(n,) shares g ≥ 0, no set that fits having more than 1, of about the largest Σ weight·g.

    The dual of fractional bin packing, sets being added while one has more than 1; divided at
    last by what none exceeds, so that it holds whatever the program and the search came to.
    """
    import highspy

    n, demand = len(weight), np.ascontiguousarray(demand)
    highs = quiet_highs()
    highs.changeObjectiveSense(highspy.ObjSense.kMaximize)
    for value in weight.tolist():
        highs.addCol(value / float(weight.max()), 0.0, 1.0, 0, [], [])
    share, over = np.ones(n), float(n)
    for _ in range(20 * n):
        worth = share + 1e-9
        chosen = np.zeros(n, dtype=np.int64)
        over = heaviest(worth, demand, limits, nodes, chosen)
        if float((worth * chosen).sum()) <= 1 + 1e-6 or stop.stop is not None:
            break
        own = np.flatnonzero(chosen).astype(np.int32)
        highs.addRow(-highspy.kHighsInf, 1.0, len(own), own, np.ones(len(own)))
        solution = solve_within(highs, stop)
        if highs.getModelStatus() != highspy.HighsModelStatus.kOptimal:
            break
        share = np.clip(np.array(solution.col_value), 0.0, 1.0)
    else:
        over = heaviest(share + 1e-9, demand, limits, nodes, np.zeros(n, dtype=np.int64))
    return share / max(1.0, over)
