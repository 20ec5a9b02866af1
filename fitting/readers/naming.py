"""What people call the columns of a profile, and the units that they put into names."""

from __future__ import annotations

from collections.abc import Mapping

from optgap.fitting.profile import QUANTITIES
from optgap.fitting.readers.text import RawTable
from optgap.fitting.readers.tidy import ALIASES, TEXTS
from optgap.models.columns import Wanted, split_unit, units_of

NAMES: Mapping[str, tuple[str, ...]] = {
    "power_w": (
        "power", "avg_power", "average_power", "mean_power", "power_draw", "gpu_power",
        "board_power", "power_usage", "watts", "avg_power_per_gpu", "power_per_gpu",
    ),
    "frequency_mhz": (
        "frequency", "freq", "clock", "sm_clock", "core_clock", "gpu_clock", "graphics_clock",
        "core_frequency", "sm_frequency", "gpu_frequency", "core_freq", "sm_freq", "gpu_freq",
    ),
    "memory_mhz": ("memory_clock", "mem_clock", "memory_frequency", "mem_freq"),
    "time_s": (
        "time", "runtime", "run_time", "duration", "elapsed", "elapsed_time", "exec_time",
        "execution_time", "step_time", "iteration_time", "iter_time", "latency",
    ),
    "energy_j": ("energy", "total_energy", "energy_consumption"),
    "gpus": ("gpu_count", "num_gpus", "n_gpus", "ngpus", "gpu_num", "number_of_gpus"),
    "nodes": ("num_nodes", "n_nodes", "node_count"),
    "local_batch": ("batch_per_gpu", "local_batch_size", "per_gpu_batch", "per_gpu_batch_size"),
    "global_batch": ("global_batch_size",),
    "util_percent": (
        "util", "utilization", "utilisation", "gpu_util", "gpu_utilization", "gpu_utilisation",
    ),
    "util_sum_percent": ("util_sum", "summed_util", "total_util", "summed_utilisation"),
    "dram_sum": ("dram_util_sum", "dram_active_sum"),
    "speed": ("relative_speed", "normalized_speed", "normalised_speed"),
    "power_limit_w": ("power_limit", "power_cap"),
    "idle_w": ("idle", "idle_power"),
    "application": ("app", "benchmark", "kernel", "program", "app_name"),
    "gpu_model": ("gpu_name", "gpu_type", "device", "device_name"),
}  # fmt: skip
"""Names that are recognised, in words joined by underscores and without a unit."""

_OURS = {name: ours for ours, names in NAMES.items() for name in names}


def recognised(raw: RawTable) -> dict[str, Wanted]:
    """Columns that are ours under another name or in another unit; nothing is guessed twice.

    A quantity that the table has under our own name, or that two columns could be, is left alone.
    """
    canonical = {*QUANTITIES, *TEXTS, "idle_w"}
    present = {ALIASES.get(name, name) for name in raw.header} & canonical
    found: dict[str, dict[str, Wanted]] = {}
    for name in raw.header:
        if name in canonical or name in ALIASES:
            continue
        words, unit = split_unit(name)
        ours = words if words in canonical else _OURS.get(words, "")
        if not ours and unit:  # power_kw for power_w
            ours = next((q for q in canonical if q.rpartition("_")[0] == words), "")
        units = units_of(ours)
        if not ours or ours in present or (unit and unit not in units):
            continue
        own = next((u for u, factor in units.items() if factor == 1.0), "")
        found.setdefault(ours, {})[name] = Wanted(ours, "" if unit == own else unit)
    return {
        theirs: want
        for candidates in found.values()
        if len(candidates) == 1
        for theirs, want in candidates.items()
    }
