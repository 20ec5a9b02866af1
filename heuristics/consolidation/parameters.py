"""What can be set of each policy, what it means, and where it stands in a paper."""

from dataclasses import dataclass
from typing import Any

from optgap.models.spec import parameter


def _u_max() -> Any:
    return parameter(
        100.0, "most that the mean utilisations on a GPU may add up to", "%", "CATS, Alg. 1"
    )


def _inclusive() -> Any:
    return parameter(True, "thresholds may be met (<=); otherwise <")


def _strict_queue() -> Any:
    return parameter(False, "a task that has to wait holds back those behind it")


def _dfs(default: bool = False) -> Any:
    return parameter(
        default, "lower the clock of awake GPUs as far as κ allows", source="CATS, Alg. 4"
    )


def _delta_mhz() -> Any:
    return parameter(
        15.0, "step Δf of the clock, which the paper leaves open", "MHz", "CATS, Alg. 4"
    )


def _pred_noise() -> Any:
    return parameter(
        0.0,
        "standard deviation of the error of a newcomer's predicted utilisation",
        "points of %",
    )


@dataclass(frozen=True)
class CatsParams:
    """CATS."""

    u_max: float = _u_max()
    rho_max: float = parameter(
        0.0, "highest correlation at which a task joins others", source="CATS, Alg. 1"
    )
    lambda1: float = parameter(
        0.5, "weight λ1 of the correlation in the score", source="CATS, Alg. 2"
    )
    lambda2: float = parameter(
        0.5, "weight λ2 of the difference of the means", source="CATS, Alg. 2"
    )
    inclusive: bool = _inclusive()
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
    align: str = parameter(
        "now",
        "residents' series are compared from this moment on, or from their starts",
        source="CATS, Alg. 2",
        choices=("now", "start"),
    )
    mem_headroom_gb: float = parameter(0.0, "memory that stays free on every GPU", "GB")
    strict_queue: bool = _strict_queue()
    dfs: bool = _dfs(True)
    delta_mhz: float = _delta_mhz()
    instant: bool = parameter(True, "go to where the steps end at once, not one step every 100 ms")
    contention_aware: bool = parameter(
        False, "count the slow-down by contention, too, when clocks are lowered"
    )
    pred_noise: float = _pred_noise()


@dataclass(frozen=True)
class HotCloudParams:
    """HotCloud."""

    fit: str = parameter(
        "first",
        "the first GPU that will do, or the one of highest mean",
        source="HotCloud",
        choices=("first", "best"),
    )
    inclusive: bool = _inclusive()
    u_max: float = _u_max()
    strict_queue: bool = _strict_queue()
    dfs: bool = _dfs()
    delta_mhz: float = _delta_mhz()
    pred_noise: float = _pred_noise()


@dataclass(frozen=True)
class FirstParams:
    """First."""

    q: float = parameter(
        100.0, "utilisation now and the first sample stay below this", "%", "CATS, First"
    )
    strict_queue: bool = _strict_queue()
    dfs: bool = _dfs()
    delta_mhz: float = _delta_mhz()


@dataclass(frozen=True)
class PackingParams:
    """BestFit and FGD."""

    u_max: float = _u_max()
    strict_queue: bool = _strict_queue()
    dfs: bool = _dfs()
    delta_mhz: float = _delta_mhz()


@dataclass(frozen=True)
class DotProdParams:
    """DotProd."""

    dp_sign: int = parameter(
        1, "1: the smallest product; -1: the largest, as in Tetris", source="DotProd"
    )
    u_max: float = _u_max()
    strict_queue: bool = _strict_queue()
    dfs: bool = _dfs()
    delta_mhz: float = _delta_mhz()


@dataclass(frozen=True)
class DefaultParams:
    """One task per GPU."""

    strict_queue: bool = _strict_queue()
    dfs: bool = _dfs()
    delta_mhz: float = _delta_mhz()


@dataclass(frozen=True)
class OptNomigParams:
    """The newcomer's best place."""

    capacity: str = parameter(
        "",
        "mean: mean utilisations within 100 % beside the problem's rule; empty for that alone",
        choices=("none", "mean"),
    )
    strict_queue: bool = _strict_queue()


@dataclass(frozen=True)
class LeastAddedEnergyParams:
    """The newcomer's least energy to the end of all."""

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
    strict_queue: bool = _strict_queue()


@dataclass(frozen=True)
class OptRepackParams:
    """The optimum at every event."""

    capacity: str = parameter(
        "",
        "a rule for each decision beside the problem's own; empty for that alone",
        source="CATS, Eq. 6 extended",
        choices=("none", "mean", "slot", "peak"),
    )
    event_s: float = parameter(0.0, "time for each event; 0 for 2 s, less with many events", "s")
    strict_queue: bool = _strict_queue()


@dataclass(frozen=True)
class RepackTimes:
    """What the optimum at every event may take without `event_s`.

    Parameters
    ----------
    event_s, run_s: seconds for one event, and for all of them together.
    at_once_s: seconds where all tasks are present at once, at least.
    """

    event_s: float = 2.0
    run_s: float = 60.0
    at_once_s: float = 20.0
