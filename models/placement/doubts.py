"""What of a placement problem looks like another unit."""

from __future__ import annotations

from optgap.models.placement.problem import PlacementProblem
from optgap.models.quantities import Doubt
from optgap.models.quantities import doubts as found


def doubts(problem: PlacementProblem) -> list[Doubt]:
    """Processors and memory of nodes, and the power of the GPU models that they have."""
    cluster, power = problem.cluster, problem.power
    # a node without GPUs may name a model without power figures
    models = sorted({m for m in cluster.models if m in power.gpu_full_w and m in power.gpu_idle_w})
    return [
        *found(
            "node_cpu_milli", cluster.cpu_milli, lambda k: f"node {cluster.names[k]}, cpu_milli"
        ),
        *found(
            "node_memory_mib", cluster.memory_mib, lambda k: f"node {cluster.names[k]}, memory_mib"
        ),
        *found("idle_w", [power.gpu_idle_w[m] for m in models], lambda k: f"{models[k]}, idle_w"),
        *found("full_w", [power.gpu_full_w[m] for m in models], lambda k: f"{models[k]}, full_w"),
    ]
