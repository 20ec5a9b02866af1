"""What of a co-scheduling problem looks like another unit."""

from __future__ import annotations

from optgap.models.coscheduling.problem import CoschedulingProblem
from optgap.models.quantities import Doubt
from optgap.models.quantities import doubts as found


def doubts(problem: CoschedulingProblem) -> list[Doubt]:
    """Idle power, and power and run time of every mode."""
    modes = [(app, mode) for app in problem.applications for mode in app.modes]

    def mode(name: str, k: int) -> str:
        return f"application {modes[k][0].name} on {modes[k][1].gpu_count} GPUs, {name}"

    return [
        *found("idle_w", [problem.idle_w], lambda _: "idle_w"),
        *found(
            "power_w", [m.power_per_gpu_w for _, m in modes], lambda k: mode("power_per_gpu_w", k)
        ),
        *found("runtime_s", [m.runtime_s for _, m in modes], lambda k: mode("runtime_s", k)),
    ]
