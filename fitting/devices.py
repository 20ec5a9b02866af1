"""Idle and full power by device: the table that PWR's node power needs."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from optgap.fitting.profile import Profile
from optgap.models.errors import InputError, NoQuote
from optgap.models.performance.saved import SCHEMA

NAME = "device-power"


def device_power(profile: Profile) -> dict[str, dict[str, float]]:
    """``gpu_idle_w`` and ``gpu_full_w`` in W by GPU model, from runs of raw samples.

    Idle is the median power of idle samples, full the power limit where it was sampled and
    otherwise the 99th percentile of the runs' mean power. The two dictionaries have the form
    of ``PowerModel.to_json`` of the placement family.

    Raises
    ------
    InputError: when the profile has no idle samples (columns ``idle_w``, ``power_w``).
    """
    if "idle_w" not in profile:
        found = NoQuote(", ".join(profile.columns))
        raise InputError(profile.source, "columns", found, "runs with a column idle_w")
    by = "gpu_model" if "gpu_model" in profile else None
    idle: dict[str, float] = {}
    full: dict[str, float] = {}
    for title, rows in profile.groups(by):
        name = title or "GPU"
        known = profile.numbers("idle_w")[rows]
        known = known[np.isfinite(known)]
        if not len(known):
            where = profile.where(int(rows[0]), "idle_w")
            raise InputError(profile.source, where, NoQuote("never idle"), "some idle samples")
        idle[name] = float(np.median(known))
        source = "power_limit_w" if "power_limit_w" in profile else "power_w"
        values = profile.numbers(source)[rows]
        full[name] = float(
            np.max(values) if source == "power_limit_w" else np.percentile(values, 99)
        )
    return {"gpu_idle_w": idle, "gpu_full_w": full}


def device_csv(table: dict[str, dict[str, float]]) -> str:
    """The table as the CSV that placement problems read: ``model,idle_w,full_w``."""
    idle, full = table["gpu_idle_w"], table["gpu_full_w"]
    rows = [
        f"{json.dumps(name) if ',' in name else name},{idle[name]:g},{full[name]:g}"
        for name in idle
    ]
    return "\n".join(["model,idle_w,full_w", *rows]) + "\n"


def device_document(profile: Profile) -> dict[str, Any]:
    """The table in the form of ``optgap.fit/1``, one group per GPU model."""
    table = device_power(profile)
    groups = []
    for name, idle in table["gpu_idle_w"].items():
        values = {"idle_w": idle, "full_w": table["gpu_full_w"][name]}
        params = {
            key: {"value": value, "stderr": None, "lower": 0.0, "upper": None, "at_bound": False}
            for key, value in values.items()
        }
        rows = (
            len(profile)
            if "gpu_model" not in profile
            else int(np.sum(profile["gpu_model"] == name))
        )
        groups.append(
            {
                "group": name,
                "n": rows,
                "params": params,
                "r2": None,
                "mape": None,
                "cv_mape": None,
                "validity": {},
                "warnings": list(profile.notes),
            }
        )
    return {
        "schema": SCHEMA,
        "model": NAME,
        "source": profile.source,
        "by": "gpu_model" if "gpu_model" in profile else None,
        "settings": {},
        "overall": {"n": len(profile), "r2": None, "mape": None, "cv_mape": None},
        "groups": groups,
    }
