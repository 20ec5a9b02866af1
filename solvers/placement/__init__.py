"""Exact methods and bounds of the placement family.

Bounds and exact values of the minimising objectives are for placing *every* task of the
problem; for a policy that leaves tasks out, bound ``problem.restrict(solution)``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from optgap.models.spec import Entry, entries

if TYPE_CHECKING:
    from optgap.models.placement import PlacementProblem

AT_ONCE = ("power", "fragmentation", "weighted", "accepted_gpu")
"""The goals of problems whose tasks do not leave."""
OVER_TIME = ("energy", "mean_fragmentation", "mean_weighted", "mean_accepted_gpu")
"""The goals of problems whose tasks do."""


def _exact() -> dict[str, Callable[..., Any]]:
    """Import the methods that know no compiled code, which takes a moment to import."""
    from optgap.solvers.placement import milp
    from optgap.solvers.placement.exact import search

    return {"exact": search.exact, "milp": milp.milp, "bound-pooled": search.bound_pooled}


def _large() -> dict[str, Callable[..., Any]]:
    """Import the methods for any size."""
    from optgap.solvers.placement import patterns
    from optgap.solvers.placement.over_time import bounding, hindsight

    return {
        "patterns": patterns.patterns,
        "bound-patterns": patterns.bound_patterns,
        "bound-over-time": bounding.bound_over_time,
        "hindsight": hindsight.hindsight,
    }


METHODS = entries(
    _exact,
    Entry(
        "exact",
        "proven optimum after a bound from pooled nodes; some 10 nodes and 60 tasks",
        kind="exact",
        goals=AT_ONCE,
    ),
    Entry(
        "milp",
        "proven optimum by the textbook formulation (highs or cbc); a few nodes",
        kind="exact",
        params={"backend": "highs"},
        goals=AT_ONCE,
    ),
    Entry(
        "bound-pooled",
        "integer program over node types and task classes; any size, tight, slower",
        kind="bound",
        goals=AT_ONCE,
    ),
) | entries(
    _large,
    Entry(
        "patterns",
        "offline placement from node patterns, with their bound; any size",
        kind="offline",
        params={"tolerance": 1e-3, "patience": 0, "first_nodes": 60, "rounds": 30},
        seeded=True,
        goals=AT_ONCE,
        shares=True,
    ),
    Entry(
        "bound-patterns",
        "column generation over node patterns; any size, tight",
        kind="bound",
        params={"tolerance": 1e-3},
        goals=AT_ONCE,
        shares=True,
    ),
    Entry(
        "bound-over-time",
        "prices of tasks, the best at every moment, migration free; any size, tight",
        kind="bound",
        goals=OVER_TIME,
        shares=True,
    ),
    Entry(
        "hindsight",
        "where tasks leave: least added energy, then annealing, offline; with a bound, any size",
        kind="offline",
        seeded=True,
        goals=("energy",),
        params={"moves": 0},
        shares=True,
    ),
)


EXACT_NODES = 12
EXACT_TASKS = 80


def _formulations() -> dict[str, Callable[..., Any]]:
    """Import the formulations."""
    from optgap.solvers.placement import formulation

    return {"milp": formulation.formulation}


FORMULATIONS = entries(
    _formulations,
    Entry(
        "milp",
        "PWR+FGD: tasks on nodes and GPUs; with `placed`, only the tasks that it leaves out",
        kind="exact",
        params={"placed": ""},
        goals=AT_ONCE,
    ),
)


def auto(problem: PlacementProblem) -> str:
    """Return the name of the method for a problem of this size."""
    if problem.over_time is not None:
        return "hindsight" if problem.objective.goal == "energy" else "bound-over-time"
    small = len(problem.cluster) <= EXACT_NODES and len(problem.tasks) <= EXACT_TASKS
    return "exact" if small else "patterns"


def auto_bound(problem: PlacementProblem) -> str:
    """Return the name of the method with the best bound for a problem of this size."""
    if problem.over_time is not None:
        return "bound-over-time"
    # without GPUs a node has few patterns that matter and many CPU units: pooled nodes prove more
    return "bound-patterns" if problem.tasks.num_gpu.any() else "bound-pooled"
