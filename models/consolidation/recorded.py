"""Recorded utilisation series, where the public files are at hand."""

from __future__ import annotations

import csv
import gzip
from collections import defaultdict
from pathlib import Path

import numpy as np

from optgap.models.consolidation.tasks import FloatArray
from optgap.models.errors import InputError, NoQuote

FILES = {
    "philly": "profiles/philly/gpu_util_window.csv.gz",
    "genai": "profiles/genai/pod_gpu_duty_cycle.csv.gz",
}
LEAST_SAMPLES = 10


def series(kind: str, data: str | Path, summed: bool = False) -> list[FloatArray]:
    """One series per GPU (``philly``: 14 minutes each) or per pod (``genai``: a day of minutes).

    With `summed`, Philly's are one per job: the sum over its GPUs, as the paper correlates them.

    Raises
    ------
    InputError: for another kind, or when the file is not in the data folder.
    """
    if kind not in FILES:
        raise InputError("series", "", kind, "one of " + ", ".join(FILES))
    path = Path(data) / FILES[kind]
    if not path.is_file():
        raise InputError(str(path), "", NoQuote("no such file"), "the public series")
    with gzip.open(path, "rt", encoding="utf-8", newline="") as file:
        rows = csv.reader(file)
        header = next(rows)
        if kind == "philly":
            return _windows(rows, header, summed)
        return _pods(rows)


def _windows(rows: object, header: list[str], summed: bool) -> list[FloatArray]:
    found: dict[str, list[FloatArray]] = defaultdict(list)
    for row in rows:  # type: ignore[attr-defined]  # csv's reader has no name for its type
        values = list(row[2:])
        if len(values) == len(header) - 2 and all(values):
            found[row[0]].append(np.array([float(value) for value in values]))
    if summed:
        return [np.sum(own, axis=0) for own in found.values()]
    return [np.clip(one, 0, 100) for own in found.values() for one in own]


def _pods(rows: object) -> list[FloatArray]:
    found: dict[str, list[tuple[float, float]]] = defaultdict(list)
    for pod, time, value in rows:  # type: ignore[attr-defined]
        found[pod].append((float(time), float(value)))
    ordered = (np.array([u for _, u in sorted(own)]) for own in found.values())
    return [np.clip(one, 0, 100) for one in ordered if one.size >= LEAST_SAMPLES and one.any()]
