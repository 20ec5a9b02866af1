"""Co-scheduling policies: each is asked at time 0 and whenever a job arrives or ends."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from optgap.heuristics.coscheduling.parameters import (
    EcoSchedParams,
    ExactWindowParams,
    LookaheadParams,
)
from optgap.models.spec import Entry, entries


def _policies() -> dict[str, Callable[..., Any]]:
    """Import and return the policies, and the runner of a user's own."""
    from optgap.heuristics.coscheduling import (
        custom,
        ecosched,
        exact_window,
        lookahead,
        marble,
        sequential,
    )

    return {
        "ecosched": ecosched.ecosched,
        "marble": marble.marble,
        "sequential_max_gpu": sequential.sequential_max_gpu,
        "sequential_optimal_gpu": sequential.sequential_optimal_gpu,
        "lookahead": lookahead.lookahead,
        "exact-window": exact_window.exact_window,
        "custom": custom.run,
    }


POLICIES = entries(
    _policies,
    Entry(
        "ecosched",
        "EcoSched: per event the jobs and GPU counts of least energy regret and idle share",
        options=EcoSchedParams,
    ),
    Entry("marble", "Marble: every job on its fastest GPU count, first fit in queue order"),
    Entry("sequential_max_gpu", "one job at a time, on the most GPUs that it can use"),
    Entry("sequential_optimal_gpu", "one job at a time, on its fastest GPU count"),
    Entry(
        "lookahead",
        "ours: EcoSched's score simulated to the end, from each of the best actions",
        options=LookaheadParams,
    ),
    Entry(
        "exact-window",
        "an optimal schedule of the waiting jobs, made again at every arrival",
        options=ExactWindowParams,
        goals=("energy", "makespan"),
    ),
)

CUSTOM = Entry(
    "custom",
    "a policy of your own: place(state) returns (job, gpu_count) pairs",
    seeded=True,
    functions=_policies,
)

__all__ = ["CUSTOM", "POLICIES"]
