"""The adaptive multi-factor scheduler that HPS/PBS/SBS, Sec. III-D gives up, as a reconstruction.

The paper names its ingredients and gives no formula. Here, over the jobs that fit, t the run time
and n the GPUs,

    S = w_E · (1 − minmax(t·n)) + w_F · min(wait/1800 s, 1) + w_R · (1 − minmax(n))

with minmax(x) = (x − least)/(most − least), 0 where all are equal, and weights by the length of the
queue: up to 10, up to 50, and more waiting.
"""

from __future__ import annotations

from typing import NamedTuple

from optgap.heuristics.queueing.rule import ADAPTIVE, INF, Rule, rounded, simulate
from optgap.heuristics.queueing.tables import BY_TIME, QUEUE, Run
from optgap.heuristics.queueing.trees import first_waiting, last_waiting
from optgap.models.compiled import inner
from optgap.models.limits import Limits
from optgap.models.queueing import QueueingProblem
from optgap.models.result import Outcome

WEIGHTS = (0.5, 0.2, 0.3, 0.3, 0.4, 0.3, 0.2, 0.6, 0.2)
"""w_E, w_F and w_R for short, middle and long queues, row by row."""


def adaptive(problem: QueueingProblem, *, limits: Limits, seed: int) -> Outcome:
    """The adaptive rule."""
    return simulate(problem, Rule(ADAPTIVE), limits=limits, label="adaptive")


class Scale(NamedTuple):
    """What scores are relative to, now."""

    low_work: float
    high_work: float
    low_size: float
    high_size: float
    efficiency: float
    fairness: float
    resources: float


@inner
def adaptive_scale(run: Run) -> Scale:
    """Least and most work and GPUs of the jobs that fit, and the weights for this queue."""
    from_work, to_work, from_size, to_size = INF, -INF, INF, -INF
    jobs, classes = run.jobs, run.classes
    for c in range(len(classes)):
        if classes[c]["fit"] == 0:
            continue
        n = classes[c]["gpus"]
        low, high = first_waiting(run, BY_TIME, c), last_waiting(run, BY_TIME, c)
        from_work = min(from_work, jobs[low]["estimate"] * n)
        to_work = max(to_work, jobs[high]["estimate"] * n)
        from_size, to_size = min(from_size, n), max(to_size, n)
    queue = run.tally[QUEUE]
    row = 0 if queue <= 10 else 3 if queue <= 50 else 6
    of_three = WEIGHTS[row], WEIGHTS[row + 1], WEIGHTS[row + 2]
    return Scale(from_work, to_work, from_size, to_size, *of_three)


@inner
def adaptive_score(scale: Scale, n: int, estimate: float, wait: float) -> float:
    """S, rounded."""
    work = 0.0
    if scale.high_work > scale.low_work:
        work = (estimate * n - scale.low_work) / (scale.high_work - scale.low_work)
    size = 0.0
    if scale.high_size > scale.low_size:
        size = (n - scale.low_size) / (scale.high_size - scale.low_size)
    fair = min(wait / 1800, 1.0)
    return rounded(
        scale.efficiency * (1 - work) + scale.fairness * fair + scale.resources * (1 - size)
    )
