"""BestFit: the node with the least left, CPU and GPU weighing the same.

Score: trunc(100·(1 − ½·(c − c_task)/128,000 − ½·(g − g_task)/8000)), c and g what is free of a node
in milli-vCPU and milli-GPU, over the largest node; stretched to 0..100 over the feasible nodes.
Fractional tasks get the fullest GPU that still fits them.
"""

from __future__ import annotations

import math

from optgap.heuristics.placement.rule import BESTFIT, CPU_SCALE, GPU_SCALE, Rule, simulate
from optgap.models.compiled import compiled
from optgap.models.limits import Limits
from optgap.models.placement import PlacementProblem
from optgap.models.placement.arrays import IntArray
from optgap.models.placement.kernels import Row
from optgap.models.result import Outcome


def best_fit(problem: PlacementProblem, *, limits: Limits, seed: int) -> Outcome:
    """BestFit."""
    rule = Rule.of(BESTFIT, normalise=True)
    return simulate(problem, rule, limits=limits, seed=seed, label="bestfit")


@compiled
def best_fit_score(request: Row, now: Row) -> int:
    """BestFit: what is left of CPU and GPU, less is better."""
    wanted = request["num_gpu"] * request["gpu_milli"]
    left = (now["free_cpu"] - request["cpu_milli"]) / CPU_SCALE * 0.5
    left += (now["free_gpu"] - wanted) / GPU_SCALE * 0.5
    return math.trunc(100 * (1 - left))


@compiled
def best_fit_gpu(gpu_free: IntArray, gpus: int, wanted: int) -> int:
    """The GPU with the least free amount that suffices, the lowest of equals; -1 for none."""
    chosen = -1
    for g in range(gpus):
        if gpu_free[g] >= wanted and (chosen < 0 or gpu_free[g] < gpu_free[chosen]):
            chosen = g
    return chosen
