"""Policy that solves its window exactly whenever an unplanned job enters the window.

A plan for the same jobs stays optimal as time passes, so the policy replans only if a job enters
the window. Unlike ``ecosched`` the policy knows run times; it does not know jobs outside the window
or jobs that have not arrived.
"""

from __future__ import annotations

import dataclasses
from typing import Any

from optgap.heuristics.coscheduling.engine import Action, CoschedulingState, replay
from optgap.heuristics.coscheduling.parameters import ExactWindowParams
from optgap.models.coscheduling import CoschedulingProblem
from optgap.models.coscheduling.remaining import remaining
from optgap.models.errors import InputError
from optgap.models.limits import Limits
from optgap.models.result import Outcome
from optgap.models.times import slack_s
from optgap.solvers.coscheduling.oracle import best_schedule

PLAN = 10.0
"""Units of work for one plan, about a second of a core each."""


def exact_window(
    problem: CoschedulingProblem, *, limits: Limits, seed: int, **given: Any
) -> Outcome:
    """Solve the window exactly at each event; `given` is as in `ExactWindowParams`.

    Raises
    ------
    InputError: for a parameter out of range.
    """
    window = ExactWindowParams(**given).window
    if window < 0:
        raise InputError("exact-window", "window", window, "a number of jobs, or 0 for all")
    planner = _Planner(problem, limits, seed)

    def choose(state: CoschedulingState) -> Action:
        jobs = state.waiting[:window] if window else state.waiting
        return planner.due(jobs, state)

    outcome = replay(problem, choose, limits)
    info = {**outcome.info, "plans": planner.plans, "plans_not_proven": planner.unproven}
    return dataclasses.replace(outcome, info=info)


class _Planner:
    """Current plan: the start and GPU count of each job of the window."""

    def __init__(self, problem: CoschedulingProblem, limits: Limits, seed: int) -> None:
        self.problem, self.limits, self.seed = problem, limits, seed
        self.plan: dict[int, tuple[float, int]] = {}
        self.plans = self.unproven = 0

    def due(self, jobs: tuple[int, ...], state: CoschedulingState) -> list[tuple[int, int]]:
        """Return the jobs and GPU counts that the plan starts now."""
        if set(jobs) != set(self.plan):
            self._make(jobs, state)
        now = state.time_s + 2 * slack_s(state.time_s)
        free, places, action = state.free_gpus, state.free_domains, []
        for job, (start, count) in sorted(self.plan.items(), key=lambda item: item[1]):
            if start <= now and count <= free and places:
                action.append((job, count))
                free, places = free - count, places - 1
        for job, _ in action:
            del self.plan[job]
        return action

    def _make(self, jobs: tuple[int, ...], state: CoschedulingState) -> None:
        limits = self.limits.within(PLAN * self.limits.effort)
        begun = zip(state.running, state.started, strict=True)
        running = [(job, count, start) for job, (start, count) in begun]
        rest = remaining(self.problem, jobs, running, state.time_s)
        first = range(len(state.running))
        found = best_schedule(rest, limits, self.seed, first=first)
        self.plans += 1
        self.unproven += not found.proven
        self.plan = {
            jobs[k - len(state.running)]: (state.time_s + start, count)
            for k, count, start in found.starts
            if k >= len(state.running)
        }
