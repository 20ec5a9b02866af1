"""The best schedule of a small problem over time, where no task waits (`assigning.py`)."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from optgap.models.errors import InputError
from optgap.models.limits import Limits
from optgap.models.placement import PlacementProblem
from optgap.models.result import Outcome, Status
from optgap.solvers.backends import solve
from optgap.solvers.backends.linear import Solved
from optgap.solvers.backends.safe import solver_slack
from optgap.solvers.placement.exact.milp import proven
from optgap.solvers.placement.over_time.assigning import Assigning
from optgap.solvers.placement.over_time.demand import Demand
from optgap.solvers.placement.over_time.stays import Stays
from optgap.solvers.placement.patterns import never_fits

METHOD = "exact-over-time"
MOST_NODES = 20
MOST_TASKS = 100
"""Beyond this the program has 100,000 columns, and nothing would come of it."""
EASY_NODES = 6
EASY = 180
"""Tasks, or `Stays`, times the most of them at once: up to this, a proof takes seconds."""
TOLERANCE = 1e-9
"""HiGHS's own, and what is taken off its bound."""
CLOSE = 1e-6
"""Relative distance of objective and bound up to which HiGHS's word for "optimal" is taken."""


def unfit(problem: PlacementProblem) -> tuple[str, object, str] | None:
    """Field, what it is, and what it would have to be, for a problem that this is no method for."""
    assert problem.over_time is not None
    if problem.over_time.waits:
        return "over_time.queue", problem.over_time.queue, "reject: starts have to be given"
    if problem.objective.weights[1]:
        expected = "energy or mean_accepted_gpu: no formulation of fragmentation over time"
        return "objective.goal", problem.objective.goal, expected
    if problem.over_time.wake_s and problem.tasks.gangs:
        expected = (
            "0 beside tasks of several nodes: these would wait for each other's nodes to boot"
        )
        return "over_time.wake_s", problem.over_time.wake_s, expected
    for name, found, most in (
        ("nodes", len(problem.cluster), MOST_NODES),
        ("tasks", len(problem.tasks), MOST_TASKS),
    ):
        if found > most:
            return name, found, f"at most {most} (bound-over-time takes any number)"
    return None


def unproven(problem: PlacementProblem) -> str:
    """Why the optimum is not looked for unasked, in one line; "" where a proof takes seconds."""
    trouble = unfit(problem)
    if trouble is not None:
        field, found, expected = trouble
        return f"{METHOD} was not tried: {field} is {found}, it takes {expected}"
    stays = Stays.of(problem)
    most = int(np.cumsum(Demand.between(stays.from_s, stays.end_s).change).max())
    nodes, count = len(problem.cluster), len(stays.task)
    if nodes <= EASY_NODES and count * most <= EASY:
        return ""
    what = "possible stays" if count > len(problem.tasks) else "tasks"
    here = f"{nodes} nodes (at most {EASY_NODES}), {count} {what} × {most} at once = {count * most}"
    return f"{METHOD} was not tried: {here} (at most {EASY}), a proof may take minutes"


def exact_over_time(problem: PlacementProblem, *, limits: Limits, seed: int) -> Outcome:
    """The schedule of least energy that runs every task, or of most accepted GPU demand, proven.

    Raises
    ------
    InputError: where tasks may wait, for fragmentation, where nodes boot for tasks of several
        nodes, or for more than `MOST_NODES` nodes or `MOST_TASKS` tasks.
    """
    trouble = unfit(problem)
    if trouble is not None:
        field, found, expected = trouble
        raise InputError(METHOD, f"field {field}", found, expected)
    accepting = problem.objective.goal == "mean_accepted_gpu"
    lost = None if accepting else never_fits(problem)
    if lost is not None:
        return lost
    program = Assigning(problem)
    limits.progress("writing the program", None, None)
    solved = solve(program.model, backend="highs", limits=limits, seed=seed, tolerance=TOLERANCE)
    return outcome(program, solved)


def outcome(program: Assigning, solved: Solved) -> Outcome:
    """What a back end's answer proves of the problem."""
    model, by = program.model, f"assignment over time, {solved.solver}"
    info: dict[str, float | int | str] = {"variables": model.variables, "rows": model.rows}
    if solved.status is Status.INFEASIBLE:
        message = f"every task fits a node, but no schedule runs all of them (proven by {by})"
        return Outcome(None, Status.INFEASIBLE, bound_by=by, info=info, message=message)
    sign = -1.0 if program.accepting else 1.0
    if solved.bound is not None:
        off = solver_slack(model, TOLERANCE) + program.overlap
        solved = replace(solved, bound=solved.bound - sign * off)
    if solved.values is None:
        return proven(None, solved, by, info)
    solution = program.solution(solved.values)
    return proven((solution, sign * program.claim(solution)), solved, by, info, sign, CLOSE)
