"""Conservative backfilling as a policy."""

from __future__ import annotations

from typing import Any

import numpy as np

from optgap.heuristics.queueing.engine import drive, outcome_of, set_up
from optgap.heuristics.queueing.plan import Plan, advance_planned
from optgap.heuristics.queueing.tables import EASY, Rule
from optgap.models.errors import InputError
from optgap.models.limits import Limits
from optgap.models.queueing import QueueingProblem
from optgap.models.result import Outcome


def conservative(problem: QueueingProblem, *, limits: Limits, seed: int, depth: int = 0) -> Outcome:
    """Every waiting job has a reservation, and none is delayed by a later one.

    Parameters
    ----------
    depth: how many waiting jobs hold reservations, by arrival; the others wait for one. 0 for
        all, which takes long for long queues when estimates are not exact.

    Raises
    ------
    InputError: for a negative depth.
    """
    if depth < 0:
        raise InputError("conservative", "depth", depth, "a number of jobs, or 0 for all")
    plan: Any = _plan_of(problem, depth)
    run = plan.run
    stopped = drive(
        problem, run.tally, lambda events: advance_planned(plan, events), limits, "conservative"
    )
    return outcome_of(problem, run, stopped)


def _plan_of(problem: QueueingProblem, depth: int) -> Plan:
    """Idle nodes without reservations."""
    run: Any = set_up(problem, Rule(EASY))
    nodes, g = problem.shape
    # every node a job holds splits two segments at most
    size = nodes + 2 * int(run.jobs["nodes"].sum()) + 2
    free = np.zeros(size, dtype=np.int64)
    free[:nodes] = g
    count = np.zeros(3, dtype=np.int64)
    count[0] = size - nodes
    unused = np.zeros(size, dtype=np.int64)
    unused[: size - nodes] = np.arange(nodes, size)
    return Plan(
        run=run,
        first=np.arange(nodes, dtype=np.int64),
        time=np.zeros(size),
        free=free,
        next=np.full(size, -1, dtype=np.int64),
        unused=unused,
        until=np.full(len(problem), np.inf),
        starts=np.zeros(len(problem) + 1),
        job=np.zeros(len(problem) + 1, dtype=np.int64),
        whole=np.zeros(nodes),
        rest=np.zeros(nodes),
        tally=count,
        depth=depth,
    )
