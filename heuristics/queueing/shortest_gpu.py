"""Shortest-GPU: the least run time × GPUs, t·n, first, then by arrival (HPS/PBS/SBS, Sec. III-B).

The first in order is found in `fixed_order`.
"""

from __future__ import annotations

from typing import Any

from optgap.heuristics.queueing.parameters import ShortestParams
from optgap.heuristics.queueing.rule import SHORTEST_GPU, Rule, simulate
from optgap.models.limits import Limits
from optgap.models.queueing import QueueingProblem
from optgap.models.result import Outcome
from optgap.models.spec import chosen


def shortest_gpu(problem: QueueingProblem, *, limits: Limits, seed: int, **given: Any) -> Outcome:
    """Shortest-GPU; `given` as in `ShortestParams`."""
    rule = Rule(SHORTEST_GPU, strict=chosen(ShortestParams, given, "shortest-gpu").strict)
    return simulate(problem, rule, limits=limits, label="shortest-gpu")
