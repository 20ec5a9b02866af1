"""Shortest first, with a booking for a wide job that has waited for long.

Jobs go to nodes that run as long anyway, so that nodes become free as a whole; the first wide job
that has waited ``reserve_after_s`` and fits nowhere books the nodes with the earliest last ends.
Both rules, and the compiled part, are `solvers.queueing.reserving`, shared with the search with
hindsight.
"""

from __future__ import annotations

from typing import Any

from optgap.heuristics.queueing.engine import drive, served
from optgap.heuristics.queueing.parameters import ShortestReserveParams
from optgap.heuristics.queueing.rule import require
from optgap.models.limits import Limits
from optgap.models.queueing import QueueingProblem
from optgap.models.result import Outcome
from optgap.models.spec import chosen
from optgap.solvers.queueing.list_schedule import stream_of
from optgap.solvers.queueing.online import online_of
from optgap.solvers.queueing.reserving import serve


def shortest_reserve(
    problem: QueueingProblem, *, limits: Limits, seed: int, **given: Any
) -> Outcome:
    """The least run time first, with bookings; `given` as in `ShortestReserveParams`.

    Raises
    ------
    InputError: for a negative time.
    """
    who = "shortest-reserve"
    after_s = float(chosen(ShortestReserveParams, given, who).reserve_after_s)
    require(who, "reserve_after_s", after_s, 0 <= after_s < 1e12, "seconds from 0")
    stream = stream_of(problem)
    online = online_of(stream, problem.jobs.estimate_s, problem.shape[0], seed)
    stopped = drive(problem, online.tally, lambda n: serve(online, after_s, n), limits, who)
    return served(problem, online, stopped, {})
