"""Enumeration by reduced cost: every column that a placement below a given power can use.

For any duals, bound + Σ_S (reduced cost of S)·λ_S is at most the power of every placement in the
box. So no placement below a power uses a column whose reduced cost is above the gap between bound
and power. Columns that are dominated are left out: a column to which a task can be added that does
not raise its level, and takes as many GPUs as one of the column's own tasks, is replaced by the
larger one.
"""

from __future__ import annotations

import numpy as np

from optgap.models.limits import Limits
from optgap.models.work import CONSOLIDATION
from optgap.solvers.consolidation.column_generation.dual_bound import Duals
from optgap.solvers.consolidation.column_generation.generation import ColumnGeneration
from optgap.solvers.consolidation.column_generation.kernels import DEEPEST, all_columns
from optgap.solvers.consolidation.column_generation.pricing import Priced
from optgap.solvers.consolidation.numerics import Column, IntArray
from optgap.solvers.consolidation.turns import affordable


def enumerate_columns(
    generation: ColumnGeneration,
    duals: Duals,
    watts: float,
    most: int,
    limits: Limits,
    effort: float = 1.0,
    dominated: bool = False,
) -> list[Column] | None:
    """All columns that a placement in the master's box for at most `watts` can use.

    None where there are more than `most`, or the search takes too long. The master must have no
    task assigned to a server.

    Parameters
    ----------
    effort: factor on the nodes that the search may take.
    dominated: list dominated columns as well; needed where servers may forbid the larger ones.
    """
    master, pricer, instance = generation.master, generation.pricer, generation.instance
    params, level = pricer.params, pricer.task_levels
    gpu_prices = duals.gpu_prices[level]
    bound = generation.bound(duals, Priced(gpu_prices, gpu_prices, [], True))
    slip = 2 * pricer.tolerance  # how negative a reduced cost may be where pricing has ended
    gap = watts - bound + slip * master.box.high[0]
    knapsack = pricer.knapsack(duals)
    found: IntArray = np.zeros(
        (most, min(DEEPEST, _most_tasks(pricer.demand, pricer.limit))), np.int64
    )
    size, beyond = np.zeros(most, dtype=np.int64), np.zeros(most)
    alike = np.full(len(level), len(level)) if dominated else np.searchsorted(-level, -level)
    share = limits.remaining / CONSOLIDATION.node
    nodes = int(min(effort * params.all_nodes, share))
    if not affordable(limits, CONSOLIDATION.node * nodes):
        return None
    number, ended, taken = all_columns(
        knapsack, gpu_prices - gap, alike, instance.width[pricer.order], found, size, beyond,
        nodes
    )  # fmt: skip
    limits.spend(CONSOLIDATION.node * taken)
    reduced = gap - beyond[:number]
    if not ended or (reduced < -slip).any():  # a column was missing: the duals prove no bound
        return None
    return [
        tuple(sorted(pricer.order[found[k, : size[k]]].tolist()))
        for k in np.argsort(reduced, kind="stable").tolist()
    ]


def _most_tasks(demand: IntArray, limit: IntArray) -> int:
    """An upper limit on the tasks that fit one GPU; at least 1."""
    smallest = np.cumsum(np.sort(demand, axis=1), axis=1)
    return max(1, int((smallest <= limit[:, None]).sum(axis=1).min()))
