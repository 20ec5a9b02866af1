"""Marble (Han et al., CCGRID 2020), as EcoSched's paper uses it.

Each job runs on its fastest GPU count, the smaller of equals. At each event Marble scans the queue
in order and starts the jobs that fit. At most K jobs, one per NUMA domain, run at a time.
"""

from __future__ import annotations

from optgap.heuristics.coscheduling.engine import Action, CoschedulingState, replay
from optgap.models.coscheduling import CoschedulingProblem
from optgap.models.limits import Limits
from optgap.models.result import Outcome


def marble(problem: CoschedulingProblem, *, limits: Limits, seed: int) -> Outcome:
    """Run Marble."""

    def choose(state: CoschedulingState) -> Action:
        free, places, action = state.free_gpus, state.free_domains, []
        for job in state.waiting:
            count = problem.application(job).fastest.gpu_count
            if count <= free and places:
                action.append((job, count))
                free, places = free - count, places - 1
        return action

    return replay(problem, choose, limits)
