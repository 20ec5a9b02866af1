"""Monitors whose output is no CSV of samples: dcgmi, tegrastats, Prometheus; and codecarbon."""

from __future__ import annotations

import math
import re
from collections import defaultdict
from typing import Any

import numpy as np

from optgap.fitting.profile import Profile
from optgap.fitting.readers.samples import UNTIMED, Samples, parse_times
from optgap.fitting.readers.shape import profile_from
from optgap.fitting.readers.text import RawTable, number, positive, stem
from optgap.models.errors import InputError, NoQuote
from optgap.models.jsonio import documents

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
    "TOTEC": "counter_j",
}
"""Short names of ``dcgmi dmon`` as our columns."""
_METRICS = {
    "DCGM_FI_DEV_POWER_USAGE": "power_w",
    "DCGM_FI_DEV_SM_CLOCK": "frequency_mhz",
    "DCGM_FI_DEV_MEM_CLOCK": "memory_mhz",
    "DCGM_FI_DEV_GPU_UTIL": "util_percent",
    "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION": "counter_j",
    "DCGM_FI_PROF_DRAM_ACTIVE": "dram_active",
    "DCGM_FI_PROF_SM_ACTIVE": "sm_active",
    "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE": "tensor_active",
    "DCGM_FI_PROF_PIPE_FP16_ACTIVE": "fp16_active",
    "DCGM_FI_PROF_PIPE_FP32_ACTIVE": "fp32_active",
    "DCGM_FI_PROF_PIPE_FP64_ACTIVE": "fp64_active",
    "DCGM_FI_PROF_GR_ENGINE_ACTIVE": "gr_engine_active",
}
"""dcgm-exporter's metrics as our columns; others keep their names."""
_NEEDED = "the power of GPUs (DCGM_FI_DEV_POWER_USAGE) from query_range"


def _in_joule(series: dict[str, Any]) -> dict[str, Any]:
    """DCGM counts energy in mJ."""
    return {name: v / 1e3 if name == "counter_j" else v for name, v in series.items()}


def is_dcgmi(text: str) -> bool:
    return re.match(r"\s*([^#\n]*\n)?#\s*Entity\b", text) is not None


def read_dcgmi(text: str, source: str, interval_s: float) -> Samples:
    """Samples of ``dcgmi dmon``, one line per GPU and tick; a line without times.

    Raises
    ------
    InputError: for a row that does not fit its header, or one that names no GPU.
    """
    header: list[str] = []
    rows: list[list[str]] = []
    lines: list[int] = []
    for line, content in enumerate(text.splitlines(), start=1):
        words = content.replace("#", " ", 1).split()
        if not words or words == ["ID"] or not (header or words[0] == "Entity"):
            continue
        if words[0] == "Entity":
            header = words[1:]
        elif words[0] == "GPU" and len(words) == len(header) + 2:
            rows.append(words[1:])
            lines.append(line)
        else:
            expected = f"GPU, its number and {len(header)} values"
            if words[0] == "GPU-I":
                expected += ": an instance of MIG has no power of its own (dcgmi dmon -i 0)"
            raise InputError(source, f"row {line}", content, expected)
    if not rows:
        raise InputError(source, "", NoQuote("no samples"), "lines of the form GPU 0 …")
    series = {
        _DCGM.get(name, name.lower()): np.array(
            [
                number(row[k], source, f"row {line}, column {name}")
                for row, line in zip(rows, lines, strict=True)
            ]
        )
        for k, name in enumerate(header, start=1)
    }
    if not {"power_w", "counter_j"} & series.keys():
        found = NoQuote(", ".join(header))
        raise InputError(source, "row 1", found, "a power column, POWER (dcgmi dmon -e 155,100)")
    device = np.array([row[0] for row in rows], dtype=object)
    note = UNTIMED.format(interval_s)
    return Samples(
        source, "dcgmi", _in_joule(series), device,
        interval_s=interval_s, lines=lines, notes=(note,),
    )  # fmt: skip


_TEGRA = re.compile(r"GR3D_FREQ (\d+)%(?:@\[?(\d+))?")
_RAIL = re.compile(r"(VDD_GPU\w*|VDD_SYS_GPU|POM_5V_GPU) (\d+)(?:mW)?/")


def is_tegrastats(text: str) -> bool:
    return _TEGRA.search(text[:4000]) is not None


def read_tegrastats(text: str, source: str, interval_s: float) -> Samples:
    """Samples of ``tegrastats``: the rail of the GPU in mW, its clock and its utilisation.

    Raises
    ------
    InputError: for a log without a rail of the GPU.
    """
    read = [(k, line, _TEGRA.search(line)) for k, line in enumerate(text.splitlines(), start=1)]
    rows = [(k, line, gpu) for k, line, gpu in read if gpu]
    rails = [_RAIL.search(line) for _, line, _ in rows]
    name = next((rail[1] for rail in rails if rail), "")
    if not name:
        expected = "the power of the GPU's rail: VDD_GPU, VDD_SYS_GPU or POM_5V_GPU"
        raise InputError(source, f"row {rows[0][0]}", NoQuote("no rail of the GPU"), expected)
    nan = math.nan
    series = {
        "power_w": np.array([float(rail[2]) / 1e3 if rail else nan for rail in rails]),
        "frequency_mhz": np.array([float(gpu[2]) if gpu[2] else nan for _, _, gpu in rows]),
        "util_percent": np.array([float(gpu[1]) for _, _, gpu in rows]),
    }
    series = {ours: values for ours, values in series.items() if np.isfinite(values).any()}
    stamps = np.array([line[:19] for _, line, _ in rows], dtype=object)
    times = parse_times(stamps)
    timed = bool(np.isfinite(times).all())
    notes = [
        f"power is {name}"
        + (
            ", shared with what else is on it"
            if "_" in name[5:] and name.startswith("VDD_GPU")
            else ""
        )
    ]
    if not timed:
        notes.append(UNTIMED.format(interval_s))
    return Samples(
        source, "tegrastats", series, np.full(len(rows), "0", dtype=object),
        times=times if timed else None, interval_s=interval_s,
        lines=[k for k, _, _ in rows], notes=tuple(notes),
    )  # fmt: skip


