"""What a node of the tree restricts: a box of counts, and the servers of tasks of several GPUs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from optgap.solvers.consolidation.numerics import BoolArray, Counts, IntArray


@dataclass(frozen=True)
class CountBox:
    """Lower and upper limits on N_0, …, N_{Q−1} (GPUs of level q or more) and Z (awake servers)."""

    low: Counts
    high: Counts

    @classmethod
    def up_to(cls, counts: Counts) -> CountBox:
        """At most these counts of GPUs, in exactly `counts[-1]` servers."""
        return cls((*(0 for _ in counts[:-1]), counts[-1]), counts)

    @property
    def single(self) -> bool:
        """Whether it holds one vector of counts."""
        return self.low == self.high

    @property
    def nonempty(self) -> bool:
        """Whether it holds any vector of counts."""
        return all(low <= high for low, high in zip(self.low, self.high, strict=True))


@dataclass(frozen=True, eq=False)
class ServerAssignment:
    """Which servers tasks of several GPUs are in.

    Parameters
    ----------
    server: (L,) the server of each task, or -1 for a task that is not assigned yet.
    forbidden: (L, N) bool, servers that an unassigned task may not be assigned to.
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
        """With these (task, server) pairs assigned as well."""
        server = self.server.copy()
        for task, where in pairs:
            server[task] = where
        return ServerAssignment(server, self.forbidden)

    def forbid(self, pairs: Iterable[tuple[int, int]]) -> ServerAssignment:
        """With these (task, server) pairs forbidden as well."""
        forbidden = self.forbidden.copy()
        for task, where in pairs:
            forbidden[task, where] = True
        return ServerAssignment(self.server, forbidden)
