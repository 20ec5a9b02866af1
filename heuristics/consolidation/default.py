"""No consolidation: each task gets the first GPUs that are empty."""

from __future__ import annotations

import numpy as np

from optgap.heuristics.consolidation.engine import simulate
from optgap.heuristics.consolidation.selection import awake_first
from optgap.heuristics.consolidation.state import ConsolidationState
from optgap.models.consolidation import ConsolidationProblem
from optgap.models.consolidation.tasks import FloatArray
from optgap.models.limits import Limits
from optgap.models.result import Outcome


def default(problem: ConsolidationProblem, *, limits: Limits, seed: int) -> Outcome:
    """Run one task per GPU."""

    def score(state: ConsolidationState, task: int, gpus: np.ndarray) -> FloatArray:
        return np.full(len(gpus), np.inf)

    return simulate(problem, awake_first(score), limits)
