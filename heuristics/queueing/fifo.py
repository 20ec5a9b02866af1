"""FIFO (HPS/PBS/SBS, Sec. III-B): by arrival; the first job blocks while it does not fit.

The first in order is found in `fixed_order`.
"""

from __future__ import annotations

from optgap.heuristics.queueing.rule import FIFO, Rule, simulate
from optgap.models.limits import Limits
from optgap.models.queueing import QueueingProblem
from optgap.models.result import Outcome


def fifo(problem: QueueingProblem, *, limits: Limits, seed: int) -> Outcome:
    """FIFO."""
    return simulate(problem, Rule(FIFO), limits=limits, label="fifo")
