"""Marble (Han et al., CCGRID 2020), as EcoSched's paper uses it.

Every job on its fastest GPU count, the smaller of equals; at each event the queue is scanned in
order and what fits is started. At most K jobs, one per NUMA domain, run at a time; without
`numa_limit`, GPUs alone decide.
"""

from __future__ import annotations

import dataclasses
from typing import Any

from optgap.heuristics.coscheduling.engine import Action, State, replay
from optgap.heuristics.coscheduling.parameters import MarbleParams
from optgap.models.coscheduling import CoschedulingProblem
from optgap.models.errors import InputError, NoQuote
from optgap.models.limits import Limits
from optgap.models.result import Outcome


def marble(problem: CoschedulingProblem, *, limits: Limits, seed: int, **given: Any) -> Outcome:
    """Marble; `given` as in `MarbleParams`.

    Raises
    ------
    InputError: when the schedule without the limit breaks the problem's K: only a problem with
        K = M can take it.
    """
    options = MarbleParams(**given)
    numa_limit = options.numa_limit
    free_of_limit = problem if numa_limit else dataclasses.replace(problem, numa=problem.gpus)

    def choose(state: State) -> Action:
        free, places, action = state.free_gpus, state.free_domains, []
        for job in state.waiting:
            count = problem.application(job).fastest.gpu_count
            if count <= free and places:
                action.append((job, count))
                free, places = free - count, places - 1
            elif options.strict or not places:
                break
        return action

    outcome = replay(free_of_limit, choose, limits)
    if not numa_limit and outcome.solution is not None and problem.check(outcome.solution):
        found = NoQuote(f"more than {problem.numa} jobs at a time")
        expected = f"a problem made with numa={problem.gpus}, which limits nothing"
        raise InputError("marble", "numa_limit=False", found, expected)
    return outcome
