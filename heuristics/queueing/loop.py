"""The compiled event loop: arrivals, ends and departures, and what each policy then starts."""

from __future__ import annotations

from optgap.heuristics.queueing.cluster import begin, enter, finish, leave, look, slack
from optgap.heuristics.queueing.easy import oldest_or_harmless
from optgap.heuristics.queueing.fixed_order import next_in_order
from optgap.heuristics.queueing.pbs import begin_pair, pbs_picks
from optgap.heuristics.queueing.rule import ADAPTIVE, EASY, HPS, INF, PBS, SBS
from optgap.heuristics.queueing.sbs import largest_first, sbs_picks
from optgap.heuristics.queueing.scores import best_scored
from optgap.heuristics.queueing.tables import (
    ARRIVED,
    EVENTS,
    LEFT,
    QUEUE,
    ROUNDS,
    RUNNING,
    TRUE,
    Run,
)
from optgap.models.compiled import compiled, inner


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


@inner
def select(run: Run, now: float) -> int:
    """Leave the jobs to start now in `picks` and return how many; 0 for none."""
    kind = run.rule.kind
    if run.tally[QUEUE] == 0 or not look(run, False):
        return 0
    if kind == PBS:
        return pbs_picks(run)
    if kind == SBS:
        return sbs_picks(run)
    if kind == EASY:
        run.picks[0] = oldest_or_harmless(run, now)
    elif kind in (HPS, ADAPTIVE):
        run.picks[0] = best_scored(run, now)
    else:
        run.picks[0] = next_in_order(run)
    return 1 if run.picks[0] >= 0 else 0


@compiled
def advance(run: Run, events: int) -> bool:
    """Work through so many events; whether there may be more."""
    for _ in range(events):
        time = next_event(run)
        if time == INF:
            return False
        now = happen(run, time)
        size = select(run, now)
        while size > 0:
            run.tally[ROUNDS] += 1
            if size == 2 and run.rule.kind == PBS:
                begin_pair(run, now)
            else:
                if run.rule.kind == SBS:
                    largest_first(run, size)
                for i in range(size):
                    begin(run, run.picks[i], now)
            if run.tally[QUEUE] == 0:
                break
            size = select(run, now)
    return True
