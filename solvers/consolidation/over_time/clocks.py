"""The least energy of tasks that never move, clocks chosen freely: sets for life, each bounded."""

from __future__ import annotations

import numpy as np

from optgap.models.consolidation import ConsolidationProblem
from optgap.models.limits import Limits
from optgap.solvers.consolidation.numerics import BOUND_SAFETY, FloatArray, IntArray
from optgap.solvers.consolidation.over_time.clock_kernels import Grid, best_levels, split
from optgap.solvers.consolidation.over_time.envelope import envelope
from optgap.solvers.consolidation.over_time.hindsight import Search
from optgap.solvers.consolidation.over_time.parameters import TUNING, BoundParams, ExactParams
from optgap.solvers.consolidation.over_time.relaxation import utilisations
from optgap.solvers.consolidation.over_time.sharing_kernels import (
    least_energy,
    merged,
    partitions,
)


class Kind:
    """What each set of tasks needs at most and at least if it shares a GPU of one kind for life.

    Attributes
    ----------
    gpus: their numbers. upper, lower: (2^L,) J of each set by the best clocks known, and a bound on
        it. boxes: of progress between arrivals, of each set that was split, see `split`. nodes: how
        often it may be split next.
    """

    def __init__(
        self, problem: ConsolidationProblem, search: Search, gpus: list[int], upper: FloatArray
    ) -> None:
        self.search, self.case = search, search.case
        self.gpus, self.upper = gpus, upper
        case = self.case
        self.curve = envelope(problem, BoundParams().tangents, gpus)
        _, self.highest, work = utilisations(problem)
        asked = [np.cumsum(t.util_percent) - t.util_percent for t in problem.tasks]
        self.before = np.concatenate(asked) * case.period / 100
        self.limit: IntArray = case.limit[case.gpu_kind[gpus[0]]]
        curve = self.curve
        self.lower = least_energy(
            case, work, self.limit, curve.factor, curve.pace, curve.watts, curve.work_j
        )
        self.boxes: dict[int, FloatArray] = {}
        self.nodes: dict[int, int] = {}
        for task in range(len(problem)):
            self._tune(1 << task)

    def split(self, mask: int, enough: float, gap: float) -> int:
        """Split one set's boxes, so many that its bound is enough if that can be; how often."""
        own = tasks_of(mask)
        if mask not in self.nodes:
            self._tune(mask)
        nodes = self.nodes.get(mask, TUNING.first_splits)
        enough = max(min(enough, self.upper[mask] * (1 - gap / 2)), float(self.lower[mask]))
        curve = self.curve
        factor, besides = float(curve.factor[own].min()), float(curve.work_j[own].sum())
        if factor <= 0:
            return 1
        early = mask & ((1 << own[1:]) - 1)
        apart = self.lower[early] + self.lower[mask ^ early]
        grid = Grid(TUNING.sample_parts, TUNING.coarse_cells, TUNING.halvings)
        boxes, done = split(
            self.case, self.before, self.highest, own, self.limit, curve.pace, curve.watts,
            grid, (apart - besides) / factor,
            self.boxes.get(mask, np.zeros((0, 3, len(own) - 1))),
            (enough * (1 + BOUND_SAFETY) - besides) / factor, nodes,
        )  # fmt: skip
        self.boxes[mask] = boxes
        self.nodes[mask] = min(2 * nodes, TUNING.most_splits) if done >= nodes else nodes
        least = float(boxes[:, 2, 0].min()) if len(boxes) else np.inf
        found = (factor * least + besides) * (1 - BOUND_SAFETY)
        self.lower[mask] = max(self.lower[mask], min(enough, found))
        return done + 1

    def _tune(self, mask: int) -> None:
        joules = clocked(self.search, self.gpus[0], tasks_of(mask))
        self.upper[mask] = min(self.upper[mask], joules)


