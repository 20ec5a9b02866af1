"""Lower bounds on the GPUs that tasks need: sums over capacities, and Martello and Toth's L2."""

from __future__ import annotations

import numpy as np

from optgap.solvers.consolidation.instance import Instance
from optgap.solvers.consolidation.numerics import IntArray

MOST_THRESHOLDS = 40
"""Thresholds α that L2 tries for one capacity row at most."""


def gpus_needed(
    instance: Instance, tasks: IntArray, rows: IntArray | None = None, alphas: int = MOST_THRESHOLDS
) -> int:
    """Lower bound on the GPUs that `tasks` need: the widest task, sums of each row, and L2.

    Parameters
    ----------
    rows: capacity rows for which L2 is computed; all where it is left out.
    alphas: number of thresholds α that L2 tries for each row.
    """
    if not tasks.size:
        return 0
    width = instance.width[tasks]
    best = int(width.max())
    sums = (instance.demand[:, tasks] @ width).tolist()
    for total, limit in zip(sums, instance.max_capacity.tolist(), strict=True):
        best = max(best, -(-total // limit) if limit else 0)
    for r in range(len(instance.max_capacity)) if rows is None else rows.tolist():
        limit = int(instance.max_capacity[r])
        if limit:
            best = max(best, _l2(instance.demand[r, tasks], width, limit, alphas))
    return best


def _l2(sizes: IntArray, width: IntArray, limit: int, most: int) -> int:
    """L2: items above limit − α are alone, no two above half go together, those below α are
    ignored.

    With α = 0 it is at least the sum divided by the limit.
    """
    best = 0
    alphas = np.unique(sizes[sizes * 2 <= limit])
    for alpha in [0, *alphas[:: max(1, len(alphas) // most)].tolist()]:
        alone = sizes > limit - alpha
        large = (sizes * 2 > limit) & ~alone
        small = (sizes * 2 <= limit) & (sizes >= alpha)
        room = int(width[large].sum()) * limit - int((sizes * width)[large].sum())
        rest = int((sizes * width)[small].sum()) - room
        count = int(width[alone].sum() + width[large].sum())
        best = max(best, count + max(0, -(-rest // limit)))
    return best
