"""Training throughput: adaptdl and Sia, ElasticFlow, Gavel."""

from __future__ import annotations

import re

import numpy as np
from numpy.typing import NDArray

from optgap.fitting.profile import Profile
from optgap.fitting.readers.shape import constant, profile_from
from optgap.fitting.readers.text import RawTable, positive, stem
from optgap.models.errors import InputError

ELASTICFLOW_GPUS_PER_NODE = 8
"""A100 servers of ElasticFlow's testbed."""

Floats = NDArray[np.float64]


def _application(source: str) -> str:
    return re.split(r"_(placements|scalability)", stem(source))[0]


def read_placements(raw: RawTable) -> Profile:
    """adaptdl / Sia: step time per placement; ``placement`` has one digit per node.

    Raises
    ------
    InputError: for a placement that is not digits from 1 to 9 (a spreadsheet may have
        turned it into a number).
    """
    placement = raw.text("placement")
    digits = []
    for line, text in zip(raw.lines, placement, strict=True):
        if not re.fullmatch(r"[1-9]+", text.strip()):
            where = f"row {line}, column placement"
            expected = "digits from 1 to 9, the GPUs on each node"
            raise InputError(raw.source, where, text, expected)
        digits.append([int(digit) for digit in text.strip()])
    columns = {
        "application": constant(raw, _application(raw.source)),
        "gpus": np.array([sum(item) for item in digits], dtype=float),
        "nodes": np.array([len(item) for item in digits], dtype=float),
        "gpus_on_node": np.array([max(item) for item in digits], dtype=float),
        **_steps(raw),
        "placement": placement,
    }
    return profile_from(raw, "adaptdl-placements", columns)


def read_scalability(raw: RawTable) -> Profile:
    """adaptdl / Sia: step time against nodes and replicas."""
    gpus, nodes = positive(raw, "num_replicas"), positive(raw, "num_nodes")
    columns = {
        "application": constant(raw, _application(raw.source)),
        "gpus": gpus,
        "nodes": nodes,
        "gpus_on_node": np.ceil(gpus / nodes),
        **_steps(raw),
    }
    return profile_from(raw, "adaptdl-scalability", columns)


def _steps(raw: RawTable) -> dict[str, np.ndarray]:
    steps = {"local_batch": raw.numbers("local_bsz"), "time_s": raw.numbers("step_time")}
    if "sync_time" in raw.header:
        steps["sync_s"] = raw.numbers("sync_time")
    return steps


def is_elasticflow(header: set[str]) -> bool:
    rest = header - {"global_batch_size"}
    return len(rest) < len(header) and bool(rest) and all(name.isdigit() for name in rest)


def read_elasticflow(raw: RawTable) -> Profile:
    """Iterations per second by global batch (rows) and GPUs (columns); 0 and empty are not runs."""
    batch = positive(raw, "global_batch_size")
    counts = [name for name in raw.header if name.isdigit()]
    rows: list[tuple[float, float, float, int]] = []
    empty = 0
    for name in counts:
        for k, rate in enumerate(raw.numbers(name)):
            if np.isnan(rate) or rate == 0:
                empty += 1
            elif rate < 0:
                where = f"row {raw.lines[k]}, column {name}"
                raise InputError(raw.source, where, rate, "iterations per second")
            else:
                rows.append((float(name), batch[k], 1.0 / rate, raw.lines[k]))
    gpus, batches, times, lines = (np.array(column) for column in zip(*rows, strict=True))
    nodes = np.ceil(gpus / ELASTICFLOW_GPUS_PER_NODE)
    columns = {
        "application": np.full(len(rows), stem(raw.source), dtype=object),
        "gpus": gpus,
        "nodes": nodes,
        "gpus_on_node": np.minimum(gpus, ELASTICFLOW_GPUS_PER_NODE),
        "global_batch": batches,
        "local_batch": batches / gpus,
        "time_s": times,
    }
    notes = (f"{empty} cells of 0 or nothing are combinations that were not run",)
    profile = Profile(columns, raw.source, "elasticflow", lines.astype(np.int64))
    return profile.noting(*notes) if empty else profile


def read_gavel_table(raw: RawTable) -> Profile:
    """Gavel's isolated jobs as a table; steps are summed over workers, so T = n / steps_per_s.

    Unconsolidated jobs sit one GPU to a node, others fill nodes of eight.
    """
    raw = raw.take(np.flatnonzero(raw.numbers("steps_per_s") > 0))
    gpus, empty = positive(raw, "num_gpus"), constant(raw, "")
    placement = raw.text("placement") if "placement" in raw.header else empty
    spread = np.array(["unconsolidated" in str(item) for item in placement])
    nodes = np.where(spread, gpus, np.ceil(gpus / 8))
    columns = {
        "application": raw.text("model"),
        "gpu_model": raw.text("gpu") if "gpu" in raw.header else empty,
        "placement": np.where(spread, "unconsolidated", "consolidated").astype(object),
        "gpus": gpus,
        "nodes": nodes,
        "gpus_on_node": np.ceil(gpus / nodes),
        "local_batch": raw.numbers("local_batch_size"),
        "time_s": gpus / raw.numbers("steps_per_s"),
    }
    return Profile(columns, raw.source, "gavel", np.array(raw.lines, dtype=np.int64))
