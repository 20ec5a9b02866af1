"""Re-planning: the waiting jobs are scheduled anew whenever some of them may start.

A plan is a list schedule beside the running jobs for the problem's own objective, by estimates and
without a job that is still to come, improved by annealing. Jobs that it starts now are started, on
its nodes. The compiled part is `solvers.queueing.replanning`, which `offline` uses, too.
"""

from __future__ import annotations

from typing import Any

from optgap.heuristics.queueing.engine import drive, served
from optgap.heuristics.queueing.parameters import ReplanParams
from optgap.heuristics.queueing.rule import require
from optgap.models.limits import Limits
from optgap.models.queueing import QueueingProblem
from optgap.models.result import Outcome
from optgap.models.spec import chosen
from optgap.solvers.queueing.list_schedule import stream_of
from optgap.solvers.queueing.online import PLANS, online_of
from optgap.solvers.queueing.replanning import Effort, serve

WEIGHT = 100
"""Work of a job beside one under a fixed rule, about: when streams are small enough for Python."""


def replan(problem: QueueingProblem, *, limits: Limits, seed: int, **given: Any) -> Outcome:
    """The plan of every event; `given` as in `ReplanParams`.

    Raises
    ------
    InputError: for a parameter out of range.
    """
    options = chosen(ReplanParams, given, "replan")
    jobs, moves = options.jobs, options.moves
    require("replan", "jobs", jobs, 1 <= jobs <= 10_000, "from 1 to 10000 jobs")
    require("replan", "moves", moves, 0 <= moves <= 10**9, "from 0 to 10^9 moves")
    stream, effort = stream_of(problem), Effort(jobs=jobs, moves=moves)
    online = online_of(stream, problem.jobs.estimate_s, problem.shape[0], seed)
    termination = drive(
        problem, online.tally, lambda n: serve(online, effort, n), limits, "replan", WEIGHT
    )
    return served(problem, online, termination, {"plans": int(online.tally[PLANS])})
