"""``nvidia-smi --query-gpu=… --format=csv`` and ``dcgmi dmon``: samples in, runs out."""

from __future__ import annotations

import re
from collections import defaultdict
from datetime import datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray

from optgap.fitting.profile import Profile
from optgap.fitting.readers.runs import busy_mask, runs
from optgap.fitting.readers.text import RawTable, number, stem
from optgap.models.errors import InputError, NoQuote

Floats = NDArray[np.float64]

# nvidia-smi field, its unit in the header, our column
_SMI = (
    ("power.draw", "W", "power_w"),
    ("power.draw.instant", "W", "power_w"),
    ("power.draw.average", "W", "power_w"),
    ("clocks.current.sm", "MHz", "frequency_mhz"),
    ("clocks.sm", "MHz", "frequency_mhz"),
    ("clocks.current.graphics", "MHz", "frequency_mhz"),
    ("clocks.gr", "MHz", "frequency_mhz"),
    ("clocks.current.memory", "MHz", "memory_mhz"),
    ("clocks.mem", "MHz", "memory_mhz"),
    ("utilization.gpu", "%", "util_percent"),
    ("power.limit", "W", "power_limit_w"),
    ("enforced.power.limit", "W", "power_limit_w"),
)

# dcgmi dmon short names, our column
_DCGM = {
    "POWER": "power_w",
    "SMCLK": "frequency_mhz",
    "MMCLK": "memory_mhz",
    "DRAMA": "dram_active",
    "GPUTL": "util_percent",
    "FP16A": "fp16_active",
    "FP32A": "fp32_active",
    "FP64A": "fp64_active",
    "SMACT": "sm_active",
    "TOTEC": "energy_mj",
}


def is_nvidia_smi(header: set[str]) -> bool:
    return any(name.split(" [")[0] in {"power.draw", "power.draw.instant"} for name in header)


def read_nvidia_smi(raw: RawTable) -> Profile:
    """Samples of ``nvidia-smi``, with or without units in the cells, cut into runs."""
    plain = {name.split(" [")[0]: name for name in raw.header}
    series: dict[str, Floats] = {}
    for field, unit, ours in _SMI:
        if field in plain and ours not in series:
            series[ours] = raw.numbers(plain[field], unit)
    times = _timestamps(raw, plain["timestamp"]) if "timestamp" in plain else None
    device = next((plain[n] for n in ("index", "uuid", "pci.bus_id", "name") if n in plain), None)
    gpu = raw.text(device) if device else np.full(len(raw.rows), "0", dtype=object)
    model = raw.text(plain["name"]) if "name" in plain else None
    return cut(raw.source, "nvidia-smi", series, gpu, times, model)


def _timestamps(raw: RawTable, name: str) -> Floats:
    values = []
    for text, line in zip(raw.text(name), raw.lines, strict=True):
        for form in ("%Y/%m/%d %H:%M:%S.%f", "%Y/%m/%d %H:%M:%S"):
            try:
                values.append(datetime.strptime(text.strip(), form).timestamp())
                break
            except ValueError:
                continue
        else:
            where = f"row {line}, column {name}"
            raise InputError(raw.source, where, text, "a time like 2023/11/21 04:00:00.000")
    return np.array(values)


def is_optgap(header: set[str]) -> bool:
    return {"sample_s", "gpu", "power_w"} <= header


def read_optgap(raw: RawTable) -> Profile:
    """Cut samples into runs, as ``optgap profile`` once wrote them."""
    names = ("power_w", "frequency_mhz", "memory_mhz", "util_percent", "power_limit_w")
    columns = {name: raw.numbers(name) for name in names if name in raw.header}
    series = {name: values for name, values in columns.items() if np.any(np.isfinite(values))}
    model = raw.text("gpu_model") if "gpu_model" in raw.header else None
    return cut(
        raw.source, "optgap-samples", series, raw.text("gpu"), raw.numbers("sample_s"), model
    )


def is_dcgmi(text: str) -> bool:
    first = next((line for line in text.splitlines() if line.strip()), "")
    return bool(re.match(r"#\s*Entity\b", first))


