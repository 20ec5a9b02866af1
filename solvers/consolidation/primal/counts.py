"""Counts by level to look for placements with, and the power to aim at."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from optgap.solvers.consolidation.bounds.level_counts import CostLevels, closed_form_w
from optgap.solvers.consolidation.branch_and_price.heuristic import SearchState
from optgap.solvers.consolidation.instance import Instance
from optgap.solvers.consolidation.numerics import Counts


def one_fewer(
    instance: Instance, levels: CostLevels, counts: Counts, least: Counts
) -> list[Counts]:
    """Counts with one GPU less at one level, those of least power first."""
    found = []
    for q, count in enumerate(counts):
        above = counts[q + 1] if q + 1 < len(counts) else 0
        if count > max(least[q], above):
            found.append((*counts[:q], count - 1, *counts[q + 1 :]))
    return sorted(found, key=lambda one: closed_form_w(instance, levels, one))


def _one_more(instance: Instance, counts: Counts) -> Iterator[Counts]:
    """Counts with one GPU more at one level, as long as they fall with the level."""
    for q, count in enumerate(counts):
        if count < (counts[q - 1] if q else instance.gpus):
            yield (*counts[:q], count + 1, *counts[q + 1 :])


def richer_counts(
    instance: Instance, levels: CostLevels, counts: Counts, most: float, rng: np.random.Generator
) -> Counts:
    """Counts raised at random, GPU by GPU, as long as their power is at most `most` W."""
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
    """The power to aim at: the bound plus a share of the gap.

    The share is ½ at first and after each better incumbent, and grows by a fifth after a failure.
    """

    def __init__(self) -> None:
        self.share = 0.5

    def watts(self, state: SearchState) -> float:
        """The power to aim at now, W."""
        return state.bound + self.share * (state.incumbent.watts - state.bound)

    def learn(self, better: bool) -> None:
        """Adapt the share to whether a better placement was found."""
        self.share = 0.5 if better else min(1.0, 1.2 * self.share)
