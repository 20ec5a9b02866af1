"""A stream served online: whenever jobs may start, those that wait are planned anew; compiled.

The plan is a list schedule of the waiting jobs beside the running ones, improved by annealing; what
it starts now is started. It knows no job that has not arrived and, where they differ, estimates
instead of run times.
"""

from __future__ import annotations

from typing import NamedTuple

from optgap.models.compiled import compiled, inner
from optgap.solvers.queueing.list_annealing import Moves, Search, anneal, schedule
from optgap.solvers.queueing.list_schedule import NOBODY, Plan, slack
from optgap.solvers.queueing.online import (
    INF,
    PLANS,
    WAITING,
    Online,
    begin,
    happen,
    look_ahead,
    next_event,
    some_fit,
)

MOVES = Moves(earlier=0.45, behind=0.35, anywhere=0.2, reach=40, doubt=INF)
ENOUGH = 20
"""Moves per pair of waiting jobs that a plan gets at most: few jobs have few lists."""


class Effort(NamedTuple):
    """How much work goes into one plan.

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


@compiled
def serve(online: Online, effort: Effort, events: int) -> bool:
    """Work through so many events; whether there may be more."""
    tally = online.tally
    for _ in range(events):
        time = next_event(online)
        if time == INF:
            return False
        now = happen(online, time)
        while tally[WAITING] > 0 and some_fit(online):
            if _plan(online, effort, now) == 0:
                break
    return True


@inner
def _short(plan: Plan, count: int) -> Plan:
    """A plan with only the first jobs of the list."""
    return Plan(plan.order[:count], plan.wish, plan.rule, plan.start, plan.node)


@inner
def _plan(online: Online, effort: Effort, now: float) -> int:
    """Plan the first waiting jobs anew and start what is to start now; how many jobs that are."""
    whole, tally, queue = online.search, online.tally, online.queue
    count = min(tally[WAITING], effort.jobs)
    search = Search(
        whole.stream, _short(whole.plan, count), _short(whole.best, count), whole.before,
        whole.now, whole.start, whole.node, whole.after, whole.costs, whole.random,
    )  # fmt: skip
    look_ahead(online, search.before, now)
    for p in range(count):
        j = queue[p]
        search.plan.order[p] = j
        for h in range(search.stream.at[j], search.stream.at[j + 1]):
            search.plan.wish[h] = NOBODY
    search.costs[1] = INF
    schedule(search)
    tries = min(effort.moves, effort.starts // count, ENOUGH * count * count)
    if count > 1:
        anneal(search, MOVES, 0, count, (effort.hot, effort.cold), tries)
    tally[PLANS] += 1
    started = 0
    for p in range(count):
        j = search.best.order[p]
        queue[p] = j
        if search.best.start[j] <= now + slack(now):
            begin(online, j, search.best.node, now)
            started += 1
        elif started > 0:
            queue[p - started] = j
    for p in range(count, tally[WAITING]):
        queue[p - started] = queue[p]
    tally[WAITING] -= started
    return started
