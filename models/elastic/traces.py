"""Public traces of training jobs, on the models of a pool.

Recognised by their columns: Philly (``timestamp,duration,num_gpus``), Gavel
(``job_type,total_steps,arrival_s,scale_factor``), ElasticFlow
(``submit_time,model_name,batch_size,num_gpu,duration``), and Pollux or Sia
(``name,time,application,num_replicas,batch_size``).
"""

from __future__ import annotations

import math
import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from optgap.models.elastic.jobs import JobClass, Jobs
from optgap.models.errors import InputError, NoQuote
from optgap.models.shown import counted
from optgap.models.tables import Column, read_header, read_table

NOMINAL_S = {
    "cifar10": 1800.0, "ncf": 600.0, "bert": 3600.0, "deepspeech2": 7200.0, "yolov3": 14_400.0,
    "imagenet": 36_000.0, "gpt_pmp": 36_000.0,
}  # fmt: skip
"""Pollux and Sia traces name an application and no length: run times on the GPUs requested that
follow their size classes (small, medium, large), ours."""

ALIKE = {
    "imagenet": "resnet50", "resnet50": "imagenet", "cifar10": "resnet18", "resnet18": "cifar10",
    "resnet-18": "cifar10", "resnet-50": "resnet50", "resnet50_cifar10": "cifar10",
    "transformer": "bert", "gpt2": "bert", "gpt_pmp": "gpt2", "lm": "deepspeech2",
    "recommendation": "ncf", "yolov3": "vgg16", "a3c": "inception3", "cyclegan": "yolov3",
}  # fmt: skip
"""Replacements for models that a pool has not; others are drawn at random."""


