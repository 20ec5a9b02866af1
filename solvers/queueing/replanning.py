"""Streams served online by plans or by bookings; compiled.

*Plans*: whenever jobs may start, those that wait are planned anew, by a list schedule beside the
running ones that annealing improves; what it starts now is started.

*Bookings*: shortest first, on nodes where that costs the wide jobs least, and a booking for one of
these. A node is chosen by the least of what the job puts off the node's last end, plus 600 s per
GPU that stays idle; nodes in use come before idle ones. Small jobs then gather where others run
that long anyway, and nodes become free as a whole. The first job of a whole node or more, in the
order of run times, that has waited for long and fits nowhere books the nodes with the earliest last
ends; others get these only if they end before the latest of those.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from optgap.models.compiled import compiled, inner
from optgap.models.queueing import QueueingProblem
from optgap.solvers.queueing.list_annealing import ListSearch, Moves, schedule, search_of, try_moves
from optgap.solvers.queueing.list_schedule import NOBODY, Plan, settle, slack
from optgap.solvers.queueing.online import (
    INF,
    ROUNDS,
    RUNNING,
    WAITING,
    Online,
    begin,
    copy_free,
    happen,
    look,
    next_event,
    online_of,
    unqueue,
)

MOVES = Moves(earlier=0.45, behind=0.35, anywhere=0.2, reach=40, doubt=INF)
ENOUGH = 20
"""Moves per pair of waiting jobs that a plan gets at most: few jobs have few lists."""
OVERRUN, OVERRUN_S = 0.5, 60.0
"""A job that overruns its estimate is taken to run half as long again, and this long at least."""


class Effort(NamedTuple):
    """Amounts of work for one plan.

    Parameters
    ----------
    jobs: waiting jobs that are planned, the first of the last plan's order; others come after.
    moves: moves tried per plan, at most.
    starts: jobs started on trial per plan, at most: fewer moves for longer queues.
    hot, cold: temperatures, s.
    """

    jobs: int = 64
    moves: int = 1000
    starts: int = 40_000
    hot: float = 2000.0
    cold: float = 50.0


class Planner(NamedTuple):
    """A stream being served, and the search for the plan of its waiting jobs as estimated."""

    online: Online
    search: ListSearch


def planner_of(problem: QueueingProblem, seed: int, hindsight: bool = False) -> Planner:
    """Return an idle cluster before the first arrival, the queue in order of estimates."""
    known = problem.jobs.duration_s if hindsight else problem.jobs.estimate_s
    online, count = online_of(problem, known, hindsight), len(problem)
    guess = online.truth._replace(duration=online.estimate, latest=np.full(count, np.inf))
    return Planner(online, search_of(guess, np.arange(count), problem.shape[0], seed))


@compiled
def serve(planner: Planner, effort: Effort | None, after_s: float, events: int) -> bool:
    """Work through so many events; whether there may be more.

    Parameters
    ----------
    effort: of plans; None for bookings, which then are compiled without annealing.
    after_s: wait after which a job of a whole node or more books nodes, s.
    """
    online = planner.online
    for _ in range(events):
        time = next_event(online)
        if time == INF:
            return False
        now, started = happen(online, time), 1
        while started > 0 and online.tally[WAITING] > 0 and look(online):
            _look_ahead(planner, now)
            if effort is not None:
                started = _plan(planner, effort, now)
                continue
            j, started = _choose(planner, after_s, now), 0
            if j >= 0:
                unqueue(online, j)
                begin(online, j, planner.search.node, now)
                started = 1
    return True


@inner
def _look_ahead(planner: Planner, now: float) -> None:
    """Make ``search.before`` the cluster as it is now, with the ends that are expected."""
    online, search, tally = planner.online, planner.search, planner.online.tally
    at, machine = online.truth.at, planner.search.before
    copy_free(online, machine.free, machine.level)
    for k in range(len(machine.last)):
        machine.last[k] = now
    for k in range(tally[RUNNING]):
        j = online.running[k]
        end = online.start[j] + online.estimate[j]
        if end <= now + slack(now):
            end = now + max(OVERRUN_S, OVERRUN * (now - online.start[j]))
        p = k
        while p > 0 and machine.ends[p - 1] < end:
            machine.ends[p], machine.running[p] = machine.ends[p - 1], machine.running[p - 1]
            p -= 1
        machine.ends[p], machine.running[p] = end, j
        for h in range(at[j], at[j + 1]):
            node = online.node[h]
            search.node[h] = search.plan.node[h] = node
            machine.last[node] = max(machine.last[node], end)
    machine.size[0] = tally[RUNNING]
    machine.clock[0], machine.clock[1], machine.clock[2] = now, 0.0, 0.0


@inner
def _plan(planner: Planner, effort: Effort, now: float) -> int:
    """Plan the first waiting jobs anew and start what is to start now; how many jobs that are."""
    online, whole = planner.online, planner.search
    tally, queue, plan, best = online.tally, online.queue, whole.plan, whole.best
    count = min(tally[WAITING], effort.jobs)
    search = ListSearch(
        whole.stream,
        Plan(plan.order[:count], plan.wish, plan.waits, plan.start, plan.node),
        Plan(best.order[:count], best.wish, best.waits, best.start, best.node),
        whole.before, whole.now, whole.start, whole.node, whole.after, whole.costs, whole.random,
    )  # fmt: skip
    for p in range(count):
        j = queue[p]
        search.plan.order[p] = j
        for h in range(search.stream.at[j], search.stream.at[j + 1]):
            search.plan.wish[h] = NOBODY
    search.costs[1] = INF
    schedule(search, search.before)
    tries = min(effort.moves, effort.starts // count, ENOUGH * count * count)
    if count > 1:
        try_moves(search, search.before, MOVES, 0, count, (effort.hot, effort.cold), tries)
    tally[ROUNDS] += 1
    for p in range(count):
        queue[p] = search.best.order[p]
    started = 0
    for p in range(count):
        j = search.best.order[p]
        if search.best.start[j] <= now + slack(now):
            unqueue(online, j)
            begin(online, j, search.best.node, now)
            started += 1
    return started


@inner
def _choose(planner: Planner, after_s: float, now: float) -> int:
    """Return the job to start now, its nodes written down in ``search.node``; -1 for none."""
    online, search = planner.online, planner.search
    stream, machine, tried = search.stream, search.before, np.zeros(len(online.sizes), np.bool_)
    g, booked, until = stream.g, np.zeros(len(machine.free), dtype=np.bool_), INF
    for p in range(online.tally[WAITING]):
        j = online.queue[p]
        n, begins, ends = stream.gpus[j], stream.at[j], stream.at[j + 1]
        c, wide, end = online.cls[j], n >= g, now + stream.duration[j]
        if tried[c] and not (wide and until == INF):
            continue
        brief, whole = end <= until + slack(until), 0
        for k in range(len(booked)):
            machine.free[k] = 0 if booked[k] and not brief else online.free[k]
            whole += machine.free[k] == g
        if not tried[c] and whole >= n // g:
            settle(stream, machine, search.node, j, now)
            if search.node[ends - 1] != NOBODY:
                return int(j)
        tried[c] = True  # a longer job of the same size has no more nodes to choose from
        if wide and until == INF and now - stream.arrival[j] >= after_s - slack(now):
            until = 0.0
            for _ in range(ends - begins):  # the nodes with the earliest last ends
                first = NOBODY
                for k in range(len(booked)):
                    if not booked[k] and (first == NOBODY or machine.last[k] < machine.last[first]):
                        first = k
                booked[first] = True
                until = max(until, machine.last[first])
    return -1
