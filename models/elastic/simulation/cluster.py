"""Allocation of GPUs: buddy allocation on nodes, moves that make room, and a full repack."""

from __future__ import annotations

from typing import Any

import numpy as np

from optgap.models.compiled import compiled, inner
from optgap.models.elastic import ElasticProblem
from optgap.models.elastic.simulation.protocol import Making

FREE = -1


@inner
def best_block(owner: Any, free: Any, per: int, n: int) -> int:
    """First GPU of the smallest free buddy block of at least n ≤ per; −1 for none.

    Ties go to the lowest node, then the lowest offset. A free block of size s is a buddy block
    when its buddy of size s is not free as well.
    """
    best, place = per + 1, -1
    for node in range(len(free)):
        if free[node] < n:
            continue
        base = node * per
        size = n
        while size <= per and size < best:
            for offset in range(0, per, size):
                if not _is_free(owner, base + offset, size):
                    continue
                buddy = offset ^ size
                if size == per or not _is_free(owner, base + buddy, size):
                    best, place = size, base + offset
                    break
            size *= 2
        if best == n:
            break
    return place


@inner
def _is_free(owner: Any, first: int, size: int) -> bool:
    for g in range(first, first + size):  # noqa: SIM110  # compiled
        if owner[g] != FREE:
            return False
    return True