@dataclass(frozen=True)
class Trace:
    """Trace with its jobs, their origin, and the changes on the way."""

    jobs: Jobs
    origin: str
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Job:
    """One line of any trace; what it does not tell is None."""

    row: int
    submit_s: float
    gpus: int
    model: str = ""
    batch: int | None = None
    iterations: float | None = None
    duration_s: float | None = None


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
    `seed`; its batch the nearest of the pool's. Iterations that are not given are the duration
    over T_iter on the GPUs requested, at the highest clock.

    Raises
    ------
    InputError: for a file that is none of these traces, or a cell that is not what it should be.
    """
    kind, lines, left = _lines(path)
    lines = sorted(lines, key=lambda line: line.submit_s)
    first = lines[0].submit_s
    if hours:
        lines = [line for line in lines if line.submit_s < first + 3600 * hours]
    if size:
        lines = lines[:size]
    rng = np.random.default_rng(seed)
    changes = Counter({f"job without {what} left out": count for what, count in left.items()})
    chosen = [_on_pool(line, classes, rng, changes) for line in lines]
    jobs = Jobs(
        tuple(f"job-{line.row}" for line in lines),
        np.array([line.submit_s - first for line in lines]),
        np.array([c for c, _, _ in chosen], dtype=np.int64),
        np.array([i for _, _, i in chosen]),
        np.array([n for _, n, _ in chosen], dtype=np.int64),
    )
    notes = tuple(counted(count, text) for text, count in sorted(changes.items()))
    return Trace(jobs, f"{kind} trace {os.path.basename(os.fspath(path))}", notes)


def _on_pool(
    line: _Job, classes: Sequence[JobClass], rng: np.random.Generator, changes: Counter[str]
) -> tuple[int, int, float]:
    """Return (class, GPUs requested, iterations)."""
    names = [item.model for item in classes]
    wanted = line.model
    if wanted not in names:
        wanted = ALIKE.get(wanted, "")
        changes["job whose model the pool has not: one like it, or drawn"] += 1
    able = [c for c, name in enumerate(names) if name == wanted] or list(range(len(classes)))
    if line.batch is not None and wanted:
        ratio = [abs(math.log(classes[c].batch / line.batch)) for c in able]
        c = able[int(np.argmin(ratio))]
    else:
        c = able[int(rng.integers(len(able)))]
    item = classes[c]
    up = 1 << (line.gpus - 1).bit_length()
    if up != line.gpus:
        changes["request for GPUs rounded up to a power of two"] += 1
    if up not in item.counts:
        up = max(n for n in item.counts if n <= up) if up >= item.counts[0] else item.counts[0]
        changes["request for GPUs cut to what batch and cluster allow"] += 1
    if line.iterations is not None:
        return c, up, line.iterations
    return c, up, item.iterations_in(line.duration_s or NOMINAL_S.get(line.model, 3600.0), up)


# -- the formats --------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Format:
    """Columns of a format; "" for a column that the format has not.

    Parameters
    ----------
    steps: those of all workers together.
    unused: whether jobs that ended at once, or used no GPU, are left out.
    """

    name: str
    submit: str
    gpus: str
    model: str = ""
    batch: str = ""
    steps: str = ""
    duration: str = ""
    unused: bool = False

    @property
    def columns(self) -> list[Column]:
        numbers = (self.gpus, self.batch, self.steps, self.duration)
        found = [Column(name, "number") for name in numbers if name]
        if self.model:
            found.append(Column(self.model, empty=""))
        return [Column(self.submit, "time"), *found]

    def job(self, row: dict[str, Any], source: str) -> _Job | str:
        """Return one row, or what it lacks where it is left out."""
        gpus = max(1, round(row[self.gpus]))
        if self.unused and row[self.duration] <= 0:
            return f"a {self.duration}"
        if self.unused and row[self.gpus] < 1:
            return self.gpus
        for name in (self.steps, self.duration):
            if name and not row[name] > 0:
                where = f"row {row['#']}, column {name}"
                raise InputError(source, where, f"{row[name]:g}", "a number above 0")
        # Gavel has the batch of one worker in the name
        model, _, rest = row.get(self.model, "").partition("(batch size ")
        each = rest.rstrip(") ")
        batch = int(each) * gpus if each.isdecimal() else None
        return _Job(
            row["#"],
            row[self.submit],
            gpus,
            model.strip().lower(),
            max(1, round(row[self.batch])) if self.batch else batch,
            max(1.0, row[self.steps] / gpus) if self.steps else None,
            row[self.duration] if self.duration else None,
        )


FORMATS = (
    _Format("Philly", "timestamp", "num_gpus", duration="duration", unused=True),
    _Format("Gavel", "arrival_s", "scale_factor", "job_type", steps="total_steps"),
    _Format("ElasticFlow", "submit_time", "num_gpu", "model_name", "batch_size", "", "duration"),
    _Format("Sia", "time", "num_replicas", "application", "batch_size", "", "duration"),
    _Format("Pollux", "time", "num_replicas", "application", "batch_size"),
)
"""Told apart by their columns, in this order."""


def _lines(path: str | os.PathLike[str]) -> tuple[str, list[_Job], Counter[str]]:
    """Return the format, the jobs, and how many are left out by what they lack."""
    source, header = str(path), set(read_header(path))
    known = next((f for f in FORMATS if {c.name for c in f.columns} <= header), None)
    if known is None:
        shown = NoQuote(", ".join(sorted(header)) or "nothing")
        expected = "the columns of a Philly, Gavel, ElasticFlow, Pollux or Sia trace"
        raise InputError(source, "row 1", shown, expected)
    table = read_table(path, known.columns)
    rows = (dict(zip(table, cells, strict=True)) for cells in zip(*table.values(), strict=True))
    found = [known.job(row, source) for row in rows]
    lines = [line for line in found if isinstance(line, _Job)]
    left = Counter(lacks for lacks in found if isinstance(lacks, str))
    if not lines:
        told = ", ".join(counted(count, f"job without {what}") for what, count in left.items())
        expected = "at least one job" + (f"; left out: {told}" if told else "")
        raise InputError(source, "", NoQuote("no jobs"), expected)
    return known.name, lines, left
