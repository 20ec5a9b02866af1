"""Exact methods and bounds of the consolidation family, for running *every* task.

`exact` is a branch-and-price over sets of tasks that share a GPU (columns):

    exact                 the driver: construction, closed-form bound, then the tree
    instance, config      the problem as arrays; all parameters, and nothing else tunes anything
    outcome               the best placement so far, a bound with its proof, and what is returned
    numerics              types, and the tolerances that proofs are stated with
    turns                 budgets of work inside a search that comes back to what they leave
    bounds                the closed-form bound: GPUs counted by cost level, by sums and L2
    column_generation/
        master            the restricted linear program, kept in one HiGHS object
        pricing, kernels  WHERE A COLUMN IS PRICED: a knapsack for each dearest task
        dual_bound        WHERE THE DUAL BOUND IS COMPUTED: Lagrange's or Farley's, for any duals
        generation        the linear program of a node, for `engines.column_generation`
    branch_and_price/
        branching         WHERE A NODE BRANCHES: on a count, on a server, around a vector of counts
        tree              what `engines.best_first` expands, and turns of a primal heuristic
        feasibility       whether counts are feasible, by an integer program; columns to placements
    primal/               WHERE THE INCUMBENT COMES FROM, called by `exact`
        construction      greedy, in orders by power and size
        iterated_greedy   tasks taken out and placed again, on any instance
        diving            columns of the linear program fixed one after another, servers first
    large_scale           beyond 600 tasks: GPUs filled one by one, with the closed-form bound
    bounding              the same, and the linear program alone: bounds without a tree
    covering              the integer program over all sets that fit a GPU, where there is no tree
    formulation           Eq. 6-14: the reference
    over_time/            tasks that come and go, and bounds on their energy

Where GPUs, servers or power lines differ there is no tree, but the covering program, and beyond
its size iterated greedy and a column bound. Modules import only from those before them: `numerics`,
`config`, `instance`, `outcome`, `bounds`, `column_generation`, `branch_and_price`, `primal`, the
methods.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from optgap.models.spec import Entry, entries
from optgap.solvers.consolidation.over_time.parameters import (
    TUNING,
    BoundParams,
    HindsightParams,
)

if TYPE_CHECKING:
    from optgap.models.consolidation import ConsolidationProblem

POWER, ENERGY = ("power",), ("energy",)


def _methods() -> dict[str, Callable[..., Any]]:
    """Import the methods."""
    from optgap.solvers.consolidation import bounding, exact, formulation, large_scale
    from optgap.solvers.consolidation.over_time import bounding as over_time_bounding
    from optgap.solvers.consolidation.over_time import hindsight

    return {
        "exact": exact.exact,
        "filling": large_scale.filling,
        "printed": formulation.printed,
        "bound-columns": bounding.bound_columns,
        "bound-area": bounding.bound_area,
        "bound-over-time": over_time_bounding.bound_over_time,
        "hindsight": hindsight.hindsight,
    }


METHODS = entries(
    _methods,
    Entry(
        "exact",
        "branch and price on counts of GPUs and servers; if these differ, set covering",
        kind="exact",
        goals=POWER,
    ),
    Entry(
        "filling",
        "each GPU in turn gets the best set of tasks; thousands of tasks, with a bound",
        kind="offline",
        goals=POWER,
    ),
    Entry(
        "printed",
        "Eq. 6-14 as printed, by a general MILP solver (highs, cbc, …): the reference",
        kind="exact",
        params={"backend": "highs"},
        goals=POWER,
    ),
    Entry(
        "bound-columns",
        "linear program over what one GPU may hold",
        kind="bound",
        goals=POWER,
    ),
    Entry(
        "bound-area",
        "GPUs of each cost level counted in closed form; any size",
        kind="bound",
        goals=POWER,
    ),
    Entry(
        "bound-over-time",
        "prices of memory, presence and progress over time, each task at its cheapest",
        kind="bound",
        goals=ENERGY,
        options=BoundParams,
    ),
    Entry(
        "hindsight",
        "the best of many offline packings of present tasks, event by event; with a bound",
        kind="offline",
        seeded=True,
        goals=ENERGY,
        options=HindsightParams,
    ),
)


def _formulations() -> dict[str, Callable[..., Any]]:
    """Import the formulations."""
    from optgap.solvers.consolidation import formulation

    return {"printed": formulation.formulation}


FORMULATIONS = entries(
    _formulations,
    Entry(
        "printed",
        "CATS, Eq. 6-14, with the capacity rows that CATS leaves out",
        kind="exact",
        params={"big_m": True},
        goals=POWER,
    ),
)


def auto(problem: ConsolidationProblem) -> str:
    """Return the name of the method for this problem."""
    from optgap.solvers.consolidation.config import DEFAULT

    if problem.objective.goal == "energy":
        return "hindsight" if len(problem) <= TUNING.most_tasks else "bound-over-time"
    alike = len(set(problem.servers)) == 1 and len(set(problem.servers[0].gpus)) == 1
    return "filling" if alike and len(problem) > DEFAULT.tree.tasks else "exact"


def auto_bound(problem: ConsolidationProblem) -> str:
    """Return the name of the method with the best bound for this problem."""
    from optgap.solvers.consolidation.config import DEFAULT

    if problem.objective.goal == "energy":
        return "bound-over-time"
    return "bound-area" if len(problem) > DEFAULT.tree.tasks else "bound-columns"
