"""The best score of HPS or the adaptive rule among the waiting jobs, without scoring them all.

Within one GPU count a score falls with the run time and, but for HPS's step at the threshold,
grows with the wait. The jobs stand in order of arrival under a tree of least run times, so a part
of the tree whose shortest job with its longest wait would not be good enough is left out whole.
"""

from __future__ import annotations

import numpy as np

from optgap.heuristics.queueing.adaptive import Scale, adaptive_scale, adaptive_score
from optgap.heuristics.queueing.cluster import head, shadow, slack
from optgap.heuristics.queueing.hps import hps_score, most_aged
from optgap.heuristics.queueing.rule import ADAPTIVE, HPS, INF
from optgap.heuristics.queueing.tables import BY_ARRIVAL, NOW, Run
from optgap.heuristics.queueing.trees import DEPTH
from optgap.models.compiled import inner
from optgap.models.queueing.kernels import fits


@inner
def best_scored(run: Run, now: float) -> int:
    """The job with the highest score; with a reservation, only those that respect it."""
    rule, jobs, classes = run.rule, run.jobs, run.classes
    longest = INF
    oldest = head(run)
    if now - jobs[oldest]["arrival"] > rule.reserve + slack(now):
        n = jobs[oldest]["gpus"]
        if fits(run.free[NOW], run.level[NOW], n, run.g):
            return oldest
        longest = shadow(run, n, now) - now + slack(now)
    scale = Scale(0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
    if rule.kind == ADAPTIVE:
        scale = adaptive_scale(run)
    best, job = -INF, -1
    for c in range(len(classes)):
        if classes[c]["fit"] != 0:
            best, job = _best_in_class(run, scale, c, now, longest, best, job)
    return job


@inner
def _best_in_class(
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
        if rule.kind == HPS:
            age = most_aged(rule, wait, now - jobs[newest]["arrival"])
            top = hps_score(n, shortest, age)
        else:
            top = adaptive_score(scale, n, shortest, wait)
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
