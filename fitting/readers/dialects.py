"""Published kinds of CSV: sweeps of clocks and limits, training throughput, co-locations."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence, Set
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from optgap.fitting.profile import TEXTS, Profile, as_column
from optgap.fitting.readers.runs import busy_means
from optgap.fitting.readers.text import (
    RawTable,
    constant,
    joined,
    measured,
    parse_csv,
    positive,
    profile_from,
    stem,
)
from optgap.models.errors import InputError, NoQuote
from optgap.models.reading import read_text

SERVER = 8
"""GPUs on a node of ElasticFlow's testbed and of Gavel's consolidated jobs."""
COUNTS = ("gpus", "nodes")
"""Columns that have to be above 0."""


def _columns(raw: RawTable, **theirs: str) -> dict[str, Any]:
    """Our columns by the file's names for them, where it has these.

    A unit follows a colon, ``time:ms``; text columns of several names are joined.
    """
    found: dict[str, Any] = {}
    for ours, text in theirs.items():
        name, _, unit = text.partition(":")
        if ours in TEXTS:
            parts = [raw.text(part) for part in text.split() if part in raw.header]
            found |= {ours: joined(*parts)} if parts else {}
        elif name in raw.header:
            values = positive(raw, name) if ours in COUNTS else measured(raw, name, ours, unit)[1]
            found[ours] = values
    return found


def _nv_dvfs(raw: RawTable) -> Profile:
    columns = _columns(
        raw,
        application="benchmark argNo kernel",
        frequency_mhz="core_frequency",
        memory_mhz="memory_frequency",
        time_s="time:ms",
        power_w="average_power",
        dram_active="DRAMA",
    )
    return profile_from(raw, columns, "time read as ms per kernel launch (no unit is published)")


def _core_and_memory(raw: RawTable) -> Profile:
    """Sweeps of both clocks, whose headers carry their units (``time/ms``, ``power/W``)."""
    time = "time/ms:ms" if "time/ms" in raw.header else "time/s"
    columns = _columns(raw, application="appName kernel argNo arg", time_s=time, power_w="power/W")
    core, memory = raw.numbers("coreF"), raw.numbers("memF")
    if np.all(core > 0):
        return profile_from(raw, {**columns, "frequency_mhz": core, "memory_mhz": memory})
    columns |= {"frequency_offset_mhz": core, "memory_offset_mhz": memory}
    note = "clocks are offsets from a base clock: kept as offsets, not as clocks"
    return profile_from(raw, columns, note)


def _nsfcac(raw: RawTable) -> Profile:
    columns = _columns(
        raw,
        application="application",
        frequency_mhz="sm_app_clock",
        time_s="run_time",
        power_w="power_usage",
        energy_j="total_energy_consumption" if "energy" not in raw.header else "energy",
        dram_active="dram_active",
        fp_active="fp_active",
        util_percent="gpu_utilization",
    )
    return profile_from(raw, columns)


def _zeus_summary(raw: RawTable) -> Profile:
    """Time per epoch and mean power by batch and power limit."""
    columns = _columns(
        raw,
        workload="dataset network optimizer",
        local_batch="batch_size",
        power_limit_w="power_limit",
        time_s="time_per_epoch",
        power_w="average_power",
    )
    limits = [f"{value:g}W" for value in columns["power_limit_w"]]
    columns["application"] = joined(columns["workload"], limits)
    note = "time_s is per epoch; application = workload at one power limit"
    return profile_from(raw, columns, note)


_ENERGY = re.compile(r"gpu\d+_energy")


def _zeus_windows(raw: RawTable) -> Profile:
    """Energy per GPU over windows; a number at the end of a window's name is the limit in W."""
    names = [name for name in raw.header if _ENERGY.fullmatch(name)]
    energy = np.sum([raw.numbers(name) for name in names], axis=0)
    elapsed, window = positive(raw, "elapsed_time"), raw.text("window_name")
    columns = {
        "application": constant(raw, stem(raw.source)),
        "window": window,
        "gpus": np.full(len(elapsed), float(len(names))),
        "time_s": elapsed,
        "energy_j": energy,
        "power_w": energy / elapsed / len(names),
    }
    limits = [re.search(r"(\d+(?:\.\d+)?)$", cell) for cell in window]
    if all(limits):
        columns["power_limit_w"] = np.array([float(found[1]) for found in limits if found])
    return profile_from(raw, columns)


