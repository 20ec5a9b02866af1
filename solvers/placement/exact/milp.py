"""The textbook formulation (``formulation.py``) on a MILP solver."""

from __future__ import annotations

import math
from dataclasses import replace

from optgap.models.limits import Limits
from optgap.models.placement import PlacementProblem, PlacementSolution
from optgap.models.result import Outcome, Status, Termination
from optgap.solvers.backends import solve
from optgap.solvers.backends.linear import Solved
from optgap.solvers.backends.safe import solver_slack
from optgap.solvers.formulation import Stopped
from optgap.solvers.placement.exact.code import claim
from optgap.solvers.placement.exact.infeasible import at_most, impossible, together
from optgap.solvers.placement.exact.tables import Counted
from optgap.solvers.placement.formulation import formulation

CLOSE = 1e-5
"""Relative distance of objective and bound up to which a solver's word for "optimal" is taken:
its integers are integers up to 1e-6, and 1000 milli-GPU hang on each."""
TOLERANCE = 1e-10
"""HiGHS's own, and what is taken off any back end's bound."""
MOST_NODES = 40
MOST_TASKS = 300


def milp(
    problem: PlacementProblem, *, limits: Limits, seed: int, backend: str = "highs"
) -> Outcome:
    """The best placement by the textbook formulation.

    Parameters
    ----------
    backend: ``highs``, ``cbc`` or ``scipy``.

    Raises
    ------
    InputError: for a back end that is unknown, unusable or wants integers, or for more than
        `MOST_NODES` nodes or `MOST_TASKS` tasks.
    """
    at_most(problem, "milp", MOST_NODES, MOST_TASKS)
    accepting = problem.objective.goal == "accepted_gpu"
    reason = "" if accepting else impossible(problem)
    if reason:
        return Outcome(None, Status.INFEASIBLE, bound_by="capacities", message=reason)
    try:
        written = formulation(problem, limits=limits)
    except Stopped as stopped:
        return stopped.outcome
    model = written.linear
    solved = solve(model, backend=backend, limits=limits, seed=seed, tolerance=TOLERANCE)
    if solved.bound is not None:
        slack = solver_slack(model, TOLERANCE)
        bound = solved.bound + slack if accepting else max(0.0, solved.bound - slack)
        solved = replace(solved, bound=bound)
    by = f"textbook formulation, {solved.solver}"
    info: dict[str, float | int | str] = {
        "variables": model.variables,
        "rows": model.rows,
    }
    if solved.status is Status.INFEASIBLE:
        return Outcome(None, solved.status, bound_by=by, info=info, message=together(by))
    if solved.values is None or solved.objective is None:
        return proven(None, solved, by, info)
    info["model_objective"] = solved.objective
    solution = written.solution(solved.values.tolist())
    sign = 1.0 if problem.objective.described.sense == "min" else -1.0
    claimed = sign * claim(Counted(problem), solution)
    return proven((solution, claimed), solved, by, info, sign, CLOSE)


def proven(
    found: tuple[PlacementSolution, float] | None,
    solved: Solved,
    by: str,
    info: dict[str, float | int | str],
    sign: float = 1.0,
    close: float = 0.0,
) -> Outcome:
    """What a back end's answer proves of a placement's program.

    Parameters
    ----------
    found: the solution behind the answer's values, and `sign` times its objective; None where
        there is none.
    solved: the answer; rounding has been taken off its bound.
    sign: 1 to minimise, -1 to maximise.
    close: relative distance of objective and bound up to which "optimal" is believed.
    """
    status, bound = solved.status, solved.bound
    by_whom = None if bound is None else by
    if found is None:
        return Outcome(
            None, status, solved.termination, bound=bound, bound_by=by_whom, info=info,
            message=solved.message,
        )  # fmt: skip
    solution, cost = found
    if bound is not None:
        if status is Status.OPTIMAL and cost - sign * bound > close * max(1.0, math.fabs(cost)):
            status = Status.FEASIBLE
        bound = sign * min(sign * bound, cost)
    ended = Termination.COMPLETED if status is Status.OPTIMAL else solved.termination
    return Outcome(solution, status, ended, sign * cost, bound, by_whom, info, solved.message)
