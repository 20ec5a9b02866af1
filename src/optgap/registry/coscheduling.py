"""Where the parts of the family coscheduling are: jobs that share a node."""

from __future__ import annotations

from optgap.registry.spec import REPEATABLE, FamilySpec

SPEC = FamilySpec(
    "coscheduling",
    "which jobs share a node, on how many GPUs each, and when?",
    problem="optgap.models.coscheduling.problem:CoschedulingProblem",
    solution="optgap.models.coscheduling.solution:CoschedulingSolution",
    tables="optgap.models.coscheduling.presets:from_csv",
    tiny={"size": 5},
    files={
        "profiles": "app,gpu_count,runtime_s,avg_power_per_gpu_w[,dram_util_sum]",
        "jobs": "app,count[,release_s]",
        "model": "a fit of dram-runtime (JSON): policies decide on it, and it fills in run "
        f"times left empty; {REPEATABLE}",
    },
    needed=1,
    tables_out={
        "schedule": (
            "optgap.models.coscheduling.csvout:schedule",
            "job,app,gpu_count,start_s,end_s,gpu_index per run",
        )
    },
    view="optgap.views.coscheduling:draw",
    doubts="optgap.models.coscheduling.doubts:doubts",
    per_event="exact-window",
    regrets="optgap.solvers.coscheduling.regret:regrets",
    refit="optgap.models.coscheduling.fits:refit",
)
