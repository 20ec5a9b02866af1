"""Monitors whose output is no CSV: dcgmi, tegrastats, Prometheus; their samples as tables."""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Mapping
from typing import Any

from optgap.fitting.profile import answered
from optgap.fitting.readers.samples import Samples, of_table
from optgap.fitting.readers.text import RawTable, stem
from optgap.models.columns import Wanted
from optgap.models.errors import InputError, NoQuote
from optgap.models.jsonio import documents

_DCGM = {
    "POWER": Wanted("power_w"),
    "SMCLK": Wanted("frequency_mhz"),
    "MMCLK": Wanted("memory_mhz"),
    "DRAMA": Wanted("dram_active"),
    "GPUTL": Wanted("util_percent"),
    "TOTEC": Wanted("energy_j", "mJ"),
}
"""Short names of ``dcgmi dmon`` as our columns."""
_METRICS = {
    "DCGM_FI_DEV_POWER_USAGE": Wanted("power_w"),
    "DCGM_FI_DEV_SM_CLOCK": Wanted("frequency_mhz"),
    "DCGM_FI_DEV_MEM_CLOCK": Wanted("memory_mhz"),
    "DCGM_FI_DEV_GPU_UTIL": Wanted("util_percent"),
    "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION": Wanted("energy_j", "mJ"),
    "DCGM_FI_PROF_DRAM_ACTIVE": Wanted("dram_active"),
}
"""dcgm-exporter's metrics as our columns."""
_POWER = "DCGM_FI_DEV_POWER_USAGE"
_NEEDED = "the power of GPUs (DCGM_FI_DEV_POWER_USAGE) from query_range"


Log = tuple[RawTable, Mapping[str, Wanted]]
"""A table of samples, and what its columns are."""


def _dcgmi(text: str, source: str) -> Log:
    """Table of ``dcgmi dmon``, one line per GPU and tick; a line without times.

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
    return RawTable(source, ["gpu", *header], rows, lines), _DCGM


_TEGRA = re.compile(r"GR3D_FREQ (\d+)%(?:@\[?(\d+))?")
_RAIL = re.compile(r"(VDD_GPU\w*|VDD_SYS_GPU|POM_5V_GPU) (\d+)(?:mW)?/")


def _tegrastats(text: str, source: str) -> Log:
    """Table of ``tegrastats``: the rail of the GPU in mW, its clock and its utilisation.

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
    timed = re.match(r"\d+-\d+-\d+ \d", rows[0][1]) is not None
    header = ["timestamp"] * timed + ["power_w [mW]", "frequency_mhz", "util_percent"]
    cells = [
        [line[:19]] * timed + [rail[2] if rail else "", gpu[2] or "", gpu[1]]
        for (_, line, gpu), rail in zip(rows, rails, strict=True)
    ]
    shared = ", shared with what else is on it" if re.match("VDD_GPU_", name) else ""
    note = f"power is {name}{shared}"
    return RawTable(source, header, cells, [k for k, _, _ in rows], notes=(note,)), {}


def _prometheus(text: str, source: str) -> Log:
    """Table of answers to ``query_range`` about dcgm-exporter, joined by GPU, pod and time.

    Raises
    ------
    InputError: for an error that the server told, an answer that is empty or of another kind, or
        one without the GPUs' power.
    """
    points: dict[tuple[tuple[str, str, str], float], dict[str, str]] = defaultdict(dict)
    unnamed = 0
    for entry in _series(text, source):
        told = entry.get("metric")
        labels: dict[str, Any] = told if isinstance(told, dict) else {}
        metric = str(labels.get("__name__", ""))
        unnamed += not metric
        who = (_gpu(labels), _pod(labels) or stem(source), str(labels.get("modelName", "")))
        for time, value in _values(entry, source) if metric else ():
            points[who, time][metric] = repr(value)
    rows = sorted(key for key, values in points.items() if _POWER in values)
    if not rows:
        names = sorted({name for values in points.values() for name in values})
        found = NoQuote(", ".join(names) or "series without a metric's name")
        raise InputError(source, "field data.result", found, _NEEDED)
    measured = [name for name in _METRICS if any(name in points[row] for row in rows)]
    cells = [[repr(time), *who, *(points[who, time].get(n, "") for n in measured)]
             for who, time in rows]  # fmt: skip
    header = ["timestamp", "gpu", "application", "gpu_model", *measured]
    raw = RawTable(source, header, cells, [0] * len(cells))
    what = "series without a metric's name left out: ask for metrics, not sums"
    return raw.noting(unnamed, what), _METRICS


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


_DMON = re.compile(r"\s*([^#\n]*\n)?#\s*Entity\b")
_HTTP = re.compile(r'\s*\{\s*"status"\s*:\s*"(success|error)"')


def read(
    text: str, source: str, interval_s: float | None, units: Mapping[str, str]
) -> Samples | None:
    """Samples of a monitor's output, by its first lines; None for what is of none.

    Parameters
    ----------
    interval_s: time between samples of a log without times; 1 s by default.
    units: what the user says that quantities are measured in.

    Raises
    ------
    InputError: for output that is cut, or has no power of a GPU.
    """
    if _HTTP.match(text):
        kind, (raw, named) = "prometheus", _prometheus(text, source)
    elif _TEGRA.search(text[:4000]):
        kind, (raw, named) = "tegrastats", _tegrastats(text, source)
    elif _DMON.match(text):
        kind, (raw, named) = "dcgmi", _dcgmi(text, source)
    else:
        return None
    return of_table(raw, named, answered(units), interval_s or 1.0, kind)
