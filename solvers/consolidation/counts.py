"""Bounds on how many GPUs tasks need, in closed form and by column generation."""

from __future__ import annotations

import math

import numpy as np

from optgap.models.limits import Limits
from optgap.solvers.consolidation.generation import Generation
from optgap.solvers.consolidation.packing import IntArray, Packing

MOST_ALPHAS = 40


def quick_count(pack: Packing, tasks: IntArray) -> int:
    """The GPUs that `tasks` need at least: widest task, sums of each row, large items."""
    if not tasks.size:
        return 0
    width = pack.width[tasks]
    best = int(width.max())
    for r, limit in enumerate(pack.most.tolist()):
        if limit:
            sizes = pack.rows[r, tasks]
            best = max(best, _large(sizes, width, limit))
    return best


def _large(sizes: IntArray, width: IntArray, limit: int) -> int:
    """Martello and Toth's L2: above limit − α an item is alone, above half no two go together.

    With α = 0 it is no less than the sum over the limit.
    """
    best = 0
    alphas = np.unique(sizes[sizes * 2 <= limit])
    for alpha in [0, *alphas[:: max(1, len(alphas) // MOST_ALPHAS)].tolist()]:
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