def _adaptdl(raw: RawTable) -> Profile:
    """Step time by nodes and replicas, or by placement, a digit for each node.

    Raises
    ------
    InputError: for a placement that is not digits from 1 to 9 (a spreadsheet may have turned it
        into a number).
    """
    names = {"gpus": "num_replicas", "nodes": "num_nodes", "placement": "placement"}
    columns = _columns(
        raw, **names, local_batch="local_bsz", time_s="step_time", sync_s="sync_time"
    )
    columns["application"] = constant(raw, re.split("_placements|_scalab", stem(raw.source))[0])
    if "placement" not in columns:
        return profile_from(
            raw, {**columns, "gpus_on_node": np.ceil(columns["gpus"] / columns["nodes"])}
        )
    digits = []
    for line, text in zip(raw.lines, columns["placement"], strict=True):
        if not re.fullmatch(r"[1-9]+", text):
            expected = "digits from 1 to 9, the GPUs on each node"
            raise InputError(raw.source, f"row {line}, column placement", text, expected)
        digits.append([int(digit) for digit in text])
    of_nodes: dict[str, Callable[[list[int]], int]] = {
        "gpus": sum, "nodes": len, "gpus_on_node": max
    }  # fmt: skip
    columns |= {ours: np.array([of(d) for d in digits], float) for ours, of in of_nodes.items()}
    return profile_from(raw, columns)


def _elasticflow(raw: RawTable) -> Profile:
    """Iterations per second by global batch (rows) and GPUs (columns); 0 and empty are not runs."""
    batch = positive(raw, "global_batch_size")
    counts = [name for name in raw.header if name.isdigit()]
    rates = np.array([raw.numbers(name) for name in counts])
    for column, row in np.argwhere(rates < 0)[:1]:
        where = f"row {raw.lines[row]}, column {counts[column]}"
        raise InputError(raw.source, where, float(rates[column, row]), "iterations per second")
    column, row = np.nonzero(rates > 0)
    raw, gpus = raw.take(row), np.array(counts, dtype=float)[column]
    columns = {
        "application": constant(raw, stem(raw.source)),
        "gpus": gpus,
        "nodes": np.ceil(gpus / SERVER),
        "gpus_on_node": np.minimum(gpus, SERVER),
        "global_batch": batch[row],
        "local_batch": batch[row] / gpus,
        "time_s": 1 / rates[column, row],
    }
    empty = rates.size - len(row)
    note = f"{empty} cells of 0 or nothing are combinations that were not run"
    return profile_from(raw, columns, *([note] if empty else []))


def _gavel(raw: RawTable) -> Profile:
    """Isolated jobs; steps are summed over workers, so T = n / steps_per_s.

    Unconsolidated jobs sit one GPU to a node, others fill nodes of eight.
    """
    raw = raw.take(np.flatnonzero(raw.numbers("steps_per_s") > 0))
    names = {"application": "model", "gpu_model": "gpu", "gpus": "num_gpus"}
    columns = _columns(raw, **names, placement="placement", local_batch="local_batch_size")
    gpus, placement = columns["gpus"], columns.get("placement", constant(raw, ""))
    apart = np.array(["unconsolidated" in text for text in placement], dtype=bool)
    nodes = np.where(apart, gpus, np.ceil(gpus / SERVER))
    columns["placement"] = np.where(apart, "unconsolidated", "consolidated").astype(object)
    columns |= {"nodes": nodes, "gpus_on_node": np.ceil(gpus / nodes)}
    return profile_from(raw, {**columns, "time_s": gpus / raw.numbers("steps_per_s")})


def _ecosched(raw: RawTable) -> Profile:
    """One run per application and GPU count, with counters summed over the GPUs."""
    columns = _columns(
        raw,
        application="app",
        gpu_model="platform",
        gpus="gpu_count",
        time_s="runtime_s",
        power_w="avg_power_per_gpu_w",
        dram_sum="dram_util_sum",
        frequency_mhz="sm_clock_sum_mhz",
        fp_active="fp_active_sum",
    )
    for name in {"frequency_mhz", "fp_active"} & columns.keys():
        columns[name] = columns[name] / columns["gpus"]
    return profile_from(raw, columns)


def _ecosched_samples(raw: RawTable) -> Profile:
    """Raw samples, one row per application and GPU count.

    Power and clock are means of the runs; the DRAM share is the mean of the *whole* log, because
    it is traffic over run time that a conserved traffic fixes.
    """
    named = ["app", "gpu_count", "gpu", "time_s", "power_w", "dram_active", "sm_clock_mhz"]
    names = [name for name in named if name in raw.header]
    log = Profile({n: raw.text(n) if n == "app" else raw.numbers(n) for n in names}, raw.source)
    rows: list[dict[str, Any]] = []
    for _, index in log.groups(["app", "gpu_count"]):
        one = log.take(index)
        gpus = [one.take(own) for _, own in one.groups("gpu")]
        busy = [gpu.take(busy_means(gpu["time_s"], gpu["power_w"])) for gpu in gpus]
        means = {n: float(np.mean([gpu[n].mean() for gpu in busy])) for n in names[3:]}
        row: dict[str, Any] = {
            "application": one["app"][0],
            "gpus": one["gpu_count"][0],
            "time_s": one["time_s"].max(),
            "power_w": means["power_w"],
            "dram_sum": sum(gpu["dram_active"].mean() for gpu in gpus),
            "samples": float(len(index)),
        }
        clock = means.get("sm_clock_mhz")
        rows.append(row if clock is None else {**row, "frequency_mhz": clock})
    note = f"{len(raw.rows)} samples cut into {len(rows)} runs; power and clock of what is busy"
    columns = {name: as_column([row[name] for row in rows]) for name in rows[0]}
    return Profile(columns, raw.source, notes=(note,))


