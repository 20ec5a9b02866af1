"""Queueing policies: each is asked when a job arrives, ends or leaves; none knows later jobs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from optgap.heuristics.queueing.parameters import (
    HpsParams,
    PbsParams,
    ReplanParams,
    SbsParams,
    ShortestReserveParams,
)
from optgap.models.spec import Entry, entries


def _policies() -> dict[str, Callable[..., Any]]:
    """Import and return the policies, and the runner of a user's own."""
    from optgap.heuristics.queueing import custom, fixed_order, policies

    return {
        "fifo": fixed_order.fifo,
        "sjf": fixed_order.sjf,
        "shortest": fixed_order.shortest,
        "shortest-reserve": policies.shortest_reserve,
        "shortest-gpu": fixed_order.shortest_gpu,
        "adaptive": policies.adaptive,
        "hps": policies.hps,
        "hps_fixed": policies.hps_fixed,
        "pbs": policies.pbs,
        "sbs": policies.sbs,
        "easy": policies.easy,
        "replan": policies.replan,
        "custom": custom.run,
    }


POLICIES = entries(
    _policies,
    Entry("fifo", "FIFO: by arrival, the first job blocks the queue"),
    Entry("sjf", "SJF: the fewest GPUs first"),
    Entry("shortest", "Shortest: the least run time first", knows=("run times",)),
    Entry(
        "shortest-reserve",
        "ours: Shortest on nodes in use that long anyway; large jobs that wait long reserve nodes",
        options=ShortestReserveParams,
        knows=("run times",),
    ),
    Entry("shortest-gpu", "Shortest-GPU: the least run time x GPUs first", knows=("run times",)),
    Entry(
        "adaptive",
        "a reconstruction of the multi-factor scheduler that the paper abandoned",
        knows=("run times",),
    ),
    Entry("hps", "HPS as printed: base x aging x penalty", options=HpsParams, knows=("run times",)),
    Entry("hps_fixed", "HPS with aging that never falls", options=HpsParams, knows=("run times",)),
    Entry(
        "pbs",
        "PBS: efficiency, pairs for a node, gap filling, blocking avoidance",
        options=PbsParams,
        knows=("run times",),
    ),
    Entry(
        "sbs", "SBS: batches of like jobs of one family", options=SbsParams, knows=("run times",)
    ),
    Entry("easy", "EASY backfilling: the oldest job is never delayed", knows=("run times",)),
    Entry(
        "replan",
        "ours: an annealed plan of the waiting jobs at every event; its first jobs start",
        options=ReplanParams,
        seeded=True,
        knows=("run times",),
    ),
)

CUSTOM = Entry(
    "custom",
    "a policy of your own: place(state) returns the jobs to start now",
    seeded=True,
    functions=_policies,
)

__all__ = ["CUSTOM", "POLICIES"]
