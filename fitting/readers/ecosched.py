"""EcoSched's profile tables and raw DCGM samples; Lucid's co-locations."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from optgap.fitting.profile import Profile
from optgap.fitting.readers.runs import busy_means
from optgap.fitting.readers.shape import constant, profile_from
from optgap.fitting.readers.text import RawTable, parse_csv, positive
from optgap.models.errors import InputError, NoQuote
from optgap.models.reading import read_text


def read_profiles(raw: RawTable) -> Profile:
    """One run per application and GPU count, with counters summed over the GPUs."""
    gpus = positive(raw, "gpu_count")
    columns = {
        "application": raw.text("app"),
        "gpu_model": raw.text("platform") if "platform" in raw.header else constant(raw, ""),
        "gpus": gpus,
        "time_s": raw.numbers("runtime_s"),
        "power_w": raw.numbers("avg_power_per_gpu_w"),
        "dram_sum": raw.numbers("dram_util_sum"),
    }
    if "sm_clock_sum_mhz" in raw.header:
        columns["frequency_mhz"] = raw.numbers("sm_clock_sum_mhz") / gpus
    if "fp_active_sum" in raw.header:
        columns["fp_active"] = raw.numbers("fp_active_sum") / gpus
    return profile_from(raw, "ecosched", columns)


def read_samples(raw: RawTable) -> Profile:
    """Raw samples, one row per application and GPU count.

    Power and clock are means of the runs; the DRAM share is the mean of the *whole* log, because
    it is traffic over run time that a conserved traffic fixes.
    """
    app, count, gpu = raw.text("app"), raw.numbers("gpu_count"), raw.numbers("gpu")
    series = {name: raw.numbers(name) for name in ("time_s", "power_w", "dram_active")}
    clock = raw.numbers("sm_clock_mhz") if "sm_clock_mhz" in raw.header else None
    keys: dict[tuple[str, float], dict[float, list[int]]] = {}
    for row, key in enumerate(zip(app, count, strict=True)):
        keys.setdefault(key, {}).setdefault(gpu[row], []).append(row)
    rows = []
    for (name, gpus), devices in keys.items():
        spans = [np.array(index) for index in devices.values()]
        busy = [
            index[busy_means(series["time_s"][index], series["power_w"][index])] for index in spans
        ]
        rows.append(
            (
                name,
                gpus,
                max(float(np.max(series["time_s"][index])) for index in spans),
                float(np.mean([series["power_w"][index].mean() for index in busy])),
                float(sum(series["dram_active"][index].mean() for index in spans)),
                float(np.mean([clock[i].mean() for i in busy])) if clock is not None else np.nan,
                float(sum(len(index) for index in spans)),
            )
        )
    names = ("application", "gpus", "time_s", "power_w", "dram_sum", "frequency_mhz", "samples")
    columns = dict(zip(names, (np.array(item) for item in zip(*rows, strict=True)), strict=True))
    columns["application"] = columns["application"].astype(object)
    note = f"{len(raw.rows)} samples cut into {len(rows)} runs; power and clock of what is busy"
    return Profile(columns, raw.source, "ecosched-samples", notes=(note,))


def read_colocation(raw: RawTable) -> Profile:
    """Lucid's pairs: two rows per pair, speed (1 = alone) against the summed solo utilisation.

    Solo utilisations are read from ``single_data.csv`` beside the file.
    """
    beside = Path(raw.source).with_name("single_data.csv")
    if not beside.exists():
        found = NoQuote("no single_data.csv beside it")
        raise InputError(raw.source, "", found, "the jobs' utilisation alone, in that file")
    alone = parse_csv(read_text(beside), str(beside))
    keys = zip(*(alone.text(n) for n in ("model", "dataset", "batchsize", "amp")), strict=True)
    util = dict(zip(keys, alone.numbers("gpu_util"), strict=True))
    rows: list[tuple[str, str, float, float, int]] = []
    unknown = 0
    sides = []
    for k in (1, 2):
        parts = [raw.text(f"{name}{k}") for name in ("model", "dataset", "batchsize", "amp")]
        sides.append((list(zip(*parts, strict=True)), raw.numbers(f"speed{k}")))
    (first, speed1), (second, speed2) = sides
    for one, two, v1, v2, line in zip(first, second, speed1, speed2, raw.lines, strict=True):
        if one not in util or two not in util:
            unknown += 1
            continue
        total = util[one] + util[two]
        names = ["/".join(key) for key in (one, two)]
        rows += [(names[0], names[1], total, v1, line), (names[1], names[0], total, v2, line)]
    if not rows:
        raise InputError(raw.source, "", NoQuote("no pair known alone"), "pairs of known jobs")
    app, other, total, speed, lines = (np.array(item) for item in zip(*rows, strict=True))
    columns = {
        "application": app.astype(object),
        "other": other.astype(object),
        "util_sum_percent": total,
        "speed": speed,
    }
    profile = Profile(columns, raw.source, "lucid-colocation", lines.astype(np.int64))
    return (
        profile.noting(f"{unknown} pairs without solo utilisation left out") if unknown else profile
    )