def _colocation(raw: RawTable) -> Profile:
    """Lucid's pairs: two rows per pair, speed (1 = alone) against the summed solo utilisation.

    Solo utilisations are read from ``single_data.csv`` beside the file.
    """
    beside = Path(raw.source).with_name("single_data.csv")
    if not beside.exists():
        found = NoQuote("no single_data.csv beside it")
        raise InputError(raw.source, "", found, "the jobs' utilisation alone, in that file")
    alone, parts = (
        parse_csv(read_text(beside), str(beside)),
        ["model", "dataset", "batchsize", "amp"],
    )
    util = dict(zip(joined(*map(alone.text, parts)), alone.numbers("gpu_util"), strict=True))
    sides = [joined(*(raw.text(f"{part}{k}") for part in parts)) for k in "12"]
    known = [k for k, pair in enumerate(zip(*sides, strict=True)) if util.keys() >= {*pair}]
    if not known:
        raise InputError(raw.source, "", NoQuote("no pair known alone"), "pairs of known jobs")
    twice = np.repeat(known, 2)  # each side of a pair, one below the other
    first, second = (np.stack(order, axis=1)[known].ravel() for order in (sides, sides[::-1]))
    total = [util[one] + util[two] for one, two in zip(first, second, strict=True)]
    columns = {
        "application": first,
        "other": second,
        "util_sum_percent": np.array(total),
        "speed": np.stack([raw.numbers(f"speed{k}") for k in "12"], axis=1)[known].ravel(),
    }
    left = len(raw.rows) - len(known)
    note = f"{left} pairs without solo utilisation left out"
    return profile_from(raw.take(twice), columns, *([note] if left else []))


def _codecarbon(raw: RawTable) -> Profile:
    """Runs of ``emissions.csv``; its energies are cumulative, so last rows count.

    Power is energy over time: the column ``gpu_power`` is a last reading, not a mean.
    """
    kept = sorted({run: k for k, run in enumerate(raw.text("run_id"))}.values())
    left, raw = len(raw.rows) - len(kept), raw.take(kept)
    names = {"application": "project_name", "gpu_model": "gpu_model", "gpus": "gpu_count"}
    columns = _columns(raw, **names, energy_j="gpu_energy:kWh")
    columns["time_s"] = positive(raw, "duration")
    columns["power_w"] = columns["energy_j"] / columns["time_s"] / columns["gpus"]
    if "gpu_model" in columns:
        models = [re.sub(r"^\d+ x ", "", text) for text in columns["gpu_model"]]
        columns["gpu_model"] = np.array(models, dtype=object)
    note = f"{left} rows left out: energies are cumulative, the last row of a run counts"
    return profile_from(raw, columns, *([note] if left else []))


@dataclass(frozen=True)
class Dialect:
    """One kind of CSV: the columns by which it is recognised, or a test of them, and its reader."""

    name: str
    needs: str | Callable[[Set[str]], bool]
    reader: Callable[[RawTable], Profile]

    def matches(self, header: Set[str]) -> bool:
        """Whether a table with these columns is of this kind."""
        if callable(self.needs):
            return self.needs(header)
        return {*self.needs.split()} <= header

    def read(self, raw: RawTable) -> Profile:
        """The table under our names."""
        return replace(self.reader(raw), kind=self.name)


def _by_gpus(header: Set[str]) -> bool:
    rest = header - {"global_batch_size"}
    return len(rest) < len(header) and bool(rest) and all(name.isdigit() for name in rest)


def _by_window(header: Set[str]) -> bool:
    return {"window_name", "elapsed_time"} <= header and any(map(_ENERGY.fullmatch, header))


DIALECTS: Sequence[Dialect] = (
    Dialect("codecarbon", "run_id duration gpu_energy gpu_count", _codecarbon),
    Dialect("nv-dvfs", "benchmark core_frequency time average_power", _nv_dvfs),
    Dialect("gpu-dvfs", "appName coreF memF power/W", _core_and_memory),
    Dialect("nsfcac", "application sm_app_clock run_time power_usage", _nsfcac),
    Dialect("zeus-summary", "network batch_size power_limit time_per_epoch average_power",
            _zeus_summary),
    Dialect("zeus-windows", _by_window, _zeus_windows),
    Dialect("adaptdl-placements", "placement local_bsz step_time", _adaptdl),
    Dialect("adaptdl-scalability", "num_nodes num_replicas local_bsz step_time", _adaptdl),
    Dialect("elasticflow", _by_gpus, _elasticflow),
    Dialect("gavel", "model local_batch_size num_gpus steps_per_s", _gavel),
    Dialect("ecosched", "app gpu_count runtime_s avg_power_per_gpu_w dram_util_sum", _ecosched),
    Dialect("ecosched-samples", "app gpu_count gpu time_s dram_active power_w", _ecosched_samples),
    Dialect("lucid-colocation", "model1 speed1 model2 speed2", _colocation),
)  # fmt: skip
"""In the order in which they are tried; what is of none is a log of samples or a tidy table."""
