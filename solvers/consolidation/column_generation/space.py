"""What a node of the tree restricts: a box of counts, and the servers of tasks of several GPUs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from optgap.solvers.consolidation.numerics import BoolArray, Counts, IntArray


@dataclass(frozen=True)
class CountBox:
    """Least and most of N_0, …, N_{Q−1}, Z: GPUs by level or more, and awake servers."""

    low: Counts
    high: Counts

    @classmethod
    def up_to(cls, counts: Counts) -> CountBox:
        """No more than these GPUs, in exactly so many servers."""
        return cls((*(0 for _ in counts[:-1]), counts[-1]), counts)

    @property
    def single(self) -> bool:
        """Whether it holds one vector."""
        return self.low == self.high

    @property
    def nonempty(self) -> bool:
        """Whether it holds any."""
        return all(low <= high for low, high in zip(self.low, self.high, strict=True))


@dataclass(frozen=True, eq=False)
class ServerAssignment:
    """Which servers tasks of several GPUs are in.

    Parameters
    ----------
    server: (L,) a server, or -1 for a task that is assigned to none yet.
    forbidden: (L, N) bool, servers that an unassigned task is not in.
    """

    server: IntArray
    forbidden: BoolArray

    @classmethod
    def none(cls, tasks: int, servers: int) -> ServerAssignment:
        """Nothing assigned."""
        forbidden = np.zeros((tasks, max(1, servers)), dtype=np.bool_)
        return cls(np.full(tasks, -1, dtype=np.int64), forbidden)

    @property
    def any(self) -> bool:
        """Whether a task is assigned."""
        return bool((self.server >= 0).any())

    @property
    def first_empty(self) -> int:
        """The first server that no task is assigned to; they are used in order."""
        return int(self.server.max()) + 1

    def assign(self, pairs: Iterable[tuple[int, int]]) -> ServerAssignment:
        """With more tasks in servers."""
        server = self.server.copy()
        for task, where in pairs:
            server[task] = where
        return ServerAssignment(server, self.forbidden)

    def forbid(self, pairs: Iterable[tuple[int, int]]) -> ServerAssignment:
        """With tasks kept out of servers."""
        forbidden = self.forbidden.copy()
        for task, where in pairs:
            forbidden[task, where] = True
        return ServerAssignment(self.server, forbidden)
