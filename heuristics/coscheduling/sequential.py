"""Two baselines of EcoSched's paper, which run one job at a time, in queue order."""

from __future__ import annotations

from collections.abc import Callable

from optgap.heuristics.coscheduling.engine import Action, CoschedulingState, replay
from optgap.models.coscheduling import CoschedulingProblem, Mode
from optgap.models.limits import Limits
from optgap.models.result import Outcome


def sequential_max_gpu(problem: CoschedulingProblem, *, limits: Limits, seed: int) -> Outcome:
    """Run each job on the most GPUs that it has a mode for."""
    return _sequential(problem, limits, lambda modes: modes[-1])


def sequential_optimal_gpu(problem: CoschedulingProblem, *, limits: Limits, seed: int) -> Outcome:
    """Run each job on its fastest GPU count, the smaller of equals."""
    return _sequential(
        problem, limits, lambda modes: min(modes, key=lambda m: (m.runtime_s, m.gpu_count))
    )


def _sequential(
    problem: CoschedulingProblem, limits: Limits, pick: Callable[[tuple[Mode, ...]], Mode]
) -> Outcome:
    def choose(state: CoschedulingState) -> Action:
        if state.running:
            return []
        job = state.waiting[0]
        return [(job, pick(problem.application(job).modes).gpu_count)]

    return replay(problem, choose, limits)
