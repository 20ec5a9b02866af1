"""Who holds which GPUs: places are found, and room is made."""

from __future__ import annotations

import numpy as np

from optgap.models.elastic import ElasticProblem
from optgap.models.elastic.simulation import buddy
from optgap.models.elastic.simulation.protocol import Making


class Cluster:
    """Who holds which GPUs."""

    def __init__(self, problem: ElasticProblem) -> None:
        self.per = problem.gpus_per_node
        self.owner = np.full(problem.gpus, buddy.FREE, dtype=np.int64)
        self.free = np.full(problem.nodes, self.per, dtype=np.int64)
        self.sizes = np.zeros(len(problem), dtype=np.int64)
        width = max(1, int(problem.counts[-1]) // self.per)
        self.blocks = np.zeros((len(problem), width), dtype=np.int64)
        self.moved = np.zeros(len(problem), dtype=np.bool_)
        self.fixed = np.zeros(len(problem), dtype=np.bool_)
        self.known: dict[tuple[int, ...], int] = {}

    def place(self, job: int) -> int:
        """The number of the job's place."""
        n = int(self.sizes[job])
        blocks = self.blocks[job, : max(1, n // self.per)]
        return self.known.setdefault(tuple(blocks.tolist()), len(self.known))

    def release(self, job: int) -> None:
        """Take a job's GPUs back."""
        n = int(self.sizes[job])
        if n:
            buddy.take(self.owner, self.free, self.per, job, self.blocks[job], n)
            self.sizes[job] = 0

    def put_at(self, job: int, n: int, blocks: tuple[int, ...]) -> None:
        """Give a job these blocks, which must be free."""
        size = min(n, self.per)
        for i, first in enumerate(blocks):
            buddy.put(self.owner, self.free, self.per, job, first, size)
            self.blocks[job, i] = first
        self.sizes[job] = n

    def start(self, job: int, n: int, making: Making) -> bool:
        """Find n GPUs for a job, moving others if need be."""
        own = self.blocks[job]
        found = bool(buddy.allocate(self.owner, self.free, self.per, job, n, own))
        if not found and making == "least":
            found = bool(
                buddy.make_room(
                    self.owner, self.free, self.per, job, n, self.sizes, self.blocks, self.fixed,
                    self.moved,
                )
            )  # fmt: skip
        if not found and making != "none":
            holders = np.flatnonzero(self.sizes)
            if int(self.sizes[holders].sum()) + n > len(self.owner):
                return False
            self.sizes[job] = n
            buddy.repack(
                self.owner, self.free, self.per, np.append(holders, job), self.sizes,
                self.blocks, self.moved,
            )  # fmt: skip
            return True
        if found:
            self.sizes[job] = n
        return found