def read_dcgmi(text: str, source: str, interval_s: float = 1.0) -> Profile:
    """Samples of ``dcgmi dmon``, one line per GPU and tick, cut into runs.

    The output carries no time: ticks are `interval_s` apart (dcgmi's default is 1 s).

    Raises
    ------
    InputError: for a row that does not fit its header, or one that names no GPU.
    """
    header: list[str] = []
    rows: list[list[str]] = []
    lines: list[int] = []
    for line, content in enumerate(text.splitlines(), start=1):
        words = content.replace("#", " ", 1).split() if "#" in content else content.split()
        if not words or words == ["ID"]:
            continue
        if words[0] == "Entity":
            header = words[1:]
        elif words[0] == "GPU" and len(words) == len(header) + 2:
            rows.append(words[1:])
            lines.append(line)
        else:
            expected = f"GPU, its number and {len(header)} values"
            raise InputError(source, f"row {line}", content, expected)
    if not rows:
        raise InputError(source, "", NoQuote("no samples"), "lines of the form GPU 0 …")
    gpu = np.array([row[0] for row in rows], dtype=object)
    series: dict[str, Floats] = {}
    for k, name in enumerate(header, start=1):
        cells = [
            number(row[k], source, f"row {line}, column {name}")
            for row, line in zip(rows, lines, strict=True)
        ]
        series[_DCGM.get(name, name.lower())] = np.array(cells)
    ticks: dict[str, int] = {}
    times = []
    for device in gpu:
        ticks[device] = ticks.get(device, -1) + 1
        times.append(ticks[device] * interval_s)
    profile = cut(source, "dcgmi", series, gpu, np.array(times), None)
    return profile.noting(f"samples taken to be {interval_s:g} s apart")


def _mean(values: Floats) -> float:
    """The mean of what was told; NaN when nothing was."""
    known = values[np.isfinite(values)]
    return float(known.mean()) if len(known) else float("nan")


def cut(
    source: str,
    kind: str,
    series: dict[str, Floats],
    gpu: NDArray[Any],
    times: Floats | None,
    model: NDArray[Any] | None,
) -> Profile:
    """A profile with a row for every run of every device.

    Parameters
    ----------
    series: measured columns, one value per sample.
    gpu, times, model: each sample's device, time in s and product, the last two where known.

    Raises
    ------
    InputError: without a power column, or without a run.
    """
    if "power_w" not in series:
        shown = NoQuote(", ".join(series) or "nothing")
        raise InputError(source, "row 1", shown, "a power column (power.draw, or POWER)")
    rows: list[dict[str, Any]] = []
    samples: dict[Any, list[int]] = defaultdict(list)
    for k, device in enumerate(gpu):
        samples[device].append(k)
    for device, own in samples.items():
        index = np.array(own)
        clock = series["frequency_mhz"][index] if "frequency_mhz" in series else None
        resting = series["power_w"][index][~busy_mask(series["power_w"][index])]
        idle = float(np.median(resting)) if len(resting) else float("nan")
        for number_, span in enumerate(runs(series["power_w"][index], clock)):
            inside = index[span]
            row: dict[str, Any] = {
                "application": stem(source),
                "gpu": str(device).strip(),
                "run": float(number_),
                "samples": float(len(inside)),
                "idle_w": idle,
                **{name: _mean(values[inside]) for name, values in series.items()},
            }
            if model is not None:
                row["gpu_model"] = str(model[inside[0]]).strip()
            if times is not None:
                step = float(np.median(np.diff(times[index]))) if len(index) > 1 else 0.0
                row["time_s"] = float(times[inside[-1]] - times[inside[0]]) + step
            rows.append(row)
    if not rows:
        raise InputError(source, "", NoQuote("no run of 5 busy samples"), "samples of a busy GPU")
    columns = {name: np.array([row[name] for row in rows]) for name in rows[0]}
    for name in ("application", "gpu", "gpu_model"):
        if name in columns:
            columns[name] = columns[name].astype(object)
    left = len(gpu) - int(sum(row["samples"] for row in rows))
    note = f"{len(gpu)} samples cut into {len(rows)} runs; {left} idle or short ones left out"
    return Profile(columns, source, kind, notes=(note,))