def certify(kinds: list[Kind], params: ExactParams, limits: Limits) -> float:
    """Better clocks and bounds for sets in partitions that may be best; a bound on all, J.

    Ends where the bound is within `params.gap` of the best partition known.
    """
    case, left, many = kinds[0].case, params.nodes, len(kinds[0].case.submit)
    even = bool((case.beta == case.beta[:, :1]).all())
    masks, counts = np.arange(1 << many), [len(kind.gpus) for kind in kinds]
    uppers, lowers = [kind.upper for kind in kinds], [kind.lower for kind in kinds]
    best = shared_out(uppers, counts)[0]
    plenty = best <= partitions(np.minimum.reduce(uppers), many)[0][-1, -1] * (1 + BOUND_SAFETY)
    while True:
        if plenty:
            bound, rests = least_of_rest([np.minimum.reduce(lowers)], [many])
            rests *= len(kinds)
        else:
            bound, rests = least_of_rest(lowers, counts)
        limits.progress("clocks", best, bound * (1 - BOUND_SAFETY))
        goal = best * (1 - 0.99 * params.gap)
        near = goal * (1 - TUNING.rounding * params.gap)  # what is enough for sets adds up
        ended = bound >= near or left <= 0 or not even or limits.stop is not None
        if ended:
            return bound * (1 - BOUND_SAFETY)
        found = []
        for kind, rest in zip(kinds, rests, strict=True):
            total = kind.lower + rest
            open_ = (total < near) & (kind.lower < kind.upper * (1 - params.gap / 2))
            for mask in masks[open_ & (masks & (masks - 1) > 0)].tolist():
                found.append((total[mask], mask, kind, goal - rest[mask]))
        if not found:
            return bound * (1 - BOUND_SAFETY)
        found.sort(key=lambda each: each[:2])
        for _, mask, kind, enough in found[: max(TUNING.least_sets, len(found) // 20)]:
            if limits.stop is not None:
                break
            left -= kind.split(mask, float(enough), params.gap)
        best = shared_out(uppers, counts)[0]


def clocked(search: Search, gpu: int, own: IntArray) -> float:
    """Set the clocks of tasks that share a GPU; their energy, J."""
    return best_levels(search.case, search.scratch, search.plan, gpu, own, TUNING.finest_level)


def tasks_of(mask: int) -> IntArray:
    """The tasks of a set, ascending."""
    return np.array([k for k in range(mask.bit_length()) if mask >> k & 1], dtype=np.int64)


def shared_out(energy: list[FloatArray], gpus: list[int]) -> tuple[float, list[list[int]]]:
    """The least energy of all tasks, and the sets of each kind; infinite where they do not fit."""
    tables = [partitions(costs, most) for costs, most in zip(energy, gpus, strict=True)]
    values = [tables[0][0][-1]]
    split = []
    for best, _ in tables[1:]:
        value, given = merged(values[-1], best[-1])
        values.append(value)
        split.append(given)
    mask = len(energy[0]) - 1
    total = float(values[-1][mask])
    parts: list[list[int]] = [[] for _ in energy]
    if not np.isfinite(total):
        return total, parts
    for k in range(len(energy) - 1, -1, -1):
        own = int(split[k - 1][mask]) if k else mask
        mask ^= own
        parts[k] = _parts_of(*tables[k], own)
    return total, parts


def least_of_rest(energy: list[FloatArray], gpus: list[int]) -> tuple[float, list[FloatArray]]:
    """The least energy of all tasks; and of all but each set, with one GPU of a kind fewer.

    Returns
    -------
    J, and (2^L,) J for each kind.
    """
    tables = [partitions(costs, most)[0] for costs, most in zip(energy, gpus, strict=True)]
    every, rests = len(energy[0]) - 1, []
    for k, (table, most) in enumerate(zip(tables, gpus, strict=True)):
        value = table[-1 if most >= every.bit_length() else most - 1]
        for other in (*tables[:k], *tables[k + 1 :]):
            value = merged(value, other[-1])[0]
        rests.append(value[every ^ np.arange(every + 1)])
    best = tables[0][-1]
    for other in tables[1:]:
        best = merged(best, other[-1])[0]
    return float(best[-1]), rests


def _parts_of(best: FloatArray, part: IntArray, mask: int) -> list[int]:
    """The sets that a set is best parted into."""
    found, row, limited = [], len(best) - 1, len(best) > 2
    while mask:
        while limited and row > 1 and best[row - 1, mask] == best[row, mask]:
            row -= 1
        own = int(part[row, mask])
        found.append(own)
        mask ^= own
        row -= limited
    return found
