"""Where the parts of the family placement are: tasks on the GPUs of nodes."""

from __future__ import annotations

from optgap.registry.spec import REPEATABLE, FamilySpec

SPEC = FamilySpec(
    "placement",
    "which node and which GPU does each arriving task get?",
    problem="optgap.models.placement.problem:PlacementProblem",
    solution="optgap.models.placement.solution:PlacementSolution",
    tables="optgap.models.placement.presets:from_csv",
    tiny={"preset": "small", "size": 6},
    files={
        "nodes": "sn,cpu_milli,memory_mib,gpu,model",
        "tasks": "name,cpu_milli,memory_mib,num_gpu,gpu_milli[,gpu_spec]"
        "[,submit_s,duration_s[,nodes]]",
        "order": "seq,task",
        "ranks": "rank,node",
        "devices": "model,idle_w,full_w",
        "model": f"a fit of device-power (JSON); {REPEATABLE}",
    },
    needed=2,
    tables_out={
        "placements": (
            "optgap.models.placement.csvout:placements",
            "seq,node,gpu_index per arrival",
        ),
        "series": (
            "optgap.models.placement.csvout:series",
            "demand, use, fragmentation and power after each arrival",
        ),
    },
    view="optgap.views.placement:draw",
    doubts="optgap.models.placement.doubts:doubts",
    per_event="greedy-exact",
    regrets="optgap.heuristics.placement.regret:regrets",
    refit="optgap.models.placement.fits:refit",
    overview="patterns(tolerance=0.0015,patience=10,first_nodes=10,rounds=8)",
)
