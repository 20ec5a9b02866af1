"""Placement policies: online, one task at a time, without knowledge of later arrivals."""

from optgap.heuristics.placement.parameters import (
    FgdParams,
    NodeValueParams,
    PwrFgdParams,
    PwrParams,
)
from optgap.models.spec import Entry, entries

HERE = "optgap.heuristics.placement"

POLICIES = entries(
    Entry(
        "pwr",
        f"{HERE}.pwr:pwr",
        "PWR, Alg. 1: least increase of power",
        options=PwrParams,
    ),
    Entry(
        "fgd",
        f"{HERE}.fgd:fgd",
        "FGD: least increase of expected fragmentation",
        options=FgdParams,
        knows=("the mix of tasks",),
    ),
    Entry(
        "pwr+fgd",
        f"{HERE}.pwr_fgd:pwr_fgd",
        "PWR and FGD, weighted by alpha and 1 - alpha",
        options=PwrFgdParams,
        knows=("the mix of tasks",),
    ),
    Entry(
        "bestfit",
        f"{HERE}.baselines:best_fit",
        "BestFit: least CPU and GPU left over",
    ),
    Entry(
        "dotprod",
        f"{HERE}.baselines:dot_product",
        "DotProd: smallest product of free and requested",
    ),
    Entry(
        "gpupacking",
        f"{HERE}.baselines:gpu_packing",
        "GpuPacking: GPUs in use before idle ones",
    ),
    Entry(
        "gpuclustering",
        f"{HERE}.baselines:gpu_clustering",
        "GpuClustering: tasks of a kind on the same nodes",
    ),
    Entry(
        "random",
        f"{HERE}.baselines:random",
        "Random: any feasible node and GPU",
        seeded=True,
    ),
    Entry(
        "firstfit",
        f"{HERE}.baselines:first_fit",
        "FirstFit: lowest-ranked feasible node, lowest GPU",
    ),
    Entry(
        "greedy-exact",
        f"{HERE}.greedy_exact:greedy_exact",
        "least increase of the problem's own objective, unrounded",
    ),
    Entry(
        "node-value",
        f"{HERE}.node_value:node_value",
        "ours: least increase of power less the change of what the rest of the node is worth",
        options=NodeValueParams,
        knows=("the mix of tasks",),
    ),
)

CUSTOM = Entry(
    "custom",
    f"{HERE}.custom:run",
    "a policy of your own: place(task, state)",
    seeded=True,
)

__all__ = ["CUSTOM", "POLICIES"]
