"""GpuClustering: nodes that have served the same kind of task (shares; 1, 2, … GPUs).

CPU-only tasks go to the lowest rank.
"""

from __future__ import annotations

import math

from optgap.heuristics.placement.rule import CLUSTERING, GPU_SCALE, Rule, simulate
from optgap.models.compiled import compiled
from optgap.models.limits import Limits
from optgap.models.placement import PlacementProblem
from optgap.models.placement.kernels import Row
from optgap.models.result import Outcome


def gpu_clustering(problem: PlacementProblem, *, limits: Limits, seed: int) -> Outcome:
    """GpuClustering."""
    rule = Rule.of(CLUSTERING)
    return simulate(problem, rule, limits=limits, seed=seed, label="gpuclustering")


@compiled
def clustering_score(request: Row, now: Row) -> int:
    """GpuClustering: nodes that serve this kind of task, and those with less free GPU."""
    if request["num_gpu"] == 0:
        return 0
    base = math.trunc(25 * (GPU_SCALE - now["free_gpu"]) / GPU_SCALE)
    if now["kinds"] == request["kind"]:
        return base + 75
    if now["kinds"] & request["kind"]:
        return base + 50
    if now["kinds"] == 0:
        return base + 25
    return base
