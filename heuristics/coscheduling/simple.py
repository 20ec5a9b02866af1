"""Marble and the two baselines that run one job at a time."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

from optgap.models.coscheduling import CoschedulingProblem, Mode
from optgap.models.coscheduling.events import Action, State, replay
from optgap.models.errors import InputError, NoQuote
from optgap.models.limits import Limits
from optgap.models.result import Outcome


def marble(
    problem: CoschedulingProblem,
    *,
    limits: Limits,
    seed: int,
    strict: bool = False,
    numa_limit: bool = True,
) -> Outcome:
    """Marble (Han et al., CCGRID 2020), as the paper uses it.

    Every job on its fastest GPU count, the smaller of equals; at each event the queue is
    scanned in order and what fits is started.

    Parameters
    ----------
    strict: stop the scan at the first job that does not fit.
    numa_limit: whether at most K jobs run at a time; without, GPUs alone decide.

    Raises
    ------
    InputError: when the schedule without the limit breaks the problem's K: only a problem with
        K = M can take it.
    """
    free_of_limit = problem if numa_limit else dataclasses.replace(problem, numa=problem.gpus)

    def choose(state: State) -> Action:
        free, places, action = state.free_gpus, state.free_domains, []
        for job in state.waiting:
            count = problem.application(job).fastest.gpu_count
            if count <= free and places:
                action.append((job, count))
                free, places = free - count, places - 1
            elif strict or not places:
                break
        return action

    outcome = replay(free_of_limit, choose, limits)
    if not numa_limit and outcome.solution is not None and problem.check(outcome.solution):
        found = NoQuote(f"more than {problem.numa} jobs at a time")
        expected = f"a problem made with numa={problem.gpus}, which limits nothing"
        raise InputError("marble", "numa_limit=False", found, expected)
    return outcome


def sequential_max_gpu(problem: CoschedulingProblem, *, limits: Limits, seed: int) -> Outcome:
    """One job at a time in queue order, each on the most GPUs it has a mode for."""
    return _sequential(problem, limits, lambda modes: modes[-1])


def sequential_optimal_gpu(problem: CoschedulingProblem, *, limits: Limits, seed: int) -> Outcome:
    """One job at a time in queue order, each on its fastest GPU count, the smaller of equals."""
    return _sequential(
        problem, limits, lambda modes: min(modes, key=lambda m: (m.runtime_s, m.gpu_count))
    )


def _sequential(
    problem: CoschedulingProblem, limits: Limits, pick: Callable[[tuple[Mode, ...]], Mode]
) -> Outcome:
    def choose(state: State) -> Action:
        if state.running:
            return []
        job = state.waiting[0]
        return [(job, pick(problem.application(job).modes).gpu_count)]

    return replay(problem, choose, limits)
