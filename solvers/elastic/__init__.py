"""Exact methods and bounds of the elastic family, for finishing *every* job."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from optgap.models.spec import Entry, entries
from optgap.solvers.elastic.parameters import ExhaustiveParams, OfflineParams

if TYPE_CHECKING:
    from optgap.models.elastic import ElasticProblem

MANY = 3000
"""More, and a schedule that decides exactly at every event takes minutes."""


def _methods() -> dict[str, Callable[..., Any]]:
    """Import the methods."""
    from optgap.solvers.elastic import exhaustive, formulation, offline, prices, relaxation

    return {
        "bound-prices": prices.bound_prices,
        "exhaustive": exhaustive.exhaustive,
        "offline": offline.offline,
        "decision": formulation.best_decision,
        "relaxation": relaxation.relaxation,
    }


METHODS = entries(
    _methods,
    Entry(
        "bound-prices",
        "Lagrangian bound with prices of GPUs and power over time; any size, tight",
        kind="bound",
        params={"rounds": 0},
    ),
    Entry(
        "exhaustive",
        "orders of events, best first; exact with free restarts, else a bound; 12 jobs at most",
        kind="exact",
        options=ExhaustiveParams,
    ),
    Entry(
        "offline",
        "offline schedules from dual values of the work, varied at random; with a bound; any size",
        kind="offline",
        options=OfflineParams,
        seeded=True,
    ),
    Entry(
        "decision",
        "one decision of Eq. 18-19 by a general MILP solver (highs or cbc), kept to the end",
        kind="offline",
        params={"backend": "highs", "at_s": -1.0},
    ),
    Entry(
        "relaxation",
        "one decision of Eq. 18-19 as a convex program: shadow prices of a GPU and of power",
        kind="bound",
        params={"at_s": -1.0},
    ),
)


def _formulations() -> dict[str, Callable[..., Any]]:
    """Import the formulations."""
    from optgap.solvers.elastic import formulation

    return {"decision": formulation.formulation}


FORMULATIONS = entries(
    _formulations,
    Entry(
        "decision",
        "PowerFlow, Eq. 18-19: one configuration for each job, all started at one time",
        kind="exact",
        params={"at_s": -1.0},
    ),
)


def auto(problem: ElasticProblem) -> str:
    """Return the name of the method for a problem of this size."""
    from optgap.solvers.elastic.exhaustive import TUNING, fits

    if fits(problem) and len(problem) <= TUNING.few:
        return "exhaustive"
    return "bound-prices" if len(problem) > MANY else "offline"


def auto_bound(problem: ElasticProblem) -> str:
    """Return the name of the method with the best bound for a problem of this size."""
    from optgap.solvers.elastic.exhaustive import TUNING, bounds, chargeable

    few = len(problem) <= TUNING.few or chargeable(problem)
    return "exhaustive" if bounds(problem) and few else "bound-prices"
