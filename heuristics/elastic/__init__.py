"""Elastic policies: PowerFlow, and schedulers whose jobs run at a common clock."""

from optgap.heuristics.elastic.parameters import (
    AfsParams,
    ClockParams,
    GandivaParams,
    GandivaZeusParams,
    PowerFlowParams,
    TiresiasParams,
    TiresiasZeusParams,
    WorkValueParams,
)
from optgap.models.spec import Entry, entries

HERE = "optgap.heuristics.elastic"

POLICIES = entries(
    Entry(
        "powerflow",
        f"{HERE}.powerflow:powerflow",
        "PowerFlow (Algorithm 1): GPUs, then clocks, by time saved per energy spent",
        options=PowerFlowParams,
        seeded=True,
        knows=("remaining work",),
    ),
    Entry(
        "afs",
        f"{HERE}.afs:afs",
        "AFS-L: elastic; the next GPUs to the winner of a tournament of pairs",
        options=AfsParams,
        knows=("remaining work",),
    ),
    Entry(
        "tiresias",
        f"{HERE}.tiresias:tiresias",
        "Tiresias: queues by attained service (2d-las or gittins), preemptive",
        options=TiresiasParams,
    ),
    Entry(
        "gandiva",
        f"{HERE}.gandiva:gandiva",
        "Gandiva: node sets per GPU count, time-sliced when over-subscribed",
        options=GandivaParams,
    ),
    Entry(
        "tiresias+zeus",
        f"{HERE}.tiresias:tiresias_zeus",
        "Tiresias, each job at the clock of least Zeus cost",
        options=TiresiasZeusParams,
    ),
    Entry(
        "gandiva+zeus",
        f"{HERE}.gandiva:gandiva_zeus",
        "Gandiva, each job at the clock of least Zeus cost",
        options=GandivaZeusParams,
    ),
    Entry(
        "fifo",
        f"{HERE}.fifo:fifo",
        "first come, first served, on the GPUs requested",
        options=ClockParams,
    ),
    Entry(
        "elastic-fifo",
        f"{HERE}.elastic_fifo:elastic_fifo",
        "fewest GPUs for each by submission, then doubled in turn",
        options=ClockParams,
    ),
    Entry(
        "elastic-srtf",
        f"{HERE}.elastic_fifo:elastic_srtf",
        "the same by remaining time",
        options=ClockParams,
        knows=("remaining work",),
    ),
    Entry(
        "optimal",
        f"{HERE}.optimal:optimal",
        "the exact optimum of Eq. 18-19 at every event, with what is known then",
        knows=("remaining work",),
    ),
    Entry(
        "optimal-slowdown",
        f"{HERE}.optimal:optimal_slowdown",
        "the same, of slowdowns instead of times: not the longest job first",
        knows=("remaining work",),
    ),
    Entry(
        "work-value",
        f"{HERE}.work_value:work_value",
        "ours: what does most worth of work, restarts taken off; work is worth what it costs",
        options=WorkValueParams,
        knows=("remaining work",),
    ),
)

CUSTOM = Entry(
    "custom",
    f"{HERE}.custom:run",
    "a policy of your own: allocate(state) returns {job: (gpus, frequency_mhz)}",
    seeded=True,
)

__all__ = ["CUSTOM", "POLICIES"]
