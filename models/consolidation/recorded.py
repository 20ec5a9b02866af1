"""Utilisation series and jobs recorded in Philly, where the public files are at hand."""

from __future__ import annotations

import math
from collections import defaultdict
from pathlib import Path

import numpy as np

from optgap.models.consolidation.tasks import FloatArray
from optgap.models.errors import InputError, NoQuote, Said
from optgap.models.tables import Column, read_header, read_table

WINDOWS = "profiles/philly/gpu_util_window.csv.gz"
JOBS = "profiles/traces/philly_jobs.csv.gz"


def series(data: str | Path, summed: bool = False) -> list[FloatArray]:
    """Read Philly's series of 14 minutes, one per GPU; rows without all minutes are left out.

    With `summed`, they are one per job: the sum over its GPUs, as the paper correlates them.

    Raises
    ------
    InputError: when the file is not in the data folder or broken.
    """
    path = Path(data) / WINDOWS
    if not path.is_file():
        where = "name its folder with --set data=FOLDER"
        raise InputError(str(path), "", Said("no such file"), where)
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
