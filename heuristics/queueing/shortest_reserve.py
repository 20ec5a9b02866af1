"""Shortest first, with a booking for a wide job that has waited for long."""

from __future__ import annotations

from optgap.heuristics.queueing.engine import drive, served
from optgap.models.errors import InputError
from optgap.models.limits import Limits
from optgap.models.queueing import QueueingProblem
from optgap.models.queueing.list_schedule import stream_of
from optgap.models.queueing.online import online_of
from optgap.models.queueing.reserving import RESERVE_AFTER_S, serve
from optgap.models.result import Outcome


def shortest_reserve(
    problem: QueueingProblem, *, limits: Limits, seed: int, reserve_after_s: float = RESERVE_AFTER_S
) -> Outcome:
    """The least run time first; a wide job that has waited for long books nodes.

    Parameters
    ----------
    reserve_after_s: wait after which a job of a whole node or more books, s.

    Raises
    ------
    InputError: for a negative time.
    """
    if not 0 <= reserve_after_s < 1e12:
        raise InputError("shortest-reserve", "reserve_after_s", reserve_after_s, "seconds from 0")
    stream = stream_of(problem)
    online = online_of(stream, problem.jobs.estimate_s, problem.shape[0], seed)
    after_s = float(reserve_after_s)
    stopped = drive(
        problem, online.tally, lambda n: serve(online, after_s, n), limits, "shortest-reserve"
    )
    return served(problem, online, stopped, {})
