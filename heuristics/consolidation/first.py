"""First, a baseline of CATS: the policy counts utilisation as it is at this instant.

Task l joins the first active GPU whose residents R and the task's first sample stay below q,

    Σ_{r∈R} u_r(now) + u_l[0] < q,

and wakes a GPU if there is none.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from optgap.heuristics.consolidation.engine import simulate
from optgap.heuristics.consolidation.parameters import FirstParams
from optgap.heuristics.consolidation.selection import awake_first
from optgap.heuristics.consolidation.state import ConsolidationState
from optgap.models.consolidation import ConsolidationProblem
from optgap.models.consolidation.tasks import FloatArray
from optgap.models.limits import Limits
from optgap.models.result import Outcome

EDGE = 1e-7
"""Tolerance of sums of means, %."""


def first(problem: ConsolidationProblem, *, limits: Limits, seed: int, **given: Any) -> Outcome:
    """Run First; `given` is as in `FirstParams`."""
    options = FirstParams(**given)

    def score(state: ConsolidationState, task: int, gpus: np.ndarray) -> FloatArray:
        total = state.util_now()[gpus] + state.problem.tasks[task].util_percent[0]
        return np.where(total < options.q - EDGE, gpus.astype(np.float64), np.inf)

    return simulate(problem, awake_first(score), limits)
