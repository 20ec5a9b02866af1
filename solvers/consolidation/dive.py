"""From fractional sets to a placement: fix a set, generate again for the rest, go on."""

from __future__ import annotations

import numpy as np

from optgap.models.limits import Limits
from optgap.solvers.consolidation.generation import Generation, Set
from optgap.solvers.consolidation.packing import Packing
from optgap.solvers.consolidation.search import Search

MOST_TASKS = 1200
ALMOST = 0.999


def dive_to(
    pack: Packing, search: Search, target: float, limits: Limits, seed: int, tries: int = 20
) -> None:
    """Dive until a placement of `target` W is found, a few times with other choices.

    Only where every task takes one GPU and GPUs and servers are equal: elsewhere sets of tasks
    do not make a placement by themselves.
    """
    if not pack.uniform or (pack.width > 1).any() or pack.tasks > MOST_TASKS:
        return
    share = float(pack.server_w[0] / pack.server_gpus[0])
    cost = pack.least_watts + share
    rng = np.random.default_rng(seed)
    pool: list[Set] = list(map(tuple, pack.contents(search.places or []).values()))
    for k in range(tries):
        if limits.stop is not None or search.watts <= target * (1 + 1e-9):
            return
        sets = _dive(pack, cost, pool, rng, limits, greedy=k == 0)
        if sets is None or len(sets) > pack.gpus:
            continue
        places: list[tuple[int, ...]] = [()] * pack.tasks
        for g, one in enumerate(sorted(sets, key=lambda s: -max(cost[ell] for ell in s))):
            for ell in one:
                places[ell] = (g,)
        search.offer(places)


def _dive(
    pack: Packing,
    cost: np.ndarray,
    pool: list[Set],
    rng: np.random.Generator,
    limits: Limits,
    greedy: bool,
) -> list[Set] | None:
    """Sets that hold every task once."""
    left = set(range(pack.tasks))
    fixed: list[Set] = []
    while left:
        if limits.stop is not None:
            return None
        tasks = np.array(sorted(left), dtype=np.int64)
        generation = Generation(pack, tasks, cost)
        generation.add(one for one in pool if len(left.intersection(one)) == len(one))
        relaxed = generation.run(limits)
        pool.extend(one for one, _ in relaxed.used)
        weights = np.array([x for _, x in relaxed.used])
        chosen = [one for one, x in relaxed.used if x >= ALMOST]
        if not chosen:
            noise = 1.0 if greedy else rng.uniform(0.5, 1.0, len(weights))
            sizes = np.array([pack.rows[:, list(one)].sum() for one, _ in relaxed.used])
            rank = np.lexsort((-sizes, -np.round(weights * noise, 6)))
            chosen = [relaxed.used[int(rank[0])][0]]
        for one in chosen:
            inside = tuple(ell for ell in one if ell in left)
            if inside:
                fixed.append(inside)
                left.difference_update(inside)
    return fixed
