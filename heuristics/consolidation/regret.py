"""Cost of each placement of a policy, compared with the best one possible at that moment."""

from __future__ import annotations

import numpy as np

from optgap.heuristics.consolidation.clocks import lowest
from optgap.heuristics.consolidation.engine import Engine
from optgap.heuristics.consolidation.opt_nomig import added_watts, cheapest
from optgap.heuristics.consolidation.state import ConsolidationState
from optgap.models.consolidation import ConsolidationProblem, ConsolidationSolution
from optgap.models.limits import Limits
from optgap.models.regret import Regret


def regrets(problem: ConsolidationProblem, solution: ConsolidationSolution) -> list[Regret]:
    """Return a regret per placed task, in order of arrival, in W (power) or in J (energy).

    The regret is about the power that the task adds at that moment, with clocks as low as κ allows.
    Over time that power counts for the task's solo time. Later migrations are not judged.
    """
    first: dict[int, tuple[float, tuple[int, ...]]] = {}
    for a in solution.assignments:
        first.setdefault(a.task, (a.start_s, a.gpus))
    found: list[Regret] = []
    timed = problem.objective.goal == "energy"

    def decide(state: ConsolidationState, task: int) -> tuple[int, ...] | None:
        if task not in first:
            return None
        gpus = first[task][1]
        added = added_watts(state, task, state.fits(task))
        least, better = cheapest(state, task, added)
        asleep = {int(problem.gpu_server[g]) for g in gpus}
        static = sum(problem.servers[i].static_w for i in asleep if not state.awake[i])
        cost = float(added[list(gpus)].sum()) + static - least
        if np.isfinite(cost) and better is not None:
            scale = problem.tasks[task].duration_s if timed else 1.0
            found.append(
                Regret(
                    state.time_s if timed else float(task),
                    problem.tasks[task].name,
                    _shown(problem, gpus),
                    _shown(problem, better),
                    max(0.0, cost) * scale if cost > 1e-9 else 0.0,
                )
            )
        return gpus if np.isfinite(added[list(gpus)]).all() else None

    Engine(problem, decide, lowest, Limits()).run()
    return found


def _shown(problem: ConsolidationProblem, gpus: tuple[int, ...]) -> str:
    places = [problem.places[g] for g in gpus]
    return ", ".join(f"server {i} GPU {j}" for i, j in places)
