"""A stream of rigid gang jobs, column by column, in order of arrival."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from optgap.models.errors import InputError, NoQuote
from optgap.models.queueing.arrays import FloatArray, IntArray, floats, integers
from optgap.models.shown import Brief
from optgap.models.times import SHORTEST_S

LONGEST_S = 4e9
"""Largest time, s; a clock that counts from 1970 shows it in 2096."""
MOST_JOBS = 10_000_000


@dataclass(frozen=True, eq=False, repr=False)
class Jobs(Brief):
    """Rigid jobs: a fixed number of GPUs, all at once, from start to end.

    Every array has one entry per job, by ascending arrival; jobs that arrive together keep the
    order they were given in, which is what "smaller id" means wherever ties are broken.

    Parameters
    ----------
    names: unique.
    arrival_s: s, at least 0.
    duration_s: true run time, s.
    gpus: GPUs held, at least 1.
    kinds: type (inference, training, …), "" where unknown.
    families: model family, "" where unknown.
    iterations: total work; duration × GPUs where unknown, so that all are equally efficient.
    patience_s: a job that has waited this long leaves, s; infinite for one that never does.
    estimate_s: what the scheduler takes the run time to be, s; the true one unless given.
    batches: global batch of a training job, 0 where unknown; None where no job tells it.
    """

    names: tuple[str, ...]
    arrival_s: FloatArray = field(repr=False)
    duration_s: FloatArray = field(repr=False)
    gpus: IntArray = field(repr=False)
    kinds: tuple[str, ...] = field(repr=False)
    families: tuple[str, ...] = field(repr=False)
    iterations: FloatArray = field(repr=False)
    patience_s: FloatArray = field(repr=False)
    estimate_s: FloatArray = field(repr=False)
    batches: IntArray | None = field(default=None, repr=False)

    @classmethod
    def of(
        cls,
        arrival_s: Iterable[float],
        duration_s: Iterable[float],
        gpus: Iterable[int],
        *,
        names: Iterable[str] | None = None,
        kinds: Iterable[str] | None = None,
        families: Iterable[str] | None = None,
        iterations: Iterable[float] | None = None,
        patience_s: Iterable[float] | float = math.inf,
        estimate_s: Iterable[float] | None = None,
        batches: Iterable[int] | None = None,
        places: Sequence[str] | None = None,
        source: str = "jobs",
    ) -> Jobs:
        """Jobs in any order; what is left out takes its default.

        Parameters
        ----------
        places: where each job stands in `source`, for complaints (``row 7``).

        Raises
        ------
        InputError: for columns of different lengths, a repeated name, an arrival before zero,
            a duration, estimate or patience below `SHORTEST_S`, or fewer than one GPU.
        """
        arrival = floats(arrival_s)
        count = len(arrival)
        columns: dict[str, Any] = {
            "arrival_s": arrival,
            "duration_s": floats(duration_s),
            "gpus": _whole(gpus, source),
        }
        duration, held = columns["duration_s"], columns["gpus"]
        columns["iterations"] = duration * held if iterations is None else floats(iterations)
        endless = isinstance(patience_s, (int, float))
        columns["patience_s"] = floats(np.full(count, patience_s) if endless else patience_s)  # type: ignore[arg-type]  # a number or an iterable
        columns["estimate_s"] = duration if estimate_s is None else floats(estimate_s)
        if batches is not None:
            columns["batches"] = integers(batches)
        titles = {
            "names": tuple(map(str, range(count) if names is None else names)),
            "kinds": ("",) * count if kinds is None else tuple(kinds),
            "families": ("",) * count if families is None else tuple(families),
        }
        for name, column in (*columns.items(), *titles.items()):
            if len(column) != count:
                raise InputError(source, f"field {name}", NoQuote(f"{len(column)}"), f"{count}")
        if not 1 <= count <= MOST_JOBS:
            raise InputError(source, "", NoQuote(f"{count} jobs"), f"1 to {MOST_JOBS}")
        where = places or [f"field jobs[{k}]" for k in range(count)]
        _numbers(columns, where, source)
        _unique(titles["names"], where, source)
        order = np.argsort(arrival, kind="stable")
        everything: dict[str, Any] = {**titles, **columns}
        if not (order[1:] > order[:-1]).all():
            everything = {k: tuple(v[i] for i in order) for k, v in titles.items()}
            for name, column in columns.items():
                whole = integers if name in ("gpus", "batches") else floats
                everything[name] = whole(column[order])
        return cls(**everything)

    def __len__(self) -> int:
        return len(self.names)

    @cached_property
    def index(self) -> Mapping[str, int]:
        """A job's place by its name."""
        return {name: k for k, name in enumerate(self.names)}

    @property
    def gpu_seconds(self) -> FloatArray:
        """Work n·d per job, GPU-s."""
        return self.gpus * self.duration_s

    @property
    def exact_estimates(self) -> bool:
        """Whether the scheduler knows all durations."""
        return bool((self.estimate_s == self.duration_s).all())

    @property
    def patient(self) -> bool:
        """Whether no job ever leaves."""
        return bool(np.isinf(self.patience_s).all())

    def take(self, chosen: IntArray) -> Jobs:
        """Some of the jobs, by ascending place."""
        picked = integers(sorted(chosen.tolist()))
        texts = [
            tuple(column[k] for k in picked) for column in (self.names, self.kinds, self.families)
        ]
        return Jobs(
            texts[0],
            floats(self.arrival_s[picked]),
            floats(self.duration_s[picked]),
            integers(self.gpus[picked]),
            texts[1],
            texts[2],
            floats(self.iterations[picked]),
            floats(self.patience_s[picked]),
            floats(self.estimate_s[picked]),
            None if self.batches is None else integers(self.batches[picked]),
        )


def _numbers(columns: Mapping[str, Any], where: Sequence[str], source: str) -> None:
    """Raise InputError for the first number out of range."""
    for name, column in columns.items():
        zero = name in ("arrival_s", "iterations", "batches")
        least = 0.0 if zero else 1 if name == "gpus" else SHORTEST_S
        most = LONGEST_S if name != "iterations" else 1e18
        with np.errstate(invalid="ignore"):
            good = (column >= least) & (column < most)
        if name == "patience_s":
            good |= column == math.inf
        if not good.all():
            k = int(np.argmin(good))
            expected = f"at least {least:g}, below {most:g}"
            raise InputError(source, f"{where[k]}, {name}", column[k].item(), expected)


def _whole(values: Iterable[int], source: str) -> IntArray:
    """Return the GPU counts, none of them rounded."""
    given = floats(values)
    found = integers(np.where(np.abs(given) < 2**31, given, 0))
    for k in np.flatnonzero(found != given)[:1].tolist():
        raise InputError(source, f"field gpus[{k}]", given[k].item(), "an integer of at least 1")
    return found


def _unique(names: Sequence[str], where: Sequence[str], source: str) -> None:
    seen: dict[str, int] = {}
    for k, name in enumerate(names):
        if name in seen:
            found = NoQuote(f"job {name} again, as in {where[seen[name]]}")
            raise InputError(source, f"{where[k]}, job", found, "each job once")
        seen[name] = k
