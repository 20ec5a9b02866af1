"""Elastic policies: PowerFlow, and schedulers whose jobs run at a common clock."""

from optgap.models.spec import Entry, entries

HERE = "optgap.heuristics.elastic"
CLOCK = {"frequency": 0.0, "capped": True}
TIRESIAS = {
    "discipline": "2d-las",
    "threshold_1": 3250.0,
    "threshold_2": 7200.0,
    "promote": 0.0,
    "repack": True,
}

POLICIES = entries(
    Entry(
        "powerflow",
        f"{HERE}.powerflow:powerflow",
        "PowerFlow (Algorithm 1): GPUs, then clocks, by time saved per energy spent",
        params={
            "mode": "strict",
            "frequency": "fixed",
            "first_gpu": "energy",
            "profiles": "fitted",
            "sigma_time": 0.044,
            "sigma_energy": 0.055,
            "prerun_s": 240.0,
            "profile_s": 240.0,
            "preempt_profile": False,
            "migration": "least",
            "consolidate": False,
            "switch_off": True,
            "boot_s": 0.0,
            "count_idle": False,
            "eta": None,
        },
        deterministic=False,
    ),
    Entry(
        "afs",
        f"{HERE}.fifo:afs",
        "AFS-L: elastic; the next GPUs to the winner of a tournament of pairs",
        params=CLOCK,
    ),
    Entry(
        "tiresias",
        f"{HERE}.tiresias:tiresias",
        "Tiresias: queues by attained service (2d-las or gittins), preemptive",
        params={**TIRESIAS, "gittins": "corrected", **CLOCK},
    ),
    Entry(
        "gandiva",
        f"{HERE}.gandiva:gandiva",
        "Gandiva: node sets per GPU count, time-sliced when over-subscribed",
        params={"quantum_s": 60.0, **CLOCK},
    ),
    Entry(
        "tiresias+zeus",
        f"{HERE}.tiresias:tiresias_zeus",
        "Tiresias, each job at the clock of least Zeus cost",
        params={"zeus_eta": 0.5, "zeus_profile": False, **TIRESIAS, "capped": True},
    ),
    Entry(
        "gandiva+zeus",
        f"{HERE}.gandiva:gandiva_zeus",
        "Gandiva, each job at the clock of least Zeus cost",
        params={"zeus_eta": 0.5, "zeus_profile": False, "quantum_s": 60.0, "capped": True},
    ),
    Entry(
        "fifo",
        f"{HERE}.fifo:fifo",
        "first come, first served, on the GPUs requested",
        params={**CLOCK, "backfill": False},
    ),
    Entry(
        "elastic-fifo",
        f"{HERE}.fifo:elastic_fifo",
        "fewest GPUs for each by submission, then doubled in turn",
        params=CLOCK,
    ),
    Entry(
        "elastic-srtf",
        f"{HERE}.fifo:elastic_srtf",
        "the same by remaining time",
        params=CLOCK,
    ),
    Entry(
        "optimal",
        f"{HERE}.optimal:optimal",
        "the exact optimum of Eq. 18-19 at every event, with what is known then",
        params={"objective": "jct", "switch_off": True, "gap": 1e-4},
    ),
    Entry(
        "optimal-slowdown",
        f"{HERE}.optimal:optimal_slowdown",
        "the same, of slowdowns instead of times: not the longest job first",
        params={"switch_off": True, "gap": 1e-4},
    ),
)

CUSTOM = Entry(
    "custom",
    f"{HERE}.custom:run",
    "a policy of your own: allocate(state) returns {job: (gpus, frequency_mhz)}",
    deterministic=False,
)

__all__ = ["CUSTOM", "POLICIES"]
