"""Which rows are held out: folds, one group value at a time, or everything above a size."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from optgap.fitting.profile import Profile
from optgap.models.errors import InputError, NoQuote

Rows = NDArray[np.int64]


def _one_at_a_time(part: Rows) -> Iterator[tuple[Rows, Rows]]:
    for k in range(int(part.max(initial=0)) + 1):
        yield np.flatnonzero(part != k), np.flatnonzero(part == k)


class Split(Protocol):
    """Gives pairs of training and held-out rows of a table whose groups are fitted apart."""

    def pairs(self, table: Profile, by: str | None) -> Iterator[tuple[Rows, Rows]]: ...


@dataclass(frozen=True)
class KFold:
    """`folds` random folds, dealt within each group so that every fold has all groups.

    Groups with fewer rows than folds are left out one row at a time.
    """

    folds: int = 10
    seed: int = 0

    def __post_init__(self) -> None:
        if self.folds < 2:
            raise InputError("cv", "", self.folds, "at least 2 folds, or 0 for none")

    def pairs(self, table: Profile, by: str | None) -> Iterator[tuple[Rows, Rows]]:
        fold = np.zeros(len(table), dtype=np.int64)
        for _, rows in table.groups(by):
            rng = np.random.default_rng(self.seed)
            count = min(self.folds, len(rows))
            for k, part in enumerate(np.array_split(rng.permutation(len(rows)), max(count, 1))):
                fold[rows[part]] = k
        yield from _one_at_a_time(fold)


@dataclass(frozen=True)
class LeaveOneValueOut:
    """Within each group, every value of `column` is held out once (a batch, a GPU count)."""

    column: str

    def pairs(self, table: Profile, by: str | None) -> Iterator[tuple[Rows, Rows]]:
        values = table[self.column]
        rank = np.zeros(len(table), dtype=np.int64)
        for _, rows in table.groups(by):
            _, rank[rows] = np.unique(values[rows], return_inverse=True)
        yield from _one_at_a_time(rank)


@dataclass(frozen=True)
class Extrapolate:
    """Fit where `column` is at most `upto`, predict where it is larger."""

    column: str
    upto: float

    def pairs(self, table: Profile, by: str | None) -> Iterator[tuple[Rows, Rows]]:
        values = table.numbers(self.column)
        train, held = np.flatnonzero(values <= self.upto), np.flatnonzero(values > self.upto)
        if not len(train) or not len(held):
            found = NoQuote(f"{len(train)} rows up to {self.upto:g} and {len(held)} above")
            raise InputError(table.source, f"column {self.column}", found, "rows on both sides")
        yield train, held
