"""Published kinds of CSV: sweeps of clocks and limits, training throughput.

A dialect turns a table into one that `tidy` reads: it names the columns, and computes those that
need more than a name.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace

import numpy as np

from optgap.fitting.readers.text import RawTable, stem
from optgap.models.errors import InputError, NoQuote

SERVER = 8
"""GPUs of a node of ElasticFlow's testbed."""


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
    column, row = np.nonzero(rates > 0)
    gpus = np.array(counts, dtype=float)[column]
    batch = raw.numbers("global_batch_size")[row]
    raw = raw.noting(
        rates.size - len(row), "cells without a rate are combinations that were not run"
    )
    return replace(raw.take(row), cells={}).having(
        global_batch=batch, application=stem(raw.source), gpus=gpus, nodes=np.ceil(gpus / SERVER),
        gpus_on_node=np.minimum(gpus, SERVER), time_s=1 / rates[column, row],
    )  # fmt: skip


def _gavel(raw: RawTable) -> RawTable:
    """Refuse Gavel's isolated jobs, whose steps are summed over workers.

    Raises
    ------
    InputError: with the formula of a time.
    """
    found = NoQuote("Gavel's steps_per_s, a sum over the GPUs")
    raise InputError(raw.source, "", found, "a column time_s = num_gpus / steps_per_s")


@dataclass(frozen=True)
class Dialect:
    """Kind of CSV.

    Parameters
    ----------
    needs: columns that identify the kind.
    columns: canonical names of columns, as a user would give them.
    change: function that computes columns that need more than a name.
    joined: canonical text columns, and the columns that are joined to make them.
    """

    name: str
    needs: str
    columns: Mapping[str, str] = field(default_factory=dict)
    change: Callable[[RawTable], RawTable] = replace
    joined: Mapping[str, str] = field(default_factory=dict)

    def matches(self, header: Set[str]) -> bool:
        """Tell whether a table with these columns is of this kind."""
        by_gpus = self.name != "elasticflow" or all(map(str.isdigit, header - {self.needs}))
        return {*self.needs.split()} <= header and by_gpus

    def rewritten(self, raw: RawTable) -> RawTable:
        """Return the table in a form that `tidy` reads."""
        found = self.change(raw)
        return found.having(**{n: found.joined(own.split()) for n, own in self.joined.items()})


_ZEUS = "dataset network optimizer"
DIALECTS: Sequence[Dialect] = (
    Dialect("nv-dvfs", "benchmark core_frequency time average_power",
            {"time": "time_s:ms", "DRAMA": "dram_active"},
            joined={"application": "benchmark argNo kernel"}),
    Dialect("gpu-dvfs", "appName coreF memF power/W",
            {"coreF": "frequency_mhz", "memF": "memory_mhz"},
            joined={"application": "appName kernel argNo arg"}),
    Dialect("zeus-summary", "network batch_size power_limit time_per_epoch average_power",
            {"batch_size": "local_batch", "time_per_epoch": "time_s"},
            joined={"workload": _ZEUS, "application": f"{_ZEUS} power_limit"}),
    Dialect("adaptdl-placements", "placement local_bsz step_time", {}, _adaptdl),
    Dialect("adaptdl-scalability", "num_nodes num_replicas local_bsz step_time",
            {"num_replicas": "gpus"}, _adaptdl),
    Dialect("elasticflow", "global_batch_size", {}, _elasticflow),
    Dialect("gavel", "model local_batch_size num_gpus steps_per_s", {}, _gavel),
)  # fmt: skip
"""Dialects in the order of trial; any other table is a log of samples or a tidy table."""
