"""Tasks: memory, GPUs, duration, tolerated slowdown, and utilisation of a GPU."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from optgap.models.consolidation.cluster import PowerLine, validate_line
from optgap.models.errors import InputError, NoQuote
from optgap.models.times import SHORTEST_S

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

BYTES = 10**9
"""Memory is counted in whole bytes, so that sums are exact."""
MICRO = 10**6
"""Utilisation is counted in millionths of a percent, for the same reason."""
MOST_SAMPLES = 100_000
LATEST_S = 1e12
"""No time is further from a problem's first event, and nothing lasts as long, s."""


@dataclass(frozen=True, eq=False)
class Task:
    """One task.

    Parameters
    ----------
    name: how tables call it.
    memory_gb: d, GB on each of its GPUs.
    gpus: v, how many GPUs it takes.
    kappa: κ, how many times its solo time it may last.
    submit_s: when it arrives, s.
    duration_s: e, solo time at f_max, s; as long as its series unless given.
    util_percent: (n,) u, utilisation of each of its GPUs per sample of its progress, 0 to 100.
    beta: exponent of Eq. 5 of its own, None for the GPU's.
    power: what a GPU draws while it runs there, None for the GPU's own line. Of several
        residents' lines the highest at the clock counts.
    app: what it runs, by the name that a fit knows it under; "" where that is its own.
    """

    name: str
    memory_gb: float
    gpus: int = 1
    kappa: float = 1.2
    submit_s: float = 0.0
    duration_s: float = 0.0
    util_percent: FloatArray = field(default_factory=lambda: np.zeros(1))
    beta: float | None = None
    power: PowerLine | None = None
    app: str = ""

    def validate(self, source: str, where: str) -> None:
        """Raise InputError, naming the task, for numbers that no task has."""

        def fail(name: str, found: object, expected: str) -> InputError:
            return InputError(source, f"{where}, {name}", found, expected)

        validate_series(self.util_percent, source, f"{where}, util_percent")
        if not 0 <= self.memory_gb < 1e6:
            raise fail("memory_gb", self.memory_gb, "0 to below 1e6 GB")
        if isinstance(self.gpus, bool) or not isinstance(self.gpus, int) or self.gpus < 1:
            raise fail("gpus", self.gpus, "an integer of at least 1")
        if not 1 <= self.kappa < 1e6:
            raise fail("kappa", self.kappa, "a tolerance of at least 1, below 1e6")
        if not 0 <= self.submit_s < LATEST_S:
            raise fail("submit_s", self.submit_s, "0 to below 1e12 s")
        if not SHORTEST_S <= self.duration_s < LATEST_S:
            raise fail("duration_s", self.duration_s, f"a time of at least {SHORTEST_S:g} s")
        if self.beta is not None and not 0 <= self.beta <= 10:
            raise fail("beta", self.beta, "an exponent from 0 to 10")
        if self.power is not None:
            validate_line(self.power, source, f"{where}, power")


def validate_series(series: FloatArray, source: str, where: str) -> None:
    """Raise InputError for a series that is empty, holds NaN, or leaves 0 to 100 %."""
    if series.size == 0:
        raise InputError(source, where, NoQuote("no samples"), "at least one sample")
    if series.size > MOST_SAMPLES:
        raise InputError(source, where, NoQuote(f"{series.size} samples"), f"≤ {MOST_SAMPLES}")
    bad = np.flatnonzero(~((series >= 0) & (series <= 100)))
    if bad.size:
        k = int(bad[0])
        value = float(series[k])
        found = NoQuote("nan" if math.isnan(value) else f"{value:g} (sample {k})")
        raise InputError(source, where, found, "percentages from 0 to 100")


def memory_bytes(gigabytes: float) -> int:
    """GB to whole bytes."""
    return round(gigabytes * BYTES)


def micro_percent(series: FloatArray) -> IntArray:
    """Percent to whole millionths of a percent."""
    return np.rint(series * MICRO).astype(np.int64)
