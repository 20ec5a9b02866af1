"""What can be set of each policy, what it means, and where it stands in a paper."""

from dataclasses import dataclass
from typing import Any

from optgap.models.spec import parameter


def _tau(default: float) -> Any:
    return parameter(
        default,
        "τ, slow-down against the fastest GPU count that is tolerated; 0.14 on H100, 0.20 on V100",
        "share",
        "EcoSched, Phase II",
    )


def _idle_weight() -> Any:
    return parameter(
        None,
        "λ, weight of the share of GPUs left idle; empty for idle over mean busy power",
        source="EcoSched, Eq. 2",
    )


def _window(default: int) -> Any:
    return parameter(default, "waiting jobs looked at, in queue order; 0 for all", "jobs")


@dataclass(frozen=True)
class EcoSchedParams:
    """EcoSched.

    The defaults are the authors' own. ``auto``: the problem's fitted run times where it has them,
    else DRAM activity where it has any, as the paper prints, else the true run times. Without
    samples or traffic on some GPU count, ``dram`` takes an application to be as fast on every
    count, which the message says. Profiling takes no time here, as it is done on other nodes. The
    paper leaves open over which modes energy is normalised; only ``kept`` gives its case study.
    """

    tau: float = _tau(0.14)
    idle_weight: float | None = _idle_weight()
    window: int = _window(0)
    signal: str = parameter(
        "auto",
        "relative run times: fitted, else from DRAM, else true (auto), or one of them, or noisy",
        source="EcoSched, Phase I",
        choices=("auto", "perfect", "dram", "fitted", "noisy"),
    )
    sigma: float = parameter(
        0.05, "standard deviation of the logarithm of run times' error (signal=noisy)"
    )
    repeat: bool = parameter(False, "choose again at the same instant until nothing more fits")
    model: str = parameter("", "file of a dram-runtime fit (signal=fitted)", "path")
    profiling_s: float = parameter(
        15.0, "how long each GPU count is profiled, on other nodes", "s", "EcoSched, Sec. V-C"
    )
    count_profiling: bool = parameter(False, "count the energy of profiling as a metric")
    normalise: str = parameter(
        "kept",
        "least energy of an application over all its GPU counts, or those that τ keeps",
        source="EcoSched, Eq. 1",
        choices=("all", "kept"),
    )


@dataclass(frozen=True)
class MarbleParams:
    """Marble."""

    strict: bool = parameter(False, "the first job that does not fit ends the scan of the queue")
    numa_limit: bool = parameter(
        True, "no more jobs at a time than NUMA domains", source="EcoSched"
    )


@dataclass(frozen=True)
class LookaheadParams:
    """Looking ahead with EcoSched's score."""

    tau: float = _tau(1.0)
    idle_weight: float | None = _idle_weight()
    window: int = _window(20)
    breadth: int = parameter(24, "actions that are played to the end, those of least score")


@dataclass(frozen=True)
class ExactWindowParams:
    """The exact window; the metrics tell how many plans were not proven optimal in their time."""

    window: int = _window(0)
    seconds: float = parameter(10.0, "time for one plan", "s")
    workers: int = parameter(
        0, "threads of CP-SAT; 0 for one per core, and no fewer than eight", "threads"
    )
