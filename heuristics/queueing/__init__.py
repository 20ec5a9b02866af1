"""Queueing policies: asked whenever a job arrives, ends or leaves, without knowing later jobs."""

from optgap.heuristics.queueing.parameters import (
    HpsParams,
    PbsParams,
    ReplanParams,
    SbsParams,
    ShortestReserveParams,
    SjfParams,
)
from optgap.models.spec import Entry, entries

HERE = "optgap.heuristics.queueing"

POLICIES = entries(
    Entry(
        "fifo",
        f"{HERE}.fixed_order:fifo",
        "FIFO: by arrival, the first job blocks the queue",
    ),
    Entry(
        "sjf",
        f"{HERE}.fixed_order:sjf",
        "SJF: the fewest GPUs first",
        options=SjfParams,
    ),
    Entry(
        "shortest",
        f"{HERE}.fixed_order:shortest",
        "Shortest: the least run time first",
        knows=("run times",),
    ),
    Entry(
        "shortest-reserve",
        f"{HERE}.policies:shortest_reserve",
        "Shortest on nodes in use that long anyway; a wide job that waits for long books nodes",
        options=ShortestReserveParams,
        knows=("run times",),
    ),
    Entry(
        "shortest-gpu",
        f"{HERE}.fixed_order:shortest_gpu",
        "Shortest-GPU: the least run time x GPUs first",
        knows=("run times",),
    ),
    Entry(
        "adaptive",
        f"{HERE}.policies:adaptive",
        "a reconstruction of the multi-factor scheduler that the paper gave up",
        knows=("run times",),
    ),
    Entry(
        "hps",
        f"{HERE}.policies:hps",
        "HPS as printed: base x aging x penalty",
        options=HpsParams,
        knows=("run times",),
    ),
    Entry(
        "hps_fixed",
        f"{HERE}.policies:hps_fixed",
        "HPS with aging that never falls",
        options=HpsParams,
        knows=("run times",),
    ),
    Entry(
        "pbs",
        f"{HERE}.policies:pbs",
        "PBS: efficiency, pairs for a node, gap filling, blocking avoidance",
        options=PbsParams,
        knows=("run times",),
    ),
    Entry(
        "sbs",
        f"{HERE}.policies:sbs",
        "SBS: batches of like jobs of one family",
        options=SbsParams,
        knows=("run times",),
    ),
    Entry(
        "easy",
        f"{HERE}.policies:easy",
        "EASY backfilling: the oldest job is never delayed",
        knows=("run times",),
    ),
    Entry(
        "conservative",
        f"{HERE}.conservative:conservative",
        "conservative backfilling: no job is delayed by a later one",
        knows=("run times",),
    ),
    Entry(
        "replan",
        f"{HERE}.policies:replan",
        "the waiting jobs planned anew by annealing at every event; what starts now is started",
        options=ReplanParams,
        seeded=True,
        knows=("run times",),
    ),
)

CUSTOM = Entry(
    "custom",
    f"{HERE}.custom:run",
    "a policy of your own: place(state) returns the jobs to start now",
    seeded=True,
)

__all__ = ["CUSTOM", "POLICIES"]
