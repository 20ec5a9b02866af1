"""What can be set of each policy, what it means, and where it stands in a paper."""

from dataclasses import dataclass

from optgap.models.spec import parameter

STATES = 3000
"""Of the search of one decision of `work-value` at most."""


@dataclass(frozen=True)
class _Learnt:
    """What it takes to measure jobs, and how well that can be done."""

    sigma_time: float = parameter(
        0.044,
        "standard deviation of the logarithm of one measured time (scaled: of the factor)",
        source="PowerFlow, Table 2",
        within=(0.0, 1e9),
    )
    sigma_energy: float = parameter(
        0.055,
        "standard deviation of the logarithm of one measured energy (scaled: of the factor)",
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


@dataclass(frozen=True)
class _Capped:
    """Of schedulers without an energy knob."""

    capped: bool = parameter(True, "keep the power limit by lower clocks and by waiting")


@dataclass(frozen=True)
class _Slices:
    """Gandiva's slices."""

    quantum_s: float = parameter(60.0, "length of a time slice", "s", "Gandiva", within=(1e-3, 1e9))


@dataclass(frozen=True)
class PowerFlowParams(_Learnt):
    """PowerFlow."""

    mode: str = parameter(
        "strict",
        "a step only if the limit holds after it, or as printed: until it has been passed",
        source="PowerFlow, Alg. 1",
        choices=("strict", "paper"),
    )
    frequency: str = parameter(
        "fixed",
        "clock f* while GPUs are handed out: of the fewest GPUs, or of each count",
        source="PowerFlow, Alg. 1",
        choices=("fixed", "per_n"),
    )
    profiles: str = parameter(
        "online",
        "fits to what a job has shown; exact and free; or off by one random factor at all clocks",
        source="PowerFlow, Sec. 5.2 and Fig. 9",
        choices=("online", "perfect", "scaled"),
    )
    eta: float | None = parameter(
        None, "η to plan with; empty for the problem's", "share", "PowerFlow, Alg. 1"
    )


@dataclass(frozen=True)
class ClockParams(_Capped):
    """FIFO, elastic FIFO and elastic SRTF."""

    frequency: float = parameter(
        0.0, "common clock of all jobs; 0 for the highest", "MHz", "PowerFlow, evaluation"
    )


@dataclass(frozen=True)
class AfsParams(ClockParams):
    """AFS."""

    lengths: bool = parameter(
        True,
        "lengths are known (AFS-L); else what a job has done stands for what it has left",
        source="AFS",
    )


@dataclass(frozen=True)
class _Queues:
    """Tiresias' queues."""

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
    """Tiresias."""


@dataclass(frozen=True)
class GandivaParams(_Slices, ClockParams):
    """Gandiva."""


@dataclass(frozen=True)
class ZeusParams(_Capped):
    """Zeus."""

    zeus_eta: float = parameter(
        0.5,
        "η_z of Zeus's cost, 0 for time alone, 1 for energy alone",
        source="Zeus",
        within=(0.0, 1.0),
    )


@dataclass(frozen=True)
class TiresiasZeusParams(_Queues, ZeusParams):
    """Tiresias+Zeus."""


@dataclass(frozen=True)
class GandivaZeusParams(_Slices, ZeusParams):
    """Gandiva+Zeus."""


@dataclass(frozen=True)
class WorkValueParams(_Learnt):
    """Work value."""

    power: float = parameter(
        0.75,
        "remaining work is worth cost to such a power: 1 for progress, less for short jobs first",
        within=(0.0, 1.0),
    )
    spread_s: float = parameter(
        300.0,
        "time over which a restart is spread: what a new GPU count has to pay off in",
        "s",
        within=(1e-3, 1e9),
    )
    gap: float = parameter(
        1e-3, "relative gap up to which a decision is searched", "share", within=(0.0, 1.0)
    )
    profiles: str = parameter(
        "perfect",
        "exact and free, or fits to what a job has shown, as PowerFlow learns them",
        choices=("perfect", "online"),
    )
