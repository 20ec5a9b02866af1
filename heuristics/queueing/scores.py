"""HPS and the adaptive rule: the best score among the waiting jobs, without scoring them all.

Within one GPU count a score falls with the run time and, but for HPS's step at the threshold,
grows with the wait. The jobs stand in order of arrival under a tree of least run times, so a part
of the tree whose shortest job with its longest wait would not be good enough is left out whole.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from optgap.heuristics.queueing.tables import BY_ARRIVAL, BY_TIME, HPS, INF, QUEUE, Rule, Run
from optgap.heuristics.queueing.trees import first_waiting, last_waiting
from optgap.models.compiled import inner
from optgap.models.times import TOLERANCE_S

DIGITS = 1e9
"""Scores are compared after rounding to 1e-9."""
DEPTH = 128


class Scale(NamedTuple):
    """What the adaptive rule's scores are relative to, now."""

    low_work: float
    high_work: float
    low_size: float
    high_size: float
    efficiency: float
    fairness: float
    resources: float


@inner
def rounded(score: float) -> float:
    """To 1e-9."""
    near: float = np.floor(score * DIGITS + 0.5)
    return near / DIGITS


@inner
def aging(rule: Rule, wait: float) -> float:
    """HPS's aging factor: as printed, or repaired to rise steadily."""
    if rule.fixed:
        share = (wait - rule.threshold) / (rule.full - rule.threshold)
        return 1 + (rule.boost - 1) * min(max(share, 0.0), 1.0)
    if wait > rule.threshold + TOLERANCE_S:
        return rule.boost * min(wait / rule.full, 1.0)
    return 1.0


@inner
def score(rule: Rule, scale: Scale, n: int, estimate: float, age: float, wait: float) -> float:
    """One job's score, rounded; `age` is HPS's aging factor."""
    if rule.kind == HPS:
        return rounded(age / (1 + estimate / 3600) / (1 + n / 4))
    work = 0.0
    if scale.high_work > scale.low_work:
        work = (estimate * n - scale.low_work) / (scale.high_work - scale.low_work)
    size = 0.0
    if scale.high_size > scale.low_size:
        size = (n - scale.low_size) / (scale.high_size - scale.low_size)
    fair = min(wait / 1800, 1.0)
    return rounded(
        scale.efficiency * (1 - work) + scale.fairness * fair + scale.resources * (1 - size)
    )


@inner
def best_in_class(
    run: Run, scale: Scale, c: int, now: float, longest: float, best: float, best_job: int
) -> tuple[float, int]:
    """The best of class c with estimates up to `longest`, or what was best before."""
    rule, jobs, cls = run.rule, run.jobs, run.classes[c]
    tree, order = run.tree[BY_ARRIVAL, cls["root"] :], run.order[BY_ARRIVAL, cls["first"] :]
    width, size, n = cls["width"], cls["size"], cls["gpus"]
    stack = np.empty(DEPTH, dtype=np.int64)
    spans = np.empty(DEPTH, dtype=np.int64)
    stack[0], spans[0], depth = 1, width, 1
    while depth > 0:
        depth -= 1
        k, span = stack[depth], spans[depth]
        shortest = tree[k]
        if shortest == INF or shortest > longest:
            continue
        left = k * span - width
        oldest = order[left]
        newest = order[min(left + span, size) - 1]
        wait = now - jobs[oldest]["arrival"]
        age = _most_aged(rule, wait, now - jobs[newest]["arrival"])
        top = score(rule, scale, n, shortest, age, wait)
        if top < best or (top == best and oldest > best_job):
            continue
        if span == 1:
            best, best_job = top, oldest
            continue
        stack[depth], spans[depth] = 2 * k + 1, span // 2
        stack[depth + 1], spans[depth + 1] = 2 * k, span // 2
        depth += 2
        if tree[2 * k + 1] < tree[2 * k]:  # the shorter jobs first
            stack[depth - 2], stack[depth - 1] = stack[depth - 1], stack[depth - 2]
    return best, best_job


@inner
def _most_aged(rule: Rule, longest: float, shortest: float) -> float:
    """The largest aging factor of waits between two."""
    most = max(aging(rule, longest), aging(rule, shortest))
    if shortest <= rule.threshold + TOLERANCE_S:
        most = max(most, 1.0)
    return most


@inner
def adaptive_scale(run: Run) -> Scale:
    """Least and most work and GPUs of the jobs that fit, and the weights for this queue."""
    from_work, to_work, from_size, to_size = INF, -INF, INF, -INF
    jobs, classes = run.jobs, run.classes
    for c in range(len(classes)):
        if classes[c]["fit"] == 0:
            continue
        n = classes[c]["gpus"]
        low, high = first_waiting(run, BY_TIME, c), last_waiting(run, BY_TIME, c)
        from_work = min(from_work, jobs[low]["estimate"] * n)
        to_work = max(to_work, jobs[high]["estimate"] * n)
        from_size, to_size = min(from_size, n), max(to_size, n)
    queue = run.tally[QUEUE]
    row = 0 if queue <= 10 else 3 if queue <= 50 else 6
    w = run.rule.weights
    return Scale(from_work, to_work, from_size, to_size, w[row], w[row + 1], w[row + 2])
