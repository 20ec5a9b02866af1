"""From scores of awake GPUs to the GPUs of a task, the same way for every policy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import numpy as np

from optgap.heuristics.consolidation.clocks import adaptation, highest
from optgap.heuristics.consolidation.engine import Choice, ClockRule, Decide, Engine, State
from optgap.models.compiled import UP_TO, interpreted
from optgap.models.consolidation import ConsolidationProblem
from optgap.models.consolidation.tasks import FloatArray
from optgap.models.limits import Limits
from optgap.models.result import Outcome

Score = Callable[[State, int, np.ndarray], FloatArray]
"""(state, task, numbers of awake GPUs with room) → score each, infinite where not admissible."""


class Running(Protocol):
    """What can be set of every policy that runs at f_max, or by Algorithm 4."""

    @property
    def strict_queue(self) -> bool: ...
    @property
    def dfs(self) -> bool: ...
    @property
    def delta_mhz(self) -> float: ...


def run(
    problem: ConsolidationProblem,
    decide: Decide,
    limits: Limits,
    options: Running,
) -> Outcome:
    """Run a policy at f_max, or with the clocks of Algorithm 4.

    Raises
    ------
    InputError: for a step of the clock that is none.
    """
    adapt = adaptation(options.delta_mhz, instant=True, contention_aware=False)
    clocks = adapt if options.dfs else highest
    return run_at(problem, decide, limits, clocks, options.strict_queue)


def run_at(
    problem: ConsolidationProblem, decide: Decide, limits: Limits, clocks: ClockRule, strict: bool
) -> Outcome:
    """Run a policy with a rule of its own for clocks."""
    with interpreted(len(problem) * len(problem.places) <= UP_TO.consolidation_cells):
        return Engine(problem, decide, clocks, limits, strict=strict).run()


def awake_first(score: Score) -> Decide:
    """The awake GPUs of least score; sleeping ones only where too few qualify.

    Of sleeping GPUs, those in an awake server come first, then those in the first sleeping
    server. Several GPUs are taken in one server where the rules say so: in that with the fewest
    newly opened, then the least sum of scores.
    """

    def decide(state: State, task: int) -> Choice:
        room = state.fits(task)
        scores = np.full(len(room), np.inf)
        awake = np.flatnonzero(room & (state.count > 0))
        if awake.size:
            scores[awake] = score(state, task, awake)
        return pick(state, task, scores, room & (state.count == 0))

    return decide


def pick(state: State, task: int, scores: FloatArray, asleep: np.ndarray) -> Choice:
    """v GPUs by scores of the awake ones, filled up with sleeping ones."""
    v = state.problem.tasks[task].gpus
    if v == 1:
        best = int(np.argmin(scores))
        if scores[best] < np.inf:
            return (best,)
        return _open(state, asleep)
    if state.problem.rules.gang == "free":
        return _spread(state, scores, asleep, v)
    found: tuple[tuple[float, float, int], tuple[int, ...]] | None = None
    untouched = False
    for i in range(len(state.problem.servers)):
        if not state.awake[i] and untouched and found is not None:
            continue  # a sleeping server like one that was looked at, or worse
        lo, hi = int(state.first_gpu[i]), int(state.first_gpu[i + 1])
        own = scores[lo:hi]
        order = np.argsort(own, kind="stable")
        chosen = [lo + int(j) for j in order[:v] if own[j] < np.inf]
        opened = v - len(chosen)
        sleeping = [g for g in range(lo, hi) if asleep[g]][:opened]
        if len(sleeping) < opened:
            continue
        untouched = untouched or not state.awake[i]
        key = (float(opened), float(scores[chosen].sum()), i)
        # a server that is awake is woken no more: fewer servers among equals
        key = (key[0] + (0.5 if not state.awake[i] else 0.0), key[1], i)
        if found is None or key < found[0]:
            found = (key, (*chosen, *sleeping))
    return None if found is None else found[1]


def _open(state: State, asleep: np.ndarray) -> Choice:
    """A sleeping GPU: in an awake server if there is one."""
    if not asleep.any():
        return None
    near = asleep & (state.awake[state.problem.gpu_server] > 0)
    return (int(np.argmax(near if near.any() else asleep)),)


def _spread(state: State, scores: FloatArray, asleep: np.ndarray, v: int) -> Choice:
    order = np.argsort(scores, kind="stable")[:v]
    chosen = [int(g) for g in order if scores[g] < np.inf]
    near = asleep & (state.awake[state.problem.gpu_server] > 0)
    opened = [*np.flatnonzero(near).tolist(), *np.flatnonzero(asleep & ~near).tolist()]
    chosen += opened[: v - len(chosen)]
    return tuple(chosen) if len(chosen) == v else None


def noisy_means(problem: ConsolidationProblem, noise: float, seed: int) -> FloatArray:
    """(L,) mean utilisation in %, with an additive Gaussian error, clipped to 0 to 100."""
    means = problem.mean_micro / 1e6
    if not noise:
        return means
    errors = np.random.default_rng(seed).normal(0, noise, len(means))
    return np.clip(means + errors, 0, 100)
