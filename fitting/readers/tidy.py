"""A plain tidy CSV: canonical column names, or the ones people commonly use for them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from optgap.fitting.profile import QUANTITIES, Profile
from optgap.fitting.readers.shape import others, profile_from
from optgap.fitting.readers.text import RawTable
from optgap.models.errors import InputError, NoQuote

ALIASES = {
    "app": "application",
    "job": "application",
    "clock_mhz": "frequency_mhz",
    "core_mhz": "frequency_mhz",
    "freq_mhz": "frequency_mhz",
    "average_power_w": "power_w",
    "avg_power_w": "power_w",
    "avg_power_per_gpu_w": "power_w",
    "runtime_s": "time_s",
    "step_time_s": "time_s",
    "iteration_time_s": "time_s",
    "sync_time_s": "sync_s",
    "gpu_count": "gpus",
    "num_gpus": "gpus",
    "num_nodes": "nodes",
    "batch_per_gpu": "local_batch",
    "local_batch_size": "local_batch",
    "global_batch_size": "global_batch",
    "dram_util_sum": "dram_sum",
}

TEXTS = ("application", "gpu_model", "placement", "workload", "gpu")


def is_tidy(header: set[str]) -> bool:
    return any(name in QUANTITIES or name in ALIASES or name == "idle_w" for name in header)


def read_tidy(raw: RawTable) -> Profile:
    """Canonical columns checked as numbers, everything else carried along.

    Raises
    ------
    InputError: when two columns stand for the same quantity.
    """
    columns: dict[str, Any] = {}
    origin: dict[str, str] = {}
    for name in raw.header:
        ours = ALIASES.get(name, name)
        if ours in origin:
            found = NoQuote(f"{origin[ours]} and {name}")
            raise InputError(raw.source, "row 1", found, f"one column for {ours}")
        if ours in QUANTITIES or ours == "idle_w":
            columns[ours] = raw.numbers(name)
        elif ours in TEXTS:
            columns[ours] = raw.text(name)
        else:
            continue
        origin[ours] = name
    _derive(columns)
    renamed = {ours: name for ours, name in origin.items() if ours != name}
    raw = replace(raw, called={**renamed, **raw.called})
    return profile_from(raw, "tidy", {**columns, **others(raw, set(origin.values()))})


def _derive(columns: dict[str, Any]) -> None:
    """Fill in what follows from the other columns."""
    if "global_batch" in columns and "gpus" in columns and "local_batch" not in columns:
        columns["local_batch"] = columns["global_batch"] / columns["gpus"]
    if "gpus" in columns and "nodes" in columns and "gpus_on_node" not in columns:
        with np.errstate(divide="ignore", invalid="ignore"):
            columns["gpus_on_node"] = np.ceil(columns["gpus"] / columns["nodes"])
