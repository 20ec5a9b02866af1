"""The best placement found so far."""

from __future__ import annotations

import itertools
import math

import numpy as np

from optgap.solvers.consolidation.instance import Instance
from optgap.solvers.consolidation.numerics import IntArray, Placement


class Incumbent:
    """Keeps the best of the placements that it is offered.

    Attributes
    ----------
    placement: the GPUs of each task, or None. watts: its power, W; infinite before there is one.
    """

    def __init__(self, instance: Instance) -> None:
        self.instance = instance
        self.watts = math.inf
        self.placement: Placement | None = None

    def offer(self, placement: Placement | None) -> bool:
        """Take a placement if it is better; whether it was."""
        if placement is None:
            return False
        watts = self.instance.total(placement)
        if watts >= self.watts - 1e-9:
            return False
        self.watts, self.placement = watts, placement
        return True

    def offer_flat(self, entries: IntArray) -> bool:
        """The same for a flat placement: the GPU of each entry of `Instance.entry_task`."""
        flat, ends = entries.tolist(), self.instance.entry_start.tolist()
        return self.offer([tuple(flat[a:b]) for a, b in itertools.pairwise(ends)])

    @property
    def flat(self) -> IntArray:
        """The GPU of each entry."""
        entries = [g for gpus in self.placement or [] for g in gpus]
        return np.array(entries, dtype=np.int64)

    @property
    def contents(self) -> list[list[int]]:
        """The residents of each GPU in use; empty before there is a placement."""
        return list(self.instance.residents(self.placement or []).values())

    @property
    def awake_servers(self) -> int:
        """How many servers are in use."""
        home = self.instance.gpu_server
        return len({int(home[g]) for gpus in self.placement or [] for g in gpus})
