"""Which job, or which jobs together, start next: one function per rule."""

from __future__ import annotations

from optgap.heuristics.queueing.batches import best_batch
from optgap.heuristics.queueing.cluster import harmless, head, shadow, slack
from optgap.heuristics.queueing.pairs import ahead_of_all, best_pair
from optgap.heuristics.queueing.scores import Scale, adaptive_scale, best_in_class
from optgap.heuristics.queueing.tables import (
    ADAPTIVE,
    BY_ARRIVAL,
    BY_EFFICIENCY,
    BY_TIME,
    EASY,
    FIFO,
    HPS,
    INF,
    NOW,
    PBS,
    QUEUE,
    SBS,
    SHORTEST_GPU,
    SJF,
    Run,
)
from optgap.heuristics.queueing.trees import first_below, first_waiting
from optgap.models.compiled import inner
from optgap.models.queueing.kernels import fits


@inner
def look(run: Run, everyone: bool) -> bool:
    """Note in `fit` of which GPU counts jobs wait and fit (or just wait); whether there are any."""
    classes, found = run.classes, False
    for c in range(len(classes)):
        classes[c]["fit"] = 0
        if classes[c]["waiting"] > 0:
            n = classes[c]["gpus"]
            if everyone or fits(run.free[NOW], run.level[NOW], n, run.g):
                classes[c]["fit"] = 1
                found = True
    return found


@inner
def select(run: Run, now: float) -> int:
    """Leave the jobs to start now in `picks` and return how many; 0 for none."""
    kind = run.rule.kind
    if run.tally[QUEUE] == 0 or not look(run, False):
        return 0
    if kind == PBS:
        return _pbs(run)
    if kind == SBS:
        return _sbs(run)
    if kind == EASY:
        run.picks[0] = _easy(run, now)
    elif kind in (HPS, ADAPTIVE):
        run.picks[0] = _scored(run, now)
    else:
        if run.rule.strict:
            look(run, True)
        j = _static(run)
        free = fits(run.free[NOW], run.level[NOW], run.jobs[j]["gpus"], run.g)
        run.picks[0] = j if free else -1
    return 1 if run.picks[0] >= 0 else 0


@inner
def _static(run: Run) -> int:
    """The first job of a fixed order among the GPU counts noted in `fit`."""
    kind, jobs, classes = run.rule.kind, run.jobs, run.classes
    best, best_key = -1, INF
    for c in range(len(classes)):
        if classes[c]["fit"] == 0:
            continue
        j = first_waiting(run, BY_ARRIVAL if kind <= SJF else BY_TIME, c)
        key = 0.0
        if kind == SJF:
            key = float(classes[c]["gpus"])
        elif kind != FIFO:
            key = jobs[j]["estimate"] * (classes[c]["gpus"] if kind == SHORTEST_GPU else 1)
        if best < 0 or key < best_key or (key == best_key and j < best):
            best, best_key = j, key
    return best


@inner
def _scored(run: Run, now: float) -> int:
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
            best, job = best_in_class(run, scale, c, now, longest, best, job)
    return job


@inner
def _easy(run: Run, now: float) -> int:
    """The oldest job, or the next that does not delay it; -1 for none.

    A job does not delay it that ends, as estimated, by the time the oldest can start, or without
    whose GPUs the oldest can still be placed then.
    """
    jobs, classes = run.jobs, run.classes
    oldest = head(run)
    wanted = jobs[oldest]["gpus"]
    if fits(run.free[NOW], run.level[NOW], wanted, run.g):
        return oldest
    longest = shadow(run, wanted, now) - now + slack(now)
    best = -1
    for c in range(len(classes)):
        if classes[c]["fit"] == 0:
            continue
        limit = INF if harmless(run, classes[c]["gpus"], wanted) else longest
        j = first_below(run, BY_ARRIVAL, c, limit)
        if j >= 0 and (best < 0 or j < best):
            best = j
    return best


@inner
def _pbs(run: Run) -> int:
    """Rules 1 to 4 and the pairs of PBS."""
    rule, jobs, classes = run.rule, run.jobs, run.classes
    room = run.g
    while room > 0 and run.level[NOW][room] == 0:
        room -= 1
    if rule.pairs == 2 and best_pair(run, room):
        return 2
    j = ahead_of_all(run)
    if j < 0 and rule.pairs == 1 and best_pair(run, room):
        return 2
    if j < 0:
        j = _shortest(run, rule.small - 1)
    if j < 0:  # the smallest of those that are not long
        for c in range(len(classes)):
            if j < 0 and classes[c]["fit"] != 0:
                candidate = first_waiting(run, BY_TIME, c)
                if jobs[candidate]["estimate"] < rule.medium:
                    j = candidate
    if j < 0:
        j = _shortest(run, classes[-1]["gpus"])
    run.picks[0] = j
    return 1


@inner
def _shortest(run: Run, most: int) -> int:
    """The job of least run time among those of at most so many GPUs; -1 for none."""
    jobs, classes, best = run.jobs, run.classes, -1
    for c in range(len(classes)):
        if classes[c]["fit"] == 0 or classes[c]["gpus"] > most:
            continue
        j = first_waiting(run, BY_TIME, c)
        t = jobs[j]["estimate"]
        if best < 0 or t < jobs[best]["estimate"] or (t == jobs[best]["estimate"] and j < best):
            best = j
    return best


@inner
def _sbs(run: Run) -> int:
    """The best batch of SBS, or the job of best efficiency for its GPUs."""
    jobs, classes = run.jobs, run.classes
    free = 0
    for f in run.free[NOW]:
        free += f
    size = best_batch(run, free)
    if size > 0:
        return size if run.rule.whole else 1
    best, best_score = -1, -1.0
    for c in range(len(classes)):
        if classes[c]["fit"] == 0:
            continue
        j = first_waiting(run, BY_EFFICIENCY, c)
        score = jobs[j]["efficiency"] / (1 + classes[c]["gpus"] / 4)
        if score > best_score or (score == best_score and j < best):
            best, best_score = j, score
    run.picks[0] = best
    return 1
