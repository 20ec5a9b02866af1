"""The textbook formulation (``formulation.py``) on a MILP solver."""

from __future__ import annotations

import math
from dataclasses import replace

from optgap.models.limits import Limits
from optgap.models.placement import PlacementProblem
from optgap.models.result import Outcome, Status, Termination
from optgap.solvers.backends import solve
from optgap.solvers.backends.safe import solver_slack
from optgap.solvers.formulation import Stopped
from optgap.solvers.placement.exact.code import claim
from optgap.solvers.placement.exact.infeasible import at_most, impossible, together
from optgap.solvers.placement.exact.pooled import pooled_model
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
        safe = solved.bound + slack if accepting else max(0.0, solved.bound - slack)
        solved = replace(solved, bound=safe)
    by = f"textbook formulation, {solved.solver}"
    info: dict[str, float | int | str] = {
        "variables": model.variables,
        "rows": model.rows,
    }
    if solved.status is Status.INFEASIBLE:
        return Outcome(None, solved.status, bound_by=by, info=info, message=together(by))
    status, bound = solved.status, solved.bound
    by_whom = None if bound is None else by
    if solved.values is None or solved.objective is None:
        return Outcome(
            None, status, solved.termination, bound=bound, bound_by=by_whom, info=info,
            message=solved.message,
        )  # fmt: skip
    info["model_objective"] = solved.objective
    solution = written.solution(solved.values.tolist())
    claimed = claim(pooled_model(Counted(problem)), solution)
    if bound is not None:
        excess = bound - claimed if accepting else claimed - bound
        if status is Status.OPTIMAL and excess > CLOSE * max(1.0, math.fabs(claimed)):
            status = Status.FEASIBLE
        bound = max(bound, claimed) if accepting else min(bound, claimed)
    ended = Termination.COMPLETED if status is Status.OPTIMAL else solved.termination
    return Outcome(solution, status, ended, claimed, bound, by_whom, info, solved.message)
