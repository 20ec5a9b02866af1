"""HotCloud (Yeung et al., HotCloud 2020), as CATS compares itself with it.

Task l may join the residents R of an awake GPU where their mean utilisations allow it,

    Σ_{r∈R} ū_r + ū_l ≤ u_max,

and takes the first such GPU; where there is none it wakes a GPU. The predictor of the source is
replaced by the true means.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from optgap.heuristics.consolidation.engine import run
from optgap.heuristics.consolidation.parameters import PackingParams
from optgap.heuristics.consolidation.selection import awake_first
from optgap.heuristics.consolidation.state import State
from optgap.models.consolidation import ConsolidationProblem
from optgap.models.consolidation.tasks import FloatArray
from optgap.models.limits import Limits
from optgap.models.result import Outcome

EDGE = 1e-7
"""% that sums of means may be off by."""


def hotcloud(problem: ConsolidationProblem, *, limits: Limits, seed: int, **given: Any) -> Outcome:
    """Run HotCloud; `given` as in `PackingParams`."""
    options = PackingParams(**given)
    means = problem.mean_micro / 1e6

    def score(state: State, task: int, gpus: np.ndarray) -> FloatArray:
        total = state.mean_micro[gpus] / 1e6 + means[task]
        return np.where(total <= options.u_max + EDGE, gpus.astype(np.float64), np.inf)

    return run(problem, awake_first(score), limits, dfs=options.dfs)
