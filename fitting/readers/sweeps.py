"""Sweeps of clocks (NV-DVFS, GPU-DVFS-Job-Schedule, dlbench, nsfcac) and power limits (Zeus)."""

from __future__ import annotations

import re

import numpy as np

from optgap.fitting.profile import Profile
from optgap.fitting.readers.shape import constant, joined, others, profile_from
from optgap.fitting.readers.text import RawTable, positive, stem


def read_nv_dvfs(raw: RawTable) -> Profile:
    """Kernel time in ms and board power in W against the core clock."""
    used = {"benchmark", "argNo", "kernel", "core_frequency", "memory_frequency"}
    used |= {"time", "average_power", "DRAMA"}
    columns = {
        "application": joined(raw.text("benchmark"), raw.text("argNo"), raw.text("kernel")),
        "frequency_mhz": raw.numbers("core_frequency"),
        "memory_mhz": raw.numbers("memory_frequency"),
        "time_s": raw.numbers("time") / 1e3,
        "power_w": raw.numbers("average_power"),
        "dram_active": raw.numbers("DRAMA"),
        **others(raw, used),
    }
    note = "time read as ms per kernel launch (the publisher states no unit)"
    return profile_from(raw, "nv-dvfs", columns, note)


def read_core_mem(raw: RawTable) -> Profile:
    """Core and memory clock sweeps whose headers carry their units (``time/ms``, ``power/W``)."""
    unit = "ms" if "time/ms" in raw.header else "s"
    core, memory = raw.numbers("coreF"), raw.numbers("memF")
    extra = [raw.text(name) for name in ("kernel", "argNo", "arg") if name in raw.header]
    columns = {
        "application": joined(raw.text("appName"), *extra),
        "time_s": raw.numbers(f"time/{unit}") * (1e-3 if unit == "ms" else 1.0),
        "power_w": raw.numbers("power/W"),
    }
    notes = []
    if np.any(core <= 0):
        columns |= {"frequency_offset_mhz": core, "memory_offset_mhz": memory}
        notes.append("clocks are offsets from a base clock: kept as offsets, not as clocks")
    else:
        columns |= {"frequency_mhz": core, "memory_mhz": memory}
    return profile_from(raw, "gpu-dvfs", columns, *notes)


def read_nsfcac(raw: RawTable) -> Profile:
    """Run time in s and power in W against the SM application clock."""
    used = {"application", "sm_app_clock", "run_time", "power_usage", "energy"}
    used |= {"total_energy_consumption", "dram_active", "fp_active", "gpu_utilization"}
    columns = {
        "application": raw.text("application"),
        "frequency_mhz": raw.numbers("sm_app_clock"),
        "time_s": raw.numbers("run_time"),
        "power_w": raw.numbers("power_usage"),
    }
    named = {
        "energy": "energy_j",
        "total_energy_consumption": "energy_j",
        "dram_active": "dram_active",
        "fp_active": "fp_active",
        "gpu_utilization": "util_percent",
    }
    columns |= {ours: raw.numbers(name) for name, ours in named.items() if name in raw.header}
    return profile_from(raw, "nsfcac", {**columns, **others(raw, used)})


def read_zeus_summary(raw: RawTable) -> Profile:
    """Time per epoch in s and mean power in W by batch and power limit."""
    parts = [raw.text(name) for name in ("dataset", "network", "optimizer") if name in raw.header]
    limit = raw.numbers("power_limit")
    workload = joined(*parts)
    columns = {
        "application": joined(workload, [f"{value:g}W" for value in limit]),
        "workload": workload,
        "local_batch": raw.numbers("batch_size"),
        "power_limit_w": limit,
        "time_s": raw.numbers("time_per_epoch"),
        "power_w": raw.numbers("average_power"),
    }
    note = "time_s is per epoch; application = workload at one power limit"
    return profile_from(raw, "zeus-summary", columns, note)


def is_zeus_windows(header: set[str]) -> bool:
    energies = [name for name in header if re.fullmatch(r"gpu\d+_energy", name)]
    return {"window_name", "elapsed_time"} <= header and bool(energies)


def read_zeus_windows(raw: RawTable) -> Profile:
    """Measurement windows: energy in J per GPU over the elapsed time in s.

    A number at the end of the window's name is the power limit in W.
    """
    names = [name for name in raw.header if re.fullmatch(r"gpu\d+_energy", name)]
    energy = sum(raw.numbers(name) for name in names)
    elapsed = positive(raw, "elapsed_time")
    limits = [re.search(r"(\d+(?:\.\d+)?)$", cell) for cell in raw.text("window_name")]
    columns = {
        "application": constant(raw, stem(raw.source)),
        "window": raw.text("window_name"),
        "gpus": np.full(len(elapsed), float(len(names))),
        "time_s": elapsed,
        "energy_j": np.asarray(energy),
        "power_w": np.asarray(energy) / elapsed / len(names),
    }
    if all(limits):
        columns["power_limit_w"] = np.array([float(found[1]) for found in limits if found])
    return profile_from(raw, "zeus-windows", columns)
