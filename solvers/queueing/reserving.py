"""Shortest first, on nodes where it costs the wide jobs least, and a booking for one of these.

Rule for the node: the least of what the job puts off the node's last end, plus 600 s per GPU that
stays idle; nodes in use before idle ones. Small jobs then gather where others run that long anyway,
and nodes become free as a whole.

Booking: the first job of a whole node or more, in the order of run times, that has waited
`after_s` and fits nowhere books the nodes with the earliest last ends. Others get these
only if they end before the latest of those.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from optgap.models.compiled import compiled, inner
from optgap.models.queueing.arrays import IntArray
from optgap.solvers.queueing.list_schedule import COMPACT, NOBODY, Machine, pick, settle, slack
from optgap.solvers.queueing.online import (
    INF,
    WAITING,
    Online,
    begin,
    happen,
    look_ahead,
    next_event,
    some_fit,
)


@compiled
def serve(online: Online, after_s: float, events: int) -> bool:
    """Work through so many events; whether there may be more."""
    for _ in range(events):
        time = next_event(online)
        if time == INF:
            return False
        now = happen(online, time)
        while online.tally[WAITING] > 0 and some_fit(online):
            p = _choose(online, after_s, now)
            if p < 0:
                break
            begin(online, online.queue[p], online.search.node, now)
            online.tally[WAITING] -= 1
            for k in range(p, online.tally[WAITING]):
                online.queue[k] = online.queue[k + 1]
    return True


@inner
def _choose(online: Online, after_s: float, now: float) -> int:
    """The place in the queue of the job to start now, its nodes written down; -1 for none."""
    search, tried = online.search, np.zeros(len(online.sizes), dtype=np.bool_)
    stream, machine = search.stream, search.before
    look_ahead(online, machine, now)
    booked, until = np.zeros(len(machine.free), dtype=np.bool_), INF
    for p in range(online.tally[WAITING]):
        j = online.queue[p]
        c, wide = online.cls[j], stream.gpus[j] >= stream.g
        if tried[c] and not (wide and until == INF):
            continue
        brief = now + stream.duration[j] <= until + slack(until)
        for k in range(len(booked)):
            machine.free[k] = 0 if booked[k] and not brief else online.free[k]
        if not tried[c] and _room(machine.free, stream.gpus[j], stream.g):
            if stream.gpus[j] > stream.g:
                settle(stream, machine, search.node, j, COMPACT, now)
            else:
                end = now + stream.duration[j]
                search.node[stream.at[j]] = pick(
                    machine.free, machine.last, stream.gpus[j], stream.g, COMPACT, now, end
                )
            return p
        tried[c] = True  # a longer job of the same size has no more nodes to choose from
        if wide and until == INF and now - stream.arrival[j] >= after_s - slack(now):
            until = _book(machine, stream.at[j + 1] - stream.at[j], booked)
    return -1


@inner
def _book(machine: Machine, count: int, booked: Any) -> float:
    """Mark so many nodes as booked, those with the earliest last ends; the last of these, s."""
    until = 0.0
    for _ in range(count):
        first = NOBODY
        for k in range(len(booked)):
            if not booked[k] and (first == NOBODY or machine.last[k] < machine.last[first]):
                first = k
        booked[first] = True
        until = max(until, machine.last[first])
    return until


@inner
def _room(free: IntArray, n: int, g: int) -> bool:
    """Whether n GPUs can be placed on nodes with so many free."""
    whole, rest = 0, False
    for k in range(len(free)):
        if free[k] == g:
            whole += 1
        rest = rest or (n % g <= free[k] < g)
    if n % g == 0:
        return whole >= n // g
    return whole > n // g or (whole == n // g and rest)
