"""Enumeration by reduced cost: every column that a placement for less than a given power can use.

For the duals of the master, bound + Σ (reduced cost of S)·λ_S is below every placement in the box;
so a column whose reduced cost is more than what lies between the bound and a power is in no
placement for that. A column to which another task could be added at the same cost is left out where
that task takes as many GPUs as one of the column's: the larger one stands for it.
"""

from __future__ import annotations

import numpy as np

from optgap.models.limits import Limits
from optgap.solvers.consolidation.column_generation.dual_bound import Duals
from optgap.solvers.consolidation.column_generation.generation import ColumnGeneration
from optgap.solvers.consolidation.column_generation.kernels import (
    DEEPEST,
    all_columns,
    fill_tables,
)
from optgap.solvers.consolidation.column_generation.pricing import Priced
from optgap.solvers.consolidation.numerics import Column, IntArray


def enumerate_columns(
    generation: ColumnGeneration,
    duals: Duals,
    watts: float,
    most: int,
    limits: Limits,
    effort: float = 1.0,
    parts: bool = False,
) -> list[Column] | None:
    """All columns that placements for no more than `watts` can use, in the master's box.

    None where there are more than `most`. No task is assigned to a server.

    Parameters
    ----------
    effort: times the nodes of the search, beyond which it is given up.
    parts: also columns that a larger one stands for, where that may not be allowed.
    """
    master, pricer, instance = generation.master, generation.pricer, generation.instance
    params, level = pricer.params, pricer.task_levels
    rents = duals.rents[level]
    bound = generation.bound(duals, Priced(rents, rents, [], True))
    slip = 2 * pricer.tolerance  # what a column may be worth beyond its rent where pricing ended
    gap = watts - bound + slip * master.box.high[0]
    worth, tables = duals.tasks[pricer.order], pricer.tables(pricer.coarse)
    fill_tables(pricer.coarse, pricer.room, worth, tables)
    found: IntArray = np.zeros(
        (most, min(DEEPEST, _most_tasks(pricer.demand, pricer.limit))), np.int64
    )
    size, beyond = np.zeros(most, dtype=np.int64), np.zeros(most)
    alike = np.full(len(level), len(level)) if parts else np.searchsorted(-level, -level)
    number, ended = all_columns(
        pricer.demand, pricer.limit, worth, pricer.coarse, pricer.room, tables, rents - gap,
        alike, instance.width[pricer.order], found, size, beyond,
        int(min(effort * params.all_nodes, params.all_nodes_per_s * limits.remaining)),
    )  # fmt: skip
    reduced = gap - beyond[:number]
    if not ended or (reduced < -slip).any():  # else the bound is none
        return None
    return [
        tuple(sorted(pricer.order[found[k, : size[k]]].tolist()))
        for k in np.argsort(reduced, kind="stable").tolist()
    ]


def _most_tasks(demand: IntArray, limit: IntArray) -> int:
    """No more tasks than these fit a GPU; at least one."""
    smallest = np.cumsum(np.sort(demand, axis=1), axis=1)
    return max(1, int((smallest <= limit[:, None]).sum(axis=1).min()))
