"""FIFO, SJF, Shortest and Shortest-GPU (HPS/PBS/SBS, Sec. III-B): an order that never changes.

- *FIFO*: by arrival; the first job blocks while it does not fit.
- *SJF*: the fewest GPUs n first. The paper's Table I swaps SJF and Shortest. The text agrees with
  itself, and with the simulator that the job fields come from, so the text is followed;
  ``sjf_key="time"`` is the table's.
- *Shortest* (SRTF): the least run time t first. Jobs are never preempted, so the remaining time of
  a waiting job is its run time, as estimated.
- *Shortest-GPU*: the least t·n first.
"""

from __future__ import annotations

from optgap.heuristics.queueing.rule import FIFO, SHORTEST_GPU, SJF, Run
from optgap.models.compiled import inner
from optgap.solvers.queueing.online import INF, WAITING


@inner
def next_in_order(run: Run) -> int:
    """The first job of the order that fits; of FIFO, the first of all, or -1 if it does not."""
    kind, online, best, best_key = run.rule.kind, run.online, -1, INF
    for p in range(online.tally[WAITING]):
        j = online.queue[p]
        if online.fit[online.cls[j]] == 0:
            if kind == FIFO:
                return -1
            continue
        if kind == FIFO:
            return int(j)
        key = float(online.truth.gpus[j]) if kind == SJF else online.estimate[j]
        if kind == SHORTEST_GPU:
            key *= online.truth.gpus[j]
        if key < best_key:
            best, best_key = j, key
    return best
