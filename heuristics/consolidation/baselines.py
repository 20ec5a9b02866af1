"""The paper's comparators: HotCloud, First, and one task per GPU."""

from __future__ import annotations

import numpy as np

from optgap.heuristics.consolidation.selection import awake_first, noisy_means, require, run
from optgap.models.consolidation import ConsolidationProblem
from optgap.models.consolidation.engine import State
from optgap.models.consolidation.tasks import FloatArray
from optgap.models.errors import one_of
from optgap.models.limits import Limits
from optgap.models.result import Outcome

EDGE = 1e-7


def hotcloud(
    problem: ConsolidationProblem,
    *,
    limits: Limits,
    seed: int,
    fit: str = "first",
    inclusive: bool = True,
    u_max: float = 100.0,
    strict_queue: bool = False,
    dfs: bool = False,
    delta_mhz: float = 15.0,
    pred_noise: float = 0.0,
) -> Outcome:
    """Yeung et al., HotCloud 2020, as the paper uses it: means of residents and newcomer ≤ u_max.

    Parameters
    ----------
    fit: ``first`` admissible GPU, or the ``best`` one, of the highest mean.
    inclusive: ≤ rather than <.
    pred_noise: standard deviation of the error of a predicted mean, points.
    """
    fits = ("first", "best")
    require("hotcloud", "fit", fit, fit in fits, one_of(fits))
    means = noisy_means(problem, pred_noise, seed)
    limit = u_max + (EDGE if inclusive else -EDGE)

    def score(state: State, task: int, gpus: np.ndarray) -> FloatArray:
        own = state.mean_micro[gpus] / 1e6
        rank = -own if fit == "best" else gpus.astype(np.float64)
        return np.where(own + means[task] <= limit, rank, np.inf)

    return run(
        problem,
        awake_first(score),
        limits,
        strict_queue=strict_queue,
        dfs=dfs,
        delta_mhz=delta_mhz,
    )


def first(
    problem: ConsolidationProblem,
    *,
    limits: Limits,
    seed: int,
    q: float = 100.0,
    strict_queue: bool = False,
    dfs: bool = False,
    delta_mhz: float = 15.0,
) -> Outcome:
    """First: utilisation of this instant and the newcomer's first sample stay below q, %."""

    def score(state: State, task: int, gpus: np.ndarray) -> FloatArray:
        total = state.util_now()[gpus] + state.problem.tasks[task].util_percent[0]
        return np.where(total < q - EDGE, gpus.astype(np.float64), np.inf)

    return run(
        problem,
        awake_first(score),
        limits,
        strict_queue=strict_queue,
        dfs=dfs,
        delta_mhz=delta_mhz,
    )


def default(
    problem: ConsolidationProblem,
    *,
    limits: Limits,
    seed: int,
    strict_queue: bool = False,
    dfs: bool = False,
    delta_mhz: float = 15.0,
) -> Outcome:
    """One task per GPU."""

    def score(state: State, task: int, gpus: np.ndarray) -> FloatArray:
        return np.full(len(gpus), np.inf)

    return run(
        problem,
        awake_first(score),
        limits,
        strict_queue=strict_queue,
        dfs=dfs,
        delta_mhz=delta_mhz,
    )
