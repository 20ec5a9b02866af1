"""Shortest: the least run time t first, then by arrival (HPS/PBS/SBS, Sec. III-B: SRTF).

Jobs are never preempted, so the remaining time of a waiting job is its run time, as estimated. The
first in order is found in `fixed_order`.
"""

from __future__ import annotations

from optgap.heuristics.queueing.rule import SHORTEST, Rule, simulate
from optgap.models.limits import Limits
from optgap.models.queueing import QueueingProblem
from optgap.models.result import Outcome


def shortest(problem: QueueingProblem, *, limits: Limits, seed: int) -> Outcome:
    """Shortest."""
    return simulate(problem, Rule(SHORTEST), limits=limits, label="shortest")
