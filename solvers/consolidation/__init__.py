"""Exact methods and bounds of the consolidation family, for running *every* task.

`exact` is a branch-and-price over sets of tasks that share a GPU. Where to find what:

- a column is priced in `column_generation.pricing`, and added by the loop of `.generation`;
- a node is branched on by the rules of `branch_and_price.branching`, and expanded in `.tree`;
- the dual bound is computed in `column_generation.dual_bound`;
- the incumbent (`incumbent`) comes from the heuristics of `primal`, chosen in `primal.portfolio`;
- `exact` runs construction and the closed-form bound; filling, exchange and annealing; the tree.
  Where GPUs, servers or power lines differ there is no tree, but annealing, column bounds and the
  compact model.

`bounds` and `bounding` hold the other lower bounds, `large_scale` what is beyond 600 tasks,
`formulations` models for general solvers, `over_time` tasks that come and go, `snapshot` one event
of an online policy, `instance` the arrays, and `config` all parameters. Modules import only from
those before them: `numerics`, `config`, `instance`, `incumbent`, `outcome`, `bounds`,
`column_generation`, `branch_and_price`, `primal`, then the methods.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from optgap.models.spec import Entry, entries
from optgap.solvers.consolidation.over_time.parameters import (
    BoundParams,
    ExactParams,
    HindsightParams,
)

if TYPE_CHECKING:
    from optgap.models.consolidation import ConsolidationProblem

HERE = "optgap.solvers.consolidation"
POWER, ENERGY = ("power",), ("energy",)

METHODS = entries(
    Entry(
        "exact",
        f"{HERE}.exact:exact",
        "branch-and-price on counts of GPUs and servers; the strengthened compact model on CP-SAT",
        kind="exact",
        params={"workers": 0},
        goals=POWER,
    ),
    Entry(
        "filling",
        f"{HERE}.large_scale:filling",
        "GPUs filled by the best set of tasks, dearest level first; thousands of tasks, bounded",
        kind="offline",
        params={"tries": 60},
        goals=POWER,
    ),
    Entry(
        "columns",
        f"{HERE}.exact:columns",
        "set covering: column generation with exact pricing, dives, branch-and-price",
        kind="exact",
        params={"dives": 20, "nodes": 3000},
        goals=POWER,
    ),
    Entry(
        "printed",
        f"{HERE}.formulations.printed:printed",
        "Eq. 6-14 as printed, by a general MILP solver (backend: highs, cbc, …): the reference",
        kind="exact",
        params={"backend": "highs", "big_m": True},
        goals=POWER,
    ),
    Entry(
        "exhaustive",
        f"{HERE}.formulations.exhaustive:exhaustive",
        "every placement tried; up to 6 tasks",
        kind="exact",
        goals=POWER,
    ),
    Entry(
        "bound-columns",
        f"{HERE}.bounding:bound_columns",
        "linear program over what one GPU may hold, and counts by level rounded up",
        kind="bound",
        goals=POWER,
    ),
    Entry(
        "bound-area",
        f"{HERE}.bounding:bound_area",
        "GPUs of each cost level counted in closed form; any size",
        kind="bound",
        goals=POWER,
    ),
    Entry(
        "bound-energy",
        f"{HERE}.bounds.energy:bound_energy",
        "energy of the work itself, and of the tasks that must be there at each time",
        kind="bound",
        goals=ENERGY,
    ),
    Entry(
        "exact-over-time",
        f"{HERE}.over_time.exact:exact_over_time",
        "every set of tasks that can share a GPU for life; up to 15 tasks of one GPU each",
        kind="exact",
        goals=ENERGY,
        options=ExactParams,
    ),
    Entry(
        "bound-over-time",
        f"{HERE}.over_time.bounding:bound_over_time",
        "prices of memory, presence and progress over time, each task at its cheapest",
        kind="bound",
        goals=ENERGY,
        options=BoundParams,
    ),
    Entry(
        "hindsight",
        f"{HERE}.over_time.hindsight:hindsight",
        "least added energy, then annealing of who shares a GPU and at which clock; bounded",
        kind="offline",
        deterministic=False,
        goals=ENERGY,
        options=HindsightParams,
    ),
)

FORMULATIONS = entries(
    Entry(
        "printed",
        f"{HERE}.formulations.printed:formulation",
        "CATS, Eq. 6-14, with the capacity rows that it leaves out",
        kind="exact",
        params={"big_m": True},
        goals=POWER,
    )
)


def auto(problem: ConsolidationProblem) -> str:
    """The method for this problem."""
    from optgap.solvers.consolidation.config import DEFAULT
    from optgap.solvers.consolidation.formulations.exhaustive import MOST_TASKS

    if problem.objective.goal == "energy":
        from optgap.solvers.consolidation.over_time.exact import unfit

        if len(problem) > BoundParams().most_tasks:
            return "bound-over-time"
        return "hindsight" if unfit(problem) else "exact-over-time"
    if problem.rules.util_scaled:
        return "exhaustive" if len(problem) <= MOST_TASKS else "bound-columns"
    alike = len(set(problem.servers)) == 1 and len(set(problem.servers[0].gpus)) == 1
    return "filling" if alike and len(problem) > DEFAULT.tree.tasks else "exact"


def auto_bound(problem: ConsolidationProblem) -> str:
    """The method with the best bound for this problem."""
    from optgap.solvers.consolidation.config import DEFAULT

    if problem.objective.goal == "energy":
        return "bound-over-time"
    if problem.rules.util_scaled:
        return "bound-columns"
    return "bound-area" if len(problem) > DEFAULT.tree.tasks else "bound-columns"
