"""What can be set of each policy, what it means, and where it stands in a paper."""

from dataclasses import dataclass
from typing import Any

from optgap.models.spec import parameter

STATES = 3000
"""Of the search of one decision of `work-value` at most."""


def _capped() -> Any:
    return parameter(True, "keep the power limit by lower clocks and by waiting")


def _quantum_s() -> Any:
    return parameter(60.0, "length of a time slice", "s", "Gandiva")


def _sigma(default: float, of: str) -> Any:
    what = f"standard deviation of the logarithm of one measured {of} (scaled: of the factor)"
    return parameter(default, what, source="PowerFlow, Table 2", within=(0.0, 1e9))


def _prerun_s() -> Any:
    what = "run of a new job on one GPU before it may start"
    return parameter(240.0, what, "s", "PowerFlow", within=(0.0, 1e9))


def _profile_s() -> Any:
    what = "profiling on each GPU count that is new to a job"
    return parameter(240.0, what, "s", "PowerFlow", within=(0.0, 1e9))


@dataclass(frozen=True)
class PowerFlowParams:
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
    sigma_time: float = _sigma(0.044, "time")
    sigma_energy: float = _sigma(0.055, "energy")
    prerun_s: float = _prerun_s()
    profile_s: float = _profile_s()
    eta: float | None = parameter(
        None, "η to plan with; empty for the problem's", "share", "PowerFlow, Alg. 1"
    )


@dataclass(frozen=True)
class ClockParams:
    """FIFO, elastic FIFO and elastic SRTF."""

    frequency: float = parameter(
        0.0, "common clock of all jobs; 0 for the highest", "MHz", "PowerFlow, evaluation"
    )
    capped: bool = _capped()


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
class GandivaParams(ClockParams):
    """Gandiva."""

    quantum_s: float = _quantum_s()


@dataclass(frozen=True)
class ZeusParams:
    """Zeus."""

    zeus_eta: float = parameter(
        0.5, "η_z of Zeus's cost, 0 for time alone, 1 for energy alone", source="Zeus"
    )
    capped: bool = _capped()


@dataclass(frozen=True)
class TiresiasZeusParams(_Queues, ZeusParams):
    """Tiresias+Zeus."""


@dataclass(frozen=True)
class GandivaZeusParams(ZeusParams):
    """Gandiva+Zeus."""

    quantum_s: float = _quantum_s()


@dataclass(frozen=True)
class WorkValueParams:
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
    sigma_time: float = _sigma(0.044, "time")
    sigma_energy: float = _sigma(0.055, "energy")
    prerun_s: float = _prerun_s()
    profile_s: float = _profile_s()
