"""Re-planning: the waiting jobs are scheduled anew whenever some of them may start."""

from __future__ import annotations

from optgap.heuristics.queueing.engine import drive, served
from optgap.models.errors import InputError
from optgap.models.limits import Limits
from optgap.models.queueing import QueueingProblem
from optgap.models.queueing.list_schedule import stream_of
from optgap.models.queueing.online import PLANS, online_of
from optgap.models.queueing.replanning import Effort, serve
from optgap.models.result import Outcome

WEIGHT = 100
"""Work of a job beside one under a fixed rule, about: when streams are small enough for Python."""


def replan(
    problem: QueueingProblem, *, limits: Limits, seed: int, jobs: int = 64, moves: int = 1000
) -> Outcome:
    """At every event the first waiting jobs are planned for the problem's own objective.

    A plan is a list schedule beside the running jobs, by estimates and without a job that is still
    to come, improved by annealing. Jobs that it starts now are started, on its nodes.

    Parameters
    ----------
    jobs: how many waiting jobs are planned, in the order of the last plan; new ones by estimate.
    moves: lists tried per plan, at most.

    Raises
    ------
    InputError: for a parameter out of range.
    """
    if not 1 <= jobs <= 10_000:
        raise InputError("replan", "jobs", jobs, "from 1 to 10000 jobs")
    if not 0 <= moves <= 10**9:
        raise InputError("replan", "moves", moves, "from 0 to 10^9 moves")
    stream, effort = stream_of(problem), Effort(jobs=jobs, moves=moves)
    online = online_of(stream, problem.jobs.estimate_s, problem.shape[0], seed)
    termination = drive(
        problem, online.tally, lambda n: serve(online, effort, n), limits, "replan", WEIGHT
    )
    return served(problem, online, termination, {"plans": int(online.tally[PLANS])})
