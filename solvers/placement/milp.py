"""The textbook formulation (``formulation.py``) on a MILP solver."""

from __future__ import annotations

from dataclasses import replace

from optgap.models.limits import Limits
from optgap.models.placement import PlacementProblem
from optgap.models.result import Outcome, Status
from optgap.solvers.formulation import solved
from optgap.solvers.placement.exact.infeasible import at_most, hopeless, together
from optgap.solvers.placement.formulation import formulation

TOLERANCE = 1e-10
"""HiGHS's own, and what is taken off any back end's bound: 1000 milli-GPU hang on an integer."""
MOST_NODES = 40
MOST_TASKS = 300


def milp(
    problem: PlacementProblem, *, limits: Limits, seed: int, backend: str = "highs"
) -> Outcome:
    """Return the best placement by the textbook formulation.

    Parameters
    ----------
    backend: ``highs`` or ``cbc``.

    Raises
    ------
    InputError: for a back end that is unknown, unusable or wants integers, or for more than
        `MOST_NODES` nodes or `MOST_TASKS` tasks.
    """
    at_most(problem, "milp", MOST_NODES, MOST_TASKS)
    lost = hopeless(problem)
    if lost is not None:
        return lost
    found = solved(
        problem, formulation, limits=limits, seed=seed, backend=backend, tolerance=TOLERANCE
    )
    if found.status is Status.INFEASIBLE:
        return replace(found, message=together(str(found.bound_by)))
    return found
