"""Co-scheduling policies: told what waits and what is free, at time 0 and whenever a job ends."""

from optgap.models.spec import Entry, entries

HERE = "optgap.heuristics.coscheduling"

POLICIES = entries(
    Entry(
        "ecosched",
        f"{HERE}.ecosched:ecosched",
        "EcoSched: per event the jobs and GPU counts of least energy regret and idle share",
        params={
            "tau": 0.14,
            "idle_weight": None,
            "window": 0,
            "signal": "auto",
            "sigma": 0.05,
            "repeat": False,
            "model": "",
            "profiling_s": 15.0,
            "count_profiling": False,
            "normalise": "all",
        },
        deterministic=False,
    ),
    Entry(
        "marble",
        f"{HERE}.simple:marble",
        "Marble: every job on its fastest GPU count, first fit in queue order",
        params={"strict": False, "numa_limit": True},
    ),
    Entry(
        "sequential_max_gpu",
        f"{HERE}.simple:sequential_max_gpu",
        "one job at a time, on as many GPUs as it can use",
    ),
    Entry(
        "sequential_optimal_gpu",
        f"{HERE}.simple:sequential_optimal_gpu",
        "one job at a time, on its fastest GPU count",
    ),
    Entry(
        "lookahead",
        f"{HERE}.lookahead:lookahead",
        "EcoSched's score played to the end of the window, from each of the best actions",
        params={"tau": 1.0, "idle_weight": None, "window": 20, "breadth": 24},
    ),
    # Uses the exact methods, which this folder must not import: it lives beside them.
    Entry(
        "exact-window",
        "optgap.solvers.coscheduling.window:exact_window",
        "the waiting jobs scheduled optimally, again whenever another one comes",
        params={"window": 0, "seconds": 10.0, "workers": 0},
        goals=("energy", "makespan"),
    ),
)

CUSTOM = Entry(
    "custom",
    f"{HERE}.custom:run",
    "a policy of your own: place(state) returns (job, gpu_count) pairs",
    deterministic=False,
)

__all__ = ["CUSTOM", "POLICIES"]
