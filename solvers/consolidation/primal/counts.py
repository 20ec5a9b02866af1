"""Counts of GPUs by level to look for placements with: in order of cost, or drawn."""

from __future__ import annotations

import heapq
from collections.abc import Iterator

import numpy as np

from optgap.solvers.consolidation.bounds.level_counts import CostLevels, closed_form_w
from optgap.solvers.consolidation.instance import Instance
from optgap.solvers.consolidation.numerics import Counts, IntArray


def one_fewer(
    instance: Instance, levels: CostLevels, counts: Counts, least: Counts
) -> list[Counts]:
    """One GPU less of a level each, cheapest first."""
    found = []
    for q, count in enumerate(counts):
        above = counts[q + 1] if q + 1 < len(counts) else 0
        if count > max(least[q], above):
            found.append((*counts[:q], count - 1, *counts[q + 1 :]))
    return sorted(found, key=lambda one: closed_form_w(instance, levels, one))


def counts_by_cost(
    instance: Instance, levels: CostLevels, counts: Counts, most: int
) -> Iterator[tuple[float, Counts]]:
    """Counts no smaller than `counts` that fall with the level, cheapest first, and their cost."""
    heap, seen = [(closed_form_w(instance, levels, counts), counts)], {counts}
    for _ in range(most):
        if not heap:
            return
        watts, vector = heapq.heappop(heap)
        yield watts, vector
        for more in _one_more(instance, vector):
            if more not in seen:
                seen.add(more)
                heapq.heappush(heap, (closed_form_w(instance, levels, more), more))


def _one_more(instance: Instance, counts: Counts) -> Iterator[Counts]:
    """One GPU more of a level each, as far as counts fall with the level."""
    for q, count in enumerate(counts):
        if count < (counts[q - 1] if q else instance.gpus):
            yield (*counts[:q], count + 1, *counts[q + 1 :])


def richer_counts(
    instance: Instance, levels: CostLevels, counts: Counts, most: float, rng: np.random.Generator
) -> Counts:
    """More GPUs of some levels, drawn one by one as long as they cost no more than `most` W."""
    for _ in range(instance.gpus):
        more = [
            one
            for one in _one_more(instance, counts)
            if closed_form_w(instance, levels, one) <= most
        ]
        if not more:
            break
        counts = more[int(rng.integers(len(more)))]
    return counts


def gpu_levels(counts: Counts, server_gpus: int, by_server: bool) -> IntArray:
    """The highest level of each GPU, -1 where it sleeps: the dearest first.

    Parameters
    ----------
    by_server: begin with servers of one level, as many as there are.
    """
    levels = np.full(-(-counts[0] // server_gpus) * server_gpus, -1, dtype=np.int64)
    for q, count in enumerate(counts):
        levels[:count] = q
    if not by_server:
        return levels
    numbers = np.bincount(levels + 1, minlength=len(counts) + 1)
    falling = np.arange(len(counts) - 1, -2, -1)
    whole = numbers // server_gpus * server_gpus
    return np.concatenate(
        [np.repeat(falling, part[falling + 1]) for part in (whole, numbers - whole)]
    )
