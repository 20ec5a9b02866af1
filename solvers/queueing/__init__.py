"""Exact methods and bounds of the queueing family, for starting *every* job."""

from __future__ import annotations

from collections.abc import Callable
from math import inf
from typing import TYPE_CHECKING, Any

from optgap.models.spec import Entry, entries

if TYPE_CHECKING:
    from optgap.models.queueing import QueueingProblem

FEW = 25
"""Up to so many jobs the exact method is expected to come to an end."""


def _methods() -> dict[str, Callable[..., Any]]:
    """Import the methods."""
    from optgap.solvers.queueing import areas, exact, formulation, offline, prices, time_indexed

    return {
        "exact": exact.exact,
        "assignment": formulation.best_assignment,
        "offline": offline.offline,
        "time-indexed": time_indexed.time_indexed,
        "bound-prices": prices.bound_prices,
        "bound-area": areas.bound_area,
    }


METHODS = entries(
    _methods,
    Entry(
        "exact",
        "CP-SAT with GPUs on nodes; a dozen jobs proven",
        kind="exact",
    ),
    Entry(
        "assignment",
        "jobs to nodes and times by a general MILP solver (highs or cbc): the reference, few jobs",
        kind="exact",
        params={"backend": "highs"},
    ),
    Entry(
        "offline",
        "annealing of lists of jobs and nodes, offline: a good schedule of any size, unproven",
        kind="offline",
        params={"moves": 0},
        seeded=True,
    ),
    Entry(
        "time-indexed",
        "integer program on time buckets, refined; any number of jobs",
        kind="bound",
        params={"rounds": 6, "moves": 500_000},
        seeded=True,
    ),
    Entry(
        "bound-prices",
        "prices on GPU time: as good as the time-indexed linear program; any number of jobs",
        kind="bound",
        params={"steps": 300},
    ),
    Entry(
        "bound-area",
        "mean busy times, remaining areas, longest job, in closed form; any size, loose",
        kind="bound",
    ),
)


def _formulations() -> dict[str, Callable[..., Any]]:
    """Import the formulations."""
    from optgap.solvers.queueing import formulation

    return {"assignment": formulation.formulation}


FORMULATIONS = entries(
    _formulations,
    Entry(
        "assignment",
        "jobs to nodes and times: starts, and which job takes over whose GPUs",
        kind="exact",
    ),
)


def auto(problem: QueueingProblem) -> str:
    """Return the name of the method for a problem of this size."""
    return "exact" if len(problem) <= FEW else auto_bound(problem)


def auto_bound(problem: QueueingProblem) -> str:
    """Return the name of the method with the best bound for a problem of this size.

    If jobs leave, the method is the bound by prices: a proof that not all can be served would end
    a comparison of policies that serve most.
    """
    return "bound-prices" if problem.jobs.patience_s.min() < inf else "time-indexed"
