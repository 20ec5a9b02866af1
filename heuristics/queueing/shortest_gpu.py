"""Shortest-GPU: the least run time × GPUs, t·n, first, then by arrival (HPS/PBS/SBS, Sec. III-B).

The first in order is found in `fixed_order`.
"""

from __future__ import annotations

from optgap.heuristics.queueing.rule import SHORTEST_GPU, Rule, simulate
from optgap.models.limits import Limits
from optgap.models.queueing import QueueingProblem
from optgap.models.result import Outcome


def shortest_gpu(problem: QueueingProblem, *, limits: Limits, seed: int) -> Outcome:
    """Shortest-GPU."""
    return simulate(problem, Rule(SHORTEST_GPU), limits=limits, label="shortest-gpu")
