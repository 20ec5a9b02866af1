"""Parameters of the policies, with meanings, defaults and places in the papers."""

from dataclasses import dataclass
from typing import Any

from optgap.models.spec import parameter


def _u_max() -> Any:
    return parameter(100.0, "highest sum of the mean utilisations on a GPU", "%", "CATS, Alg. 1")


@dataclass(frozen=True)
class CatsParams:
    """Parameters of CATS; ``literal_thresholds`` follows the printed listing to the letter."""

    u_max: float = _u_max()
    rho_max: float = parameter(
        0.0, "highest correlation at which a task joins others", source="CATS, Alg. 1"
    )
    lambda1: float = parameter(
        0.5, "weight λ1 of the correlation, which the paper leaves open", source="CATS, Alg. 2"
    )
    lambda2: float = parameter(
        0.5, "weight λ2 of the difference of the means, also open", source="CATS, Alg. 2"
    )
    literal_thresholds: bool = parameter(
        False, "ignore the thresholds", source="CATS, Alg. 1 as printed"
    )
    dfs: bool = parameter(
        True, "lower the frequency of active GPUs as far as κ allows", source="CATS, Alg. 4"
    )
    delta_mhz: float = parameter(
        15.0, "frequency step Δf, which the paper leaves open", "MHz", "CATS, Alg. 4"
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

    u_max: float = _u_max()


@dataclass(frozen=True)
class PackingParams:
    """Parameters of BestFit, DotProd and FGD."""

    u_max: float = _u_max()


@dataclass(frozen=True)
class LeastAddedEnergyParams:
    """Parameters of the policy of least added energy."""

    duration_error: float = parameter(
        0.0,
        "σ of the log-normal error of the known durations; 0: exact",
        within=(0.0, 10.0),
    )
    u_max: float = parameter(
        0.0,
        "highest sum of the mean utilisations on a GPU; 0: the problem's rule alone",
        "%",
        within=(0.0, 1e6),
    )


@dataclass(frozen=True)
class OptRepackParams:
    """Parameters of repacking at every event."""

    capacity: str = parameter(
        "",
        "a further capacity rule for each decision; empty for none",
        source="CATS, Eq. 6 extended",
        choices=("none", "mean", "slot", "peak"),
    )


@dataclass(frozen=True)
class RepackWork:
    """Default budgets of work, in units, of the optimum at every event.

    Parameters
    ----------
    event
        Work for one event, at most. Default 2.
    run
        Work for all events together. Default 60.
    at_once
        Work if all tasks are present at once. Default 20.
    """

    event: float = 2.0
    run: float = 60.0
    at_once: float = 20.0
