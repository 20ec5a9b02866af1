"""DotProd: the node whose free CPU and GPU have the smallest dot product with the request.

Score: trunc(100·(1 − ½·(c·c_task/128,000² + g·g_task/8000²))), c and g what is free of a node in
milli-vCPU and milli-GPU: shares of the largest node, whose GPUs are one dimension. Fractional tasks
get the fullest GPU that still fits them.
"""

from __future__ import annotations

import math

from optgap.heuristics.placement.rule import CPU_SCALE, DOTPROD, GPU_SCALE, Rule, simulate
from optgap.models.compiled import compiled
from optgap.models.limits import Limits
from optgap.models.placement import PlacementProblem
from optgap.models.placement.kernels import Row
from optgap.models.result import Outcome


def dot_product(problem: PlacementProblem, *, limits: Limits, seed: int) -> Outcome:
    """DotProd."""
    rule = Rule.of(DOTPROD)
    return simulate(problem, rule, limits=limits, seed=seed, label="dotprod")


@compiled
def dot_product_score(request: Row, now: Row) -> int:
    """DotProd: the product of what is free and what is requested, less is better."""
    wanted = request["num_gpu"] * request["gpu_milli"]
    dot = (now["free_cpu"] / CPU_SCALE) * (request["cpu_milli"] / CPU_SCALE)
    dot += (now["free_gpu"] / GPU_SCALE) * (wanted / GPU_SCALE)
    return math.trunc(100 * (1 - dot / 2))
