"""GpuPacking: GPUs in use first, then idle GPUs of nodes in use, idle nodes last.

CPU-only tasks go to the lowest rank.
"""

from __future__ import annotations

from optgap.heuristics.placement.bestfit import best_fit_gpu
from optgap.heuristics.placement.rule import PACKING, Rule, simulate
from optgap.models.compiled import compiled
from optgap.models.limits import Limits
from optgap.models.placement import PlacementProblem
from optgap.models.placement.arrays import IntArray
from optgap.models.placement.kernels import Row
from optgap.models.result import Outcome


def gpu_packing(problem: PlacementProblem, *, limits: Limits, seed: int) -> Outcome:
    """GpuPacking."""
    rule = Rule.of(PACKING)
    return simulate(problem, rule, limits=limits, seed=seed, label="gpupacking")


@compiled
def packing_score(request: Row, now: Row, gpu_free: IntArray, gpus: int) -> int:
    """GpuPacking: used GPUs before idle GPUs of active nodes before idle nodes."""
    if request["num_gpu"] == 0:
        return 0
    if now["whole"] == gpus:
        return max(33 - gpus, gpus)
    if request["gpu_milli"] == 1000:
        return max(50 - request["num_gpu"], 33)
    free = gpu_free[best_fit_gpu(gpu_free, gpus, request["gpu_milli"])]
    if free == 1000:
        return 49
    return max(100 - free // 10 // 10, 50)
