"""Who holds which GPUs: places are found, room is made, and nodes are emptied."""

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

    def consolidate(self) -> None:
        """Empty the least used nodes while fewer nodes would hold everything."""
        while int((self.free < self.per).sum()) > -(-int(self.sizes.sum()) // self.per):
            used = np.where(self.free < self.per, self.per - self.free, self.per + 1)
            node = len(used) - 1 - int(np.argmin(used[::-1]))
            jobs = np.unique(self.owner[node * self.per : (node + 1) * self.per])
            jobs = jobs[jobs >= 0]
            if int(used[node]) >= self.per or self.fixed[jobs].any():
                return
            before = (self.owner.copy(), self.free.copy(), self.blocks[jobs].copy())
            closed = self.free == self.per
            closed[node] = True
            for job in jobs[np.argsort(-self.sizes[jobs], kind="stable")].tolist():
                n = int(self.sizes[job])
                buddy.take(self.owner, self.free, self.per, job, self.blocks[job], n)
                self.free[closed] -= 2 * self.per  # neither there nor on a node that is off
                found = buddy.allocate(self.owner, self.free, self.per, job, n, self.blocks[job])
                self.free[closed] += 2 * self.per
                if not found:
                    self.owner[:], self.free[:], self.blocks[jobs] = before
                    return
            self.moved[jobs] = True
