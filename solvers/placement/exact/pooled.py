"""A bound from pooled nodes: those of one type taken together, tasks counted by class.

The counted formulation with one unit per node type is small, whatever the number of nodes, and
free of the symmetry between nodes. It gives up two things only: that a task and what shares a
node with it must really be on one node, and that CPU packages and free CPU are a node's own.
"""

from __future__ import annotations

from dataclasses import replace

from optgap.models.limits import Limits
from optgap.models.placement import PlacementProblem
from optgap.models.result import Outcome, Status
from optgap.solvers.backends import solve
from optgap.solvers.backends.linear import Solved
from optgap.solvers.backends.safe import solver_slack
from optgap.solvers.placement.exact.counted import CountedModel, Unit
from optgap.solvers.placement.exact.infeasible import impossible, together
from optgap.solvers.placement.exact.tables import Counted

TOLERANCE = 1e-9
"""HiGHS's own, and what is taken off its bounds for it."""


def valid_bound(model: CountedModel, bound: float) -> float:
    """Return a solver's bound, less its tolerance; demand is a whole number of milli-GPU."""
    if model.counted.accepting:
        return float(int(bound + 1e-6 * max(1.0, abs(bound))))
    return bound - solver_slack(model.model, TOLERANCE)


def pooled_model(counted: Counted) -> CountedModel:
    """Return one unit per node type."""
    members: dict[int, list[int]] = {}
    for n, t in enumerate(counted.problem.cluster.type_of.tolist()):
        members.setdefault(t, []).append(n)
    return CountedModel(counted, [Unit(t, tuple(nodes)) for t, nodes in sorted(members.items())])


def solve_pooled(model: CountedModel, limits: Limits, seed: int, gap: float = 0.0) -> Solved:
    """Solve the pooled model."""
    solved = solve(
        model.model, backend="highs", limits=limits, seed=seed, gap=gap, tolerance=TOLERANCE
    )
    if solved.bound is None:
        return solved
    return replace(solved, bound=valid_bound(model, solved.bound))


def bound_pooled(
    problem: PlacementProblem, *, limits: Limits, seed: int, gap: float = 1e-4
) -> Outcome:
    """Return a bound from pooled nodes; any size.

    Parameters
    ----------
    gap: stop when the pooled problem itself is solved to this relative gap.
    """
    counted = Counted(problem)
    reason = "" if counted.accepting else impossible(problem)
    if reason:
        return Outcome(None, Status.INFEASIBLE, bound_by="capacities", message=reason)
    model = pooled_model(counted)
    solved = solve_pooled(model, limits, seed, gap)
    by = f"pooled nodes, {solved.solver}"
    info = {"variables": model.model.variables, "rows": model.model.rows}
    if solved.status is Status.INFEASIBLE:
        return Outcome(None, Status.INFEASIBLE, bound_by=by, info=info, message=together(by))
    known = solved.bound is not None
    return Outcome(
        None,
        Status.BOUND_ONLY if known else Status.NO_SOLUTION,
        solved.termination,
        bound=solved.bound,
        bound_by=by if known else None,
        info=info,
        message=solved.message,
    )
