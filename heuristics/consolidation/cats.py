"""CATS, Algorithms 1 and 2: correlation analysis and the scheduler.

For an arriving task l and each active GPU with room for its memory, g(t) = Σ u_r(t) over the
residents r from this moment on. Both series are cut to the shorter:

    δ_g = ρ(g, u_l)                          Pearson's correlation          Alg. 1, line 6; Eq. 15
    δ_μ = |mean(g) − mean(u_l)| / 100        difference of the means        Alg. 1, line 7
    candidate: δ_g ≤ ρ_max and mean(g) + mean(u_l) ≤ u_max                  Alg. 1, thresholds
    score = λ1·δ_g − λ2·δ_μ, the least wins                                 Alg. 2, lines 4-7

If no active GPU is a candidate, the task wakes one. No line of the printed listings tests the
thresholds, and `literal_thresholds` follows them. Algorithms 3 and 4 are in `frequency_adaptation`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from optgap.heuristics.consolidation.clocks import highest
from optgap.heuristics.consolidation.engine import simulate
from optgap.heuristics.consolidation.frequency_adaptation import adaptation
from optgap.heuristics.consolidation.parameters import CatsParams
from optgap.heuristics.consolidation.selection import awake_first
from optgap.heuristics.consolidation.state import Choice, ClockRule, ConsolidationState
from optgap.models.compiled import compiled
from optgap.models.consolidation import ConsolidationProblem
from optgap.models.consolidation.tasks import FloatArray, IntArray
from optgap.models.limits import Limits
from optgap.models.result import Outcome
from optgap.models.spec import chosen
from optgap.models.times import TOLERANCE_S
from optgap.solvers.consolidation.over_time.loop import Tables

EDGE = 1e-9
"""Tolerance of correlations, and of means as shares of a GPU."""


def cats(problem: ConsolidationProblem, *, limits: Limits, seed: int, **given: Any) -> Outcome:
    """Run CATS; `given` is as in `CatsParams`.

    Raises
    ------
    InputError: for a parameter out of range.
    """
    options = chosen(CatsParams, given, "cats")
    policy = Cats(options)
    clocks: ClockRule = highest
    if options.dfs:
        clocks = adaptation(options.delta_mhz)
    return simulate(problem, policy.decide, limits, clocks)


class Cats:
    """Algorithms 1 and 2; `options` hold the weights and thresholds."""

    def __init__(self, options: CatsParams) -> None:
        self.options = options

    def decide(self, state: ConsolidationState, task: int) -> Choice:
        """Return the GPUs for an arriving task."""
        return awake_first(self.score)(state, task)

    def score(self, state: ConsolidationState, task: int, gpus: np.ndarray) -> FloatArray:
        """Return λ1·ρ − λ2·δμ of each GPU, infinite if a threshold is exceeded."""
        options = self.options
        own = state.problem.tasks[task].util_percent
        means, rhos, mean = np.zeros(len(gpus)), np.zeros(len(gpus)), float(own.mean())
        most = np.inf if options.literal_thresholds else options.u_max - mean + 1.0
        correlate(state.tables, gpus, own, state.time_s, most, means, rhos)
        scores = options.lambda1 * rhos - options.lambda2 * np.abs(means - mean) / 100
        if not options.literal_thresholds:
            over = means + mean > options.u_max + EDGE * 100
            scores[over | (rhos > options.rho_max + EDGE)] = np.inf
        return np.asarray(scores)


@compiled
def correlate(
    tables: Tables,
    gpus: IntArray,
    own: FloatArray,
    now: float,
    limit: float,
    means: FloatArray,
    rhos: FloatArray,
) -> None:
    """Compute the mean of each GPU's aggregate series, and its Pearson correlation with `own`.

    A resident whose series has ended contributes its last sample as long as another lasts. Series
    are cut to the shorter. The correlation is 0 if a series is constant or has fewer than two
    samples, or if the mean is above `limit`, because it is not needed then.
    """
    total = np.zeros(max(1, int(tables.length.max())))
    first = np.zeros(tables.held.shape[1], dtype=np.int64)
    slack = min(TOLERANCE_S, tables.period / 2)
    for c in range(len(gpus)):
        g = gpus[c]
        for m in range(tables.many[g]):
            task = tables.held[g, m]
            done = tables.progress[task] + (now - tables.since[task]) * tables.rate[task]
            first[m] = min(tables.length[task] - 1, int((done + slack) / tables.period))
        longest = 1
        for m in range(tables.many[g]):
            longest = max(longest, tables.length[tables.held[g, m]] - first[m])
        longest = min(longest, len(total))
        mean = 0.0
        for t in range(longest):
            total[t] = 0.0
            for m in range(tables.many[g]):
                task = tables.held[g, m]
                k = min(first[m] + t, tables.length[task] - 1)
                total[t] += tables.series[tables.offset[task] + k]
            mean += total[t]
        means[c] = mean / longest
        n = min(longest, len(own))
        rhos[c] = 0.0
        if n < 2 or means[c] > limit:
            continue
        a = b = ab = aa = bb = 0.0
        for t in range(n):
            a, b = a + total[t], b + own[t]
        a, b = a / n, b / n
        for t in range(n):
            u, v = total[t] - a, own[t] - b
            ab, aa, bb = ab + u * v, aa + u * u, bb + v * v
        if aa > 1e-12 * n and bb > 1e-12 * n:
            rhos[c] = ab / np.sqrt(aa * bb)
