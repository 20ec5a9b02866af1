"""HotCloud (Yeung et al., HotCloud 2020), as CATS compares itself with it.

Task l may join the residents R of an awake GPU where their mean utilisations allow it,

    Σ_{r∈R} ū_r + ū_l ≤ u_max,

and takes the first such GPU or, with ``fit="best"``, that of the highest Σ ū_r; where there is
none it wakes a GPU. The predictor of the source is replaced by the true means.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from optgap.heuristics.consolidation.engine import simulate
from optgap.heuristics.consolidation.parameters import HotCloudParams
from optgap.heuristics.consolidation.selection import awake_first
from optgap.heuristics.consolidation.state import State
from optgap.models.consolidation import ConsolidationProblem
from optgap.models.consolidation.tasks import FloatArray
from optgap.models.limits import Limits
from optgap.models.result import Outcome
from optgap.models.spec import chosen

EDGE = 1e-7
"""% that sums of means may be off by."""


def hotcloud(problem: ConsolidationProblem, *, limits: Limits, seed: int, **given: Any) -> Outcome:
    """Run HotCloud; `given` as in `HotCloudParams`.

    Raises
    ------
    InputError
        If `fit` is unknown.
    """
    options = chosen(HotCloudParams, given, "hotcloud")
    means = problem.mean_micro / 1e6

    def score(state: State, task: int, gpus: np.ndarray) -> FloatArray:
        own = state.mean_micro[gpus] / 1e6
        rank = -own if options.fit == "best" else gpus.astype(np.float64)
        return np.where(own + means[task] <= options.u_max + EDGE, rank, np.inf)

    return simulate(problem, awake_first(score), limits)
