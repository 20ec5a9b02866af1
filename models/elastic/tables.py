"""Tables of fitted formulas: T_iter and power at every (n, f) at once (Eq. 1-15)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from optgap.models.elastic.arrays import Floats
from optgap.models.elastic.jobs import JobClass
from optgap.models.performance.energy import EnergyModel
from optgap.models.performance.throughput import ThroughputModel

Maker = Callable[[int, Floats, int, int], JobClass]
"""``maker(batch, clocks, gpus, gpus_per_node)``"""


def counts_up_to(most: int) -> list[int]:
    """Return 1, 2, 4, … up to `most`."""
    return [1 << k for k in range(most.bit_length()) if 1 << k <= most]


def maker_of(name: str, time: ThroughputModel, energy: EnergyModel) -> Maker:
    """Return the maker of a model's classes: bs = batch/n, r = min(n, GPUs per node).

    GPU counts are the powers of two up to min(G, batch). Numbers that are no time or power are
    left for the door to refuse.
    """

    def make(batch: int, clocks: Floats, gpus: int, per_node: int) -> JobClass:
        counts = counts_up_to(min(gpus, batch))
        n, f = np.array(counts, dtype=float)[:, None], np.asarray(clocks, dtype=float)[None, :]
        scopes = (batch / n, f, np.ceil(n / per_node), np.minimum(n, per_node))
        t_iter = time.iteration_time(n, *scopes)
        _, t_grad, t_sync = time.parts(n, *scopes)
        with np.errstate(invalid="ignore", divide="ignore"):
            spent = energy.iteration_energy(n, batch / n, f, t_grad, t_sync, t_iter)
            power = np.broadcast_to(spent / t_iter, t_iter.shape)
        return JobClass(name, batch, tuple(counts), t_iter, np.array(power))

    return make
