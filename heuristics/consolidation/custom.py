"""A policy of your own, run through the same event loop as the built-in ones.

A policy is a class with a method ``place(task, state)``, or just such a function. It gets the
number of the task and returns the GPUs it shall run on, numbered through the cluster, or None to
let it wait:

>>> import numpy as np
>>> def roomiest(task, state):
...     "Awake GPUs with the most memory left, sleeping ones where there are too few."
...     room = state.fits(task)
...     order = np.lexsort((-state.free_bytes, state.count == 0))
...     chosen = [int(g) for g in order if room[g]]
...     server = {}
...     for g in chosen:
...         own = server.setdefault(int(state.problem.gpu_server[g]), [])
...         own.append(g)
...         if len(own) == state.problem.tasks[task].gpus:
...             return own

>>> from optgap.models.limits import Limits
>>> from optgap.models.consolidation.presets import mixed
>>> problem = mixed(seed=1)
>>> outcome = run(problem, limits=Limits(), seed=0, policy=roomiest)
>>> problem.check(outcome.solution)
[]
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from dataclasses import replace
from typing import Any

import numpy as np

from optgap.heuristics.consolidation.clocks import highest, lowest
from optgap.heuristics.consolidation.engine import Engine
from optgap.heuristics.consolidation.state import Choice, ConsolidationState
from optgap.heuristics.custom import Own, by_clock, whole
from optgap.models.consolidation import ConsolidationProblem
from optgap.models.limits import Limits
from optgap.models.result import Outcome


class View:
    """Cluster, as a policy sees it, read-only, with the tasks that have arrived.

    The view has ``time_s`` and, by GPU, ``free_bytes``, ``mean_micro``, ``count`` and
    ``clock_mhz``; ``awake`` GPUs by server; and ``fits(task)``, ``residents(gpu)``,
    ``gpus_of(task)``, ``progress_of(task)`` and ``util_now()``, as `ConsolidationState` has them.
    """

    def __init__(self, problem: ConsolidationProblem, late_s: float) -> None:
        self._whole, self._late_s = deepcopy(problem), late_s
        self._state: ConsolidationState | None = None
        self._shown = replace(self._whole, tasks=())

    @property
    def problem(self) -> ConsolidationProblem:
        """Copy of the problem, with the tasks that have arrived."""
        return self._shown

    def __getattr__(self, name: str) -> Any:
        if name not in SEEN:
            raise AttributeError(f"a policy sees problem, {', '.join(SEEN)}; not {name}")
        value = getattr(self._state, name)
        if name == "time_s":
            return value + self._late_s
        if isinstance(value, np.ndarray):
            value = value.view()
            value.flags.writeable = False
        return value

    def _now(self, state: ConsolidationState, task: int) -> View:
        self._state = state
        if task >= len(self._shown.tasks):
            self._shown = replace(self._whole, tasks=self._whole.tasks[: task + 1])
        return self


SEEN = ("time_s", "free_bytes", "mean_micro", "count", "clock_mhz", "awake", "fits", "residents",
        "gpus_of", "progress_of", "util_now")  # fmt: skip


def run(
    problem: ConsolidationProblem,
    *,
    limits: Limits,
    seed: int,
    policy: Any,
    policy_params: Mapping[str, Any] | None = None,
    shown: ConsolidationProblem | None = None,
) -> Outcome:
    """Run a policy from outside the package.

    GPUs run at f_max, or at the lowest clock that κ allows where the policy has an attribute
    ``clocks`` that is ``"lowest"``.

    Parameters
    ----------
    policy: a class that is made with `policy_params` and has ``place(task, state)``; or a
        function ``place(task, state)``, which gets `policy_params` by keyword.
    shown: the problem by its own clock, which the policy sees; `problem` without it.

    Raises
    ------
    InputError: naming the policy, the task and what was wrong, for an answer that is no GPUs of
        the cluster or does not fit, and for a policy that raises.
    """
    own = Own(policy, policy_params, "place(task, state)")
    view = View(*by_clock(problem, shown))

    def decide(state: ConsolidationState, task: int) -> Choice:
        where = f"task {problem.tasks[task].name}"
        chosen = own.ask(where, "GPU numbers, or None", task, view._now(state, task), read=_gpus)
        return None if chosen is None else _checked(chosen, state, task, own=own, where=where)

    rule = lowest if getattr(own.policy, "clocks", "") == "lowest" else highest
    return Engine(problem, decide, rule, limits).run()


def _gpus(answer: Any) -> list[Any] | None:
    if answer is None:
        return None
    return [answer] if np.isscalar(answer) else list(answer)


def _checked(
    answer: list[Any], state: ConsolidationState, task: int, *, own: Own, where: str
) -> Choice:
    """Return the chosen GPUs after checks that these exist, suffice and have room."""
    problem = state.problem
    total = len(problem.places)
    if not all(map(whole, answer)) or not all(0 <= g < total for g in answer):
        raise own.wrong(where, answer, f"GPU numbers from 0 to {total - 1}")
    gpus = sorted({int(g) for g in answer})
    if len(gpus) != len(answer) or len(gpus) != problem.tasks[task].gpus:
        raise own.wrong(where, answer, f"{problem.tasks[task].gpus} different GPUs")
    if problem.rules.gang == "server" and len({int(problem.gpu_server[g]) for g in gpus}) > 1:
        raise own.wrong(where, answer, "GPUs of one server")
    room = state.fits(task)
    full = [g for g in gpus if not room[g]]
    if full:
        raise own.wrong(where, full[0], "a GPU with room for the task")
    return tuple(gpus)
