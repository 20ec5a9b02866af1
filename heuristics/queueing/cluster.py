"""Jobs on and off the queue and the cluster, and when a job could start at the earliest."""

from __future__ import annotations

from optgap.heuristics.queueing.rule import INF, SBS
from optgap.heuristics.queueing.sbs import drop_out, line_up
from optgap.heuristics.queueing.tables import (
    AHEAD,
    BY_ARRIVAL,
    BY_EFFICIENCY,
    BY_TIME,
    HEAD,
    LONGEST,
    NOW,
    PLANNED,
    QUEUE,
    RUNNING,
    TRUE,
    Run,
)
from optgap.heuristics.queueing.trees import put
from optgap.models.compiled import inner
from optgap.models.queueing.arrays import FloatArray, IntArray
from optgap.models.queueing.kernels import fits, place, take
from optgap.models.times import slack_s

slack = inner(slack_s)


@inner
def enter(run: Run, j: int) -> None:
    """Job j joins the queue."""
    jobs, classes = run.jobs, run.classes
    c = jobs[j]["cls"]
    jobs[j]["waiting"] = 1
    classes[c]["waiting"] += 1
    run.tally[QUEUE] += 1
    run.tally[LONGEST] = max(run.tally[LONGEST], run.tally[QUEUE])
    put(run, BY_ARRIVAL, j, jobs[j]["estimate"])
    put(run, BY_TIME, j, -jobs[j]["iterations"] / (jobs[j]["gpus"] * jobs[j]["estimate"]))
    put(run, BY_EFFICIENCY, j, 0.0)
    if run.rule.kind == SBS:
        line_up(run, jobs[j]["family"])


@inner
def leave(run: Run, j: int) -> None:
    """Job j leaves the queue, to start or for good."""
    jobs, classes = run.jobs, run.classes
    c = jobs[j]["cls"]
    jobs[j]["waiting"] = 0
    classes[c]["waiting"] -= 1
    run.tally[QUEUE] -= 1
    put(run, BY_ARRIVAL, j, INF)
    put(run, BY_TIME, j, INF)
    put(run, BY_EFFICIENCY, j, INF)
    if run.rule.kind == SBS:
        drop_out(run, j)


@inner
def head(run: Run) -> int:
    """The job that has waited longest; there must be one."""
    jobs = run.jobs
    while jobs[run.tally[HEAD]]["waiting"] == 0:
        run.tally[HEAD] += 1
    oldest: int = run.tally[HEAD]
    return oldest


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
def insert(keys: FloatArray, jobs: IntArray, size: int, key: float, j: int) -> None:
    """Put a job into a list by descending key, which has `size` entries."""
    low, high = 0, size
    while low < high:
        middle = (low + high) // 2
        if keys[middle] > key:
            low = middle + 1
        else:
            high = middle
    for k in range(size, low, -1):
        keys[k] = keys[k - 1]
        jobs[k] = jobs[k - 1]
    keys[low] = key
    jobs[low] = j


@inner
def book(run: Run, j: int, now: float) -> None:
    """Note that job j, whose nodes are written down, runs from now on."""
    run.jobs[j]["start"] = now
    size = run.tally[RUNNING]
    insert(run.ends[TRUE], run.running[TRUE], size, now + run.jobs[j]["duration"], j)
    insert(run.ends[PLANNED], run.running[PLANNED], size, now + run.jobs[j]["estimate"], j)
    run.tally[RUNNING] = size + 1


@inner
def begin(run: Run, j: int, now: float) -> None:
    """Start job j, which fits."""
    jobs = run.jobs
    leave(run, j)
    at = jobs[j]["held_at"]
    place(run.free[NOW], run.level[NOW], jobs[j]["gpus"], run.g, run.held[0], run.held[1], at)
    book(run, j, now)


@inner
def begin_on(run: Run, j: int, node: int, now: float) -> None:
    """Start job j on one node that has room for it."""
    jobs = run.jobs
    leave(run, j)
    take(run.free[NOW], run.level[NOW], node, jobs[j]["gpus"])
    run.held[0][jobs[j]["held_at"]] = node
    run.held[1][jobs[j]["held_at"]] = jobs[j]["gpus"]
    book(run, j, now)


@inner
def release(run: Run, j: int, free: IntArray, level: IntArray) -> None:
    """Give job j's GPUs back, on the cluster itself or on a copy."""
    at = run.jobs[j]["held_at"]
    for h in range(at, at + run.jobs[j]["nodes"]):
        take(free, level, run.held[0][h], -run.held[1][h])


@inner
def finish(run: Run) -> None:
    """End the running job that ends first."""
    last = run.tally[RUNNING] - 1
    j = run.running[TRUE][last]
    release(run, j, run.free[NOW], run.level[NOW])
    k = 0
    while run.running[PLANNED][k] != j:
        k += 1
    for i in range(k, last):
        run.ends[PLANNED][i] = run.ends[PLANNED][i + 1]
        run.running[PLANNED][i] = run.running[PLANNED][i + 1]
    run.tally[RUNNING] = last


@inner
def shadow(run: Run, n: int, now: float) -> float:
    """When n GPUs can be had at the earliest if nothing else starts, s.

    Leaves the free GPUs of that time in `ahead`. A job that should have ended by now is taken to
    end at once.
    """
    run.free[AHEAD][:] = run.free[NOW]
    run.level[AHEAD][:] = run.level[NOW]
    for k in range(run.tally[RUNNING] - 1, -1, -1):
        time: float = max(run.ends[PLANNED][k], now)
        release(run, run.running[PLANNED][k], run.free[AHEAD], run.level[AHEAD])
        last = k == 0 or max(run.ends[PLANNED][k - 1], now) > time + slack(time)
        if last and fits(run.free[AHEAD], run.level[AHEAD], n, run.g):
            return time
    return now


@inner
def harmless(run: Run, n: int, wanted: int) -> bool:
    """Whether, after `shadow`, a job of n GPUs placed now leaves room for `wanted` then."""
    g = run.g
    used = place(run.free[NOW], run.level[NOW], n, g, run.spare[0], run.spare[1], 0)
    for k in range(used):
        take(run.free[AHEAD], run.level[AHEAD], run.spare[0][k], run.spare[1][k])
    good = fits(run.free[AHEAD], run.level[AHEAD], wanted, g)
    for k in range(used):
        node, gpus = run.spare[0][k], run.spare[1][k]
        take(run.free[AHEAD], run.level[AHEAD], node, -gpus)
        take(run.free[NOW], run.level[NOW], node, -gpus)
    return good
