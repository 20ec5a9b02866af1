"""FIFO (HPS/PBS/SBS, Sec. III-B): by arrival; the first job blocks while it does not fit.

With ``fit_first`` jobs that do not fit are skipped. The first in order is found in `fixed_order`.
"""

from __future__ import annotations

from typing import Any

from optgap.heuristics.queueing.parameters import FifoParams
from optgap.heuristics.queueing.rule import FIFO, Rule, simulate
from optgap.models.limits import Limits
from optgap.models.queueing import QueueingProblem
from optgap.models.result import Outcome
from optgap.models.spec import chosen


def fifo(problem: QueueingProblem, *, limits: Limits, seed: int, **given: Any) -> Outcome:
    """FIFO; `given` as in `FifoParams`."""
    options = chosen(FifoParams, given, "fifo")
    rule = Rule(FIFO, strict=not options.fit_first)
    return simulate(problem, rule, limits=limits, label="fifo")
