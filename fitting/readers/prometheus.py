"""What Prometheus answers about dcgm-exporter's metrics: samples in, runs by GPU and pod out.

Ask ``query_range`` for several metrics at once, such as
``{__name__=~"DCGM_FI_DEV_POWER_USAGE|DCGM_FI_DEV_SM_CLOCK|DCGM_FI_PROF_DRAM_ACTIVE"}``; answers to
several queries may stand one behind another in a file. Values are texts, NaN and infinity among
them; a gap in a series is points that are not there.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from dataclasses import replace
from typing import Any

import numpy as np

from optgap.fitting.profile import Profile
from optgap.fitting.readers.samples import cut
from optgap.fitting.readers.text import stem
from optgap.models.errors import InputError, NoQuote
from optgap.models.jsonio import documents

METRICS = {
    "DCGM_FI_DEV_POWER_USAGE": "power_w",
    "DCGM_FI_DEV_SM_CLOCK": "frequency_mhz",
    "DCGM_FI_DEV_MEM_CLOCK": "memory_mhz",
    "DCGM_FI_DEV_GPU_UTIL": "util_percent",
    "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION": "energy_mj",
    "DCGM_FI_PROF_DRAM_ACTIVE": "dram_active",
    "DCGM_FI_PROF_SM_ACTIVE": "sm_active",
    "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE": "tensor_active",
    "DCGM_FI_PROF_PIPE_FP16_ACTIVE": "fp16_active",
    "DCGM_FI_PROF_PIPE_FP32_ACTIVE": "fp32_active",
    "DCGM_FI_PROF_PIPE_FP64_ACTIVE": "fp64_active",
    "DCGM_FI_PROF_GR_ENGINE_ACTIVE": "gr_engine_active",
}
"""dcgm-exporter's metrics in canonical columns and units; others keep their names."""
NEEDED = "the power of GPUs (DCGM_FI_DEV_POWER_USAGE) from query_range"

Sample = tuple[str, float]
"""A GPU with its pod, and a time in s."""


def is_answer(text: str) -> bool:
    """Whether a text begins like an answer of the HTTP API."""
    return re.match(r'\s*\{\s*"status"\s*:\s*"(success|error)"', text) is not None


def read_answer(text: str, source: str) -> Profile:
    """Samples of an answer to ``query_range``, joined by GPU, pod and time, cut into runs.

    Raises
    ------
    InputError: for an error that the server told, an answer that is empty or of another kind, or
        one without the GPUs' power.
    """
    points: dict[Sample, dict[str, float]] = defaultdict(dict)
    who: dict[str, tuple[str, str, str]] = {}
    unnamed = 0
    for entry in _series(text, source):
        told = entry.get("metric")
        labels: dict[str, Any] = told if isinstance(told, dict) else {}
        metric = str(labels.get("__name__", ""))
        if not metric:
            unnamed += 1
            continue
        gpu, pod = _gpu(labels), _pod(labels)
        key = f"{gpu} {pod}".strip()  # as it comes back from the cut
        who[key] = (gpu, pod, str(labels.get("modelName", "")))
        name = METRICS.get(metric, metric.lower())
        for time, value in _values(entry, source):
            points[key, time][name] = value
    return _profile(points, who, unnamed, source)


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
        raise InputError(source, "field data.result", NoQuote("no series"), NEEDED)
    return found


def _gpu(labels: dict[str, Any]) -> str:
    """Host and number of a GPU, and the MIG instance, as far as they are told."""
    host = labels.get("Hostname") or labels.get("instance") or ""
    number = labels.get("gpu") or labels.get("UUID") or "?"
    instance = labels.get("GPU_I_ID")
    name = f"{host}/{number}" if host else str(number)
    return f"{name}/{instance}" if instance else name


def _pod(labels: dict[str, Any]) -> str:
    """The pod that has the GPU; exporters behind a relabelling say ``exported_pod``."""
    pod = labels.get("exported_pod") or labels.get("pod") or ""
    space = labels.get("exported_namespace") or labels.get("namespace") or ""
    return f"{space}/{pod}" if pod and space else str(pod)


def _values(entry: dict[str, Any], source: str) -> list[tuple[float, float]]:
    """Times and numbers; what is not finite is left out."""
    pairs = entry.get("values") or [entry.get("value")]
    found = []
    for pair in pairs:
        try:
            time, value = float(pair[0]), float(pair[1])
        except (TypeError, ValueError, IndexError):
            where = "field data.result.values"
            raise InputError(source, where, pair, '[time, "value"]') from None
        if math.isfinite(value):
            found.append((time, value))
    return found


def _profile(
    points: dict[Sample, dict[str, float]],
    who: dict[str, tuple[str, str, str]],
    unnamed: int,
    source: str,
) -> Profile:
    rows = sorted(key for key, values in points.items() if "power_w" in values)
    if not rows:
        names = sorted({name for values in points.values() for name in values})
        found = NoQuote(", ".join(names) or "series without a metric's name")
        raise InputError(source, "field data.result", found, NEEDED)
    measured = dict.fromkeys(name for row in rows for name in points[row])
    series = {n: np.array([points[row].get(n, math.nan) for row in rows]) for n in measured}
    keys = np.array([key for key, _time in rows], dtype=object)
    times = np.array([time for _key, time in rows])
    models = np.array([who[key][2] for key in keys], dtype=object)
    profile = cut(source, "prometheus", series, keys, times, models)
    columns = dict(profile.columns)
    owners = [who[key] for key in columns["gpu"]]
    columns["gpu"] = np.array([gpu for gpu, _pod, _model in owners], dtype=object)
    application = [pod or stem(source) for _gpu, pod, _model in owners]
    columns["application"] = np.array(application, dtype=object)
    profile = replace(profile, columns=columns)
    if not unnamed:
        return profile
    return profile.noting(
        f"{unnamed} series without a metric's name left out: ask for metrics, not sums"
    )
