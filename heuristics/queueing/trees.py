"""Trees of minima over the jobs of one GPU count: who waits first, or first below a limit."""

from __future__ import annotations

from optgap.heuristics.queueing.rule import INF
from optgap.heuristics.queueing.tables import Run
from optgap.models.compiled import inner

DEPTH = 128
"""Nodes of a tree that a search may have to come back to, at most."""


@inner
def put(run: Run, o: int, j: int, value: float) -> None:
    """Set job j's leaf in order o; infinity takes it out."""
    cls = run.classes[run.jobs[j]["cls"]]
    tree = run.tree[o, cls["root"] :]
    k = cls["width"] + run.place[o, j]
    tree[k] = value
    k >>= 1
    while k >= 1:
        tree[k] = min(tree[2 * k], tree[2 * k + 1])
        k >>= 1


@inner
def first_below(run: Run, o: int, c: int, limit: float) -> int:
    """The first job of class c whose leaf is finite and at most `limit`; -1 for none."""
    cls = run.classes[c]
    tree, width = run.tree[o, cls["root"] :], cls["width"]
    if not (tree[1] <= limit and tree[1] < INF):
        return -1
    k = 1
    while k < width:
        k *= 2
        if not (tree[k] <= limit and tree[k] < INF):
            k += 1
    found: int = run.order[o, cls["first"] + k - width]
    return found


@inner
def first_waiting(run: Run, o: int, c: int) -> int:
    """The first job of class c that waits; -1 for none."""
    return first_below(run, o, c, INF)


@inner
def last_waiting(run: Run, o: int, c: int) -> int:
    """The last job of class c that waits; -1 for none."""
    cls = run.classes[c]
    tree, width = run.tree[o, cls["root"] :], cls["width"]
    if tree[1] == INF:
        return -1
    k = 1
    while k < width:
        k = 2 * k + 1
        if tree[k] == INF:
            k -= 1
    found: int = run.order[o, cls["first"] + k - width]
    return found


@inner
def next_waiting(run: Run, o: int, c: int, at: int) -> int:
    """The first place from `at` on in class c where a job waits; -1 for none."""
    cls = run.classes[c]
    tree, width = run.tree[o, cls["root"] :], cls["width"]
    if at >= width:
        return -1
    k = width + at
    if tree[k] < INF:
        return at
    while k > 1:
        if k % 2 == 0 and tree[k + 1] < INF:
            k += 1
            while k < width:
                k *= 2
                if tree[k] == INF:
                    k += 1
            found: int = k - width
            return found
        k >>= 1
    return -1
