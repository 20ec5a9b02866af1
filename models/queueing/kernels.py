"""Free GPUs on nodes, and which of them a job gets: one best-fit rule for everyone.

`free` has the free GPUs of every node and `level` how many nodes have each number free.
A job of n ≤ g GPUs goes to the node with the fewest free GPUs that suffice, the lowest index
among equals; a larger one to the ⌊n/g⌋ lowest wholly free nodes, and the remainder by best fit to
another node.
"""

from __future__ import annotations

from optgap.models.compiled import compiled
from optgap.models.queueing.arrays import IntArray


@compiled
def tightest(free: IntArray, level: IntArray, n: int, most: int) -> int:
    """Return the least number of free GPUs, at most `most`, that suffices for n; -1 for none."""
    if len(free) == 1:  # one node with as many GPUs as a whole cluster
        return free[0] if n <= free[0] <= most else -1
    for f in range(n, most + 1):
        if level[f] > 0:
            return f
    return -1


@compiled
def fits(free: IntArray, level: IntArray, n: int, g: int) -> bool:
    """Tell whether a job of n GPUs can be placed now."""
    if n <= g:
        return tightest(free, level, n, g) >= 0
    whole, rest = n // g, n % g
    if level[g] < whole:
        return False
    return rest == 0 or level[g] > whole or tightest(free, level, rest, g - 1) >= 0


@compiled
def node_with(free: IntArray, f: int) -> int:
    """Return the lowest node with exactly f GPUs free."""
    for node in range(len(free)):
        if free[node] == f:
            return node
    return -1


@compiled
def take(free: IntArray, level: IntArray, node: int, n: int) -> None:
    """Hand out n GPUs of a node; negative to take them back."""
    level[free[node]] -= 1
    free[node] -= n
    level[free[node]] += 1


@compiled
def place(free: IntArray, level: IntArray, n: int, g: int, node: IntArray, at: int) -> int:
    """Place a job that fits; writes its nodes from `at` on, the whole ones first, and returns how
    many there are."""
    used = 0
    for k in range(len(free)):
        if used == n // g:
            break
        if free[k] == g:
            take(free, level, k, g)
            node[at + used] = k
            used += 1
    if n % g > 0:
        k = node_with(free, tightest(free, level, n % g, g))
        take(free, level, k, n % g)
        node[at + used] = k
        used += 1
    return used
