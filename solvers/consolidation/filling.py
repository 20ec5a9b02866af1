"""Thousands of tasks: each GPU gets the set of tasks that fills it best, the dearest level first.

What a placement costs above Σ_q (c_q − c_{q−1})·N_q is room that stays empty on its GPUs. Where
many tasks are left to choose from, a set that leaves none is nearly always there; so sets are
chosen GPU by GPU, and dozens of times with other weights of memory and utilisation.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from optgap.models.consolidation import ConsolidationProblem
from optgap.models.limits import Limits
from optgap.models.result import Outcome, Termination
from optgap.solvers.consolidation.bounds import MOST_GENERATED, Proof
from optgap.solvers.consolidation.filling_kernels import BRANCHES, fill
from optgap.solvers.consolidation.levels import (
    MOST_LEVELS,
    Levels,
    closed_bound,
    counted,
    level_bound,
    levels,
)
from optgap.solvers.consolidation.outcomes import outcome
from optgap.solvers.consolidation.packing import FloatArray, IntArray, Packing, packing
from optgap.solvers.consolidation.search import Search

MANY_LEVELS = 400
"""For the bound: each costs a pass over the tasks, and what merging takes from the bound."""
FEWEST_TASKS = (200, 400)
"""Of a level to choose from, on average: with fewer, levels are merged for placing."""
BREADTHS = (BRANCHES, (400, 60, 20, 4, 1), (200, 30, 10, 3, 1))
OTHERWISE_S = 0.02
"""Annealing per task where servers differ or the last task found no place."""


def filling(
    problem: ConsolidationProblem, *, limits: Limits, seed: int, tries: int = 60
) -> Outcome:
    """Fill GPUs in many ways, keep the best; GPUs counted by level are the bound.

    Parameters
    ----------
    tries: how many placements are made.
    """
    pack = packing(problem)
    proof = _proof(pack, limits)
    search = Search(pack, seed)
    fill_to(pack, search, proof.watts, limits, seed, tries)
    if search.best is None:
        search.build(limits, tries=2)
        search.improve(limits, min(OTHERWISE_S * pack.tasks, 0.5 * limits.remaining), proof.watts)
    limits.progress("search", search.watts, proof.watts)
    own = levels(pack)
    open_gap = search.watts > proof.watts * (1 + 1e-9) and limits.stop is None
    if open_gap and own.exact and pack.tasks <= MOST_GENERATED:
        share = limits.within(min(20.0, 0.25 * limits.remaining))
        found = level_bound(pack, own, proof.counts, share, watts=search.watts, seed=seed)
        if found.watts > proof.watts:
            proof = Proof(found.watts, found.by, proof.counts)
    return outcome(pack, search, proof, limits.stop or Termination.COMPLETED)


def _proof(pack: Packing, limits: Limits) -> Proof:
    own = levels(pack, MANY_LEVELS)
    counts = counted(pack, own, limits)
    return Proof(closed_bound(pack, own, counts), "GPUs counted by level", counts)


def fill_to(
    pack: Packing, search: Search, target: float, limits: Limits, seed: int, tries: int
) -> None:
    """Offer `tries` placements to `search`, until one costs `target` W.

    Nothing where GPUs or servers differ, or a task is wider than a server.
    """
    width = int(pack.server_gpus[0])
    if not pack.uniform or int(pack.width.max()) > width:
        return
    rng = np.random.default_rng(seed)
    own = levels(pack, MOST_LEVELS)
    merged = [levels(pack, max(4, pack.tasks // few)) for few in FEWEST_TASKS]
    ways = [own, *merged] if own.exact else merged
    for k in range(tries):
        if search.watts <= target * (1 + 1e-9) or (k and limits.stop is not None):
            return
        power = 6.0 if k == 0 else float(rng.uniform(1.0, 14.0))
        breadth = BREADTHS[int(rng.integers(len(BREADTHS)))]
        place = _filled(pack, search.start, ways[k % len(ways)], power, breadth)
        if place is not None:
            flat, start = place.tolist(), search.start.tolist()
            search.offer([tuple(flat[start[ell] : start[ell + 1]]) for ell in range(pack.tasks)])


def _filled(
    pack: Packing, start: IntArray, own: Levels, power: float, breadth: tuple[int, ...]
) -> IntArray | None:
    """One placement; scarce rows weigh as their scarcity to `power`."""
    limit = np.maximum(pack.limits[0], 1)
    scarcity = (pack.rows * pack.width).sum(axis=1) / limit
    shares: FloatArray = (scarcity / max(1e-300, float(scarcity.max()))) ** power
    shares /= max(1e-300, float(shares.sum()))
    weight = (pack.rows / limit[:, None] * shares[:, None]).sum(axis=0)
    order = np.lexsort((-weight, -pack.width, -own.of))
    key: Any = np.stack([own.of[order], pack.width[order]])
    first = np.flatnonzero(np.append(True, (key[:, 1:] != key[:, :-1]).any(axis=0)))
    place = np.zeros(int(start[-1]), dtype=np.int64)
    done = fill(
        order.astype(np.int64), np.append(first, len(order)).astype(np.int64),
        pack.width[order][first], own.of[order][first].astype(np.int64), pack.rows,
        pack.limits[0], weight, shares, int(pack.server_gpus[0]), len(pack.server_w),
        np.array(breadth, dtype=np.int64), start, place,
    )  # fmt: skip
    return place if done else None
