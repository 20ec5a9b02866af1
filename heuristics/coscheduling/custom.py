"""A policy of your own, run through the same event loop as the built-in ones.

A policy is a class with a method ``place(state)``, or just such a function. It returns the jobs
to start now, as (job, GPU count) pairs:

>>> def shortest_alone(state):
...     "The shortest job, on its fastest GPU count, when the node is empty."
...     if state.running:
...         return []
...     fastest = {job: state.problem.application(job).fastest for job in state.waiting}
...     job = min(fastest, key=lambda job: fastest[job].runtime_s)
...     return [(job, fastest[job].gpu_count)]

>>> from optgap.models.limits import Limits
>>> from optgap.models.coscheduling.presets import synthetic
>>> problem = synthetic(seed=1)
>>> outcome = run(problem, limits=Limits(), seed=0, policy=shortest_alone)
>>> problem.check(outcome.solution)
[]
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from optgap.heuristics.coscheduling.engine import CoschedulingState, replay
from optgap.heuristics.custom import Own, by_clock, whole
from optgap.models.coscheduling import CoschedulingProblem
from optgap.models.errors import NoQuote
from optgap.models.limits import Limits
from optgap.models.result import Outcome
from optgap.models.times import shown as in_words


def run(
    problem: CoschedulingProblem,
    *,
    limits: Limits,
    seed: int,
    policy: Any,
    policy_params: Mapping[str, Any] | None = None,
    shown: CoschedulingProblem | None = None,
) -> Outcome:
    """Run a policy from outside the package.

    Parameters
    ----------
    policy: a class that is made with `policy_params` and has ``place(state)``; or a function
        ``place(state)``, which gets `policy_params` by keyword.
    shown: the problem by its own clock, which the policy sees; `problem` without it.

    Raises
    ------
    InputError: naming the policy, the time and what was wrong, for an answer that is no list
        of pairs or does not fit, for one that starts nothing on an empty node, and for a
        policy that raises.
    """
    own = Own(policy, policy_params, "place(state)")
    order = sorted(range(len(problem)), key=lambda job: (problem.release_s(job), job))
    number = {job: k for k, job in enumerate(order)}
    seen, late_s = by_clock(problem, shown)

    def so_far(state: CoschedulingState) -> CoschedulingState:
        """Return the state with the jobs that have arrived, numbered in order of arrival."""
        if not seen.releases:
            return state
        came = [job for job in order if problem.release_s(job) <= state.time_s]
        known = replace(
            seen,
            jobs=tuple(seen.jobs[job] for job in came),
            releases=tuple(seen.releases[job] for job in came),
        )
        waiting = tuple(number[job] for job in state.waiting)
        running = tuple(number[job] for job in state.running)
        started = tuple((start + late_s, count) for start, count in state.started)
        state = replace(state, time_s=state.time_s + late_s, started=started)
        return replace(state, problem=known, waiting=waiting, running=running)

    def choose(now: CoschedulingState) -> list[tuple[int, int]]:
        state = so_far(now)
        where = f"at {in_words(state.time_s)} s"
        answer = own.ask_for_list(where, "(job, gpu_count) pairs", state)
        if not answer and not state.running:
            raise own.wrong(where, NoQuote("nothing"), "a job to start, as none runs")
        return [(order[job], count) for job, count in _checked(answer, state, own, where)]

    return replay(problem, choose, limits)


def _checked(
    answer: list[Any], state: CoschedulingState, own: Own, where: str
) -> list[tuple[int, int]]:
    """Return the pairs after a check that each fits beside those before it."""
    action: list[tuple[int, int]] = []
    free = state.free_gpus
    for pair in answer:
        two = isinstance(pair, (tuple, list)) and len(pair) == 2
        if not two or not all(map(whole, pair)):
            raise own.wrong(where, pair, "(job, gpu_count) pairs")
        job, count = int(pair[0]), int(pair[1])
        if job not in state.waiting or job in (chosen for chosen, _ in action):
            raise own.wrong(where, job, "a job that waits, once")
        if state.problem.application(job).mode(count) is None:
            counts = ", ".join(str(m.gpu_count) for m in state.problem.application(job).modes)
            raise own.wrong(f"{where}, job {job}", count, f"one of {counts} GPUs")
        if count > free or len(action) == state.free_domains:
            found = NoQuote(f"{count} GPUs with {free} free, job {len(action) + 1} to start")
            expected = f"at most {free} GPUs and {state.free_domains} jobs"
            raise own.wrong(f"{where}, job {job}", found, expected)
        free -= count
        action.append((job, count))
    return action
