"""The family consolidation: tasks that share GPUs, and clocks."""

from __future__ import annotations

from optgap.registry.spec import REPEATABLE, FamilySpec

SPEC = FamilySpec(
    name="consolidation",
    question="which tasks share which GPUs, at which clock?",
    files={
        "tasks": "task,memory_gb[,submit_s,gpus,duration_s,kappa,util_percent,app]",
        "series": "task,t_s,util_percent",
        "model": "fits of linear-power, power-law-power, power-law-jct, contention "
        f"(JSON); {REPEATABLE}",
    },
    needed=1,
    tables_out={"placements": "task,start_s,server,gpu_index per stay of a task"},
    per_event="opt_nomig",
    tiny={"size": 4, "servers": 2},
)
