"""Compiled event loop: each policy starts jobs after arrivals, ends and departures."""

from __future__ import annotations

from optgap.heuristics.queueing.adaptive import best_adaptive
from optgap.heuristics.queueing.easy import oldest_or_harmless
from optgap.heuristics.queueing.hps import best_aged
from optgap.heuristics.queueing.pbs import pbs_picks
from optgap.heuristics.queueing.rule import EASY, HPS, PBS, SBS, QueueRun
from optgap.heuristics.queueing.sbs import sbs_picks
from optgap.models.compiled import compiled
from optgap.models.queueing.kernels import node_with, place, take, tightest
from optgap.solvers.queueing.online import (
    INF,
    ROUNDS,
    WAITING,
    book,
    happen,
    look,
    next_event,
    unqueue,
)


@compiled
def advance(run: QueueRun, events: int) -> bool:
    """Process up to `events` events; return whether there may be more."""
    online, picks, kind = run.online, run.picks, run.rule.kind
    gpus, g = online.truth.gpus, online.truth.g
    for _ in range(events):
        time = next_event(online)
        if time == INF:
            return False
        now, size = happen(online, time), 1
        while size > 0 and online.tally[WAITING] > 0 and look(online):
            size = 1
            if kind == PBS:
                size = pbs_picks(run)
            elif kind == SBS:
                size = sbs_picks(run)
            elif kind == EASY:
                picks[0] = oldest_or_harmless(run, now)
            elif kind == HPS:
                picks[0] = best_aged(run, now)
            else:
                picks[0] = best_adaptive(run, now)
            if picks[0] < 0:
                break
            online.tally[ROUNDS] += 1
            pair = -1
            if kind == PBS and size == 2:  # on one node, the tightest
                wanted = gpus[picks[0]] + gpus[picks[1]]
                pair = node_with(online.free, tightest(online.free, online.level, wanted, g))
            for i in range(size):
                j = picks[i]
                unqueue(online, j)
                if pair >= 0:
                    online.node[online.truth.at[j]] = pair
                    take(online.free, online.level, pair, gpus[j])
                else:
                    place(online.free, online.level, gpus[j], g, online.node, online.truth.at[j])
                book(online, j, now)
    return True
