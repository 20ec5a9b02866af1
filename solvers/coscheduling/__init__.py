"""Exact methods and bounds of the co-scheduling family, for running *every* job."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from optgap.models.spec import Entry, entries

if TYPE_CHECKING:
    from optgap.models.coscheduling import CoschedulingProblem


def _methods() -> dict[str, Callable[..., Any]]:
    """Import the methods."""
    from optgap.solvers.coscheduling import area, formulation, oracle, patterns

    return {
        "oracle": oracle.oracle,
        "intervals": oracle.intervals,
        "milp": formulation.milp,
        "bound-patterns": patterns.bound_patterns,
        "bound-area": area.bound_area,
    }


METHODS = entries(
    _methods,
    Entry(
        "oracle",
        "CP-SAT with optional intervals, led by the pattern bound; some 25 jobs proven",
        kind="exact",
        params={"workers": 1},
    ),
    Entry(
        "intervals",
        "the Oracle by CP-SAT with optional intervals alone, also of two at a time: a reference",
        kind="exact",
        goals=("energy", "makespan"),
    ),
    Entry(
        "milp",
        "the Oracle as printed, by a general MILP solver (highs or cbc): a reference, few jobs",
        kind="exact",
        params={"backend": "highs"},
        goals=("energy", "makespan"),
    ),
    Entry(
        "bound-patterns",
        "integer program over GPU counts that may run together; any number of jobs, tight",
        kind="bound",
    ),
    Entry(
        "bound-area",
        "longest job, GPU-seconds and job-seconds in closed form; any size, loose",
        kind="bound",
    ),
)


def _formulations() -> dict[str, Callable[..., Any]]:
    """Import the formulations."""
    from optgap.solvers.coscheduling import formulation

    return {"oracle": formulation.formulation}


FORMULATIONS = entries(
    _formulations,
    Entry(
        "oracle",
        "EcoSched's Oracle: GPU counts, starts, and which job takes over whose GPUs",
        kind="exact",
        goals=("energy", "makespan"),
    ),
)


def auto(problem: CoschedulingProblem) -> str:
    """Return the name of the method for a problem of this size."""
    return "oracle"


def auto_bound(problem: CoschedulingProblem) -> str:
    """Return the name of the method with the best bound for a problem of this size."""
    from optgap.solvers.coscheduling.patterns import patterns

    return "bound-area" if patterns(problem) is None else "bound-patterns"
