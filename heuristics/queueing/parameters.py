"""Parameters of the policies, with meanings, defaults and places in the papers."""

from dataclasses import dataclass

from optgap.models.spec import parameter
from optgap.solvers.queueing.parameters import RESERVE_AFTER_S


@dataclass(frozen=True)
class ShortestReserveParams:
    """Parameters of Shortest with reservations."""

    reserve_after_s: float = parameter(
        RESERVE_AFTER_S,
        "wait after which a job of a whole node or more reserves nodes",
        "s",
        within=(0.0, 1e12),
    )


@dataclass(frozen=True)
class HpsParams:
    """Parameters of HPS, for the printed and the repaired version."""

    aging_threshold: float = parameter(
        300.0, "wait from which a job ages", "s", "HPS/PBS/SBS, HPS", within=(0.0, 1e12)
    )
    aging_boost: float = parameter(
        2.0, "factor at the end of a long wait", source="HPS/PBS/SBS, HPS", within=(1e-9, 1e6)
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
    """Parameters of PBS."""

    tau: float = parameter(
        0.1,
        "τ, lead in efficiency at which the most efficient job starts first",
        "share",
        "HPS/PBS/SBS, PBS",
        within=(0.0, 1e6),
    )
    delta: float = parameter(
        0.25,
        "Δ, allowed relative difference of the run times of a pair",
        "share",
        "HPS/PBS/SBS, PBS",
        within=(0.0, 1.0),
    )
    pair_stage: str = parameter(
        "after_rule1",
        "place of the search for pairs, which the paper leaves open",
        source="HPS/PBS/SBS, PBS",
        choices=("after_rule1", "first", "off"),
    )


@dataclass(frozen=True)
class SbsParams:
    """Parameters of SBS."""

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
        256, "waiting jobs considered of each family; 0 for all", "jobs", within=(0, 1e9)
    )
    every: int = parameter(
        12,
        "most waiting jobs of a family for which all batches are tried, not only neighbours",
        "jobs",
        within=(0, 64),
    )


@dataclass(frozen=True)
class ReplanParams:
    """Parameters of replanning at every event."""

    jobs: int = parameter(
        64,
        "waiting jobs in the plan, in the order of the last plan",
        "jobs",
        within=(1, 10_000),
    )
    moves: int = parameter(1000, "most lists tried per plan", within=(0, 1e9))
