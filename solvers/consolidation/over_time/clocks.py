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


class Clocks:
    """What each set of tasks needs at most and at least if it shares a GPU for life.

    Attributes
    ----------
    kinds: numbers of GPUs that are alike. upper: (2^L,) J of each set by the best clocks known, for
        each of `kinds`. lower: (2^L,) a bound on it for any kind, J. boxes: of progress between
        arrivals, of each set that was split, see `split`. nodes: how often it may be split next.
    """

    def __init__(
        self,
        problem: ConsolidationProblem,
        search: Search,
        kinds: list[list[int]],
        upper: list[FloatArray],
    ) -> None:
        self.search, self.case = search, search.case
        self.kinds, self.upper = kinds, upper
        case = self.case
        self.curve = envelope(problem, BoundParams().tangents)
        _, self.highest, work = utilisations(problem)
        asked = [np.cumsum(t.util_percent) - t.util_percent for t in problem.tasks]
        self.before = np.concatenate(asked) * case.period / 100
        self.limit: IntArray = case.limit[case.gpu_kind].max(axis=0)
        self.even = bool((case.beta == case.beta[:, :1]).all())
        curve = self.curve
        self.lower = least_energy(case, work, curve.factor, curve.pace, curve.watts)
        self.boxes: dict[int, FloatArray] = {}
        self.nodes: dict[int, int] = {}
        for task in range(len(problem)):
            for gpus, costs in zip(kinds, upper, strict=True):
                costs[1 << task] = min(costs[1 << task], self.clocked(gpus[0], np.array([task])))

    def certify(self, params: ExactParams, limits: Limits) -> float:
        """Better clocks and bounds for sets in partitions that may be best; a bound on all, J.

        Ends where the bound is within `params.gap` of the best partition known.
        """
        every, gpus = len(self.lower) - 1, len(self.case.gpu_kind)
        masks, left = np.arange(every + 1), params.nodes
        best = shared_out(self.upper, [len(own) for own in self.kinds])[0]
        loosest = np.minimum.reduce(self.upper)
        many = len(self.search.case.submit)
        most = gpus if best > partitions(loosest, many)[0][-1, -1] * (1 + BOUND_SAFETY) else many
        while True:
            table, _ = partitions(self.lower, most)
            bound = float(table[-1, -1])
            limits.progress("clocks", best, bound * (1 - BOUND_SAFETY))
            goal = best * (1 - 0.99 * params.gap)
            near = goal * (1 - TUNING.rounding * params.gap)  # what is enough for sets adds up
            ended = bound >= near or left <= 0 or not self.even or limits.stop is not None
            if ended:
                return bound * (1 - BOUND_SAFETY)
            rest = table[-1 if most >= many else most - 1][every ^ masks]
            loosest = np.minimum.reduce(self.upper)
            open_ = (self.lower + rest < near) & (self.lower < loosest * (1 - params.gap / 2))
            found = masks[open_ & (masks & (masks - 1) > 0)]
            if not len(found):
                return bound * (1 - BOUND_SAFETY)
            order = np.argsort((self.lower + rest)[found], kind="stable")
            for mask in found[order][: max(TUNING.least_sets, len(found) // 20)].tolist():
                if limits.stop is not None:
                    break
                left -= self._raise(mask, float(goal - rest[mask]), params.gap)
            best = shared_out(self.upper, [len(own) for own in self.kinds])[0]

    def _raise(self, mask: int, enough: float, gap: float) -> int:
        """Split one set's boxes, so many that its bound is enough if that can be; how often."""
        own = tasks_of(mask)
        if mask not in self.nodes:
            for gpus, costs in zip(self.kinds, self.upper, strict=True):
                costs[mask] = min(costs[mask], self.clocked(gpus[0], own))
        nodes = self.nodes.get(mask, TUNING.first_splits)
        best = min(float(costs[mask]) for costs in self.upper)
        enough = max(min(enough, best * (1 - gap / 2)), float(self.lower[mask]))
        factor, curve = float(self.curve.factor[own].min()), self.curve
        if factor <= 0:
            return 1
        grid = Grid(TUNING.sample_parts, TUNING.coarse_cells, TUNING.halvings)
        boxes, done = split(
            self.case, self.before, self.highest, own, self.limit, curve.pace, curve.watts,
            grid, self._apart(mask, own) / factor,
            self.boxes.get(mask, np.zeros((0, 3, len(own) - 1))),
            enough / factor * (1 + BOUND_SAFETY), nodes,
        )  # fmt: skip
        self.boxes[mask] = boxes
        self.nodes[mask] = min(2 * nodes, TUNING.most_splits) if done >= nodes else nodes
        least = float(boxes[:, 2, 0].min()) if len(boxes) else np.inf
        self.lower[mask] = max(self.lower[mask], min(enough, factor * least * (1 - BOUND_SAFETY)))
        return done + 1

    def _apart(self, mask: int, own: IntArray) -> FloatArray:
        """Bounds on a set's energy, J, if all before its second, third, … task are done by then.

        None where a GPU boots: one that is done the moment another arrives need not.
        """
        if self.case.wake_s > 0:
            return np.zeros(0)
        before = mask & ((1 << own[1:]) - 1)
        return np.asarray(self.lower[before] + self.lower[mask ^ before])

    def clocked(self, gpu: int, own: IntArray) -> float:
        """Set the clocks of tasks that share a GPU; their energy, J."""
        search = self.search
        return best_levels(self.case, search.scratch, search.plan, gpu, own, TUNING.finest_level)


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
