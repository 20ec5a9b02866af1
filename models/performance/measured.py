"""Fits of public measurements, as `optgap fit` saved them: errors, covariances, and whose data.

No measurement stands here. Presets called ``measured`` rest on these fits, as a user's problem
does on a fit of one's own.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from optgap.models.packaged import packaged_csv, packaged_json
from optgap.models.performance.saved import FittedParameters, read_fit

ECOSCHED = "zzheng33/EcoSched@6722feb (the EcoSched authors)"


class Scaling(NamedTuple):
    """One application over its GPU counts g.

    Parameters
    ----------
    time: T_1 in s, s and c of T_g = T_1·(1 − s + s/g + c·(g − 1)).
    signal: x_1 and m of the summed DRAM activity x_g = x_1·g^m.
    power: P_1 and its fall per further GPU of the power of one GPU, W.
    """

    time: tuple[float, float, float]
    signal: tuple[float, float]
    power: tuple[float, float]


def _saved(name: str) -> FittedParameters:
    return read_fit(packaged_json(__package__, f"{name}.json"))


def gv100_power() -> FittedParameters:
    """Return ``linear-power`` of 15 applications on a GV100 (CATS, Eq. 1)."""
    return _saved("gv100_power")


def gv100_time() -> FittedParameters:
    """Return ``power-law-jct`` of the same applications (CATS, Eq. 5)."""
    return _saved("gv100_time")


def a100_iterations() -> FittedParameters:
    """Return ``powerflow-throughput`` of five networks (PowerFlow, Eq. 1-5), at one clock."""
    return _saved("a100_iterations")


def h100_runtime() -> FittedParameters:
    """Return ``dram-runtime`` of 13 applications on 1 to 4 H100 (EcoSched, Phase I)."""
    return _saved("h100_runtime")


def h100_scaling() -> Mapping[str, Scaling]:
    """Return how the same applications scale."""
    rows = packaged_csv(__package__, "h100_scaling.csv")
    return {row[0]: Scaling(row[1:4], row[4:6], row[6:8]) for row in rows}
