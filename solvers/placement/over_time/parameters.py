"""What tunes the methods over time, and what each of it means."""

from __future__ import annotations

import math
from dataclasses import dataclass

from optgap.models.spec import parameter


@dataclass(frozen=True)
class HindsightParams:
    """What tunes `hindsight`."""

    moves: int = parameter(
        0, "that annealing tries; 0 for one per task, 1,000 to 20,000", within=(0, math.inf)
    )
    hot: float = parameter(
        1.0, "first temperature, in what a task adds on average", within=(1e-9, 1e3)
    )
    cold: float = parameter(
        1e-2, "last temperature, in what a task adds on average", within=(1e-9, 1e3)
    )
    ease: float = parameter(
        -1.0,
        "how much less a device little used counts at first; -1: 0.3 on up to 100 nodes, 0 on more",
        within=(-1, 1),
    )
    nodes: int = parameter(3, "whose tasks are taken off at once, at most", within=(1, 100))
    tasks: int = parameter(24, "that are taken off at once, at most", within=(1, 1000))
    blinks: float = parameter(
        0.01, "share of the nodes that are passed over when a task is put back", within=(0, 0.9)
    )
    looks: int = parameter(
        64, "nodes that are looked at when a task is put back, about", within=(1, math.inf)
    )
    proof: float = parameter(0.4, "share of the time limit for the bound, at most", within=(0, 1))
