"""The paper's workload (Section IV-A), and what it leaves open."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal, get_args

import numpy as np

from optgap.models.errors import InputError, one_of
from optgap.models.queueing.arrays import FloatArray, IntArray
from optgap.models.queueing.jobs import LONGEST_S, Jobs
from optgap.models.times import SHORTEST_S

Corr = Literal["none", "positive", "negative"]
Arrivals = Literal["poisson", "all_at_zero"]
Large = Literal["16", "16-32"]
Patience = Literal["inf", "const", "exp", "duration"]
Estimate = Literal["exact", "lognormal", "limits"]

KINDS = (("inference", 0.50), ("training", 0.30), ("research", 0.20))
GPUS = ((1, 0.35), (2, 0.25), (4, 0.20), (8, 0.15), (16, 0.05))
LARGE = ((16, 0.6), (24, 0.2), (32, 0.2))
DURATIONS_S = (
    ((60, 1800), 0.40),
    ((1800, 7200), 0.35),
    ((7200, 28_800), 0.20),
    ((28_800, 86_400), 0.05),
)
FAMILIES = 8
LIMITS_S = (900, 3600, 14_400, 43_200, 86_400, 259_200)
"""Time limits that users choose from: 15 min, 1 h, 4 h, 12 h, 1 d, 3 d."""


def draw(
    rng: np.random.Generator,
    size: int,
    cluster_gpus: int,
    *,
    load: float = 0.9,
    corr: Corr = "none",
    arrivals: Arrivals = "poisson",
    large: Large = "16",
    patience: Patience = "inf",
    patience_s: float = 3600.0,
    estimate: Estimate = "exact",
    sigma: float = 0.5,
) -> Jobs:
    """Return `size` jobs with the paper's mix of types, GPU counts and durations.

    The paper has no arrival process, no iterations, no patience and nothing on how durations
    are spread within their ranges: here uniform, in whole seconds.

    Parameters
    ----------
    cluster_gpus: M; jobs that would not fit ask for M.
    load: ρ; jobs arrive at rate ρ·M/E[n·d] on average, E over the jobs drawn.
    corr: how GPU counts and durations go together; ``positive`` gives the most GPUs to the
        longest jobs, ``negative`` to the shortest.
    arrivals: ``poisson``, or ``all_at_zero``.
    large: what "16+" GPUs means: 16, or 16, 24 and 32 with 0.6, 0.2 and 0.2.
    patience: ``inf``; ``const``, `patience_s`; ``exp``, exponential with mean `patience_s`; or
        ``duration``, `patience_s`/3600 times the job's duration.
    estimate: what schedulers are told: ``exact``; ``lognormal``, the duration times a factor
        with median 1 and log-standard deviation `sigma`; or ``limits``, the next common time
        limit above it.

    Raises
    ------
    InputError: for a parameter out of range.
    """
    _require("size", size, size >= 1, "at least 1 job")
    _require("load", load, 0 < load < 1000, "a positive load")
    _require("patience_s", patience_s, SHORTEST_S <= patience_s < LONGEST_S, "seconds above 0")
    _require("sigma", sigma, 0 <= sigma <= 10, "a standard deviation from 0 to 10")
    for name, value, options in (
        ("corr", corr, Corr),
        ("arrivals", arrivals, Arrivals),
        ("large", large, Large),
        ("patience", patience, Patience),
        ("estimate", estimate, Estimate),
    ):
        _require(name, value, value in get_args(options), one_of(get_args(options)))
    kinds = [KINDS[k][0] for k in _pick(rng, KINDS, size)]
    gpus = _gpu_counts(rng, size, large)
    duration = _durations(rng, size)
    if corr != "none":
        duration = _coupled(rng, gpus, duration, corr)
    gpus = np.minimum(gpus, cluster_gpus)
    family = rng.integers(FAMILIES, size=size)
    pace = rng.lognormal(0.0, 0.3, FAMILIES)[family] * rng.uniform(0.95, 1.05, size)
    gap = float((gpus * duration).mean()) / (load * cluster_gpus)
    times = np.floor(np.cumsum(rng.exponential(gap, size)))
    patience_rng, estimate_rng = rng.spawn(2)  # so that the jobs stay the same
    return Jobs.of(
        times - times[0] if arrivals == "poisson" else np.zeros(size),
        duration,
        gpus,
        kinds=kinds,
        families=[f"family-{k + 1}" for k in family],
        iterations=np.maximum(np.round(duration * gpus * pace), 1),
        patience_s=_patience(patience_rng, duration, patience, patience_s),
        estimate_s=_estimates(estimate_rng, duration, estimate, sigma),
        source="workload",
    )


def _pick(rng: np.random.Generator, shares: Sequence[tuple[object, float]], size: int) -> IntArray:
    """Indices into `shares`, drawn with its probabilities."""
    return rng.choice(len(shares), size=size, p=[share for _, share in shares])


def _gpu_counts(rng: np.random.Generator, size: int, large: Large) -> IntArray:
    counts = np.array([n for n, _ in GPUS])[_pick(rng, GPUS, size)]
    wide = np.array([n for n, _ in LARGE])[_pick(rng, LARGE, size)]
    return np.where((counts == 16) & (large == "16-32"), wide, counts)


def _durations(rng: np.random.Generator, size: int) -> FloatArray:
    """Uniform whole seconds within the ranges."""
    ranges = np.array([span for span, _ in DURATIONS_S])[_pick(rng, DURATIONS_S, size)]
    seconds: FloatArray = np.floor(rng.uniform(ranges[:, 0], ranges[:, 1]))
    return seconds


def _coupled(
    rng: np.random.Generator, gpus: IntArray, duration: FloatArray, corr: Corr
) -> FloatArray:
    """Return the same durations, handed out by rank of GPU count; at random among equals."""
    rank = np.argsort(np.lexsort((rng.random(len(gpus)), gpus)))
    ordered = np.sort(duration)
    return ordered[rank] if corr == "positive" else ordered[::-1][rank]


def _patience(
    rng: np.random.Generator, duration: FloatArray, patience: Patience, patience_s: float
) -> FloatArray:
    size = len(duration)
    if patience == "inf":
        return np.full(size, math.inf)
    if patience == "const":
        return np.full(size, float(patience_s))
    if patience == "exp":
        return np.ceil(rng.exponential(patience_s, size))
    return np.ceil(duration * patience_s / 3600)


def _estimates(
    rng: np.random.Generator, duration: FloatArray, estimate: Estimate, sigma: float
) -> FloatArray | None:
    if estimate == "exact":
        return None
    if estimate == "lognormal":
        return np.maximum(np.round(duration * rng.lognormal(0.0, sigma, len(duration))), 1.0)
    limits = np.array([*LIMITS_S, np.inf])
    chosen = limits[np.searchsorted(limits, duration)]
    return np.where(np.isinf(chosen), duration, chosen)


def _require(name: str, value: object, holds: bool, expected: str) -> None:
    if not holds:
        raise InputError("workload", name, value, expected)
