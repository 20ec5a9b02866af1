"""The family coscheduling: jobs that share a node."""

from __future__ import annotations

from optgap.registry.spec import REPEATABLE, FamilySpec

SPEC = FamilySpec(
    name="coscheduling",
    question="which jobs share a node, on how many GPUs each, and when?",
    files={
        "profiles": "app,gpu_count,runtime_s,avg_power_per_gpu_w[,dram_util_sum]",
        "jobs": "app,count[,release_s]",
        "model": "a fit of dram-runtime (JSON): policies decide on it, and it fills in run "
        f"times left empty; {REPEATABLE}",
    },
    needed=1,
    tables_out={"schedule": "job,app,gpu_count,start_s,end_s,gpu_index per run"},
    per_event="exact-window",
    tiny={"size": 5},
)
