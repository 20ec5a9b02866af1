"""Pools of models that jobs train: fitted to open data, or made up to stand for the paper's.

``a100`` (default) and ``t4`` hold iteration times that `optgap fit powerflow-throughput` gave
for ElasticFlow's A100 profiles and Pollux's T4 placements (both Apache-2.0), with a power curve
fitted to Zeus's V100 power-limit sweeps (Apache-2.0) and scaled to the board's power limit.
``v100`` is synthetic: the paper's five models at its batches, from rough counts of work and
gradient bytes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from optgap.models.elastic.arrays import Floats
from optgap.models.elastic.jobs import JobClass
from optgap.models.elastic.tables import Maker, maker_of
from optgap.models.errors import InputError, one_of
from optgap.models.packaged import packaged_json
from optgap.models.performance.energy import EnergyModel
from optgap.models.performance.measured import a100_iterations
from optgap.models.performance.throughput import ThroughputModel

KNEE = 0.873
"""Zeus sweeps, V100: share of the top clock from which power rises faster than it (f0/f_max)."""
VOLTAGE = 1.919
"""The same sweeps: relative rise of voltage per unit of f/f_max above the knee."""
STATIC = {"bert": 0.197, "deepspeech2": 0.145, "resnet50": 0.139, "other": 0.14}
"""The same sweeps: share of full power that does not depend on the clock."""
TOP = {"bert": 0.89, "deepspeech2": 0.72, "resnet50": 0.89, "other": 0.85}
"""Power at the highest limit as a share of it (250 W), V100, large batches."""

CLOCKED = 0.85
"""Share of the per-sample gradient time that goes with 1/f: ours, as the profiles with GPU
counts have one clock."""
SYNC_SHARE = 0.1
"""Dynamic power while gradients are exchanged as a share of that while they are computed: ours."""


@dataclass(frozen=True, slots=True)
class Board:
    """A GPU: power limit in W, idle power in W, and its clocks in MHz."""

    limit_w: float
    idle_w: float
    low_mhz: int
    high_mhz: int
    step_mhz: int = 30

    @property
    def clocks(self) -> Floats:
        """(F,) ascending."""
        return np.arange(self.low_mhz, self.high_mhz + 1, self.step_mhz, dtype=float)


BOARDS = {
    "a100": Board(400.0, 55.0, 540, 1410),
    "t4": Board(70.0, 10.0, 720, 1590),
    "v100": Board(300.0, 40.0, 510, 1380),
}


def board_of(pool: str) -> Board:
    """Return the board of a pool; raises InputError for an unknown one."""
    if pool not in BOARDS:
        raise InputError("--set", "pool", pool, one_of(BOARDS))
    return BOARDS[pool]


Terms = Mapping[str, float]


def fitted_terms(pool: str) -> Mapping[str, Terms]:
    """Return the parameters of Eq. 2-5 by network.

    ``a100``: fitted to ElasticFlow's throughputs_A100 (Gu et al., ASPLOS 2023; MAPE 0.9 to 2.6 %).
    ``t4``: fitted to Pollux's placements (Qiao et al., OSDI 2021; MAPE 5.7 to 8.3 %).
    ``v100``: synthetic, from orders of magnitude of work and bytes per sample and of gradients.
    """
    if pool == "a100":
        return a100_iterations().groups
    terms: Mapping[str, Terms] = packaged_json(__package__, f"{pool}.json")
    return terms


BATCHES: Mapping[str, Mapping[str, Sequence[int]]] = packaged_json(__package__, "batches.json")
"""Global batches: those measured, and for ``v100`` those of the paper's Table 1."""


def energy_model(
    board: Board, static: float, top: float, *, knee: float = KNEE, voltage: float = VOLTAGE
) -> EnergyModel:
    """Eq. 12-15 from the shares of full power, form ``physical``; grows a little with bs.

    At the top clock and bs = 32 a GPU that only computes draws `top` of the board's limit,
    `static` of that whatever it does.
    """
    full, ghz = top * board.limit_w, board.high_mhz / 1000
    kappa = voltage / ghz
    rise = ghz * (1 + kappa * ghz * (1 - knee)) ** 2
    beta = 20.0
    dynamic = (1 - static) * full / rise
    return EnergyModel(
        {
            "f0_mhz": knee * board.high_mhz,
            "kappa": kappa,
            "theta": 1.0,
            "beta": beta,
            "static_w": static * full * knee,
            "grad_voltage_w": dynamic / (beta + float(np.log(33.0))),
            "sync_voltage_w": SYNC_SHARE * dynamic,
        },
        "physical",
    )


def makers(pool: str) -> dict[str, Maker]:
    """Return how the classes of each model of the pool are made.

    Raises
    ------
    InputError: for an unknown pool.
    """
    board, found = board_of(pool), {}
    for name, terms in fitted_terms(pool).items():
        kind = {"imagenet": "resnet50"}.get(name, name)
        kind = kind if kind in TOP else "other"
        time, energy = terms, energy_model(board, STATIC[kind], TOP[kind])
        if pool == "v100":  # the least energy at 1,020 MHz, as PowerFlow has it
            energy = energy_model(board, 0.28, 0.82, knee=0.75, voltage=1.0)
        else:
            slope = terms.get("b_grad_s", 0.0)
            clocked = {"k_grad_s_mhz": slope * CLOCKED * board.high_mhz}
            time = {**terms, "b_grad_s": slope * (1 - CLOCKED), **clocked}
        found[name] = maker_of(name, ThroughputModel(time), energy)
    return found


def classes(
    pool: str, gpus: int, gpus_per_node: int, frequencies_mhz: Floats | None = None
) -> list[JobClass]:
    """Return every model of the pool at every one of its batches."""
    clocks = board_of(pool).clocks if frequencies_mhz is None else frequencies_mhz
    made, batches = makers(pool), BATCHES[pool]
    return [made[m](batch, clocks, gpus, gpus_per_node) for m in batches for batch in batches[m]]
