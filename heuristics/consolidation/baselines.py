"""The paper's comparators: HotCloud, First, and one task per GPU."""

from __future__ import annotations

from typing import Any

import numpy as np

from optgap.heuristics.consolidation.engine import State
from optgap.heuristics.consolidation.parameters import DefaultParams, FirstParams, HotCloudParams
from optgap.heuristics.consolidation.selection import awake_first, noisy_means, run
from optgap.models.consolidation import ConsolidationProblem
from optgap.models.consolidation.tasks import FloatArray
from optgap.models.limits import Limits
from optgap.models.result import Outcome
from optgap.models.spec import chosen

EDGE = 1e-7


def hotcloud(problem: ConsolidationProblem, *, limits: Limits, seed: int, **given: Any) -> Outcome:
    """Yeung et al., HotCloud 2020, as the paper uses it: means of residents and newcomer ≤ u_max.

    `given` as in `HotCloudParams`.

    Raises
    ------
    InputError: for an unknown `fit`, or a step of the clock that is none.
    """
    options = chosen(HotCloudParams, given, "hotcloud")
    means = noisy_means(problem, options.pred_noise, seed)
    limit = options.u_max + (EDGE if options.inclusive else -EDGE)

    def score(state: State, task: int, gpus: np.ndarray) -> FloatArray:
        own = state.mean_micro[gpus] / 1e6
        rank = -own if options.fit == "best" else gpus.astype(np.float64)
        return np.where(own + means[task] <= limit, rank, np.inf)

    return run(problem, awake_first(score), limits, options)


def first(problem: ConsolidationProblem, *, limits: Limits, seed: int, **given: Any) -> Outcome:
    """First: utilisation of this instant and the newcomer's first sample stay below q, %.

    `given` as in `FirstParams`.
    """
    options = FirstParams(**given)

    def score(state: State, task: int, gpus: np.ndarray) -> FloatArray:
        total = state.util_now()[gpus] + state.problem.tasks[task].util_percent[0]
        return np.where(total < options.q - EDGE, gpus.astype(np.float64), np.inf)

    return run(problem, awake_first(score), limits, options)


def default(problem: ConsolidationProblem, *, limits: Limits, seed: int, **given: Any) -> Outcome:
    """One task per GPU; `given` as in `DefaultParams`."""

    def score(state: State, task: int, gpus: np.ndarray) -> FloatArray:
        return np.full(len(gpus), np.inf)

    return run(problem, awake_first(score), limits, DefaultParams(**given))
