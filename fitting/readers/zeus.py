"""Zeus: power-limit sweeps as summaries and as measurement windows."""

from __future__ import annotations

import re

import numpy as np

from optgap.fitting.profile import Profile
from optgap.fitting.readers.shape import constant, joined, profile_from
from optgap.fitting.readers.text import RawTable, positive, stem


def read_summary(raw: RawTable) -> Profile:
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


def is_windows(header: set[str]) -> bool:
    energies = [name for name in header if re.fullmatch(r"gpu\d+_energy", name)]
    return {"window_name", "elapsed_time"} <= header and bool(energies)


def read_windows(raw: RawTable) -> Profile:
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
