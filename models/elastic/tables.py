"""Tables of fitted formulas: T_iter and power at every (n, f) at once (Eq. 1-15)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from optgap.models.elastic.arrays import Floats
from optgap.models.elastic.jobs import JobClass
from optgap.models.performance.energy import EnergyModel
from optgap.models.performance.throughput import ThroughputModel


@dataclass(frozen=True)
class Trained:
    """A model that can be trained: its name, how long an iteration takes and what it draws."""

    name: str
    time: ThroughputModel
    energy: EnergyModel


Maker = Callable[[int, Floats, int, int], JobClass]
"""``maker(batch, clocks, gpus, gpus_per_node)``"""


def maker_of(model: Trained) -> Maker:
    """Return how a model's classes are made, see `job_class`."""
    return lambda batch, clocks, gpus, per_node: job_class(
        model, batch, clocks, gpus=gpus, gpus_per_node=per_node
    )


def counts_up_to(most: int) -> list[int]:
    """Return 1, 2, 4, … up to `most`."""
    return [1 << k for k in range(most.bit_length()) if 1 << k <= most]


def job_class(
    model: Trained,
    batch: int,
    frequencies_mhz: Sequence[float] | Floats,
    *,
    gpus: int,
    gpus_per_node: int,
) -> JobClass:
    """Return the class of a model and a global batch: bs = batch/n, r = min(n, GPUs per node).

    GPU counts are the powers of two up to min(G, batch). Numbers that are no time or power are
    left for the door to refuse.
    """
    counts = counts_up_to(min(gpus, batch))
    n = np.array(counts, dtype=float)[:, None]
    f = np.asarray(frequencies_mhz, dtype=float)[None, :]
    on_node = np.minimum(n, gpus_per_node)
    scopes = (batch / n, f, np.ceil(n / gpus_per_node), on_node)
    t_iter = model.time.iteration_time(n, *scopes)
    _, t_grad, t_sync = model.time.parts(n, *scopes)
    with np.errstate(invalid="ignore", divide="ignore"):
        energy = model.energy.iteration_energy(n, batch / n, f, t_grad, t_sync, t_iter)
        power = np.broadcast_to(energy / t_iter, t_iter.shape)
    return JobClass(model.name, batch, tuple(counts), t_iter, np.array(power))
