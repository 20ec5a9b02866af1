"""Choice of a task's GPUs by scores of active ones: CATS, HotCloud, First and one task per GPU."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from optgap.heuristics.consolidation.state import Choice, ConsolidationState, Decide
from optgap.models.consolidation.tasks import FloatArray

Score = Callable[[ConsolidationState, int, np.ndarray], FloatArray]
"""Function of state, task and active GPUs with room that scores each; infinite forbids a GPU."""


def awake_first(score: Score) -> Decide:
    """Return a rule: the active GPUs of least score, and GPUs asleep only if too few qualify.

    Among GPUs asleep, those in an active server come first, then those in the first server
    asleep. If the problem asks for one server, the rule takes the server with the fewest newly
    opened GPUs, then the least sum of scores.
    """

    def decide(state: ConsolidationState, task: int) -> Choice:
        room = state.fits(task)
        scores = np.full(len(room), np.inf)
        awake = np.flatnonzero(room & (state.count > 0))
        if awake.size:
            scores[awake] = score(state, task, awake)
        return pick(state, task, scores, room & (state.count == 0))

    return decide


def pick(state: ConsolidationState, task: int, scores: FloatArray, asleep: np.ndarray) -> Choice:
    """Choose v GPUs by scores of the active ones, and add GPUs asleep if too few qualify."""
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


def _open(state: ConsolidationState, asleep: np.ndarray) -> Choice:
    """Choose a GPU asleep, in an active server if there is one."""
    if not asleep.any():
        return None
    near = asleep & (state.awake[state.problem.gpu_server] > 0)
    return (int(np.argmax(near if near.any() else asleep)),)


def _spread(state: ConsolidationState, scores: FloatArray, asleep: np.ndarray, v: int) -> Choice:
    order = np.argsort(scores, kind="stable")[:v]
    chosen = [int(g) for g in order if scores[g] < np.inf]
    near = asleep & (state.awake[state.problem.gpu_server] > 0)
    opened = [*np.flatnonzero(near).tolist(), *np.flatnonzero(asleep & ~near).tolist()]
    chosen += opened[: v - len(chosen)]
    return tuple(chosen) if len(chosen) == v else None
