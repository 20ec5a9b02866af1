"""Published kinds of CSV: sweeps of clocks and limits, training throughput.

A dialect turns a table into one that `tidy` reads: it names the columns, and computes those that
need more than a name.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace

import numpy as np

from optgap.fitting.readers.text import Floats, RawTable, stem
from optgap.models.errors import InputError

SERVER = 8
"""GPUs of a node of ElasticFlow's testbed, and of a node of Gavel's consolidated jobs."""


def _positive(raw: RawTable, name: str) -> Floats:
    """Return a positive column; raise InputError for the first other number."""
    values = raw.numbers(name)
    for row in np.flatnonzero(values <= 0)[:1]:
        where = f"row {raw.lines[row]}, column {name}"
        raise InputError(raw.source, where, float(values[row]), "a number above 0")
    return values


def _joined(raw: RawTable, names: str) -> list[str]:
    """Join text columns by a slash, row by row, without empty parts."""
    parts = [raw.text(name) for name in names.split() if name in raw.cells]
    return ["/".join(filter(None, row)) for row in zip(*parts, strict=True)]


def _offsets(raw: RawTable) -> RawTable:
    """Rename clocks that are offsets from a base clock, which are not all above 0."""
    if np.all(raw.numbers("coreF") > 0):
        return raw
    offsets = {"coreF": "frequency_offset_mhz", "memF": "memory_offset_mhz"}
    return replace(raw, cells={offsets.get(n, n): cells for n, cells in raw.cells.items()})


def _adaptdl(raw: RawTable) -> RawTable:
    """Read step time by nodes and replicas, or by placement, with a digit for each node.

    Raises
    ------
    InputError: for a placement that is not digits from 1 to 9 (a spreadsheet may have turned it
        into a number).
    """
    name = re.split("_placements|_scalab", stem(raw.source))[0]
    places = raw.text("placement") if "placement" in raw.cells else ()
    for line, text in zip(raw.lines, places, strict=False):
        if not re.fullmatch(r"[1-9]+", text):
            expected = "digits from 1 to 9, the GPUs on each node"
            raise InputError(raw.source, f"row {line}, column placement", text, expected)
    digits = [list(map(int, text)) for text in places]
    parts = {"gpus": [*map(sum, digits)], "nodes": [*map(len, digits)],
             "gpus_on_node": [*map(max, digits)]}  # fmt: skip
    return raw.having(application=name, **(parts if digits else {}))


def _elasticflow(raw: RawTable) -> RawTable:
    """Read iterations per second by global batch (rows) and GPUs (columns); 0 is no run."""
    counts = [name for name in raw.cells if name.isdigit()]
    rates = np.array([raw.numbers(name) for name in counts])
    for column, row in np.argwhere(rates < 0)[:1]:
        where = f"row {raw.lines[row]}, column {counts[column]}"
        raise InputError(raw.source, where, float(rates[column, row]), "iterations per second")
    column, row = np.nonzero(rates > 0)
    gpus = np.array(counts, dtype=float)[column]
    batch = _positive(raw, "global_batch_size")[row]
    raw = raw.noting(
        rates.size - len(row), "cells of 0 or nothing are combinations that were not run"
    )
    return replace(raw.take(row), cells={}).having(
        global_batch=batch, application=stem(raw.source), gpus=gpus, nodes=np.ceil(gpus / SERVER),
        gpus_on_node=np.minimum(gpus, SERVER), time_s=1 / rates[column, row],
    )  # fmt: skip


def _gavel(raw: RawTable) -> RawTable:
    """Read isolated jobs; steps are summed over workers, so T = n / steps_per_s.

    Unconsolidated jobs have one GPU on each node; others fill nodes of eight.
    """
    raw = raw.take(raw.numbers("steps_per_s") > 0)
    gpus = _positive(raw, "num_gpus")
    place = raw.text("placement") if "placement" in raw.cells else [""] * len(gpus)
    apart = np.array(["unconsolidated" in text for text in place], dtype=bool)
    nodes = np.where(apart, gpus, np.ceil(gpus / SERVER))
    return raw.having(placement=np.where(apart, "unconsolidated", "consolidated"), nodes=nodes,
                      gpus_on_node=np.ceil(gpus / nodes), time_s=gpus / raw.numbers("steps_per_s"),
                      steps_per_s="")  # fmt: skip


def _per_gpu(raw: RawTable) -> RawTable:
    """Read EcoSched's counters, which are summed over the GPUs, per GPU."""
    sums = {"frequency_mhz": "sm_clock_sum_mhz", "fp_active": "fp_active_sum"}
    gpus = _positive(raw, "gpu_count")
    return raw.having(**{ours: raw.numbers(name) / gpus for ours, name in sums.items()
                         if name in raw.cells})  # fmt: skip


@dataclass(frozen=True)
class Dialect:
    """Kind of CSV.

    Parameters
    ----------
    needs: columns that identify the kind, or a test of the columns.
    columns: canonical names of columns, as a user would give them.
    change: function that computes columns that need more than a name.
    joined: canonical text columns, and the columns that are joined to make them.
    """

    name: str
    needs: str | Callable[[Set[str]], bool]
    columns: Mapping[str, str] = field(default_factory=dict)
    change: Callable[[RawTable], RawTable] = replace
    joined: Mapping[str, str] = field(default_factory=dict)

    def matches(self, header: Set[str]) -> bool:
        """Tell whether a table with these columns is of this kind."""
        needs = self.needs
        return {*needs.split()} <= header if isinstance(needs, str) else needs(header)

    def rewritten(self, raw: RawTable) -> RawTable:
        """Return the table in a form that `tidy` reads."""
        found = self.change(raw)
        return found.having(**{ours: _joined(raw, theirs) for ours, theirs in self.joined.items()})


def _by_gpus(header: Set[str]) -> bool:
    rest = header - {"global_batch_size"}
    return len(rest) < len(header) and bool(rest) and all(name.isdigit() for name in rest)


_ZEUS = "dataset network optimizer"
DIALECTS: Sequence[Dialect] = (
    Dialect("nv-dvfs", "benchmark core_frequency time average_power",
            {"time": "time_s:ms", "DRAMA": "dram_active"},
            joined={"application": "benchmark argNo kernel"}),
    Dialect("gpu-dvfs", "appName coreF memF power/W",
            {"coreF": "frequency_mhz", "memF": "memory_mhz"}, _offsets,
            {"application": "appName kernel argNo arg"}),
    Dialect("zeus-summary", "network batch_size power_limit time_per_epoch average_power",
            {"batch_size": "local_batch", "time_per_epoch": "time_s"},
            joined={"workload": _ZEUS, "application": f"{_ZEUS} power_limit"}),
    Dialect("adaptdl-placements", "placement local_bsz step_time", {}, _adaptdl),
    Dialect("adaptdl-scalability", "num_nodes num_replicas local_bsz step_time",
            {"num_replicas": "gpus"}, _adaptdl),
    Dialect("elasticflow", _by_gpus, {}, _elasticflow),
    Dialect("gavel", "model local_batch_size num_gpus steps_per_s",
            {"model": "application", "gpu": "gpu_model", "local_batch_size": "local_batch"},
            _gavel),
    Dialect("ecosched", "app gpu_count runtime_s avg_power_per_gpu_w dram_util_sum",
            {"platform": "gpu_model"}, _per_gpu),
)  # fmt: skip
"""Dialects in the order of trial; any other table is a log of samples or a tidy table."""