def is_prometheus(text: str) -> bool:
    """Whether a text begins like an answer of the HTTP API."""
    return re.match(r'\s*\{\s*"status"\s*:\s*"(success|error)"', text) is not None


def read_prometheus(text: str, source: str) -> Samples:
    """Samples of answers to ``query_range`` about dcgm-exporter, joined by GPU, pod and time.

    Raises
    ------
    InputError: for an error that the server told, an answer that is empty or of another kind, or
        one without the GPUs' power.
    """
    points: dict[tuple[tuple[str, str, str], float], dict[str, float]] = defaultdict(dict)
    unnamed = 0
    for entry in _series(text, source):
        told = entry.get("metric")
        labels: dict[str, Any] = told if isinstance(told, dict) else {}
        metric = str(labels.get("__name__", ""))
        unnamed += not metric
        if metric:
            who = (_gpu(labels), _pod(labels) or stem(source), str(labels.get("modelName", "")))
            for time, value in _values(entry, source):
                points[who, time][_METRICS.get(metric, metric.lower())] = value
    rows = sorted(key for key, values in points.items() if "power_w" in values)
    if not rows:
        names = sorted({name for values in points.values() for name in values})
        found = NoQuote(", ".join(names) or "series without a metric's name")
        raise InputError(source, "field data.result", found, _NEEDED)
    measured = dict.fromkeys(name for row in rows for name in points[row])
    series = {n: np.array([points[row].get(n, math.nan) for row in rows]) for n in measured}
    gpu, pod, model = (np.array([who[k] for who, _ in rows], dtype=object) for k in range(3))
    left = f"{unnamed} series without a metric's name left out: ask for metrics, not sums"
    return Samples(
        source, "prometheus", _in_joule(series), gpu,
        texts={"application": pod, "gpu_model": model}, keys=("application",),
        times=np.array([time for _, time in rows]), notes=(left,) if unnamed else (),
    )  # fmt: skip


def _series(text: str, source: str) -> list[dict[str, Any]]:
    """All series of the answers."""
    found: list[dict[str, Any]] = []
    for answer in documents(text, source):
        if not isinstance(answer, dict) or answer.get("status") != "success":
            told = answer.get("error", "no success") if isinstance(answer, dict) else "no object"
            raise InputError(source, "field status", NoQuote(f"an error: {told}"), "success")
        data = answer.get("data")
        kind = data.get("resultType") if isinstance(data, dict) else None
        if not isinstance(data, dict) or kind not in ("matrix", "vector"):
            where = "field data.resultType"
            raise InputError(source, where, kind, "matrix, as query_range answers")
        found += [entry for entry in data.get("result") or [] if isinstance(entry, dict)]
    if not found:
        raise InputError(source, "field data.result", NoQuote("no series"), _NEEDED)
    return found


def _gpu(labels: dict[str, Any]) -> str:
    """Host and number of a GPU, and the MIG instance, as far as they are told."""
    host = labels.get("Hostname") or labels.get("instance") or ""
    parts = (host, labels.get("gpu") or labels.get("UUID") or "?", labels.get("GPU_I_ID"))
    return "/".join(str(part) for part in parts if part)


def _pod(labels: dict[str, Any]) -> str:
    """The pod that has the GPU; exporters behind a relabelling say ``exported_pod``."""
    pod = labels.get("exported_pod") or labels.get("pod") or ""
    space = labels.get("exported_namespace") or labels.get("namespace") or ""
    return f"{space}/{pod}" if pod and space else str(pod)


def _values(entry: dict[str, Any], source: str) -> list[tuple[float, float]]:
    """Times and numbers; what is not finite is left out."""
    found = []
    for pair in entry.get("values") or [entry.get("value")]:
        try:
            time, value = float(pair[0]), float(pair[1])
        except (TypeError, ValueError, IndexError):
            where = "field data.result.values"
            raise InputError(source, where, pair, '[time, "value"]') from None
        if math.isfinite(value):
            found.append((time, value))
    return found


def read_codecarbon(raw: RawTable) -> Profile:
    """Runs of codecarbon's ``emissions.csv``; its energies are cumulative, so last rows count.

    Power is energy over time: the column ``gpu_power`` is a last reading, not a mean.
    """
    last = {run: k for k, run in enumerate(raw.text("run_id"))}
    kept = np.array(sorted(last.values()))
    left = len(raw.rows) - len(kept)
    raw = raw.take(kept)
    gpus, time = positive(raw, "gpu_count"), positive(raw, "duration")
    energy = raw.numbers("gpu_energy") * 3.6e6  # kWh
    columns: dict[str, Any] = {"gpus": gpus, "time_s": time, "energy_j": energy}
    columns["power_w"] = energy / time / gpus
    if "project_name" in raw.header:
        columns["application"] = raw.text("project_name")
    if "gpu_model" in raw.header:
        models = [re.sub(r"^\d+ x ", "", text) for text in raw.text("gpu_model")]
        columns["gpu_model"] = np.array(models, dtype=object)
    notes = [f"{left} rows left out: energies are cumulative, the last row of a run counts"]
    return profile_from(raw, "codecarbon", columns, *(notes if left else []))
