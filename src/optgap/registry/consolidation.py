"""Where the parts of the family consolidation are: tasks that share GPUs, and clocks."""

from __future__ import annotations

from optgap.registry.spec import REPEATABLE, FamilySpec

SPEC = FamilySpec(
    "consolidation",
    "which tasks share which GPUs, at which clock?",
    problem="optgap.models.consolidation.problem:ConsolidationProblem",
    solution="optgap.models.consolidation.solution:ConsolidationSolution",
    tables="optgap.models.consolidation.csvin:from_csv",
    tiny={"size": 4, "servers": 2},
    files={
        "tasks": "task,memory_gb[,submit_s,gpus,duration_s,kappa,util_percent,app]",
        "series": "task,t_s,util_percent",
        "model": "fits of linear-power, power-law-power, power-law-jct, contention "
        f"(JSON); {REPEATABLE}",
    },
    needed=1,
    tables_out={
        "placements": (
            "optgap.models.consolidation.csvout:placements",
            "task,start_s,server,gpu_index per stay of a task",
        )
    },
    view="optgap.views.consolidation:draw",
    doubts="optgap.models.consolidation.doubts:doubts",
    per_event="opt_nomig",
    freed="optgap.models.consolidation.problem:with_moves",
    regrets="optgap.heuristics.consolidation.regret:regrets",
    refit="optgap.models.consolidation.fits:refit",
)
