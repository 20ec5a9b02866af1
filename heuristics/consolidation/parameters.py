"""What can be set of each policy, what it means, and where it stands in a paper."""

from dataclasses import dataclass
from typing import Any

from optgap.models.spec import parameter


def _u_max() -> Any:
    return parameter(
        100.0, "most that the mean utilisations on a GPU may add up to", "%", "CATS, Alg. 1"
    )


@dataclass(frozen=True)
class CatsParams:
    """Parameters of CATS; those called literal follow the printed listings where these differ."""

    u_max: float = _u_max()
    rho_max: float = parameter(
        0.0, "highest correlation at which a task joins others", source="CATS, Alg. 1"
    )
    literal_empty: bool = parameter(
        False,
        "empty GPUs are candidates like others, with correlation 0",
        source="CATS, Alg. 2 as printed",
    )
    literal_units: bool = parameter(
        False,
        "the difference of means counts in percent, beside a correlation in -1..1",
        source="CATS, Alg. 2 as printed",
    )
    literal_thresholds: bool = parameter(
        False, "nothing is held against the thresholds", source="CATS, Alg. 1 as printed"
    )
    dfs: bool = parameter(
        True, "lower the clock of awake GPUs as far as κ allows", source="CATS, Alg. 4"
    )
    delta_mhz: float = parameter(
        15.0, "step Δf of the clock, which the paper leaves open", "MHz", "CATS, Alg. 4"
    )
    contention_aware: bool = parameter(
        False, "count the slow-down by contention, too, when clocks are lowered"
    )


@dataclass(frozen=True)
class FirstParams:
    """Parameters of First."""

    q: float = parameter(
        100.0, "utilisation now and the first sample stay below this", "%", "CATS, First"
    )


@dataclass(frozen=True)
class HotCloudParams:
    """Parameters of HotCloud."""

    fit: str = parameter(
        "first",
        "the first GPU that will do, or the one of highest mean",
        source="HotCloud",
        choices=("first", "best"),
    )
    u_max: float = _u_max()


@dataclass(frozen=True)
class PackingParams:
    """Parameters of BestFit, DotProd and FGD."""

    u_max: float = _u_max()


@dataclass(frozen=True)
class OptNomigParams:
    """Parameters of the newcomer's best place."""

    capacity: str = parameter(
        "",
        "mean: mean utilisations within 100 % beside the problem's rule; empty for that alone",
        choices=("none", "mean"),
    )


@dataclass(frozen=True)
class LeastAddedEnergyParams:
    """Parameters of the newcomer's least energy to the end of all."""

    duration_error: float = parameter(
        0.0,
        "σ of the log-normal error of the durations it is told; 0: exact",
        within=(0.0, 10.0),
    )
    u_max: float = parameter(
        0.0,
        "most that the mean utilisations on a GPU may add up to; 0: the problem's rule alone",
        "%",
        within=(0.0, 1e6),
    )


@dataclass(frozen=True)
class OptRepackParams:
    """Parameters of the optimum at every event."""

    capacity: str = parameter(
        "",
        "a rule for each decision beside the problem's own; empty for that alone",
        source="CATS, Eq. 6 extended",
        choices=("none", "mean", "slot", "peak"),
    )
    units: float = parameter(
        0.0, "work for each event, about a second a unit; 0 for 2, less with many events", "units"
    )


@dataclass(frozen=True)
class RepackWork:
    """Work in units that the optimum at every event may take without `units`.

    Parameters
    ----------
    event
        Work for one event. Default 2.
    run
        Work for all events together. Default 60.
    at_once
        Work if all tasks are present at once, at least. Default 20.
    """

    event: float = 2.0
    run: float = 60.0
    at_once: float = 20.0
