"""Public traces of training jobs, on the models of a pool.

Philly's and ElasticFlow's, recognised by their columns (`FORMATS`): both tell how long a job took.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from optgap.models.elastic.jobs import JobClass, Jobs
from optgap.models.errors import InputError, NoQuote
from optgap.models.shown import counted
from optgap.models.tables import Column, read_header, read_table

ALIKE = {
    "imagenet": "resnet50", "resnet50": "imagenet", "cifar10": "resnet18", "resnet18": "cifar10",
    "resnet50_cifar10": "cifar10", "transformer": "bert", "gpt2": "bert", "yolov3": "vgg16",
}  # fmt: skip
"""Replacements for models that a pool has not; others are drawn at random."""


class Format(NamedTuple):
    """Columns of a trace; without `model` and `batch` these are drawn."""

    name: str
    submit: str
    gpus: str
    model: str = ""
    batch: str = ""

    @property
    def columns(self) -> list[Column]:
        """Columns to read."""
        numbers = [Column(x, "number") for x in (self.gpus, self.batch, "duration") if x]
        models = [Column(self.model, empty="")] if self.model else []
        return [Column(self.submit, "time"), *numbers, *models]


FORMATS = (
    Format("Philly", "timestamp", "num_gpus"),
    Format("ElasticFlow", "submit_time", "num_gpu", "model_name", "batch_size"),
)
"""Told apart by their columns. Philly has jobs that ended at once or used no GPU: left out."""


class Trace(NamedTuple):
    """Trace with its jobs, their origin, and the changes on the way."""

    jobs: Jobs
    origin: str
    notes: tuple[str, ...]


def read_trace(
    path: str | os.PathLike[str],
    classes: Sequence[JobClass],
    *,
    seed: int,
    size: int = 0,
    hours: float = 0.0,
) -> Trace:
    """Read the first `size` jobs (0: all) of the first `hours` (0: all) hours.

    A job's model is that of the pool with its name, or what `ALIKE` names, else one drawn from
    `seed`; its batch the nearest of the pool's. Its iterations are the duration over T_iter on the
    GPUs requested, at the highest clock.

    Raises
    ------
    InputError: for a file that is none of these traces, or a cell that is not what it should be.
    """
    source, header = str(path), set(read_header(path))
    known = next((f for f in FORMATS if {c.name for c in f.columns} <= header), None)
    if known is None:
        found = NoQuote(", ".join(sorted(header)) or "nothing")
        expected = "the columns of a Philly or ElasticFlow trace"
        raise InputError(source, "row 1", found, expected)
    table, changes = read_table(path, known.columns), Counter[str]()
    kept = []
    for k, (lasts, gpus) in enumerate(zip(table["duration"], table[known.gpus], strict=True)):
        lacks = "" if known.model else "a duration" * (lasts <= 0) or known.gpus * (gpus < 1)
        if lacks:
            changes[f"job without {lacks} left out"] += 1
            continue
        if not lasts > 0:
            where = f"row {table['#'][k]}, column duration"
            raise InputError(source, where, f"{lasts:g}", "a number above 0")
        kept.append(k)
    if not kept:
        told = ", ".join(counted(count, text) for text, count in changes.items())
        expected = "at least one job" + (f"; {told}" if told else "")
        raise InputError(source, "", NoQuote("no jobs"), expected)
    submit_s = np.array(table[known.submit], dtype=float)
    kept.sort(key=lambda k: submit_s[k])
    first = submit_s[kept[0]]
    kept = [k for k in kept if not hours or submit_s[k] < first + 3600 * hours]
    kept, rng = kept[: size or None], np.random.default_rng(seed)
    asked, chosen = [], []
    for k in kept:
        name = table[known.model][k].strip().lower() if known.model else ""
        batch = max(1.0, table[known.batch][k]) if known.batch else 0.0
        chosen.append(_class(classes, name, batch, rng, changes=changes))
        asked.append(_gpus(classes[chosen[-1]], max(1, round(table[known.gpus][k])), changes))
    pairs = zip(kept, chosen, asked, strict=True)
    work = [classes[c].iterations_in(table["duration"][k], n) for k, c, n in pairs]
    jobs = Jobs(
        tuple(f"job-{table['#'][k]}" for k in kept), submit_s[kept] - first,
        np.array(chosen, dtype=np.int64), np.array(work), np.array(asked, dtype=np.int64),
    )  # fmt: skip
    notes = tuple(counted(count, text) for text, count in sorted(changes.items()))
    return Trace(jobs, f"{known.name} trace {os.path.basename(os.fspath(path))}", notes)


def _class(
    classes: Sequence[JobClass],
    name: str,
    batch: float,
    rng: np.random.Generator,
    *,
    changes: Counter[str],
) -> int:
    """Return the class of a job, with the nearest batch, or drawn where none is like it."""
    names = [item.model for item in classes]
    if name not in names:
        name = ALIKE.get(name, "")
        changes["job whose model the pool has not: one like it, or drawn"] += 1
    able = [c for c, other in enumerate(names) if other == name] or list(range(len(classes)))
    if batch and name:
        return min(able, key=lambda c: abs(np.log(classes[c].batch / batch)))
    return able[int(rng.integers(len(able)))]


def _gpus(item: JobClass, gpus: int, changes: Counter[str]) -> int:
    """Return the GPUs requested: up to the next power of two, and one that the class may have."""
    up = 1 << (gpus - 1).bit_length()
    if up != gpus:
        changes["request for GPUs rounded up to a power of two"] += 1
    if up not in item.counts:
        up = max((n for n in item.counts if n <= up), default=item.counts[0])
        changes["request for GPUs cut to what batch and cluster allow"] += 1
    return up
