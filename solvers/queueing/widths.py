"""Weights of jobs against the capacity: GPUs, and dual feasible functions of them.

A function u with Σ u(n_j) ≤ 1 for every set of jobs that fits into a bin (a node, or the cluster
as a whole) turns each GPU count into a demand that no schedule exceeds. Jobs of more than half a
bin weigh a whole one, for example, as no two of them fit together.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from optgap.models.queueing import QueueingProblem
from optgap.models.queueing.arrays import FloatArray

Width = tuple[FloatArray, float]
"""Demand per job and the capacity that demands at any one time keep."""
MOST = 12
"""Functions tried per kind."""


def widths(problem: QueueingProblem) -> list[Width]:
    """GPUs against all GPUs, and every function that weighs some job more than that."""
    gpus = problem.jobs.gpus
    base = gpus / problem.gpus
    found: list[Width] = [(gpus.astype(np.float64), float(problem.gpus))]
    seen = [base]
    bins = [(1, problem.gpus)]
    if problem.placement == "node" and problem.nodes > 1:
        bins.append((problem.nodes, problem.gpus_per_node))
    for count, size in bins:
        table = np.arange(int(gpus.max()) + 1)
        for values in _functions(size, np.unique(gpus % size)):
            demand = (table // size + values[table % size])[gpus]
            share = demand / count
            if (share > base * (1 + 1e-12)).any() and not any(
                (share <= other).all() for other in seen
            ):
                seen.append(share)
                found.append((demand, float(count)))
    return found


def _functions(size: int, present: FloatArray) -> Iterator[FloatArray]:
    """Return values of u at 0, 1, …, size − 1 GPUs; u(size) = 1.

    The two classic families (Fekete and Schepers): u rounds up what is above 1 − ε and drops what
    is below ε; and u rounds down to multiples of 1/k what is no multiple of 1/(k + 1).
    """
    n = np.arange(size)
    for low in [int(x) for x in present if 0 < x <= size / 2][:MOST]:
        yield np.where(n > size - low, 1.0, np.where(n < low, 0.0, n / size))
    if size % 2 == 0:
        yield np.where(2 * n > size, 1.0, np.where(2 * n == size, 0.5, 0.0))
    for k in range(1, min(size, MOST)):
        whole = (k + 1) * n % size == 0
        yield np.where(whole, n / size, ((k + 1) * n // size) / k)
