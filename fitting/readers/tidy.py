"""A plain tidy CSV under canonical column names."""

from __future__ import annotations

from typing import Any

import numpy as np

from optgap.fitting.profile import QUANTITIES, Profile
from optgap.fitting.readers.shape import others, profile_from
from optgap.fitting.readers.text import RawTable

TEXTS = ("application", "gpu_model", "placement", "workload", "gpu")


def is_tidy(header: set[str]) -> bool:
    return any(name in QUANTITIES or name == "idle_w" for name in header)


def read_tidy(raw: RawTable) -> Profile:
    """Canonical columns checked as numbers, everything else carried along."""
    columns: dict[str, Any] = {}
    for name in raw.header:
        if name in QUANTITIES or name == "idle_w":
            columns[name] = raw.numbers(name)
        elif name in TEXTS:
            columns[name] = raw.text(name)
    carried = others(raw, set(columns))
    _derive(columns)
    return profile_from(raw, "tidy", {**columns, **carried})


def _derive(columns: dict[str, Any]) -> None:
    """Fill in what follows from the other columns."""
    if "global_batch" in columns and "gpus" in columns and "local_batch" not in columns:
        columns["local_batch"] = columns["global_batch"] / columns["gpus"]
    if "gpus" in columns and "nodes" in columns and "gpus_on_node" not in columns:
        with np.errstate(divide="ignore", invalid="ignore"):
            columns["gpus_on_node"] = np.ceil(columns["gpus"] / columns["nodes"])
