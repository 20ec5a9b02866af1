"""FIFO, SJF, Shortest and Shortest-GPU: the first job of an order that never changes.

Within one GPU count n all four orders are by arrival or by run time t, so the least of the keys
0 (FIFO), n (SJF), t (Shortest) and t·n (Shortest-GPU) is sought among the counts' first jobs alone.
"""

from __future__ import annotations

from optgap.heuristics.queueing.cluster import look
from optgap.heuristics.queueing.rule import FIFO, INF, SHORTEST_GPU, SJF
from optgap.heuristics.queueing.tables import BY_ARRIVAL, BY_TIME, NOW, Run
from optgap.heuristics.queueing.trees import first_waiting
from optgap.models.compiled import inner
from optgap.models.queueing.kernels import fits


@inner
def next_in_order(run: Run) -> int:
    """The first job of the order that fits; of FIFO, the first of all, or -1 if it does not."""
    if run.rule.kind == FIFO:
        look(run, True)
    j = _first(run)
    free = fits(run.free[NOW], run.level[NOW], run.jobs[j]["gpus"], run.g)
    return j if free else -1


@inner
def _first(run: Run) -> int:
    """The first job of a fixed order among the GPU counts noted in `fit`."""
    kind, jobs, classes = run.rule.kind, run.jobs, run.classes
    best, best_key = -1, INF
    for c in range(len(classes)):
        if classes[c]["fit"] == 0:
            continue
        j = first_waiting(run, BY_ARRIVAL if kind <= SJF else BY_TIME, c)
        key = 0.0
        if kind == SJF:
            key = float(classes[c]["gpus"])
        elif kind != FIFO:
            key = jobs[j]["estimate"] * (classes[c]["gpus"] if kind == SHORTEST_GPU else 1)
        if best < 0 or key < best_key or (key == best_key and j < best):
            best, best_key = j, key
    return best
