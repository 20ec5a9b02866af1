"""Earliest start of a job, for policies that let other jobs start only without delay; compiled."""

from __future__ import annotations

from optgap.heuristics.queueing.rule import QueueRun
from optgap.models.compiled import inner
from optgap.models.queueing.kernels import fits, place, take
from optgap.solvers.queueing.list_schedule import slack
from optgap.solvers.queueing.online import RUNNING, copy_free, release


@inner
def shadow(run: QueueRun, n: int, now: float) -> float:
    """Return the earliest time at which n GPUs are free if nothing else starts, s.

    The function leaves the free GPUs of that time in `run.free`. A job that should have ended by
    now counts as ending at once.
    """
    online, ends, size = run.online, run.ends, run.online.tally[RUNNING]
    copy_free(online, run.free, run.level)
    for k in range(size):
        j, p = online.running[k], k
        end = max(online.start[j] + online.estimate[j], now)
        while p > 0 and ends[p - 1] < end:
            ends[p], run.ending[p] = ends[p - 1], run.ending[p - 1]
            p -= 1
        ends[p], run.ending[p] = end, j
    for k in range(size - 1, -1, -1):
        time: float = ends[k]
        release(online, run.ending[k], run.free, run.level)
        last = k == 0 or ends[k - 1] > time + slack(time)
        if last and fits(run.free, run.level, n, online.truth.g):
            return time
    return now


@inner
def harmless(run: QueueRun, n: int, wanted: int) -> bool:
    """Tell, after `shadow`, whether a job of n GPUs placed now leaves room for `wanted` later."""
    online, g = run.online, run.online.truth.g
    used = place(online.free, online.level, n, g, run.spare, 0)
    for h in range(used):
        take(run.free, run.level, run.spare[h], min(n - h * g, g))
    good = fits(run.free, run.level, wanted, g)
    for h in range(used):
        take(run.free, run.level, run.spare[h], -min(n - h * g, g))
        take(online.free, online.level, run.spare[h], -min(n - h * g, g))
    return good
