"""Pairwise exchange: a placement with given counts by level, where memory is the only capacity.

Counts fix how many GPUs have each level. Tasks are placed on GPUs of sufficient level where they
overload least; then pairs of GPUs exchange tasks until none is overloaded. With several capacity
rows, or tasks that must be in one server, it finds nothing that dives do not.

A GPU with half a dozen tasks can be filled to the last MB by exchanging tasks with another one,
which is then left with all the free room of both, or all the overload. So exchanges that keep the
sum of overloads concentrate free room on few GPUs and overload on few others, and move overload
from dear levels to cheap ones, whose tasks fit everywhere.
"""

from __future__ import annotations

import numpy as np

from optgap.models.compiled import compiled, inner
from optgap.models.limits import Limits
from optgap.solvers.consolidation.bounds.level_counts import CostLevels
from optgap.solvers.consolidation.branch_and_price.branching import Node
from optgap.solvers.consolidation.branch_and_price.tree import PrimalHeuristic, SearchState
from optgap.solvers.consolidation.config import DEFAULT, ExchangeParams
from optgap.solvers.consolidation.instance import Instance
from optgap.solvers.consolidation.numerics import Counts, IntArray
from optgap.solvers.consolidation.outcome import Incumbent
from optgap.solvers.consolidation.primal.gpu_state import (
    MOST_RESIDENTS,
    Cluster,
    Gpus,
    cluster_of,
    holds,
    insert,
    occupied,
    relocate,
)

MOST_EACH = 7
"""Most tasks of one GPU in an exchange: all 2^7 subsets of them are tried."""


class PairwiseExchange(PrimalHeuristic):
    """Looks for placements with given counts. `order`: tasks in order of placement."""

    before_proof = True

    def __init__(
        self,
        instance: Instance,
        levels: CostLevels,
        rng: np.random.Generator,
        params: ExchangeParams = DEFAULT.exchange,
    ) -> None:
        self.instance, self.levels, self.rng, self.params = instance, levels, rng, params
        self.cluster = cluster_of(instance)
        self.order: IntArray = np.lexsort((-instance.demand[0], -instance.width, -levels.of))

    @property
    def applies(self) -> bool:
        """Whether memory is the only capacity, and a task's GPUs may be in any servers."""
        return len(self.instance.demand) == 1 and not self.instance.gang

    def realise(self, state: SearchState, node: Node, counts: Counts, limits: Limits) -> None:
        """One attempt at the counts."""
        self.attempt(state.incumbent, counts[:-1])

    def improve(self, state: SearchState, limits: Limits) -> None:
        """One attempt at higher counts than the best node's."""
        self.attempt(state.incumbent, state.richer_counts()[:-1])

    def attempt(self, incumbent: Incumbent, counts: Counts) -> bool:
        """Look for a placement with these counts of GPUs by level; whether one was found."""
        level = self.levels.of
        gpus = np.arange(counts[0])[:, None]
        highest: IntArray = (gpus < np.array(counts)).sum(axis=1) - 1
        place: IntArray = np.full(int(self.instance.entry_start[-1]), -1, dtype=np.int64)
        pairs = self.params.pairs * counts[0]
        found = fill_levels(self.order, level, highest, self.cluster, place) and not exchange(
            level, highest, pairs, self.params.noise, self.cluster, place, self.rng
        )
        if found:
            incumbent.offer_flat(place)
        return found


@compiled
def fill_levels(
    order: IntArray, level: IntArray, highest: IntArray, cluster: Cluster, place: IntArray
) -> bool:
    """Place each task where it overloads least; False where one has no GPU.

    Parameters
    ----------
    order: of tasks. level: (L,) of each task.
    highest: (G,) the highest level of a task on each of the first GPUs.
    place: receives the GPU of each entry; -1 before.
    """
    gpus, limit = occupied(place, cluster), cluster.capacity[0, 0]
    for ell in order:
        size = cluster.demand[0, ell]
        for m in range(cluster.start[ell], cluster.start[ell + 1]):
            pick, least = -1, np.inf
            for g in range(len(highest)):
                full = gpus.many[g] >= MOST_RESIDENTS - 1
                if full or highest[g] < level[ell] or holds(place, ell, g, cluster):
                    continue
                over = max(0, size - gpus.left[g, 0]) / max(1, limit)
                filled = 1 - gpus.left[g, 0] / max(1, limit)
                worse = 1e3 * over + 2.0 * (highest[g] - level[ell]) - filled
                if worse < least:
                    pick, least = g, worse
            if pick < 0:
                return False
            place[m] = pick
            insert(pick, ell, gpus, cluster)
    return True


