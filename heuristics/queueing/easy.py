"""EASY backfilling (Lifka, JSSPP 1995): the oldest job is never delayed by one that passes it.

By arrival, and past a job that does not fit whatever does not delay it: one that ends by the time
that the oldest can start, or with which that one can still be placed then; both by estimates.
"""

from __future__ import annotations

from optgap.heuristics.queueing.cluster import harmless, head, shadow, slack
from optgap.heuristics.queueing.rule import EASY, INF, Rule, simulate
from optgap.heuristics.queueing.tables import BY_ARRIVAL, NOW, Run
from optgap.heuristics.queueing.trees import first_below
from optgap.models.compiled import inner
from optgap.models.limits import Limits
from optgap.models.queueing import QueueingProblem
from optgap.models.queueing.kernels import fits
from optgap.models.result import Outcome


def easy(problem: QueueingProblem, *, limits: Limits, seed: int) -> Outcome:
    """EASY backfilling."""
    return simulate(problem, Rule(EASY), limits=limits, label="easy")


@inner
def oldest_or_harmless(run: Run, now: float) -> int:
    """The oldest job, or the next that does not delay it; -1 for none."""
    jobs, classes = run.jobs, run.classes
    oldest = head(run)
    wanted = jobs[oldest]["gpus"]
    if fits(run.free[NOW], run.level[NOW], wanted, run.g):
        return oldest
    longest = shadow(run, wanted, now) - now + slack(now)
    best = -1
    for c in range(len(classes)):
        if classes[c]["fit"] == 0:
            continue
        limit = INF if harmless(run, classes[c]["gpus"], wanted) else longest
        j = first_below(run, BY_ARRIVAL, c, limit)
        if j >= 0 and (best < 0 or j < best):
            best = j
    return best
