"""HotCloud (Yeung et al., HotCloud 2020), a baseline of CATS.

Task l may join the residents R of an active GPU if the mean utilisations allow it,

    Σ_{r∈R} ū_r + ū_l ≤ u_max,

and takes the first such GPU. If none fits, the task wakes a GPU. The true means replace the
predictor of the source.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from optgap.heuristics.consolidation.engine import simulate
from optgap.heuristics.consolidation.parameters import HotCloudParams
from optgap.heuristics.consolidation.selection import awake_first
from optgap.heuristics.consolidation.state import ConsolidationState
from optgap.models.consolidation import ConsolidationProblem
from optgap.models.consolidation.tasks import FloatArray
from optgap.models.limits import Limits
from optgap.models.result import Outcome

EDGE = 1e-7
"""Tolerance of sums of means, %."""


def hotcloud(problem: ConsolidationProblem, *, limits: Limits, seed: int, **given: Any) -> Outcome:
    """Run HotCloud; `given` is as in `HotCloudParams`."""
    options = HotCloudParams(**given)
    means = problem.mean_micro / 1e6

    def score(state: ConsolidationState, task: int, gpus: np.ndarray) -> FloatArray:
        own = state.mean_micro[gpus] / 1e6
        fits = own + means[task] <= options.u_max + EDGE
        return np.where(fits, gpus.astype(np.float64), np.inf)

    return simulate(problem, awake_first(score), limits)
