"""What tunes the methods over time, and what each of it means."""

from __future__ import annotations

import math
from dataclasses import dataclass

from optgap.models.spec import parameter


@dataclass(frozen=True)
class HindsightParams:
    """What tunes `hindsight`."""

    moves: int = parameter(
        0, "that annealing tries; 0 for 3,000 per task, 100 with few", within=(0, math.inf)
    )
    hot: float = parameter(
        0.1, "first temperature, in what a task adds on average", within=(1e-9, 1e3)
    )
    cold: float = parameter(
        1e-4, "last temperature, in what a task adds on average", within=(1e-9, 1e3)
    )
    exchanges: float = parameter(
        0.2, "share of the moves that exchange the nodes of two tasks", within=(0, 1)
    )
    joins: float = parameter(
        0.4, "share of the moves that put a task on another's node", within=(0, 1)
    )
    proof: float = parameter(0.4, "share of the time limit for the bound, at most", within=(0, 1))
