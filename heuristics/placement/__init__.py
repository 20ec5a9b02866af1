"""Placement policies: online, one task at a time, without knowledge of later arrivals."""

from optgap.models.spec import Entry, entries

HERE = "optgap.heuristics.placement"

POLICIES = entries(
    Entry(
        "pwr",
        f"{HERE}.policies:pwr",
        "PWR, Alg. 1: least increase of power",
        params={"score": "implemented", "strict_fraction": False},
    ),
    Entry(
        "fgd",
        f"{HERE}.policies:fgd",
        "FGD: least increase of expected fragmentation",
        params={"score": "implemented"},
    ),
    Entry(
        "pwr+fgd",
        f"{HERE}.policies:pwr_fgd",
        "PWR and FGD, weighted by alpha and 1 - alpha",
        params={"alpha": 0.1, "score": "implemented", "strict_fraction": False},
    ),
    Entry(
        "bestfit",
        f"{HERE}.policies:best_fit",
        "BestFit: least CPU and GPU left over",
    ),
    Entry(
        "dotprod",
        f"{HERE}.policies:dot_product",
        "DotProd: smallest product of free and requested",
    ),
    Entry(
        "gpupacking",
        f"{HERE}.policies:gpu_packing",
        "GpuPacking: GPUs in use before idle ones",
    ),
    Entry(
        "gpuclustering",
        f"{HERE}.policies:gpu_clustering",
        "GpuClustering: tasks of a kind on the same nodes",
    ),
    Entry(
        "random",
        f"{HERE}.policies:random",
        "Random: any feasible node and GPU",
        deterministic=False,
    ),
    Entry(
        "firstfit",
        f"{HERE}.policies:first_fit",
        "FirstFit: lowest-ranked feasible node, lowest GPU",
    ),
    Entry(
        "greedy-exact",
        f"{HERE}.policies:greedy_exact",
        "least increase of the problem's own objective, unrounded",
    ),
)

CUSTOM = Entry(
    "custom",
    f"{HERE}.custom:run",
    "a policy of your own: place(task, state)",
    deterministic=False,
)

__all__ = ["CUSTOM", "POLICIES"]
