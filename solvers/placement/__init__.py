"""Exact methods and bounds of the placement family.

Bounds and exact values of the minimising objectives are for placing *every* task of the
problem; for a policy that leaves tasks out, bound ``problem.restrict(solution)``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from optgap.models.spec import Entry, entries

if TYPE_CHECKING:
    from optgap.models.placement import PlacementProblem

HERE = "optgap.solvers.placement"

METHODS = entries(
    Entry(
        "patterns",
        f"{HERE}.patterns:patterns",
        "offline placement from node patterns, with their bound; any size",
        kind="offline",
        params={"tolerance": 1e-3, "rounds": 50},
        deterministic=False,
    ),
    Entry(
        "bound-patterns",
        f"{HERE}.patterns:bound_patterns",
        "column generation over node patterns; any size, tight",
        kind="bound",
        params={"tolerance": 1e-3},
    ),
    Entry(
        "bound-types",
        f"{HERE}.bound_types:bound_types",
        "linear program over node types and task classes; a second, loose",
        kind="bound",
        goals=("power",),
    ),
)


def auto(problem: PlacementProblem) -> str:
    """The method for a problem of this size."""
    return "patterns"


def auto_bound(problem: PlacementProblem) -> str:
    """The method with the best bound for a problem of this size."""
    return "bound-patterns"
