"""Counts of GPUs by level to look for placements with, and what those may cost."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from optgap.solvers.consolidation.bounds.level_counts import CostLevels, closed_form_w
from optgap.solvers.consolidation.branch_and_price.heuristic import SearchState
from optgap.solvers.consolidation.config import DEFAULT
from optgap.solvers.consolidation.config.primal import TargetParams
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


class TargetPower:
    """What the next placement may cost: a share of the gap that grows while none is found."""

    def __init__(self, params: TargetParams = DEFAULT.target) -> None:
        self.params, self.share = params, params.first

    def watts(self, state: SearchState) -> float:
        """The bound, and a share of what lies between it and the incumbent, W."""
        return state.bound + self.share * (state.incumbent.watts - state.bound)

    def learn(self, better: bool) -> None:
        """From whether a placement was found."""
        params = self.params
        self.share = params.first if better else min(params.most, params.growth * self.share)


def gpu_levels(counts: Counts, server_gpus: int) -> IntArray:
    """The highest level of each GPU of whole servers, dearest first; -1 where it sleeps."""
    levels = np.full(-(-counts[0] // server_gpus) * server_gpus, -1, dtype=np.int64)
    for q, count in enumerate(counts):
        levels[:count] = q
    return levels
