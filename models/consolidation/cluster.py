"""Servers and the GPUs in them: memory, clocks, and what they draw."""

from __future__ import annotations

import bisect
import math
from dataclasses import dataclass

from optgap.models.errors import InputError, NoQuote
from optgap.models.performance.formulas import (
    PAPER_BETA,
    V100_SLOPE_W_PER_MHZ,
    V100_STATIC_W,
    sla_frequency,
)

MOST_GPUS = 100_000
MOST_GB = 1e6
PAPER_F_MIN_MHZ, PAPER_F_MAX_MHZ = 135.0, 1350.0
"""The clocks of the paper's V100 testbed."""
EQUAL_MHZ = 1e-6
"""Clocks this close are the same."""


@dataclass(frozen=True, slots=True)
class PowerLine:
    """P(f) = static_w + slope_w_per_mhz·f of an awake GPU, W (Eq. 1)."""

    static_w: float = V100_STATIC_W
    slope_w_per_mhz: float = V100_SLOPE_W_PER_MHZ

    def watts(self, mhz: float) -> float:
        """P(f)."""
        return self.static_w + self.slope_w_per_mhz * mhz


@dataclass(frozen=True, slots=True)
class GpuKind:
    """One kind of GPU; the defaults are the paper's V100.

    Parameters
    ----------
    name: its model.
    memory_gb: c, DRAM in GB.
    power: P_gs and α of Eq. 1.
    f_min_mhz, f_max_mhz: lowest and highest clock (13).
    beta: exponent of Eq. 5, for tasks that have none of their own.
    frequencies_mhz: the clocks there are, ascending; empty where every one between is.
    """

    name: str = "V100"
    memory_gb: float = 32.0
    power: PowerLine = PowerLine()
    f_min_mhz: float = PAPER_F_MIN_MHZ
    f_max_mhz: float = PAPER_F_MAX_MHZ
    beta: float = PAPER_BETA
    frequencies_mhz: tuple[float, ...] = ()

    def floor_mhz(self, kappa: float, beta: float | None = None) -> float:
        """Return the lowest clock that stretches no task beyond `kappa`: f_max·κ^(−1/β) (14')."""
        exponent = self.beta if beta is None else beta
        wanted = max(self.f_min_mhz, sla_frequency(self.f_max_mhz, kappa, exponent))
        return self.up_mhz(min(wanted, self.f_max_mhz))

    def up_mhz(self, mhz: float) -> float:
        """Return the lowest clock there is from `mhz` on."""
        if not self.frequencies_mhz:
            return mhz
        k = bisect.bisect_left(self.frequencies_mhz, mhz - EQUAL_MHZ)
        return self.frequencies_mhz[min(k, len(self.frequencies_mhz) - 1)]

    def offers(self, mhz: float) -> bool:
        """Tell whether it can run at this clock."""
        inside = self.f_min_mhz - EQUAL_MHZ <= mhz <= self.f_max_mhz + EQUAL_MHZ
        if not inside or not self.frequencies_mhz:
            return inside
        return abs(self.up_mhz(mhz) - mhz) <= EQUAL_MHZ

    def validate(self, source: str, where: str) -> None:
        """Raise InputError for numbers that no GPU has."""
        if not 0 < self.memory_gb <= MOST_GB:
            raise InputError(source, f"{where}.memory_gb", self.memory_gb, "a positive size in GB")
        if not 0 < self.f_min_mhz <= self.f_max_mhz < 1e6:
            found = NoQuote(f"f_min {self.f_min_mhz:g} and f_max {self.f_max_mhz:g} MHz")
            raise InputError(source, f"{where}.f_min_mhz", found, "0 < f_min ≤ f_max")
        if not 0 <= self.beta <= 10:
            raise InputError(source, f"{where}.beta", self.beta, "an exponent from 0 to 10")
        validate_line(self.power, source, f"{where}.power")
        for mhz in self.frequencies_mhz:
            if not self.f_min_mhz <= mhz <= self.f_max_mhz:
                expected = f"clocks from {self.f_min_mhz:g} to {self.f_max_mhz:g} MHz"
                raise InputError(source, f"{where}.frequencies_mhz", mhz, expected)
        if self.frequencies_mhz and self.frequencies_mhz[-1] != self.f_max_mhz:
            found = NoQuote(f"a highest clock of {self.frequencies_mhz[-1]:g} MHz")
            raise InputError(source, f"{where}.frequencies_mhz", found, f"{self.f_max_mhz:g} MHz")
        if list(self.frequencies_mhz) != sorted(set(self.frequencies_mhz)):
            found = NoQuote("clocks out of order")
            raise InputError(source, f"{where}.frequencies_mhz", found, "ascending ones")


@dataclass(frozen=True, slots=True)
class Server:
    """One server.

    Parameters
    ----------
    gpus: the kind of each of its GPUs, as an index.
    static_w: P_static + P_other while it is awake, W (4).
    """

    gpus: tuple[int, ...]
    static_w: float = 0.0


def validate_line(line: PowerLine, source: str, where: str) -> None:
    """Raise InputError for a power line that falls or is negative."""
    for name in ("static_w", "slope_w_per_mhz"):
        value = getattr(line, name)
        if not 0 <= value < 1e6 or not math.isfinite(value):
            raise InputError(source, f"{where}.{name}", value, "a number of at least 0, below 1e6")
    if line.static_w == line.slope_w_per_mhz == 0:
        raise InputError(source, where, NoQuote("0 W at any clock"), "a GPU that draws power")
