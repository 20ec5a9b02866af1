"""Elastic policies: PowerFlow, and schedulers whose jobs run at a common clock."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from optgap.heuristics.elastic.parameters import (
    ClockParams,
    GandivaParams,
    GandivaZeusParams,
    PowerFlowParams,
    TiresiasParams,
    TiresiasZeusParams,
    WorkValueParams,
)
from optgap.models.spec import Entry, entries


def _policies() -> dict[str, Callable[..., Any]]:
    """Import and return the policies, and the runner of a user's own."""
    from optgap.heuristics.elastic import (
        afs,
        custom,
        fifo,
        gandiva,
        optimal,
        powerflow,
        tiresias,
        work_value,
    )

    return {
        "powerflow": powerflow.powerflow,
        "afs": afs.afs,
        "tiresias": tiresias.tiresias,
        "gandiva": gandiva.gandiva,
        "tiresias+zeus": tiresias.tiresias_zeus,
        "gandiva+zeus": gandiva.gandiva_zeus,
        "fifo": fifo.fifo,
        "elastic-fifo": fifo.elastic_fifo,
        "elastic-srtf": fifo.elastic_srtf,
        "optimal": optimal.optimal,
        "optimal-slowdown": optimal.optimal_slowdown,
        "work-value": work_value.work_value,
        "custom": custom.run,
    }


POLICIES = entries(
    _policies,
    Entry(
        "powerflow",
        "PowerFlow (Algorithm 1): GPUs, then frequencies, by time saved per energy spent",
        options=PowerFlowParams,
        seeded=True,
        knows=("remaining work",),
    ),
    Entry(
        "afs",
        "AFS-L: elastic; the next GPUs to the winner of a tournament of pairs",
        options=ClockParams,
        knows=("remaining work",),
    ),
    Entry(
        "tiresias",
        "Tiresias: queues by attained service (2d-las or gittins), preemptive",
        options=TiresiasParams,
    ),
    Entry(
        "gandiva",
        "Gandiva: node sets per GPU count, time-sliced when over-subscribed",
        options=GandivaParams,
    ),
    Entry(
        "tiresias+zeus",
        "Tiresias, each job at the frequency of least Zeus cost",
        options=TiresiasZeusParams,
    ),
    Entry(
        "gandiva+zeus",
        "Gandiva, each job at the frequency of least Zeus cost",
        options=GandivaZeusParams,
    ),
    Entry("fifo", "first come, first served, on the GPUs requested", options=ClockParams),
    Entry(
        "elastic-fifo",
        "the fewest GPUs for each job by submission, then doubled in turn",
        options=ClockParams,
    ),
    Entry(
        "elastic-srtf",
        "the fewest GPUs for each job by remaining time, then doubled in turn",
        options=ClockParams,
        knows=("remaining work",),
    ),
    Entry(
        "optimal",
        "the exact optimum of Eq. 18-19 at every event, online",
        knows=("remaining work",),
    ),
    Entry(
        "optimal-slowdown",
        "the exact optimum of the mean slowdown at every event, online",
        knows=("remaining work",),
    ),
    Entry(
        "work-value",
        "ours: the most valuable work at every event; the value of work is its cost in resources",
        options=WorkValueParams,
        knows=("remaining work",),
    ),
)

CUSTOM = Entry(
    "custom",
    "a policy of your own: allocate(state) returns {job: (gpus, frequency_mhz)}",
    seeded=True,
    functions=_policies,
)

__all__ = ["CUSTOM", "POLICIES"]
