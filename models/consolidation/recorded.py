"""Recorded utilisation series, where the public files are at hand."""

from __future__ import annotations

import math
from collections import defaultdict
from pathlib import Path

import numpy as np

from optgap.models.consolidation.tasks import FloatArray
from optgap.models.errors import InputError, NoQuote, Said, one_of
from optgap.models.tables import Column, read_header, read_table

FILES = {
    "philly": "profiles/philly/gpu_util_window.csv.gz",
    "genai": "profiles/genai/pod_gpu_duty_cycle.csv.gz",
}
JOBS = "profiles/traces/philly_jobs.csv.gz"
LEAST_SAMPLES = 10


def series(kind: str, data: str | Path, summed: bool = False) -> list[FloatArray]:
    """Read one series per GPU (``philly``: 14 minutes each) or pod (``genai``: a day of minutes).

    With `summed`, Philly's are one per job: the sum over its GPUs, as the paper correlates them.

    Raises
    ------
    InputError: for another kind, or when the file is not in the data folder or broken.
    """
    if kind not in FILES:
        raise InputError("series", "", kind, one_of(FILES))
    path = Path(data) / FILES[kind]
    if not path.is_file():
        raise InputError(
            str(path), "", Said("no such file"), "name its folder with --set data=FOLDER"
        )
    return _windows(path, summed) if kind == "philly" else _pods(path)


def jobs(data: str | Path) -> FloatArray | None:
    """Return Philly's jobs in order of submission: when, s, run time, s, and GPUs, shape (J, 3).

    Without the file there are none. Raise InputError for a file that is broken.
    """
    path = Path(data) / JOBS
    if not path.is_file():
        return None
    columns = (Column("timestamp"), Column("duration", "number"), Column("num_gpus", "integer"))
    table = read_table(path, columns)
    times = [_seconds(path, row, text) for row, text in enumerate(table["timestamp"], 2)]
    found = np.column_stack((times, table["duration"], table["num_gpus"]))
    ordered: FloatArray = found[np.argsort(times, kind="stable")]
    return ordered


def _seconds(path: Path, row: int, text: str) -> float:
    try:
        return float(np.datetime64(text, "s").astype(np.int64))
    except ValueError:
        where = f"row {row}, column timestamp"
        raise InputError(str(path), where, text, "a date with a time") from None


def _windows(path: Path, summed: bool) -> list[FloatArray]:
    """Columns job, GPU and one per minute; rows without all minutes are left out."""
    header = read_header(path)
    if len(header) < 3:
        found_columns = NoQuote(", ".join(header) or "nothing")
        raise InputError(str(path), "row 1", found_columns, "a job, a GPU and minutes")
    job, minutes = header[0], [Column(name, "number", empty=math.nan) for name in header[2:]]
    table = read_table(path, [Column(job), *minutes])
    found: dict[str, list[FloatArray]] = defaultdict(list)
    values = np.array([table[column.name] for column in minutes]).T
    for name, row in zip(table[job], values, strict=True):
        if not np.isnan(row).any():
            found[name].append(row)
    if summed:
        return [np.sum(own, axis=0) for own in found.values()]
    return [np.clip(one, 0, 100) for own in found.values() for one in own]


def _pods(path: Path) -> list[FloatArray]:
    """Columns pod, time and value."""
    pod, time, value = (
        Column("container_ip"),
        Column("timestamp_anon", "number"),
        Column("value", "number"),
    )
    table = read_table(path, [pod, time, value])
    found: dict[str, list[tuple[float, float]]] = defaultdict(list)
    for name, *sample in zip(*(table[c.name] for c in (pod, time, value)), strict=True):
        found[name].append((sample[0], sample[1]))
    ordered = (np.array([u for _, u in sorted(own)]) for own in found.values())
    return [np.clip(one, 0, 100) for one in ordered if one.size >= LEAST_SAMPLES and one.any()]
