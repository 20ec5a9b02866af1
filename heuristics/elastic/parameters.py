"""Parameters of the policies, with meanings, defaults and places in the papers."""

from dataclasses import dataclass

from optgap.models.spec import parameter


@dataclass(frozen=True)
class _Slices:
    """Parameters of Gandiva's time slices."""

    quantum_s: float = parameter(60.0, "length of a time slice", "s", "Gandiva", within=(1e-3, 1e9))


@dataclass(frozen=True)
class PowerFlowParams:
    """Parameters of PowerFlow."""

    sigma_time: float = parameter(
        0.044,
        "standard deviation of the logarithm of one measured time",
        source="PowerFlow, Table 2",
        within=(0.0, 1e9),
    )
    sigma_energy: float = parameter(
        0.055,
        "standard deviation of the logarithm of one measured energy",
        source="PowerFlow, Table 2",
        within=(0.0, 1e9),
    )
    prerun_s: float = parameter(
        240.0,
        "run of a new job on one GPU before it may start",
        "s",
        "PowerFlow",
        within=(0.0, 1e9),
    )
    profile_s: float = parameter(
        240.0,
        "profiling on each GPU count that is new to a job",
        "s",
        "PowerFlow",
        within=(0.0, 1e9),
    )
    mode: str = parameter(
        "strict",
        "stop before a step that breaks the limit, or after it, as printed",
        source="PowerFlow, Alg. 1",
        choices=("strict", "paper"),
    )
    frequency: str = parameter(
        "fixed",
        "frequency f* while GPUs are distributed: that of the fewest GPUs, or of each count",
        source="PowerFlow, Alg. 1",
        choices=("fixed", "per_n"),
    )
    profiles: str = parameter(
        "online",
        "fits to the job's measurements, or exact and free",
        source="PowerFlow, Sec. 5.2 and Fig. 9",
        choices=("online", "perfect"),
    )
    eta: float | None = parameter(
        None, "η to plan with; empty for the problem's", "share", "PowerFlow, Alg. 1"
    )


@dataclass(frozen=True)
class ClockParams:
    """Parameters of AFS, FIFO, elastic FIFO and elastic SRTF."""

    frequency: float = parameter(
        0.0, "common frequency of all jobs; 0 for the highest", "MHz", "PowerFlow, evaluation"
    )


@dataclass(frozen=True)
class _Queues:
    """Parameters of Tiresias' queues."""

    discipline: str = parameter(
        "2d-las",
        "order within a queue: by attained service, or by the Gittins index",
        source="Tiresias",
        choices=("2d-las", "gittins"),
    )
    threshold_1: float = parameter(
        3250.0, "attained service at which the first queue ends", "GPU-s", "Tiresias"
    )
    threshold_2: float = parameter(
        7200.0,
        "attained service at which the second queue ends; 0 for none",
        "GPU-s",
        "Tiresias",
    )


@dataclass(frozen=True)
class TiresiasParams(_Queues, ClockParams):
    """Parameters of Tiresias."""


@dataclass(frozen=True)
class GandivaParams(_Slices, ClockParams):
    """Parameters of Gandiva."""


@dataclass(frozen=True)
class ZeusParams:
    """Parameters of Zeus."""

    zeus_eta: float = parameter(
        0.5,
        "η_z of Zeus's cost, 0 for time alone, 1 for energy alone",
        source="Zeus",
        within=(0.0, 1.0),
    )


@dataclass(frozen=True)
class TiresiasZeusParams(_Queues, ZeusParams):
    """Parameters of Tiresias+Zeus."""


@dataclass(frozen=True)
class GandivaZeusParams(_Slices, ZeusParams):
    """Parameters of Gandiva+Zeus."""


@dataclass(frozen=True)
class WorkValueParams:
    """Parameters of `work-value`."""

    power: float = parameter(
        0.75,
        "exponent of the cost in the value of work: 1 for progress, less for short jobs first",
        within=(0.0, 1.0),
    )
    spread_s: float = parameter(
        300.0,
        "time over which a restart is spread, in which a new GPU count has to pay off",
        "s",
        within=(1e-3, 1e9),
    )
    gap: float = parameter(
        1e-3, "relative gap up to which a decision is searched", "share", within=(0.0, 1.0)
    )
