"""HPS, the Hybrid Priority Scheduler (HPS/PBS/SBS): the highest score among the jobs that fit.

    Score = Base · Aging · Penalty
    Base = 1/(1 + t/3600)        t the run time, s
    Penalty = 1/(1 + n/4)        n the GPUs
    Aging = aging_boost · min(wait/max_wait_time, 1) if wait > aging_threshold, else 1

As printed, Aging drops to a third at 300 s and is 1 again at 900 s. ``hps_fixed`` has the same ends
and rises steadily between them:

    Aging = 1 + (aging_boost − 1) · clip(x, 0, 1)
    x = (wait − aging_threshold)/(max_wait_time − aging_threshold)

Under both, a steady stream of small jobs can block a large one. ``reserve_after_s`` prevents this:
once the oldest job has waited longer, only jobs start that end before its earliest possible start.
"""

from __future__ import annotations

from optgap.heuristics.queueing.ahead import shadow
from optgap.heuristics.queueing.rule import QueueRun, rounded
from optgap.models.compiled import inner
from optgap.models.times import TOLERANCE_S
from optgap.solvers.queueing.list_schedule import slack
from optgap.solvers.queueing.online import INF, WAITING


@inner
def best_aged(run: QueueRun, now: float) -> int:
    """Return the job with the highest score, rounded, among those that respect a reservation."""
    rule, online, longest = run.rule, run.online, INF
    oldest = online.queue[0]
    if now - online.truth.arrival[oldest] > rule.reserve + slack(now):
        if online.fit[online.cls[oldest]] != 0:
            return int(oldest)
        longest = shadow(run, online.truth.gpus[oldest], now) - now + slack(now)
    best, job = -INF, -1
    for p in range(online.tally[WAITING]):
        j = online.queue[p]
        if online.fit[online.cls[j]] == 0 or online.estimate[j] > longest:
            continue
        wait, age = now - online.truth.arrival[j], 1.0
        if rule.fixed:
            share = (wait - rule.threshold) / (rule.full - rule.threshold)
            age = 1 + (rule.boost - 1) * min(max(share, 0.0), 1.0)
        elif wait > rule.threshold + TOLERANCE_S:
            age = rule.boost * min(wait / rule.full, 1.0)
        score = rounded(age / (1 + online.estimate[j] / 3600) / (1 + online.truth.gpus[j] / 4))
        if score > best:
            best, job = score, j
    return job
