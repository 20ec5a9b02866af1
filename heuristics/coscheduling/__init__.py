"""Co-scheduling policies: told what waits and what is free, at time 0 and whenever a job ends."""

from optgap.heuristics.coscheduling.parameters import (
    EcoSchedParams,
    ExactWindowParams,
    LookaheadParams,
)
from optgap.models.spec import Entry, entries

HERE = "optgap.heuristics.coscheduling"

POLICIES = entries(
    Entry(
        "ecosched",
        f"{HERE}.ecosched:ecosched",
        "EcoSched: per event the jobs and GPU counts of least energy regret and idle share",
        options=EcoSchedParams,
        seeded=True,
    ),
    Entry(
        "marble",
        f"{HERE}.marble:marble",
        "Marble: every job on its fastest GPU count, first fit in queue order",
    ),
    Entry(
        "sequential_max_gpu",
        f"{HERE}.sequential:sequential_max_gpu",
        "one job at a time, on as many GPUs as it can use",
    ),
    Entry(
        "sequential_optimal_gpu",
        f"{HERE}.sequential:sequential_optimal_gpu",
        "one job at a time, on its fastest GPU count",
    ),
    Entry(
        "lookahead",
        f"{HERE}.lookahead:lookahead",
        "EcoSched's score played to the end of the window, from each of the best actions",
        options=LookaheadParams,
    ),
    Entry(
        "exact-window",
        f"{HERE}.exact_window:exact_window",
        "the waiting jobs scheduled optimally, again whenever another one comes",
        options=ExactWindowParams,
        goals=("energy", "makespan"),
    ),
)

CUSTOM = Entry(
    "custom",
    f"{HERE}.custom:run",
    "a policy of your own: place(state) returns (job, gpu_count) pairs",
    seeded=True,
)

__all__ = ["CUSTOM", "POLICIES"]
