"""What the paper states, and verdicts on how near ours is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from optgap.models.coscheduling import CoschedulingProblem, Run
from optgap.reproduce.report import Tolerance, Verdict

QUANTITIES = ("energy_j", "makespan_s", "edp_js")
"""In the order in which the paper and these tables give savings."""
WORDS = "energy, makespan, EDP"
POINTS = Tolerance(1.0, 4.0, "points")
"""Of savings."""

Triple = tuple[float | None, float | None, float | None]

OPTIMAL, MOST = "sequential_optimal_gpu", "sequential_max_gpu"

SAVINGS: Mapping[tuple[str, str], Triple] = {
    ("H100", "EcoSched"): (14.8, 30.1, 40.4),
    ("H100", "Marble"): (4.2, 11.5, None),
    ("H100", "Oracle"): (17.9, None, 47.5),
    ("V100", "EcoSched"): (4.4, 14.1, 17.9),
    ("V100", "Marble"): (1.6, 7.0, 8.5),
    ("V100", "Oracle"): (4.5, None, 18.2),
}
"""Against sequential_optimal_gpu, percent (Section V-A); against the other baseline Fig. 6 has
bars and no numbers."""

SLOWER: Mapping[str, int] = {"pot3d": 10, "resnet50": 5, "gpt2": 8}
"""Percent on fewer GPUs, as the text says of the case study (Section V-B)."""

TABLE_2: Mapping[str, tuple[int, int]] = {
    "bert": (4, 3),
    "cloverleaf": (4, 4),
    "conjugateGradientMultiDeviceCG": (4, 4),
    "gpt2": (2, 4),
    "lbm": (4, 4),
    "minisweep": (4, 4),
    "miniweather": (1, 1),
    "MonteCarloMultiGPU": (1, 1),
    "pot3d": (2, 4),
    "resnet101": (3, 3),
    "resnet152": (3, 4),
    "resnet50": (3, 4),
    "simpleP2P": (2, 2),
    "streamOrderedAllocationP2P": (2, 2),
    "tealeaf": (4, 4),
    "vgg16": (1, 3),
    "vgg19": (1, 4),
}
"""GPU counts on H100 and V100."""


def savings(metrics: Mapping[str, float], base: Mapping[str, float]) -> tuple[float, ...]:
    """1 − value/base for energy, makespan and EDP, percent."""
    return tuple(100 * (1 - metrics[q] / base[q]) for q in QUANTITIES)


def shown(values: Sequence[float | None]) -> str:
    """Percentages side by side; "–" where there is none."""
    return ", ".join("–" if v is None else f"{v:.1f}" for v in values) + " %"


def verdict(paper: Triple, ours: Sequence[float]) -> Verdict:
    """By the largest difference, with tolerance `POINTS`."""
    off = max(abs(p - o) for p, o in zip(paper, ours, strict=True) if p is not None)
    return POINTS.judge(off)


def counts_by_app(problem: CoschedulingProblem, runs: Sequence[Run]) -> dict[str, set[int]]:
    """The GPU counts that each application ran on."""
    found: dict[str, set[int]] = {}
    for run in runs:
        name = problem.application(run.job).name
        found.setdefault(name, set()).add(run.gpu_count)
    return found
