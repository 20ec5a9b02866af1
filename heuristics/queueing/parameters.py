"""What can be set of each policy, what it means, and where it stands in a paper."""

from dataclasses import dataclass

from optgap.models.spec import parameter
from optgap.solvers.queueing.parameters import RESERVE_AFTER_S


@dataclass(frozen=True)
class SjfParams:
    """SJF."""

    sjf_key: str = parameter(
        "gpus",
        "fewest GPUs first (the text), or shortest first (Table I)",
        source="HPS/PBS/SBS, Table I",
        choices=("gpus", "time"),
    )


@dataclass(frozen=True)
class ShortestReserveParams:
    """Shortest with bookings."""

    reserve_after_s: float = parameter(
        RESERVE_AFTER_S,
        "wait after which a job of a whole node or more books nodes",
        "s",
        within=(0.0, 1e12),
    )


@dataclass(frozen=True)
class HpsParams:
    """HPS, as printed and repaired."""

    aging_threshold: float = parameter(
        300.0, "wait from which a job ages", "s", "HPS/PBS/SBS, HPS", within=(0.0, 1e12)
    )
    aging_boost: float = parameter(
        2.0, "factor that long waits end up with", source="HPS/PBS/SBS, HPS", within=(1e-9, 1e6)
    )
    max_wait_time: float = parameter(
        1800.0, "wait at which the boost is full", "s", "HPS/PBS/SBS, HPS"
    )
    reserve_after_s: float = parameter(
        0.0,
        "wait after which the oldest job has a reservation; 0 for never",
        "s",
        within=(0.0, 1e12),
    )


@dataclass(frozen=True)
class PbsParams:
    """PBS."""

    tau: float = parameter(
        0.1,
        "τ, by how much the most efficient job must lead to be started for it",
        "share",
        "HPS/PBS/SBS, PBS",
        within=(0.0, 1e6),
    )
    delta: float = parameter(
        0.25,
        "Δ, by which run times of a pair may differ",
        "share",
        "HPS/PBS/SBS, PBS",
        within=(0.0, 1.0),
    )
    pair_stage: str = parameter(
        "after_rule1",
        "where pairs are looked for, which the paper leaves open",
        source="HPS/PBS/SBS, PBS",
        choices=("after_rule1", "first", "off"),
    )


@dataclass(frozen=True)
class SbsParams:
    """SBS."""

    theta: float = parameter(
        0.5, "θ, least similarity of a batch", source="HPS/PBS/SBS, SBS", within=(0.0, 1.0)
    )
    time_unit_s: float = parameter(
        3600.0,
        "run times of a batch are compared in this unit; 1 as printed",
        "s",
        "HPS/PBS/SBS, SBS",
        within=(1e-6, 1e12),
    )
    lookahead: int = parameter(
        256, "waiting jobs of each family looked at; 0 for all", "jobs", within=(0, 1e9)
    )
    every: int = parameter(
        12,
        "all batches are tried in a family of no more waiting jobs; else neighbours",
        "jobs",
        within=(0, 64),
    )


@dataclass(frozen=True)
class ReplanParams:
    """Re-planning at every event."""

    jobs: int = parameter(
        64,
        "waiting jobs that are planned, in the order of the last plan",
        "jobs",
        within=(1, 10_000),
    )
    moves: int = parameter(1000, "lists tried per plan, at most", within=(0, 1e9))
