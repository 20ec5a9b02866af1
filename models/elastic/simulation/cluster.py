"""Allocation of GPUs: buddy allocation on nodes, moves that make room, and a full repack."""

from __future__ import annotations

import numpy as np

from optgap.models.elastic import ElasticProblem
from optgap.models.elastic.arrays import Ints
from optgap.models.elastic.simulation.protocol import Making

FREE = -1


class Cluster:
    """Cluster with the holders of its GPUs.

    Attributes
    ----------
    owner: (G,) job that holds each GPU, or `FREE`.
    sizes: (J,) GPUs held; blocks: (J, B) first GPU of each block that a job holds or held last.
    moved: (J,) set for jobs that were moved; fixed: (J,) jobs that may not be moved to make room.
    known: number of each place, a tuple of blocks.
    """

    def __init__(self, problem: ElasticProblem) -> None:
        self.per = problem.gpus_per_node
        self.owner = np.full(problem.gpus, FREE, dtype=np.int64)
        self.sizes = np.zeros(len(problem), dtype=np.int64)
        width = max(1, int(problem.counts[-1]) // self.per)
        self.blocks = np.zeros((len(problem), width), dtype=np.int64)
        self.moved = np.zeros(len(problem), dtype=np.bool_)
        self.fixed = np.zeros(len(problem), dtype=np.bool_)
        self.known: dict[tuple[int, ...], int] = {}

    @property
    def free(self) -> Ints:
        """Number of free GPUs of each node."""
        return np.asarray((self.owner == FREE).reshape(-1, self.per).sum(axis=1))

    def place(self, job: int) -> int:
        """Return the number of the job's place."""
        blocks = self.blocks[job, : max(1, int(self.sizes[job]) // self.per)]
        return self.known.setdefault(tuple(blocks.tolist()), len(self.known))

    def release(self, job: int) -> None:
        """Take a job's GPUs back."""
        n = int(self.sizes[job])
        if n:
            self._put(job, n, FREE)
            self.sizes[job] = 0

    def put_at(self, job: int, n: int, blocks: tuple[int, ...]) -> None:
        """Give a job these blocks, which must be free."""
        self.blocks[job, : len(blocks)] = blocks
        self._put(job, n, job)
        self.sizes[job] = n

    def start(self, job: int, n: int, making: Making) -> bool:
        """Find n GPUs for a job, moving others if need be."""
        found = self._allocate(job, n) or (making == "least" and self._make_room(job, n))
        if not found and making != "none":
            holders = np.flatnonzero(self.sizes)
            if int(self.sizes[holders].sum()) + n <= len(self.owner):
                self.sizes[job] = n
                self._repack([*holders.tolist(), job])
                return True
        if found:
            self.sizes[job] = n
        return found

    def _put(self, job: int, n: int, owner: int) -> None:
        """Give the blocks of a job on n GPUs to an owner."""
        size = min(n, self.per)
        for first in self.blocks[job, : n // size].tolist():
            self.owner[first : first + size] = owner

    def _best_block(self, n: int) -> int:
        """Return the first GPU of the smallest free buddy block of at least n; −1 for none.

        Ties go to the lowest GPU. A free block is a buddy block if its buddy is not free as well.
        """
        free, size = (self.owner == FREE).reshape(-1, n).all(axis=1), n
        while size < self.per:
            both = free.reshape(-1, 2).all(axis=1)
            alone = (free.reshape(-1, 2) & ~both[:, None]).reshape(-1)
            first = int(alone.argmax())
            if alone[first]:
                return first * size
            free, size = both, 2 * size
        first = int(free.argmax())
        return first * size if free[first] else -1

    def _allocate(self, job: int, n: int) -> bool:
        """Give a job n GPUs if there is a block, or whole nodes, for it."""
        if n <= self.per:
            blocks = [self._best_block(n)]
        else:
            blocks = (self.per * np.flatnonzero(self.free == self.per)[: n // self.per]).tolist()
        if len(blocks) * min(n, self.per) < n or blocks[0] < 0:
            return False
        self.blocks[job, : len(blocks)] = blocks
        self._put(job, n, job)
        return True

    def _make_room(self, job: int, n: int) -> bool:
        """Give a job n GPUs by moving others out of the block, or nodes, with fewest GPUs in use.

        Only moves into free blocks are tried. Return False, with nothing changed, if no block or
        choice of nodes can be emptied so.
        """
        size, need = min(n, self.per), max(1, n // self.per)
        stays = (self.sizes[self.owner] > size) | self.fixed[self.owner]
        weight = np.where(self.owner == FREE, 0, np.where(stays, size + 1, 1))
        cost = weight.reshape(-1, size).sum(axis=1)
        order = np.argsort(cost, kind="stable")
        order = size * order[cost[order] <= size]
        # a block after another, or of whole nodes only those with the fewest GPUs in use
        for i in range(min(len(order) - need + 1, len(order) if n <= self.per else 1)):
            region = np.sort(order[i : i + need])
            if self._vacate(region, size):
                self.blocks[job, :need] = region
                self._put(job, n, job)
                return True
        return False

    def _vacate(self, region: Ints, size: int) -> bool:
        """Move every job out of these blocks, the largest first; all or nothing."""
        before, inside = self.owner.copy(), (region[:, None] + np.arange(size)).reshape(-1)
        jobs = np.unique(before[inside])
        out = self._largest_first(jobs[jobs != FREE].tolist())
        self.owner[np.isin(before, out)] = FREE
        self.owner[inside] = len(self.sizes)  # no job's number
        places = []
        for job in out:
            n = int(self.sizes[job])
            places.append(self._best_block(n))
            if places[-1] < 0:
                self.owner = before
                return False
            self.owner[places[-1] : places[-1] + n] = job
        self.blocks[out, 0], self.moved[out] = places, True
        self.owner[inside] = FREE
        return True

    def _largest_first(self, jobs: list[int]) -> list[int]:
        """Return jobs by GPUs, then by number."""
        return sorted(jobs, key=lambda job: (-self.sizes[job], job))

    def _repack(self, jobs: list[int]) -> None:
        """Place all `jobs` anew, largest first, on as few nodes as hold them.

        Sizes are powers of two, so filling node after node leaves no gap. Abstract nodes are then
        put on the physical ones that share most GPUs with them, one after another. `moved` is set
        for jobs whose GPUs changed.
        """
        held, per, order = self.owner, self.per, self._largest_first(jobs)
        self.owner = np.full(len(held), FREE, dtype=np.int64)
        used = np.zeros(len(held) // per, dtype=np.bool_)
        large = [job for job in order if self.sizes[job] > per]
        for job in large:
            blocks = self.blocks[job, : int(self.sizes[job]) // per]  # a view
            if not ((held[blocks] == job) & ~used[blocks // per]).all():
                blocks[:] = per * np.flatnonzero(~used)[: len(blocks)]
                self.moved[job] = True
            used[blocks // per] = True
            self._put(job, int(self.sizes[job]), job)
        rest = order[len(large) :]
        while rest:
            many = int(np.searchsorted(np.cumsum(self.sizes[rest]), per, side="right"))
            group, rest = rest[:many], rest[many:]
            shared = np.isin(held, group).reshape(-1, per).sum(axis=1)
            node = int(np.where(used, -1, shared).argmax())
            used[node] = True
            self._fill(node, group, held)

    def _fill(self, node: int, group: list[int], held: Ints) -> None:
        """Put jobs, largest first, on a free node, where they were held if that is possible."""
        gpus = self.owner[node * self.per : (node + 1) * self.per]  # a view
        late = []
        for job in group:
            first, n = int(self.blocks[job, 0]), int(self.sizes[job])
            there = held[first] == job and first // self.per == node
            if there and (self.owner[first : first + n] == FREE).all():
                self._put(job, n, job)
            else:
                late.append(job)
        for job in late:
            n = int(self.sizes[job])
            free = (gpus == FREE).reshape(-1, n).all(axis=1)
            if not free.any():
                break
            self.blocks[job, 0] = node * self.per + n * int(free.argmax())
            self.moved[job] = True
            self._put(job, n, job)
        else:
            return
        gpus[:] = FREE  # the offsets that were kept leave no room: one after another
        first = node * self.per
        for job in group:
            if not (held[first] == job and self.blocks[job, 0] == first):
                self.moved[job] = True
            self.blocks[job, 0] = first
            self._put(job, int(self.sizes[job]), job)
            first += int(self.sizes[job])
