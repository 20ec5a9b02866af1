"""The family consolidation: tasks that share GPUs, and clocks."""

from __future__ import annotations

from typing import Any

from optgap.registry.spec import REPEATABLE, FamilySpec, Models


class Consolidation(FamilySpec):
    """Tasks that share GPUs, and clocks."""

    @property
    def models(self) -> Models:
        from optgap.models.consolidation import csvin, fits, presets, problem, solution

        return Models(
            problem.ConsolidationProblem,
            solution.ConsolidationSolution,
            csvin.from_csv,
            presets.PRESETS,
            fits.refit,
            fits.SERVES,
        )

    @property
    def solvers(self) -> Any:
        from optgap.solvers import consolidation

        return consolidation

    @property
    def heuristics(self) -> Any:
        from optgap.heuristics import consolidation

        return consolidation

    def export(self, name: str, problem: Any, solution: Any) -> str:
        from optgap.models.consolidation import csvout

        return {"placements": csvout.placements}[name](problem, solution)

    def regrets(self, problem: Any, solution: Any) -> Any:
        from optgap.heuristics.consolidation.regret import regrets

        return regrets(problem, solution)


SPEC = Consolidation(
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
