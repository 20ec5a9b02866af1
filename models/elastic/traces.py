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
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from optgap.models.elastic.jobs import JobClass, Jobs
from optgap.models.errors import InputError, NoQuote
from optgap.models.tables import DATE, Column, Date, read_header, read_table

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
"""What stands in for a model that a pool has not; failing that, one drawn at random."""


@dataclass(frozen=True)
class Trace:
    """What was read: the jobs, where they come from, and what was changed on the way."""

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
    kind, lines = _lines(path)
    lines = sorted(lines, key=lambda line: line.submit_s)
    first = lines[0].submit_s
    if hours:
        lines = [line for line in lines if line.submit_s < first + 3600 * hours]
    if size:
        lines = lines[:size]
    rng = np.random.default_rng(seed)
    changes: Counter[str] = Counter()
    chosen = [_on_pool(line, classes, rng, changes) for line in lines]
    jobs = Jobs(
        tuple(f"job-{line.row}" for line in lines),
        np.array([line.submit_s - first for line in lines]),
        np.array([c for c, _, _ in chosen], dtype=np.int64),
        np.array([i for _, _, i in chosen]),
        np.array([n for _, n, _ in chosen], dtype=np.int64),
    )
    notes = tuple(f"{count} {text}" for text, count in sorted(changes.items()))
    return Trace(jobs, f"{kind} trace {os.path.basename(os.fspath(path))}", notes)


def _on_pool(
    line: _Job, classes: Sequence[JobClass], rng: np.random.Generator, changes: Counter[str]
) -> tuple[int, int, float]:
    """(class, GPUs requested, iterations)."""
    names = [item.model for item in classes]
    wanted = line.model
    if wanted not in names:
        wanted = ALIKE.get(wanted, "")
        changes["jobs whose model the pool has not: one like it, or drawn"] += 1
    able = [c for c, name in enumerate(names) if name == wanted] or list(range(len(classes)))
    if line.batch is not None and wanted:
        ratio = [abs(math.log(classes[c].batch / line.batch)) for c in able]
        c = able[int(np.argmin(ratio))]
    else:
        c = able[int(rng.integers(len(able)))]
    item = classes[c]
    up = 1 << (line.gpus - 1).bit_length()
    if up != line.gpus:
        changes["GPU requests rounded up to a power of two"] += 1
    if up not in item.counts:
        up = max(n for n in item.counts if n <= up) if up >= item.counts[0] else item.counts[0]
        changes["GPU requests cut to what batch and cluster allow"] += 1
    if line.iterations is not None:
        return c, up, line.iterations
    duration = line.duration_s or NOMINAL_S.get(line.model, 3600.0)
    per_iteration = item.time_s[item.counts.index(up), -1]
    return c, up, max(1.0, float(round(duration / per_iteration)))


# -- the formats --------------------------------------------------------------------------


def _lines(path: str | os.PathLike[str]) -> tuple[str, list[_Job]]:
    source = str(path)
    columns = set(read_header(path))
    known = next((row for row in FORMATS if row[1] <= columns), None)
    if known is None:
        shown = NoQuote(", ".join(sorted(columns)) or "nothing")
        expected = "the columns of a Philly, Gavel, ElasticFlow, Pollux or Sia trace"
        raise InputError(source, "row 1", shown, expected)
    kind, needed, parse = known
    table = read_table(path, [Column(name, empty="") for name in sorted(needed)])
    found = [
        parse(_Cells({name: table[name][k] for name in needed}, source, row))
        for k, row in enumerate(table["#"])
    ]
    lines = [line for line in found if line is not None]
    if not lines:
        raise InputError(source, "", NoQuote("no jobs"), "at least one job")
    return kind, lines


class _Cells:
    """One row, with errors that name the cell."""

    def __init__(self, row: dict[str, str], source: str, number: int) -> None:
        self.row, self.source, self.line = row, source, number

    def text(self, name: str) -> str:
        return self.row[name]

    def number(self, name: str, least: float = 0.0, above: bool = False) -> float:
        text = self.text(name)
        try:
            value = float(text)
        except ValueError:
            value = math.nan
        if not (least < value < 1e15 if above else least <= value < 1e15):
            expected = f"a number above {least:g}" if above else f"a number of at least {least:g}"
            raise InputError(self.source, f"row {self.line}, column {name}", text, expected)
        return value

    def time(self, name: str) -> float:
        """Seconds, or a date (UTC where it names no time zone) as Unix seconds."""
        text = self.text(name)
        try:
            float(text)
        except ValueError:
            try:
                return Date.parse(text).unix_s
            except (ValueError, OverflowError):
                where, expected = f"row {self.line}, column {name}", f"a date such as {DATE}"
                raise InputError(self.source, where, text, expected) from None
        return self.number(name)

    def gpus(self, name: str) -> int:
        return max(1, round(self.number(name, 0.0)))


def _philly(cells: _Cells) -> _Job | None:
    submit = cells.time("timestamp")
    duration = cells.number("duration")
    if duration <= 0 or cells.number("num_gpus") < 1:  # ended at once, or used no GPU
        return None
    return _Job(cells.line, submit, cells.gpus("num_gpus"), duration_s=duration)


def _gavel(cells: _Cells) -> _Job:
    kind = cells.text("job_type")
    name, _, rest = kind.partition("(batch size ")
    digits = rest.rstrip(") ")
    gpus = cells.gpus("scale_factor")
    # steps are summed over the workers
    iterations = max(1.0, cells.number("total_steps", above=True) / gpus)
    batch = int(digits) * gpus if digits.isdecimal() else None
    return _Job(cells.line, cells.time("arrival_s"), gpus, name.strip().lower(), batch, iterations)


def _elasticflow(cells: _Cells) -> _Job:
    return _Job(
        cells.line,
        cells.time("submit_time"),
        cells.gpus("num_gpu"),
        cells.text("model_name").lower(),
        max(1, round(cells.number("batch_size"))),
        duration_s=cells.number("duration", above=True),
    )


def _pollux(cells: _Cells) -> _Job:
    return _Job(
        cells.line,
        cells.time("time"),
        cells.gpus("num_replicas"),
        cells.text("application").lower(),
        max(1, round(cells.number("batch_size"))),
    )


def _sia(cells: _Cells) -> _Job:
    job = _pollux(cells)
    duration = cells.number("duration", above=True)
    return _Job(job.row, job.submit_s, job.gpus, job.model, job.batch, duration_s=duration)


FORMATS: Sequence[tuple[str, set[str], Callable[[_Cells], _Job | None]]] = (
    ("Philly", {"timestamp", "duration", "num_gpus"}, _philly),
    ("Gavel", {"job_type", "total_steps", "arrival_s", "scale_factor"}, _gavel),
    ("ElasticFlow", {"submit_time", "model_name", "batch_size", "num_gpu", "duration"},
     _elasticflow),
    ("Sia", {"name", "time", "application", "num_replicas", "batch_size", "duration"}, _sia),
    ("Pollux", {"name", "time", "application", "num_replicas", "batch_size"}, _pollux),
)  # fmt: skip
"""Name, columns that tell it apart, and how a row is read; tried in this order."""
