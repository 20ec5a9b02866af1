"""EASY backfilling (Lifka, JSSPP 1995): a job that passes the oldest one never delays it.

Jobs start in order of arrival. If the oldest job does not fit, a later job may start if it ends
before the oldest can start, or leaves enough room for the oldest then; both by estimates.
"""

from __future__ import annotations

import numpy as np

from optgap.heuristics.queueing.ahead import harmless, shadow
from optgap.heuristics.queueing.rule import QueueRun
from optgap.models.compiled import inner
from optgap.solvers.queueing.list_schedule import slack
from optgap.solvers.queueing.online import INF, WAITING


@inner
def oldest_or_harmless(run: QueueRun, now: float) -> int:
    """Return the oldest job, or the next that does not delay it; -1 for none."""
    online, oldest = run.online, run.online.queue[0]
    if online.fit[online.cls[oldest]] != 0:
        return int(oldest)
    wanted = online.truth.gpus[oldest]
    brief = shadow(run, wanted, now) - now + slack(now)
    longest = np.zeros(len(online.sizes))
    for c in range(len(online.sizes)):
        if online.fit[c] != 0:
            longest[c] = INF if harmless(run, online.sizes[c], wanted) else brief
    for p in range(online.tally[WAITING]):
        j = online.queue[p]
        if online.fit[online.cls[j]] != 0 and online.estimate[j] <= longest[online.cls[j]]:
            return int(j)
    return -1
