"""PBS: the two most efficient jobs, and the best pair of jobs that fill a node together."""

from __future__ import annotations

import numpy as np

from optgap.heuristics.queueing.scores import DEPTH, rounded
from optgap.heuristics.queueing.tables import BY_EFFICIENCY, BY_TIME, INF, Run
from optgap.heuristics.queueing.trees import first_waiting, next_waiting
from optgap.models.compiled import inner


@inner
def ahead_of_all(run: Run) -> int:
    """Rule 1: the most efficient job that fits if it is (1 + τ) times the next; else -1."""
    jobs, classes = run.jobs, run.classes
    first, second = -1, -1
    for c in range(len(classes)):
        if classes[c]["fit"] == 0:
            continue
        j = first_waiting(run, BY_EFFICIENCY, c)
        at = next_waiting(run, BY_EFFICIENCY, c, run.place[BY_EFFICIENCY, j] + 1)
        after = run.order[BY_EFFICIENCY, classes[c]["first"] + at] if at >= 0 else -1
        for candidate in (j, after):
            if candidate < 0:
                continue
            if first < 0 or _more_efficient(run, candidate, first):
                first, second = candidate, first
            elif second < 0 or _more_efficient(run, candidate, second):
                second = candidate
    if second < 0:
        return first
    enough = (1 + run.rule.tau) * jobs[second]["efficiency"]
    return first if jobs[first]["efficiency"] >= enough else -1


@inner
def _more_efficient(run: Run, a: int, b: int) -> bool:
    one, other = run.jobs[a]["efficiency"], run.jobs[b]["efficiency"]
    return one > other or (one == other and a < b)


@inner
def best_pair(run: Run, room: int) -> bool:
    """Leave the best pair in `picks`; False when there is none.

    A pair's score is a weighted mean of its jobs' efficiencies, so pairs are looked for by their
    more efficient job, from the most efficient down, until that one is no better than a pair.

    Parameters
    ----------
    room: most GPUs free on one node.
    """
    jobs, classes = run.jobs, run.classes
    cap = min(run.rule.cap, room)
    at = np.zeros(len(classes), dtype=np.int64)
    best, first, second = -1.0, -1, -1
    while True:
        a = -1
        for c in range(len(classes)):
            if classes[c]["fit"] == 0 or classes[c]["gpus"] >= cap or at[c] < 0:
                continue
            at[c] = next_waiting(run, BY_EFFICIENCY, c, at[c])
            if at[c] >= 0:
                j = run.order[BY_EFFICIENCY, classes[c]["first"] + at[c]]
                if a < 0 or _more_efficient(run, j, a):
                    a = j
        if a < 0:
            break
        at[jobs[a]["cls"]] += 1
        top = jobs[a]["efficiency"]
        if top < best or (top == best and a > min(first, second)):
            break
        for c in range(len(classes)):
            if classes[c]["fit"] != 0 and classes[c]["gpus"] + jobs[a]["gpus"] <= cap:
                best, first, second = _partner(run, a, c, best, first, second)
    if first < 0:
        return False
    run.picks[0], run.picks[1] = min(first, second), max(first, second)
    return True


@inner
def _partner(
    run: Run, a: int, c: int, best: float, first: int, second: int
) -> tuple[float, int, int]:
    """The best pair of job a with one of class c, or what was best before."""
    jobs, cls, spread = run.jobs, run.classes[c], run.rule.spread
    ta, wa, ita = jobs[a]["estimate"], jobs[a]["gpus"] * jobs[a]["estimate"], jobs[a]["iterations"]
    tree, order = run.tree[BY_TIME, cls["root"] :], run.order[BY_TIME, cls["first"] :]
    width, size, n = cls["width"], cls["size"], cls["gpus"]
    stack = np.empty(DEPTH, dtype=np.int64)
    spans = np.empty(DEPTH, dtype=np.int64)
    stack[0], spans[0], depth = 1, width, 1
    while depth > 0:
        depth -= 1
        k, span = stack[depth], spans[depth]
        if tree[k] == INF:
            continue
        left = k * span - width
        low = jobs[order[left]]["estimate"]
        high = jobs[order[min(left + span, size) - 1]]["estimate"]
        # every |t - ta| would be more than the spread allows
        if (high < ta and ta - high > spread * ta) or (low > ta and low - ta > spread * low):
            continue
        e = -tree[k]
        weight = n * (low if e * wa <= ita else high)
        top = (ita + e * weight) / (wa + weight)
        if rounded(top * (1 + 1e-12)) < best:
            continue
        if span > 1:
            stack[depth], spans[depth] = 2 * k + 1, span // 2
            stack[depth + 1], spans[depth + 1] = 2 * k, span // 2
            depth += 2
            if tree[2 * k + 1] < tree[2 * k]:
                stack[depth - 2], stack[depth - 1] = stack[depth - 1], stack[depth - 2]
            continue
        b = order[left]
        tb = jobs[b]["estimate"]
        if b == a or abs(ta - tb) > spread * max(ta, tb):
            continue
        score = rounded((ita + jobs[b]["iterations"]) / (wa + n * tb))
        p, q = min(a, b), max(a, b)
        tie = score == best and (p < first or (p == first and q < second))
        if score > best or tie:
            best, first, second = score, p, q
    return best, first, second
