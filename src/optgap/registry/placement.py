"""The family placement: tasks on the GPUs of nodes."""

from __future__ import annotations

from optgap.registry.spec import REPEATABLE, FamilySpec

SPEC = FamilySpec(
    name="placement",
    question="which node and which GPU does each arriving task get?",
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
        "placements": "seq,node,gpu_index per arrival",
        "series": "demand, use, fragmentation and power after each arrival",
    },
    per_event="greedy-exact",
    tiny={"preset": "small", "size": 6},
    overview="patterns(tolerance=0.0015,patience=10,first_nodes=10,rounds=8)",
)
