"""Exact methods and bounds of the elastic family, for finishing *every* job."""

from __future__ import annotations

from typing import TYPE_CHECKING

from optgap.models.spec import Entry, entries

if TYPE_CHECKING:
    from optgap.models.elastic import ElasticProblem

HERE = "optgap.solvers.elastic"

METHODS = entries(
    Entry(
        "bound-prices",
        f"{HERE}.prices:bound_prices",
        "Lagrangian: prices of GPUs and watts over time, each job at its best; any size, tight",
        kind="bound",
        params={"pieces": 0, "rounds": 0},
    ),
    Entry(
        "exhaustive",
        f"{HERE}.exhaustive:exhaustive",
        "every order of completions, a linear program for each; up to 6 jobs",
        kind="exact",
    ),
    Entry(
        "bound-milp",
        f"{HERE}.timed:bound_milp",
        "slots with completions as integers (slots = how many); small problems",
        kind="bound",
        params={"slot_s": 0.0, "backend": "highs"},
    ),
    Entry(
        "bound-lp",
        f"{HERE}.timed:bound_lp",
        "slots, work-weighted mean times; up to some hundred jobs",
        kind="bound",
        params={"slot_s": 0.0, "backend": "highs"},
    ),
    Entry(
        "bound-area",
        f"{HERE}.area:bound_area",
        "one fast machine (shortest remaining work first), and each job alone; any size, loose",
        kind="bound",
    ),
)

FORMULATIONS = entries(
    Entry(
        "decision",
        f"{HERE}.formulation:formulation",
        "PowerFlow, Eq. 18-19: one configuration for each job, all from one moment on",
        kind="exact",
        params={"at_s": -1.0},
    ),
)


def auto(problem: ElasticProblem) -> str:
    """The method for a problem of this size."""
    from optgap.solvers.elastic.exhaustive import fits

    return "exhaustive" if fits(problem) else "bound-prices"


def auto_bound(problem: ElasticProblem) -> str:
    """The method with the best bound for a problem of this size."""
    from optgap.solvers.elastic.exhaustive import bounds

    return "exhaustive" if bounds(problem) else "bound-prices"