@compiled
def put(owner: Any, free: Any, per: int, job: int, first: int, size: int) -> None:
    """Give `size` GPUs from `first` on to a job, or with job −1 take them back."""
    change = size if job == FREE else -size
    for g in range(first, first + size):
        owner[g] = job
    free[first // per] += change


@compiled
def take(owner: Any, free: Any, per: int, job: int, blocks: Any, n: int) -> None:
    """Free all blocks of a job on n GPUs."""
    size = min(n, per)
    for i in range(n // size):
        put(owner, free, per, FREE, blocks[i], size)


@compiled
def allocate(owner: Any, free: Any, per: int, job: int, n: int, blocks: Any) -> bool:
    """Give a job n GPUs if there is a block (or whole nodes) for it; fills `blocks`."""
    if n <= per:
        first = best_block(owner, free, per, n)
        if first < 0:
            return False
        put(owner, free, per, job, first, n)
        blocks[0] = first
        return True
    need = n // per
    found = 0
    for node in range(len(free)):
        if free[node] == per:
            found += 1
            if found == need:
                break
    if found < need:
        return False
    i = 0
    for node in range(len(free)):
        if free[node] == per:
            blocks[i] = node * per
            put(owner, free, per, job, node * per, per)
            i += 1
            if i == need:
                break
    return True


@compiled
def make_room(
    owner: Any, free: Any, per: int, job: int, n: int, sizes: Any, blocks: Any, fixed: Any,
    moved: Any,
) -> bool:  # fmt: skip
    """Give `job` n GPUs by moving others out of the cheapest block or nodes.

    sizes: (J,) GPUs held; blocks: (J, B); fixed: (J,) jobs that stay; moved: (J,) set for those
    that are moved. Only moves into free blocks are tried; False, with nothing changed, when no
    block or choice of nodes can be emptied that way.
    """
    size, need = min(n, per), max(1, n // per)
    # GPUs in use of each block; more than it has where a job on it is larger, or stays
    cost = np.zeros(len(owner) // size, np.int64)
    for g in range(len(owner)):
        j = owner[g]
        if j != FREE:
            cost[g // size] += size + 1 if sizes[j] > size or fixed[j] else 1
    order, able = np.empty(len(cost), np.int64), 0
    for used in range(size + 1):
        for block in range(len(cost)):
            if cost[block] == used:
                order[able] = block
                able += 1
    # a block after another, or of whole nodes only those with the fewest GPUs in use
    for i in range(able if n <= per else 1):
        if i + need > able:
            return False
        region = np.empty(need, np.int64)
        for b in range(need):
            place = b
            while place > 0 and region[place - 1] > order[i + b] * size:
                region[place] = region[place - 1]
                place -= 1
            region[place] = order[i + b] * size
        if _vacate(owner, free, per, region, size, sizes, blocks, moved):
            for b in range(need):
                put(owner, free, per, job, region[b], size)
                blocks[job, b] = region[b]
            return True
    return False


@inner
def _largest_first(jobs: Any, count: int, sizes: Any) -> None:
    """Sort the first `count` jobs by GPUs, then by number; NumPy's sorts take long to compile."""
    for i in range(1, count):
        j, place = jobs[i], i
        while place > 0:
            k = jobs[place - 1]
            if sizes[k] > sizes[j] or (sizes[k] == sizes[j] and k < j):
                break
            jobs[place] = k
            place -= 1
        jobs[place] = j


@inner
def _vacate(
    owner: Any, free: Any, per: int, region: Any, size: int, sizes: Any, blocks: Any, moved: Any
) -> bool:
    """Move every job out of these blocks, the largest first; all or nothing."""
    before_owner, before_free = owner.copy(), free.copy()
    out, many = np.empty(len(region) * size, np.int64), 0
    for first in region:
        for g in range(first, first + size):
            j = owner[g]
            if j != FREE and blocks[j, 0] == g:
                out[many] = j
                many += 1
    _largest_first(out, many, sizes)
    for i in range(many):
        take(owner, free, per, out[i], blocks[out[i]], sizes[out[i]])
    reserved = len(sizes)  # no job's number
    for first in region:
        put(owner, free, per, reserved, first, size)
    places = np.zeros(many, np.int64)
    for i in range(many):
        places[i] = best_block(owner, free, per, sizes[out[i]])
        if places[i] < 0:
            for g in range(len(owner)):
                owner[g] = before_owner[g]
            for node in range(len(free)):
                free[node] = before_free[node]
            return False
        put(owner, free, per, out[i], places[i], sizes[out[i]])
    for i in range(many):
        blocks[out[i], 0] = places[i]
        moved[out[i]] = True
    for first in region:
        put(owner, free, per, FREE, first, size)
    return True


@compiled
def repack(owner: Any, free: Any, per: int, jobs: Any, sizes: Any, blocks: Any, moved: Any) -> None:
    """Place all `jobs` anew, largest first, on as few nodes as hold them.

    Sizes are powers of two, so filling node after node leaves no gap. Abstract nodes are then
    put on the physical ones that share most GPUs with them, one after another. `moved` is set
    for jobs whose GPUs changed.
    """
    nodes = len(free)
    held = owner.copy()
    order = jobs.copy()
    _largest_first(order, len(order), sizes)
    for g in range(len(owner)):
        owner[g] = FREE
    for node in range(nodes):
        free[node] = per
    used = np.zeros(nodes, np.bool_)
    i = 0
    while i < len(order) and sizes[order[i]] > per:
        j = order[i]
        need = sizes[j] // per
        old = blocks[j, :need].copy()
        whole = held[old[0]] == j
        for b in range(need):
            whole = whole and held[old[b]] == j and not used[old[b] // per]
        if not whole:
            b = 0
            for node in range(nodes):
                if not used[node] and b < need:
                    blocks[j, b] = node * per
                    b += 1
            moved[j] = True
        for b in range(need):
            used[blocks[j, b] // per] = True
            put(owner, free, per, j, blocks[j, b], per)
        i += 1
    while i < len(order):
        last, filled = i, 0
        while last < len(order) and filled + sizes[order[last]] <= per:
            filled += sizes[order[last]]
            last += 1
        best, node = -1, -1
        for m in range(nodes):
            if used[m]:
                continue
            shared = 0
            for g in range(m * per, m * per + per):
                for x in range(i, last):
                    shared += held[g] == order[x]
            if shared > best:
                best, node = shared, m
        used[node] = True
        late = []
        for x in range(i, last):  # keep offsets where they are free
            j = order[x]
            first = blocks[j, 0]
            there = held[first] == j and first // per == node
            if there and _is_free(owner, first, sizes[j]):
                put(owner, free, per, j, first, sizes[j])
            else:
                late.append(j)
        if not _fill(owner, free, per, node, late, sizes, blocks, moved):
            for g in range(node * per, node * per + per):
                owner[g] = FREE
            free[node] = per
            first = node * per
            for x in range(i, last):
                j = order[x]
                if not (held[first] == j and blocks[j, 0] == first):
                    moved[j] = True
                blocks[j, 0] = first
                put(owner, free, per, j, first, sizes[j])
                first += sizes[j]
        i = last


@inner
def _fill(
    owner: Any, free: Any, per: int, node: int, late: Any, sizes: Any, blocks: Any, moved: Any
) -> bool:
    """Put jobs, largest first, into aligned free blocks of one node; False where one has none."""
    for j in late:
        n = sizes[j]
        place = -1
        for offset in range(0, per, n):
            if _is_free(owner, node * per + offset, n):
                place = node * per + offset
                break
        if place < 0:
            return False
        put(owner, free, per, j, place, n)
        blocks[j, 0] = place
        moved[j] = True
    return True


class Cluster:
    """Cluster with the holders of its GPUs."""

    def __init__(self, problem: ElasticProblem) -> None:
        self.per = problem.gpus_per_node
        self.owner = np.full(problem.gpus, FREE, dtype=np.int64)
        self.free = np.full(problem.nodes, self.per, dtype=np.int64)
        self.sizes = np.zeros(len(problem), dtype=np.int64)
        width = max(1, int(problem.counts[-1]) // self.per)
        self.blocks = np.zeros((len(problem), width), dtype=np.int64)
        self.moved = np.zeros(len(problem), dtype=np.bool_)
        self.fixed = np.zeros(len(problem), dtype=np.bool_)
        self.known: dict[tuple[int, ...], int] = {}

    def place(self, job: int) -> int:
        """Return the number of the job's place."""
        n = int(self.sizes[job])
        blocks = self.blocks[job, : max(1, n // self.per)]
        return self.known.setdefault(tuple(blocks.tolist()), len(self.known))

    def release(self, job: int) -> None:
        """Take a job's GPUs back."""
        n = int(self.sizes[job])
        if n:
            take(self.owner, self.free, self.per, job, self.blocks[job], n)
            self.sizes[job] = 0

    def put_at(self, job: int, n: int, blocks: tuple[int, ...]) -> None:
        """Give a job these blocks, which must be free."""
        size = min(n, self.per)
        for i, first in enumerate(blocks):
            put(self.owner, self.free, self.per, job, first, size)
            self.blocks[job, i] = first
        self.sizes[job] = n

    def start(self, job: int, n: int, making: Making) -> bool:
        """Find n GPUs for a job, moving others if need be."""
        own = self.blocks[job]
        found = bool(allocate(self.owner, self.free, self.per, job, n, own))
        if not found and making == "least":
            found = bool(
                make_room(
                    self.owner, self.free, self.per, job, n, self.sizes, self.blocks, self.fixed,
                    self.moved,
                )
            )  # fmt: skip
        if not found and making != "none":
            holders = np.flatnonzero(self.sizes)
            if int(self.sizes[holders].sum()) + n > len(self.owner):
                return False
            self.sizes[job] = n
            repack(
                self.owner, self.free, self.per, np.append(holders, job), self.sizes,
                self.blocks, self.moved,
            )  # fmt: skip
            return True
        if found:
            self.sizes[job] = n
        return found
