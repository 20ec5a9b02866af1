"""Quantities with their units, and the values that are believed: one table for all that is read.

A value outside its range is most likely in another unit. Ranges are wide: what exists, and room.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Literal

from optgap.models.errors import InputError, NoQuote
from optgap.models.units import factors

LOGGER = logging.getLogger("optgap.units")
GO_ON = "strict=False (--set strict=false) goes on"


@dataclass(frozen=True, slots=True)
class Quantity:
    """A canonical column: what it means, its unit, and where its values are believed.

    Parameters
    ----------
    low, high: outside them a value is taken for one in another unit; 0 is always believed.
    units: the factor to the canonical unit for each unit that a user may name.
    source: what there is at both ends.
    judged: whether each value has to lie within the range, or the largest of a column.
    median: the highest median that is believed of `FEW` values or more: a log of milliseconds has
        hardly a value that is too long for seconds, but all of them are long.
    """

    meaning: str
    unit: str
    low: float = 0.0
    high: float = math.inf
    units: Mapping[str, float] = field(default_factory=dict)
    source: str = ""
    judged: Literal["each", "largest"] = "each"
    median: float = math.inf

    def expected(self, value: float) -> str:
        """Return the range in words, and the unit that `value` probably has."""
        range_ = f"{self.low:,.10g} to {self.high:,.10g} {self.unit}"
        if self.low <= value <= self.high:
            range_ = f"a median of at most {self.median:,.10g} {self.unit}"
        unit = self.meant(value)
        if not unit:
            return range_
        return f"{range_} ({value:,.10g} {unit} would be {value * self.units[unit]:,.10g})"

    def meant(self, value: float) -> str:
        """Return the unit that `value` probably has; "" if no other unit fits."""
        high = min(self.high, self.median)
        fits = (
            u for u, size in self.units.items() if size != 1 and self.low <= value * size <= high
        )
        return next(fits, "")


def _offered(*symbols: str) -> Mapping[str, float]:
    """Return the units that are offered for a quantity; the first is its own."""
    return {symbol: factors(symbols[0])[symbol] for symbol in symbols}


_TIME = _offered("s", "ms", "us", "min", "h")
_POWER = _offered("W", "mW", "kW")
_CLOCK = _offered("MHz", "GHz", "kHz", "Hz")
_ENERGY = _offered("J", "mJ", "kJ", "Wh")
_SHARE = _offered("fraction", "%")
_PERCENT = _offered("%", "fraction")
_GB = _offered("GB", "MB", "bytes")
_MIB = _offered("MiB", "GiB", "KiB", "bytes")
_CPU = _offered("milli", "vCPU")

BOARDS = "5 W (embedded modules) to 1,400 W (GB300, MI355X) by their data sheets"
CLOCKS = "135 MHz (V100's lowest) to 3,000 MHz (boost clocks of 2025) by nvidia-smi -q -d CLOCK"
LOGS = (
    "no log of Philly, Helios, PAI or the Parallel Workloads Archive has a run of 116 days, "
    "and none has half of its runs above a day"
)
WEEK_S = 604_800.0
FEW = 3

MEASURED: Mapping[str, Quantity] = {
    "frequency_mhz": Quantity("core clock", "MHz", 50, 5000, _CLOCK, CLOCKS),
    "memory_mhz": Quantity("memory clock", "MHz", 50, 20000, _CLOCK, "405 MHz to 14 GHz (GDDR6X)"),
    "power_w": Quantity("mean power of one GPU", "W", 1, 2500, _POWER, BOARDS),
    "power_limit_w": Quantity("power limit of one GPU", "W", 10, 2500, _POWER, BOARDS),
    "idle_w": Quantity("power of an idle GPU", "W", 0.5, 1000, _POWER, "2 W (modules) to 200 W"),
    "time_s": Quantity(
        "time of the run, or of one iteration", "s", 1e-7, 1e6, _TIME, "a kernel to eleven days"
    ),
    "sync_s": Quantity("synchronisation inside time_s", "s", 0, 1e6, _TIME),
    "energy_j": Quantity("energy of the run, all GPUs", "J", 1e-7, 1e9, _ENERGY),
    "gpus": Quantity("GPUs of the job", "GPUs", 1, 1e5),
    "nodes": Quantity("nodes of the job", "nodes", 1, 1e5),
    "gpus_on_node": Quantity("GPUs on its fullest node", "GPUs", 1, 64),
    "local_batch": Quantity("samples per GPU and iteration", "samples", 0, 1e7),
    "global_batch": Quantity("samples per iteration", "samples", 0, 1e9),
    "dram_active": Quantity("DRAM-active share, mean of the GPUs", "0..1", 0, 1.0, _SHARE),
    "dram_sum": Quantity("DRAM-active share summed over the GPUs", "0..GPUs", 0, 64),
    "fp_active": Quantity("floating-point share, mean of the GPUs", "0..1", 0, 3.0, _SHARE),
    "util_percent": Quantity("GPU utilisation", "%", 0, 100, _PERCENT),
    "samples": Quantity("samples behind the row", "samples", 0),
}
"""Canonical columns of profiles by name; it is their medians that are judged."""

GIVEN: Mapping[str, Quantity] = {
    "avg_power_per_gpu_w": MEASURED["power_w"],
    "power_w": MEASURED["power_w"],
    "full_w": MEASURED["power_w"],
    "p_max_w": MEASURED["power_w"],
    "idle_w": MEASURED["idle_w"],
    "server_static_w": Quantity(
        "power of a server but for its GPUs", "W", 5, 50_000, _POWER, "20 W to 4 kW (DGX B300)"
    ),
    "frequency_mhz": MEASURED["frequency_mhz"],
    "f_min_mhz": MEASURED["frequency_mhz"],
    "f_max_mhz": MEASURED["frequency_mhz"],
    "memory_gb": Quantity(
        "memory that a task holds of a GPU", "GB", 0, 1024, _GB, "at most what a GPU has"
    ),
    "gpu_memory_gb": Quantity("memory of a GPU", "GB", 1, 1024, _GB, "2 GB to 288 GB (MI355X)"),
    "node_memory_mib": Quantity(
        "memory of a node", "MiB", 1024, 1e8, _MIB, "Alibaba 2023: 60 GiB to 1 TiB"
    ),
    "node_cpu_milli": Quantity(
        "processors of a node", "milli-vCPU", 1000, 1e7, _CPU, "Alibaba 2023: 16 to 128 vCPU"
    ),
    "duration_s": Quantity("run time of a job", "s", 1e-3, 1e7, _TIME, LOGS, median=WEEK_S),
    "runtime_s": Quantity("run time of an application", "s", 1e-3, 1e7, _TIME, LOGS, median=WEEK_S),
    "iteration_s": MEASURED["time_s"],
    "util_percent": Quantity(
        "GPU utilisation", "%", 1, 100, _PERCENT, "not all of a table is below 1 %", "largest"
    ),
}
"""Quantities of problems, by the names of columns and settings; every value is judged."""


Believed = tuple[str, Any, Callable[[int], str]]
"""The key of `GIVEN`, values of a problem, and whose the k-th is."""


@dataclass(frozen=True, slots=True)
class Doubt:
    """A value that is not believed.

    Parameters
    ----------
    where: whose it is.
    value: it, in the unit that it should have.
    quantity: what it is about.
    more: how many others there are.
    """

    where: str
    value: float
    quantity: Quantity
    more: int = 0

    def error(self, source: str) -> InputError:
        """Return an error that says how to go on."""
        expected = f"{self.quantity.expected(self.value)}; {GO_ON}"
        return InputError(source, self.where, NoQuote(self.found), expected)

    @property
    def found(self) -> str:
        """The value, and how many others are like it."""
        return f"{self.value:,.10g}" + (f" (and {self.more} more)" if self.more else "")


def doubts(name: str, values: Any, where: Callable[[int], str]) -> list[Doubt]:
    """Return the first implausible value, or the median of all if that is implausible, or nothing.

    Parameters
    ----------
    name: the key of `GIVEN`.
    values: numbers; NaN and 0 do not count.
    where: function that names the place of the k-th value.
    """
    import numpy as np  # here, so that the table alone is light

    quantity = GIVEN[name]
    array = np.asarray(values, dtype=np.float64).ravel()
    known = np.flatnonzero(np.isfinite(array) & (array != 0))
    if quantity.judged == "largest" and known.size:
        known = known[[int(np.argmax(array[known]))]]
    bad = known[(array[known] < quantity.low) | (array[known] > quantity.high)]
    if not bad.size and known.size >= FEW:
        middle = known[np.argsort(array[known], kind="stable")[known.size // 2]]
        if array[middle] > quantity.median:
            bad = np.append(middle, known[(array[known] > quantity.median) & (known != middle)])
    if not bad.size:
        return []
    first = int(bad[0])
    return [Doubt(where(first), float(array[first]), quantity, int(bad.size) - 1)]


def doubted(problem: Any) -> list[Doubt]:
    """Return what of a problem is not believed, by its own `believed`."""
    found: Iterable[Believed] = problem.believed()
    return [doubt for name, values, where in found for doubt in doubts(name, values, where)]


def settings_doubted(settings: Mapping[str, Any]) -> list[Doubt]:
    """Return the implausible ones of the settings, by their names."""
    return [
        doubt
        for name, value in settings.items()
        if name in GIVEN and isinstance(value, (int, float)) and not isinstance(value, bool)
        for doubt in doubts(name, [value], lambda _, name=name: name)  # type: ignore[misc]
    ]


def judge(found: Sequence[Doubt], source: str, strict: bool) -> None:
    """Refuse the first doubt; without `strict`, warn of each.

    Raises
    ------
    InputError: with `strict`, for the first doubt.
    """
    for doubt in found:
        if strict:
            raise doubt.error(source)
        expected = doubt.quantity.expected(doubt.value)
        warn(f"{source}: {doubt.where}: found {doubt.found}, expected {expected}")


@cache  # one line, however often a problem is handed over
def warn(text: str) -> None:
    """Log one line about values that were read."""
    LOGGER.warning("warning: %s", text)
