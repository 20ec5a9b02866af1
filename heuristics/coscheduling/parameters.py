"""Parameters of the policies, with meanings, defaults and places in the papers."""

from dataclasses import dataclass
from typing import Any

from optgap.models.spec import parameter


def _tau(default: float) -> Any:
    return parameter(
        default,
        "τ, tolerated slowdown against the fastest GPU count; 0.14 on H100, 0.20 on V100",
        "share",
        "EcoSched, Phase II",
    )


def _window() -> Any:
    return parameter(0, "waiting jobs considered, in queue order; 0 for all", "jobs")


@dataclass(frozen=True)
class EcoSchedParams:
    """Parameters of EcoSched.

    The defaults are the authors' own. ``auto``: the problem's fitted run times where it has them,
    else DRAM activity where it has any, as the paper prints, else the true run times. Without
    samples or traffic on some GPU count, ``dram`` takes an application to be as fast on every
    count, which the message says. Profiling takes no time here, as it is done on other nodes. The
    paper leaves open over which modes energy is normalised; only ``kept`` gives its case study.
    """

    tau: float = _tau(0.14)
    idle_weight: float | None = parameter(
        None,
        "λ, weight of the share of GPUs left idle; empty for idle over mean busy power",
        source="EcoSched, Eq. 2",
    )
    window: int = _window()
    signal: str = parameter(
        "auto",
        "relative run times: fitted, else from DRAM, else true (auto), or one of them",
        source="EcoSched, Phase I",
        choices=("auto", "perfect", "dram", "fitted"),
    )
    normalise: str = parameter(
        "kept",
        "least energy of an application over all its GPU counts, or those that τ keeps",
        source="EcoSched, Eq. 1",
        choices=("all", "kept"),
    )


@dataclass(frozen=True)
class LookaheadParams:
    """Parameters of the look-ahead with EcoSched's score."""

    tau: float = _tau(1.0)


@dataclass(frozen=True)
class ExactWindowParams:
    """Parameters of the exact window; a metric counts the plans without a proof of optimality."""

    window: int = _window()
