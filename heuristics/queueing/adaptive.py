"""Adaptive multi-factor scheduler, rejected in Sec. III-D of HPS/PBS/SBS; a reconstruction.

The paper names its ingredients and gives no formula. Here the score of a job of run time t and n
GPUs, over the jobs that fit, is

    S = w_E · (1 − minmax(t·n)) + w_F · min(wait/1800 s, 1) + w_R · (1 − minmax(n))

with minmax(x) = (x − least)/(most − least), 0 if all are equal. The weights depend on the length of
the queue: up to 10, up to 50, or more waiting jobs.
"""

from __future__ import annotations

from optgap.heuristics.queueing.rule import QueueRun, rounded
from optgap.models.compiled import inner
from optgap.solvers.queueing.online import INF, WAITING

WEIGHTS = (0.5, 0.2, 0.3, 0.3, 0.4, 0.3, 0.2, 0.6, 0.2)
"""Weights w_E, w_F and w_R, with a row each for short, middle and long queues."""


@inner
def best_adaptive(run: QueueRun, now: float) -> int:
    """Return the job with the highest S, rounded."""
    online, waiting = run.online, run.online.tally[WAITING]
    low_work, high_work, low_size, high_size = INF, -INF, INF, -INF
    for p in range(waiting):
        j = online.queue[p]
        if online.fit[online.cls[j]] != 0:
            size = float(online.truth.gpus[j])
            work = online.estimate[j] * size
            low_work, high_work = min(low_work, work), max(high_work, work)
            low_size, high_size = min(low_size, size), max(high_size, size)
    row = 0 if waiting <= 10 else 3 if waiting <= 50 else 6
    best, job = -INF, -1
    for p in range(waiting):
        j = online.queue[p]
        if online.fit[online.cls[j]] == 0:
            continue
        size, long, wide = float(online.truth.gpus[j]), 0.0, 0.0
        if high_work > low_work:
            long = (online.estimate[j] * size - low_work) / (high_work - low_work)
        if high_size > low_size:
            wide = (size - low_size) / (high_size - low_size)
        fair = min((now - online.truth.arrival[j]) / 1800, 1.0)
        score = rounded(
            WEIGHTS[row] * (1 - long) + WEIGHTS[row + 1] * fair + WEIGHTS[row + 2] * (1 - wide)
        )
        if score > best:
            best, job = score, j
    return job
