"""The family coscheduling: jobs that share a node."""

from __future__ import annotations

from types import ModuleType

from optgap.registry.spec import REPEATABLE, FamilySpec


def _solvers() -> ModuleType:
    from optgap.solvers import coscheduling

    return coscheduling


def _heuristics() -> ModuleType:
    from optgap.heuristics import coscheduling

    return coscheduling


SPEC = FamilySpec(
    name="coscheduling",
    import_solvers=_solvers,
    import_heuristics=_heuristics,
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
