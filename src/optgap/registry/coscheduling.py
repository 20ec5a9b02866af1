"""The family coscheduling: jobs that share a node."""

from __future__ import annotations

from typing import Any

from optgap.registry.spec import REPEATABLE, FamilySpec, Models


class Coscheduling(FamilySpec):
    """Jobs that share a node."""

    @property
    def models(self) -> Models:
        from optgap.models.coscheduling import fits, presets, problem, solution

        return Models(
            problem.CoschedulingProblem,
            solution.CoschedulingSolution,
            presets.from_csv,
            presets.PRESETS,
            fits.refit,
            fits.SERVES,
        )

    @property
    def solvers(self) -> Any:
        from optgap.solvers import coscheduling

        return coscheduling

    @property
    def heuristics(self) -> Any:
        from optgap.heuristics import coscheduling

        return coscheduling

    def export(self, name: str, problem: Any, solution: Any) -> str:
        from optgap.models.coscheduling import csvout

        return {"schedule": csvout.schedule}[name](problem, solution)

    def regrets(self, problem: Any, solution: Any) -> Any:
        from optgap.solvers.coscheduling.regret import regrets

        return regrets(problem, solution)


SPEC = Coscheduling(
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
