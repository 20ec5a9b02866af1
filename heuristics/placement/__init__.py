"""Placement policies: online, one task at a time, without knowledge of later arrivals."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from optgap.heuristics.placement.parameters import (
    FgdParams,
    NodeValueParams,
    PwrFgdParams,
    PwrParams,
)
from optgap.models.spec import Entry, entries


def _policies() -> dict[str, Callable[..., Any]]:
    """Import and return the policies, and the runner of a user's own."""
    from optgap.heuristics.placement import (
        baselines,
        custom,
        fgd,
        greedy_exact,
        node_value,
        pwr,
        pwr_fgd,
    )

    return {
        "pwr": pwr.pwr,
        "fgd": fgd.fgd,
        "pwr+fgd": pwr_fgd.pwr_fgd,
        "bestfit": baselines.best_fit,
        "dotprod": baselines.dot_product,
        "gpupacking": baselines.gpu_packing,
        "gpuclustering": baselines.gpu_clustering,
        "random": baselines.random,
        "firstfit": baselines.first_fit,
        "greedy-exact": greedy_exact.greedy_exact,
        "node-value": node_value.node_value,
        "custom": custom.run,
    }


POLICIES = entries(
    _policies,
    Entry("pwr", "PWR, Alg. 1: least increase of power", options=PwrParams),
    Entry(
        "fgd",
        "FGD: least increase of expected fragmentation",
        options=FgdParams,
        knows=("the mix of tasks",),
    ),
    Entry(
        "pwr+fgd",
        "PWR and FGD, weighted by alpha and 1 - alpha",
        options=PwrFgdParams,
        knows=("the mix of tasks",),
    ),
    Entry("bestfit", "BestFit: least CPU and GPU left over"),
    Entry("dotprod", "DotProd: smallest product of free and requested"),
    Entry("gpupacking", "GpuPacking: GPUs in use before idle ones"),
    Entry("gpuclustering", "GpuClustering: tasks of a kind on the same nodes"),
    Entry("random", "Random: any feasible node and GPU", seeded=True),
    Entry("firstfit", "FirstFit: lowest-ranked feasible node, lowest GPU"),
    Entry("greedy-exact", "least increase of the problem's own objective, unrounded"),
    Entry(
        "node-value",
        "ours: least increase of power less the change of the node's value to later tasks",
        options=NodeValueParams,
        knows=("the mix of tasks",),
    ),
)

CUSTOM = Entry(
    "custom", "a policy of your own: place(task, state)", seeded=True, functions=_policies
)

__all__ = ["CUSTOM", "POLICIES"]
