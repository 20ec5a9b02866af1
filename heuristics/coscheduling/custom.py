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
from typing import Any

import numpy as np

from optgap.heuristics.coscheduling.engine import State, replay
from optgap.heuristics.custom import Own, listed
from optgap.models.coscheduling import CoschedulingProblem
from optgap.models.errors import NoQuote
from optgap.models.limits import Limits
from optgap.models.result import Outcome
from optgap.models.times import shown


def run(
    problem: CoschedulingProblem,
    *,
    limits: Limits,
    seed: int,
    policy: Any,
    policy_params: Mapping[str, Any] | None = None,
) -> Outcome:
    """Run a policy from outside the package.

    Parameters
    ----------
    policy: a class that is made with `policy_params` and has ``place(state)``; or a function
        ``place(state)``, which gets `policy_params` by keyword.

    Raises
    ------
    InputError: naming the policy, the time and what was wrong, for an answer that is no list
        of pairs or does not fit, for one that starts nothing on an empty node, and for a
        policy that raises.
    """
    own = Own(policy, policy_params, "place(state)")

    def choose(state: State) -> list[tuple[int, int]]:
        where = f"at {shown(state.time_s)} s"
        answer = own.ask(where, "(job, gpu_count) pairs", state, read=listed)
        if not answer and not state.running:
            raise own.wrong(where, NoQuote("nothing"), "a job to start, as none runs")
        return _checked(answer, state, own, where)

    return replay(problem, choose, limits)


def _checked(answer: list[Any], state: State, own: Own, where: str) -> list[tuple[int, int]]:
    """The pairs, once each is known to fit beside those before it."""
    action: list[tuple[int, int]] = []
    free = state.free_gpus
    for pair in answer:
        whole = isinstance(pair, (tuple, list)) and len(pair) == 2
        if not whole or not all(isinstance(x, (int, np.integer)) for x in pair):
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
