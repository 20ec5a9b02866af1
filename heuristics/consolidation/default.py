"""No consolidation: each task gets the first GPUs that are empty."""

from __future__ import annotations

from typing import Any

import numpy as np

from optgap.heuristics.consolidation.engine import run
from optgap.heuristics.consolidation.parameters import DefaultParams
from optgap.heuristics.consolidation.selection import awake_first
from optgap.heuristics.consolidation.state import State
from optgap.models.consolidation import ConsolidationProblem
from optgap.models.consolidation.tasks import FloatArray
from optgap.models.limits import Limits
from optgap.models.result import Outcome


def default(problem: ConsolidationProblem, *, limits: Limits, seed: int, **given: Any) -> Outcome:
    """Run one task per GPU; `given` as in `DefaultParams`."""

    def score(state: State, task: int, gpus: np.ndarray) -> FloatArray:
        return np.full(len(gpus), np.inf)

    return run(problem, awake_first(score), limits, dfs=DefaultParams(**given).dfs)
