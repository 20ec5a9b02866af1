"""Parameters of the policies, with meanings, defaults and places in the papers."""

from dataclasses import dataclass
from typing import Any

from optgap.models.spec import parameter


def _score() -> Any:
    return parameter(
        "implemented",
        "scores as the simulators compute them, or unrounded as the paper prints them",
        source="PWR+FGD, Alg. 1 and Eq. 5; FGD",
        choices=("implemented", "exact"),
    )


@dataclass(frozen=True)
class PwrParams:
    """Parameters of PWR."""

    score: str = _score()


@dataclass(frozen=True)
class FgdParams:
    """Parameters of FGD."""

    score: str = _score()


@dataclass(frozen=True)
class PwrFgdParams:
    """Parameters of PWR+FGD."""

    alpha: float = parameter(
        0.1, "weight α of power; 1 - α is fragmentation's", source="PWR+FGD, Eq. 5"
    )
    score: str = _score()


@dataclass(frozen=True)
class NodeValueParams:
    """Parameters of `node-value`."""

    q: float = parameter(
        0.0,
        "probability that a node gets no further task; 0 for 0.003, where tasks leave 0.05",
        within=(0.0, 1.0),
    )
    q_full: float = parameter(
        0.01, "least such probability for a node with less than half a GPU left", within=(1e-6, 1.0)
    )
    rent_w: float = parameter(
        60.0, "value of keeping a GPU of low added power usable", "W", within=(0.0, 1e6)
    )
    fragment_w: float = parameter(1.0, "cost of a GPU's fragmentation", "W", within=(0.0, 1e6))
