"""What of a consolidation problem looks like another unit."""

from __future__ import annotations

from optgap.models.consolidation.problem import ConsolidationProblem
from optgap.models.quantities import Doubt
from optgap.models.quantities import doubts as found


def doubts(problem: ConsolidationProblem) -> list[Doubt]:
    """Power at the highest clock, clocks, memory, static power and utilisation."""
    kinds, servers, tasks = problem.kinds, problem.servers, problem.tasks

    def gpu(name: str, k: int) -> str:
        return f"GPU {kinds[k].name}, {name}"

    own = [t for t in tasks if t.power is not None]
    return [
        *found(
            "power_w",
            [kind.power.watts(kind.f_max_mhz) for kind in kinds],
            lambda k: gpu("power at its highest clock", k),
        ),
        *found(
            "power_w",
            [t.power.watts(kinds[0].f_max_mhz) for t in own if t.power is not None],
            lambda k: f"task {own[k].name}, power at the highest clock",
        ),
        *found("frequency_mhz", [kind.f_min_mhz for kind in kinds], lambda k: gpu("f_min_mhz", k)),
        *found("frequency_mhz", [kind.f_max_mhz for kind in kinds], lambda k: gpu("f_max_mhz", k)),
        *found("gpu_memory_gb", [kind.memory_gb for kind in kinds], lambda k: gpu("memory_gb", k)),
        *found(
            "server_static_w", [s.static_w for s in servers], lambda k: f"server {k}, static_w"
        ),
        *found("duration_s", [t.duration_s for t in tasks], lambda k: f"task {tasks[k].name}, "
               "duration_s"),
        *found(
            "util_percent",
            [float(t.util_percent.max(initial=0.0)) for t in tasks],
            lambda k: f"task {tasks[k].name}, util_percent (the largest)",
        ),
    ]  # fmt: skip
