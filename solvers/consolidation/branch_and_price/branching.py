"""Nodes of the tree and branching rules: every placement of a node is in one of its children.

A fractional count N_q or Z splits its interval. Where all counts are integer, the widest task of
several GPUs that is not assigned yet is assigned to each server in turn. Where all are assigned,
the vector of counts is split off from the rest of the box.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from optgap.solvers.consolidation.instance import Instance
from optgap.solvers.consolidation.numerics import (
    INTEGRALITY,
    CountBox,
    Counts,
    FloatArray,
    IntArray,
)


@dataclass(frozen=True, eq=False)
class Node:
    """A subproblem.

    Parameters
    ----------
    bound: lower bound on the power of the node's placements, W.
    box: counts that the node's placements keep.
    assignment: (L,) the server that each task of several GPUs is in, -1 where that is open.
    rounded: the counts of its parent's linear program, rounded up into the box.
    """

    bound: float
    box: CountBox
    assignment: IntArray
    rounded: Counts


def split_count(box: CountBox, found: FloatArray, prices_w: FloatArray) -> list[CountBox]:
    """Return both sides of the fractional count of the largest fraction × price; none where all are
    integer.

    Parameters
    ----------
    found: (Q+1,) N and Z of the linear program. prices_w: (Q+1,) s_q and P, W.
    """
    fraction = np.abs(found - np.round(found))
    if fraction.max() <= INTEGRALITY:
        return []
    weight = fraction * np.maximum(prices_w, INTEGRALITY)  # servers may cost nothing
    j = int(np.where(fraction > INTEGRALITY, weight, 0.0).argmax())
    below = math.floor(found[j])
    return [
        CountBox((*box.low[:j], below + 1, *box.low[j + 1 :]), box.high),
        CountBox(box.low, (*box.high[:j], below, *box.high[j + 1 :])),
    ]


def split_around(box: CountBox, counts: Counts) -> Iterator[CountBox]:
    """Yield the counts alone, and disjoint boxes that cover the rest of the box."""
    yield CountBox(counts, counts)
    low, high = list(box.low), list(box.high)
    for j, x in enumerate(counts):
        for least, most in ((x + 1, box.high[j]), (box.low[j], x - 1)):
            if least <= most:
                yield CountBox((*low[:j], least, *low[j + 1 :]), (*high[:j], most, *high[j + 1 :]))
        low[j] = high[j] = x


def split_beyond(box: CountBox, counts: Counts) -> Iterator[CountBox]:
    """Disjoint boxes that cover all vectors of the box that are not ≤ `counts` everywhere."""
    high = list(box.high)
    for j, x in enumerate(counts):
        if x < box.high[j]:
            yield CountBox((*box.low[:j], max(x + 1, box.low[j]), *box.low[j + 1 :]), tuple(high))
        high[j] = min(x, high[j])


def unassigned(instance: Instance, assignment: IntArray) -> IntArray:
    """Tasks of several GPUs that must be in one server and are not assigned to one yet."""
    if not instance.gang:
        return np.zeros(0, dtype=np.int64)
    return np.flatnonzero((instance.width > 1) & (assignment < 0))


def split_servers(
    instance: Instance, assignment: IntArray, servers: int, shares: FloatArray
) -> Iterator[IntArray]:
    """Yield the widest unassigned task assigned to each server in use, and to the first empty one.

    Servers are identical: every placement can be renumbered to one of these assignments.

    Parameters
    ----------
    servers: most servers that may be awake.
    shares: (L, N) of the linear program; the server of the largest share comes first.
    """
    tasks = unassigned(instance, assignment)
    order = np.lexsort((-instance.largest_share[tasks], -instance.width[tasks]))
    task = int(tasks[order[0]])
    candidates = min(int(assignment.max()) + 2, servers)
    for server in np.argsort(-shares[task, :candidates], kind="stable").tolist():
        child = assignment.copy()
        child[task] = server
        yield child
