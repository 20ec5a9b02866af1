"""Pools of models that jobs train: fitted to open data, or made up to stand for the paper's.

``a100`` (default) and ``t4`` hold iteration times that `optgap fit powerflow-throughput` gave
for ElasticFlow's A100 profiles and Pollux's T4 placements (both Apache-2.0), with a power curve
fitted to Zeus's V100 power-limit sweeps (Apache-2.0) and scaled to the board's power limit.
``v100`` is synthetic: the paper's five models at its batches, from rough counts of work and
gradient bytes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from optgap.models.elastic.arrays import Floats
from optgap.models.elastic.jobs import JobClass
from optgap.models.elastic.tables import Trained, job_class
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
    """The board of a pool; raises InputError for an unknown one."""
    if pool not in BOARDS:
        raise InputError("--set", "pool", pool, one_of(BOARDS))
    return BOARDS[pool]


Terms = Mapping[str, float]


def fitted_terms(pool: str) -> Mapping[str, Terms]:
    """Return the parameters of Eq. 2-5 by network, for ``a100`` and ``t4``.

    ``a100``: fitted to ElasticFlow's throughputs_A100 (Gu et al., ASPLOS 2023; MAPE 0.9 to 2.6 %).
    ``t4``: fitted to Pollux's placements (Qiao et al., OSDI 2021; MAPE 5.7 to 8.3 %).
    """
    if pool == "a100":
        return a100_iterations().groups
    terms: Mapping[str, Terms] = packaged_json(__package__, "t4.json")
    return terms


WORK = {
    # ms per sample at the top clock, MB of gradients, MB read per sample
    "resnet18": (0.75, 47.0, 0.11),
    "vgg16": (3.1, 553.0, 0.11),
    "inception3": (2.4, 95.0, 0.11),
    "gpt2": (16.0, 498.0, 0.01),
    "deepspeech2": (8.5, 153.0, 0.3),
}
"""Synthetic: orders of magnitude of one V100, made up from public counts of parameters."""

BATCHES: Mapping[str, Mapping[str, tuple[int, ...]]] = {
    "a100": {
        "bert": (64, 128),
        "deepspeech2": (32, 64),
        "inception3": (64, 128),
        "resnet50": (64, 128, 256),
        "vgg16": (64, 128, 256),
    },
    "t4": {
        "cifar10": (512, 1024, 2048),
        "deepspeech2": (40, 80, 160),
        "imagenet": (200, 400, 800),
        "ncf": (4096, 32768),
        "yolov3": (8, 16, 32),
    },
    "v100": {
        "resnet18": (32, 64, 128, 256, 512),
        "vgg16": (32, 64, 128, 256, 512),
        "inception3": (16, 32, 64, 128, 256, 512),
        "gpt2": (8, 16, 32, 64, 128),
        "deepspeech2": (8, 16, 32, 64, 128, 256),
    },
}
"""Global batches: those measured, and for ``v100`` those of the paper's Table 1."""


def energy_model(
    board: Board, static: float, top: float, knee: float = KNEE, voltage: float = VOLTAGE
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


def _fitted(name: str, terms: Terms, board: Board) -> Trained:
    slope = terms.get("b_grad_s", 0.0)
    clocked = {**terms, "b_grad_s": slope * (1 - CLOCKED)}
    clocked["k_grad_s_mhz"] = slope * CLOCKED * board.high_mhz
    kind = {"imagenet": "resnet50"}.get(name, name)
    kind = kind if kind in TOP else "other"
    return Trained(name, ThroughputModel(clocked), energy_model(board, STATIC[kind], TOP[kind]))


def _synthetic(name: str, board: Board) -> Trained:
    sample_ms, gradient_mb, read_mb = WORK[name]
    top = float(board.high_mhz)
    sample = sample_ms / 1000
    local, cross = gradient_mb / 16_000, gradient_mb / 5_000  # GB/s within and between nodes
    terms = {
        "a_io_s": 0.002, "b_io_s": read_mb / 2_000, "a_grad_s": 0.008,
        "b_grad_s": 0.05 * sample, "k_grad_s_mhz": 0.95 * sample * top,
        "theta_local_s": 0.004 + 0.7 * local, "A_local_s_mhz": 0.3 * local * top,
        "B_local_s": 0.02 * local, "K_local_s_mhz": 0.0,
        "theta_node_s": 0.010 + 0.9 * cross, "A_node_s_mhz": 0.1 * cross * top,
        "B_node_s": 0.01 * cross, "gamma1": 3.0, "gamma2": 1.5,
    }  # fmt: skip
    # a board whose voltage rises over its upper third, as on V100
    energy = energy_model(board, 0.28, 0.82, knee=0.66, voltage=1.0)
    return Trained(name, ThroughputModel(terms), energy)


def trained(pool: str) -> dict[str, Trained]:
    """The models of a pool by name.

    Raises
    ------
    InputError: for an unknown pool.
    """
    board = board_of(pool)
    if pool == "v100":
        return {name: _synthetic(name, board) for name in WORK}
    return {name: _fitted(name, terms, board) for name, terms in fitted_terms(pool).items()}


def classes(
    pool: str, gpus: int, gpus_per_node: int, frequencies_mhz: Floats | None = None
) -> list[JobClass]:
    """Every model of the pool at every one of its batches."""
    clocks = board_of(pool).clocks if frequencies_mhz is None else frequencies_mhz
    models = trained(pool)
    return [
        job_class(models[name], batch, clocks, gpus=gpus, gpus_per_node=gpus_per_node)
        for name, batches in BATCHES[pool].items()
        for batch in batches
    ]
