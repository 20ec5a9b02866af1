"""Bounds on how many GPUs tasks need, in closed form and by column generation."""

from __future__ import annotations

import math

import numpy as np

from optgap.models.limits import Limits
from optgap.solvers.consolidation.generation import Generation
from optgap.solvers.consolidation.packing import IntArray, Packing

MOST_ALPHAS = 40


def quick_count(
    pack: Packing, tasks: IntArray, rows: IntArray | None = None, alphas: int = MOST_ALPHAS
) -> int:
    """The GPUs that `tasks` need at least: widest task, sums of each row, large items.

    Parameters
    ----------
    rows: for which large items are looked at; all where it is left out.
    alphas: how many α at most.
    """
    if not tasks.size:
        return 0
    width = pack.width[tasks]
    best = int(width.max())
    sums = (pack.rows[:, tasks] @ width).tolist()
    for total, limit in zip(sums, pack.most.tolist(), strict=True):
        best = max(best, -(-total // limit) if limit else 0)
    for r in range(len(pack.most)) if rows is None else rows.tolist():
        limit = int(pack.most[r])
        if limit:
            best = max(best, _large(pack.rows[r, tasks], width, limit, alphas))
    return best


def _large(sizes: IntArray, width: IntArray, limit: int, most: int) -> int:
    """Martello and Toth's L2: above limit − α an item is alone, above half no two go together.

    With α = 0 it is no less than the sum over the limit.
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


def proven_count(pack: Packing, tasks: IntArray, hoped: int, limits: Limits) -> int:
    """The same by the cutting stock bound, no more than `hoped`, which ends the work."""
    quick = quick_count(pack, tasks)
    if quick >= hoped:
        return quick
    relaxed = Generation(pack, tasks, np.ones(pack.tasks)).run(
        limits, enough=hoped - 1 + 1e-4, hopeless=quick + 1e-9
    )
    return max(quick, math.ceil(relaxed.bound - 1e-5))