@inner
def _choices(
    gpu: int, to: int, level: IntArray, highest: IntArray, gpus: Gpus, cluster: Cluster,
    place: IntArray, draw: np.random.Generator, chosen: IntArray, sums: IntArray
) -> int:  # fmt: skip
    """Choose tasks of a GPU that may be on the other, at random where there are many; how many.

    Parameters
    ----------
    chosen: receives the tasks. sums: receives the memory of each subset of them.
    """
    count, seen = 0, 0
    room = gpus.many[to] + MOST_EACH < MOST_RESIDENTS
    for ell in gpus.held[gpu, : gpus.many[gpu]]:
        if room and level[ell] <= highest[to] and not holds(place, ell, to, cluster):
            seen += 1
            pick = count if count < MOST_EACH else int(draw.integers(0, seen))
            if pick < MOST_EACH:
                chosen[pick] = ell
                count = max(count, pick + 1)
    sums[0] = 0
    for k in range(count):
        for mask in range(1 << k):
            sums[mask | (1 << k)] = sums[mask] + cluster.demand[0, chosen[k]]
    return count


@inner
def _unevenness(x: int, y: int, limit: int, dearer: int) -> float:
    """Secondary objective of an exchange between GPUs that hold x and y; smaller is better.

    Parameters
    ----------
    dearer: > 0 where the first GPU has the higher level and should hold little, < 0 where the
        second has; 0 for equal levels, where loads should be as uneven as possible.
    """
    if dearer != 0:
        return float(x if dearer > 0 else y)
    return -(float(x - limit) ** 2 + float(y - limit) ** 2)


@inner
def _best_exchange(
    x: int, y: int, limit: int, dearer: int, out: IntArray, back: IntArray, worse: int
) -> tuple[int, int]:
    """The subsets of both GPUs' tasks to exchange; 0 and 0 where no exchange is better.

    The least overload, then the least secondary objective, among exchanges that come closest to
    filling either GPU exactly.

    Parameters
    ----------
    x, y: memory in use of the GPUs. dearer: see `_unevenness`.
    out, back: memory of each subset of one GPU's tasks, and of the other's.
    worse: by how much the overload may rise; above 0 any exchange is accepted.
    """
    both = x + y
    over = max(0, x - limit) + max(0, y - limit)
    uneven, give, take = _unevenness(x, y, limit, dearer), 0, 0
    if worse > 0:
        over, uneven = over + worse, np.inf
    outs, backs = np.argsort(out), np.argsort(back)
    for target in (limit, both - limit):
        at = 0
        for i in outs:
            while at < len(backs) - 1 and x - out[i] + back[backs[at]] < target:
                at += 1
            for j in backs[max(0, at - 1) : at + 1]:
                now = x - out[i] + back[j]
                if now in (x, y):
                    continue
                left = max(0, now - limit) + max(0, both - now - limit)
                if left <= over:
                    far = _unevenness(now, both - now, limit, dearer)
                    if left < over or far < uneven:
                        over, uneven, give, take = left, far, i, j
    return give, take


@compiled
def exchange(
    level: IntArray, highest: IntArray, pairs: int, noise: float, cluster: Cluster, place: IntArray,
    draw: np.random.Generator
) -> float:  # fmt: skip
    """Exchange tasks until no GPU is overloaded; the overload left, in GPUs. `place` is changed.

    In each round a GPU that is not exactly full tries the others in random order until an exchange
    is better. Where none is, it exchanges with the last one, even if the overload rises a little.

    Parameters
    ----------
    level, highest, place: see `fill_levels`.
    pairs: most pairs of GPUs to try. noise: by how much the overload may rise, as a share of a GPU.
    """
    gpus, limit, count = occupied(place, cluster), cluster.capacity[0, 0], len(highest)
    left, order = gpus.left[:count, 0], np.arange(count)
    mine, theirs = np.zeros(MOST_EACH, dtype=np.int64), np.zeros(MOST_EACH, dtype=np.int64)
    out, back = np.zeros(1 << MOST_EACH, dtype=np.int64), np.zeros(1 << MOST_EACH, dtype=np.int64)
    while pairs > 0 and left.min() < 0:
        uneven = np.flatnonzero(left)
        a = uneven[draw.integers(0, len(uneven))]
        pairs -= 1  # there may be no other GPU
        for turn in range(count):
            k = draw.integers(turn, count)
            b = order[k]
            order[k], order[turn] = order[turn], b
            if b == a:
                continue
            pairs -= 1
            many = _choices(a, b, level, highest, gpus, cluster, place, draw, mine, out)
            more = _choices(b, a, level, highest, gpus, cluster, place, draw, theirs, back)
            worse = int(noise * limit) if turn == count - 1 else 0
            give, take = _best_exchange(
                limit - left[a], limit - left[b], limit, highest[a] - highest[b], out[: 1 << many],
                back[: 1 << more], worse
            )  # fmt: skip
            if give or take:
                for i in range(many):
                    if give >> i & 1:
                        relocate(mine[i], a, b, place, gpus, cluster)
                for i in range(more):
                    if take >> i & 1:
                        relocate(theirs[i], b, a, place, gpus, cluster)
                break
    return float(-np.minimum(left, 0).sum() / max(1, limit))
