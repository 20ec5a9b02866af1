"""What of an elastic problem looks like another unit."""

from __future__ import annotations

import numpy as np

from optgap.models.elastic.problem import ElasticProblem
from optgap.models.quantities import Doubt
from optgap.models.quantities import doubts as found


def doubts(problem: ElasticProblem) -> list[Doubt]:
    """Clocks, power of a GPU, and time and power of an iteration at the highest clock."""
    classes = problem.classes

    def of(name: str, k: int) -> str:
        return f"model {classes[k].label} on {classes[k].counts[0]} GPUs, {name}"

    per_gpu = [float(c.power_w[0, -1]) / c.counts[0] for c in classes]
    return [
        *found("frequency_mhz", problem.frequencies_mhz, lambda _: "frequencies_mhz"),
        *found("p_max_w", [problem.p_max_w], lambda _: "p_max_w"),
        *found("idle_w", [problem.idle_w], lambda _: "idle_w"),
        *found("power_w", per_gpu, lambda k: of("power_w of each", k)),
        *found("iteration_s", [np.max(c.time_s) for c in classes], lambda k: of("time_s", k)),
    ]
