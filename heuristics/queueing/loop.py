"""The compiled event loop: arrivals, ends and departures, and what each policy then starts."""

from __future__ import annotations

from optgap.heuristics.queueing.cluster import begin, begin_on, enter, finish, leave, slack
from optgap.heuristics.queueing.select import select
from optgap.heuristics.queueing.tables import (
    ARRIVED,
    EVENTS,
    INF,
    LEFT,
    NOW,
    PBS,
    QUEUE,
    ROUNDS,
    RUNNING,
    SBS,
    TRUE,
    Run,
)
from optgap.models.compiled import compiled, inner
from optgap.models.queueing.kernels import node_with, tightest


@inner
def next_event(run: Run) -> float:
    """When something happens next, s; infinite for never again."""
    jobs, count, time = run.jobs, run.tally, INF
    if count[ARRIVED] < len(jobs):
        time = jobs[count[ARRIVED]]["arrival"]
    if count[RUNNING] > 0:
        time = min(time, run.ends[TRUE][count[RUNNING] - 1])
    while count[LEFT] < len(run.leavers):
        j = run.leavers[count[LEFT]]
        if jobs[j]["waiting"] != 0 or j >= count[ARRIVED]:
            return min(time, float(jobs[j]["leaves"]))
        count[LEFT] += 1
    return time


@inner
def happen(run: Run, time: float) -> float:
    """Ends, arrivals and departures at the same time, in this order; when the last of them is."""
    jobs, count = run.jobs, run.tally
    count[EVENTS] += 1
    now, until = time, time + slack(time)
    while count[RUNNING] > 0 and run.ends[TRUE][count[RUNNING] - 1] <= until:
        now = max(now, run.ends[TRUE][count[RUNNING] - 1])
        finish(run)
    while count[ARRIVED] < len(jobs) and jobs[count[ARRIVED]]["arrival"] <= until:
        now = max(now, jobs[count[ARRIVED]]["arrival"])
        count[ARRIVED] += 1
        enter(run, count[ARRIVED] - 1)
    while count[LEFT] < len(run.leavers) and jobs[run.leavers[count[LEFT]]]["leaves"] <= until:
        j = run.leavers[count[LEFT]]
        if jobs[j]["waiting"] != 0:
            now = max(now, jobs[j]["leaves"])
            leave(run, j)
        count[LEFT] += 1
    return now


@compiled
def advance(run: Run, events: int) -> bool:
    """Work through so many events; whether there may be more."""
    jobs = run.jobs
    for _ in range(events):
        time = next_event(run)
        if time == INF:
            return False
        now = happen(run, time)
        size = select(run, now)
        while size > 0:
            run.tally[ROUNDS] += 1
            if size == 2 and run.rule.kind == PBS:
                a, b = run.picks[0], run.picks[1]
                wanted = jobs[a]["gpus"] + jobs[b]["gpus"]
                f = tightest(run.free[NOW], run.level[NOW], wanted, run.g)
                node = node_with(run.free[NOW], f)
                begin_on(run, a, node, now)
                begin_on(run, b, node, now)
            elif run.rule.kind == SBS:
                _begin_batch(run, size, now)
            else:
                begin(run, run.picks[0], now)
            if run.tally[QUEUE] == 0:
                break
            size = select(run, now)
    return True


@inner
def _begin_batch(run: Run, size: int, now: float) -> None:
    """Start a batch, the largest job first."""
    picks, jobs = run.picks, run.jobs
    for i in range(1, size):  # largest first, in order of the window among equals
        for k in range(i, 0, -1):
            if jobs[picks[k]]["gpus"] > jobs[picks[k - 1]]["gpus"]:
                picks[k], picks[k - 1] = picks[k - 1], picks[k]
    for i in range(size):
        begin(run, picks[i], now)
