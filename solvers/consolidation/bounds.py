"""The closed-form bound: power ≥ Σ_q (c_q − c_{q−1})·B_q and the static power of the servers.

Cost level q is the power c_q of a GPU whose dearest resident has that level. A GPU that holds a
task of level ≥ q costs at least c_q, and the tasks of level ≥ q need at least B_q GPUs
(`gpus_needed`). With identical GPUs and servers and one power line for all tasks, the counts N_q
of a placement (its GPUs of level ≥ q) fix its power.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from optgap.solvers.consolidation.config import DEFAULT
from optgap.solvers.consolidation.instance import Instance
from optgap.solvers.consolidation.numerics import QUANTUM_W, Counts, FloatArray, IntArray
from optgap.solvers.consolidation.outcome import Bound

BY_COUNTS = "GPUs counted by level"
MOST_THRESHOLDS = 40
"""Thresholds α that L2 tries for one capacity row at most."""


@dataclass(frozen=True)
class CostLevels:
    """The cost levels of a GPU.

    Parameters
    ----------
    quanta: (Q,) cost of a GPU of each level, ascending, in `QUANTUM_W`, rounded down.
    of: (L,) the level of each task.
    exact: whether no levels were merged.
    """

    quanta: tuple[int, ...]
    of: IntArray
    exact: bool

    def above(self, q: int) -> IntArray:
        """Return the tasks of level q or higher."""
        return np.flatnonzero(self.of >= q)

    @property
    def steps_w(self) -> FloatArray:
        """(Q,) s_q: the cost of each level beyond the level below, W."""
        return np.asarray(np.diff([0, *self.quanta]) * QUANTUM_W)


def cost_levels(
    instance: Instance, most: int = DEFAULT.bounds.levels, watts: FloatArray | None = None
) -> CostLevels:
    """Return the cost levels of an instance's tasks.

    Parameters
    ----------
    most: number of levels beyond which tasks are moved to a lower level.
    watts: (L,) cost of a GPU that runs only this task, W; `Instance.least_watts` if left out.
    """
    watts = instance.least_watts if watts is None else watts
    each = np.floor(watts / QUANTUM_W * (1 + 1e-15)).astype(np.int64)
    found = np.unique(each)
    exact = len(found) <= most
    if not exact:
        ranks = np.unique(np.linspace(0, len(found) - 1, most + 1).astype(int)[:-1])
        found = found[ranks]
    of = np.searchsorted(found, each, side="right") - 1
    return CostLevels(tuple(int(x) for x in found), of, exact)


def counts_fix_power(instance: Instance, levels: CostLevels) -> bool:
    """Tell whether counts by level fix a placement's power, and every task fits into a server."""
    narrow = not instance.gang or int(instance.width.max()) <= int(instance.server_gpus[0])
    return instance.identical_servers and instance.cost_is_maximum and levels.exact and narrow


def level_counts(instance: Instance, levels: CostLevels) -> Counts:
    """Return (Q,) lower bounds on the GPUs of each level or more, by Martello and Toth's L2.

    Each count is raised to those of higher levels.
    """
    demand = (instance.demand @ instance.width) / np.maximum(instance.max_capacity, 1)
    number, most = len(levels.quanta), DEFAULT.bounds.l2_evaluations
    rows = np.argsort(-demand, kind="stable")[: max(1, most // (8 * number))]
    each = most // (number * len(rows))
    alphas = int(np.clip(each, 1, MOST_THRESHOLDS))
    counts = [gpus_needed(instance, levels.above(q), rows, alphas) for q in range(number)]
    rising: IntArray = np.maximum.accumulate(np.array(counts, dtype=np.int64)[::-1])
    return tuple(rising[::-1].tolist())


def least_static_w(instance: Instance, gpus: int) -> float:
    """Lower bound on the static power of servers with so many GPUs in use, W."""
    if instance.identical_servers:
        return float(instance.server_w[0]) * instance.servers_for(gpus)
    order = np.argsort(instance.server_w / instance.server_gpus, kind="stable")
    total, left = 0.0, float(gpus)
    for i in order.tolist():
        share = min(1.0, left / float(instance.server_gpus[i]))
        total += share * float(instance.server_w[i])
        left -= share * float(instance.server_gpus[i])
        if left <= 0:
            break
    return total


def closed_form_w(instance: Instance, levels: CostLevels, counts: Counts) -> float:
    """Return Σ_q (c_q − c_{q−1})·counts_q and the static power of the servers that takes, W."""
    steps = np.diff([0, *levels.quanta])
    gpus = sum(int(a) * b for a, b in zip(steps, counts, strict=True)) * QUANTUM_W
    return gpus * (1 - 1e-12) + least_static_w(instance, counts[0])


def closed_form_bound(instance: Instance, levels: CostLevels, counts: Counts) -> Bound:
    """Return `closed_form_w` as a bound."""
    return Bound(closed_form_w(instance, levels, counts), BY_COUNTS, counts)


def server_limit(instance: Instance, bound: float, watts: float, gpus: int) -> int:
    """Return how many of the identical servers a placement of at most `watts` can wake.

    Each server beyond those of the bound costs its static power out of the gap.

    Parameters
    ----------
    bound: closed-form bound, W. gpus: GPUs that every placement needs.
    """
    most = len(instance.server_w)
    each, least = float(instance.server_w[0]), instance.servers_for(gpus)
    if not math.isfinite(watts):
        return most
    if each <= 0:
        gpu_w = float(instance.least_watts.min())
        return min(most, max(least, int(min(most, watts / gpu_w)) + 1))
    without = bound - each * least
    return max(least, int(min(most, (watts - without) / each + 1e-9)))


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
