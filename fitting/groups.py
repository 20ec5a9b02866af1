"""Estimator fitted to every group of a table, and its error on held-out rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from html import escape
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from optgap.fitting.estimator import Estimator, r2
from optgap.fitting.optimise import Floats
from optgap.fitting.profile import Profile, codes, label
from optgap.models.errors import InputError, NoQuote, one_of, shorten
from optgap.models.quantities import warn
from optgap.models.shown import Brief, html_lines, html_table

E = TypeVar("E", bound=Estimator)


@dataclass(frozen=True, repr=False)
class GroupedFit(Generic[E]):
    """Fitted estimators by group; the group of a fit without groups is ``""``."""

    estimator: E
    by: str | None
    fits: dict[str, E]
    source: str = "table"
    skipped: tuple[str, ...] = ()
    """Groups that could not be fitted, each with the reason."""

    def __repr__(self) -> str:
        groups = ", ".join(filter(None, self.fits)) or "all rows"
        words = f"{self.estimator.name} of {self.source}: {groups}"
        return f"<GroupedFit {shorten(NoQuote(words), 200)}>"

    def _repr_html_(self) -> str:
        rows = [(t, *map("{:.5g}".format, one.params_.values())) for t, one in self.fits.items()]
        names = next((list(one.params_) for one in self.fits.values()), [])
        told = [f"not fitted: {line}" for line in self.skipped]
        lines = [escape(line) for line in (repr(self).strip("<>"), *told)]
        return html_lines(lines) + html_table(("group", *names), rows, range(1, len(names) + 1))

    def __getitem__(self, group: str) -> E:
        return self.fits[group]

    def rows(self, table: Profile) -> NDArray[np.int64]:
        """Return the rows of `table` whose group was fitted."""
        found = [rows for title, rows in table.groups(self.by) if title in self.fits]
        return np.sort(np.concatenate([np.zeros(0, dtype=np.int64), *found]))

    def predict(self, table: object, group: str | None = None) -> Floats:
        """Return the response at each row by its group's fit; warn outside the range measured.

        Parameters
        ----------
        table: Profile, DataFrame or mapping of columns; a number in it holds for every row.
        group: group whose fit serves all rows. Default: the columns of the groups decide.

        Raises
        ------
        InputError: for a group that was not fitted, or none where there are several.
        """
        profile = Profile.of(table)
        by = None if group is not None or self.by is None else profile.split(self.by)
        for name in by or ():
            if name not in profile and name not in profile.published:
                expected = f"group=…, or a column {name}"
                raise InputError(profile.source, "columns", NoQuote("no group"), expected)
        result = np.full(len(profile), np.nan)
        beyond: dict[str, None] = {}
        for title, rows in profile.groups(by):
            title = title if group is None else group
            if title not in self.fits:
                where = "group" if by is None else profile.where(int(rows[0]), self.by or "")
                expected = one_of(self.fits, "a fitted group: {}")
                raise InputError(profile.source, where, title, expected)
            fit, part = self.fits[title], profile.take(rows)
            result[rows] = fit.predict(part)
            beyond |= dict.fromkeys(fit.beyond(part))
        for line in beyond:
            warn(f"{self.estimator.name}: {line}")
        return result


def fit_groups(estimator: E, table: object, by: str | None = None) -> GroupedFit[E]:
    """Fit a copy of `estimator` to each group of `table` (Profile, mapping or DataFrame).

    Facts that groups share (a board's voltage curve) come from all groups together, first.

    Groups that have too little to be fitted (too few rows, one clock, a constant response)
    are left out and named in ``skipped``.

    Raises
    ------
    InputError: for a table that is wrong as such, or when no group can be fitted.
    """
    profile = estimator.prepare(table)
    base = estimator.share(profile, by)
    fits: dict[str, E] = {}
    failures: dict[str, InputError] = {}
    for title, rows in profile.groups(by):
        part = profile if by is None else profile.take(rows)
        try:
            fits[title] = base.clone().fit(part)
        except InputError as error:
            if not by:
                raise
            failures[title] = error
    if not fits:
        title, first = next(iter(failures.items()))
        where = f"{by} {title}" + (f", {first.where}" if first.where else "")
        raise InputError(first.source, where, first.found, first.expected) from None
    skipped = tuple(f"{title}: {reason(item)}" for title, item in failures.items())
    return GroupedFit(estimator, by, fits, profile.source, skipped)


def reason(error: InputError) -> str:
    """Return an error without its file: the found value and the expected one."""
    place = f"{error.where}: " if error.where else ""
    return f"{place}found {shorten(error.found)}, expected {error.expected}"


Rows = NDArray[np.int64]


@dataclass(frozen=True)
class Split:
    """Held-out rows: random folds, one value of a column at a time, or all above a value.

    Parameters
    ----------
    folds: number of folds, dealt within each group so that every fold has all groups; groups with
        fewer rows than folds are left out one row at a time.
    column: column of which every value is held out once within each group (a GPU count).
    upto: largest value of the column that is not held out.
    """

    folds: int = 10
    seed: int = 0
    column: str = ""
    upto: float | None = None

    def __post_init__(self) -> None:
        if self.folds < 2:
            raise InputError("cv", "", self.folds, "at least 2 folds, or 0 for none")

    def __str__(self) -> str:
        if self.upto is not None:
            return f"{self.column} above {self.upto:g}"
        if self.column:
            return f"leave one {self.column} out within each group"
        return f"{self.folds} folds"

    def pairs(self, table: Profile, by: str | None) -> Iterator[tuple[Rows, Rows]]:
        """Yield training and held-out rows of a table whose groups are fitted separately."""
        if self.upto is not None:
            held = table.numbers(self.column) > self.upto
            if held.all() or not held.any():
                many = int(held.sum())
                found = NoQuote(f"{len(table) - many} rows up to {self.upto:g} and {many} above")
                where = f"column {self.column}"
                raise InputError(table.source, where, found, "rows on both sides")
            yield np.flatnonzero(~held), np.flatnonzero(held)
            return
        part = np.zeros(len(table), dtype=np.int64)
        for _, rows in table.groups(by):
            if self.column:
                part[rows] = np.unique(table[self.column][rows], return_inverse=True)[1]
                continue
            dealt = np.random.default_rng(self.seed).permutation(len(rows))
            folds = np.array_split(dealt, max(min(self.folds, len(rows)), 1))
            for k, fold in enumerate(folds):
                part[rows[fold]] = k
        for k in range(int(part.max(initial=0)) + 1):
            yield np.flatnonzero(part != k), np.flatnonzero(part == k)


@dataclass(frozen=True, repr=False)
class HeldOut(Brief):
    """Predictions of held-out rows, with the measurements.

    `groups` names the group of each row; `mape` is the mean over groups of each group's mean.
    """

    measured: Floats
    predicted: Floats
    groups: NDArray[np.object_]
    rows: NDArray[np.int64]
    skipped: tuple[str, ...] = field(default=())

    @property
    def errors(self) -> Floats:
        """Relative error |predicted − measured| / measured of each row."""
        return np.asarray(np.abs(self.predicted - self.measured) / np.abs(self.measured))

    def by_group(self) -> dict[str, float]:
        """Return the MAPE of each group."""
        names, group = dict.fromkeys(self.groups.tolist()), codes(self.groups)
        means = np.bincount(group, self.errors) / np.bincount(group)
        return {str(name): float(mean) for name, mean in zip(names, means, strict=True)}

    @property
    def mape(self) -> float:
        return float(np.mean(list(self.by_group().values()))) if len(self.rows) else float("nan")

    @property
    def median(self) -> float:
        return float(np.median(self.errors)) if len(self.rows) else float("nan")

    @property
    def r2(self) -> float:
        return r2(self.measured, self.predicted)


def cross_validate(
    estimator: E,
    table: object,
    by: str | None = None,
    split: Split | None = None,
    *,
    near: Mapping[str, E] | None = None,
) -> HeldOut:
    """Predict every held-out row from the others; `split` defaults to ten folds.

    Folds begin at the guess and at a solution for nearly the same rows: the one of `near` (the
    groups' fits to all rows), else that of the first fold, which then takes every start.

    Groups with too few training rows are skipped, and named in ``skipped``. A table of which
    nothing can be predicted is an error.
    """
    profile = estimator.prepare(table)
    predicted = np.full(len(profile), np.nan)
    skipped: dict[str, str] = {}
    known, parts = dict(near or {}), list(profile.groups(by))
    for train, held in (split or Split()).pairs(profile, by):
        base = estimator.share(profile.take(train), by)
        out = np.isin(np.arange(len(profile)), held, kind="table")
        for title, rows in parts:
            test = rows[out[rows]]
            if not len(test):
                continue
            try:
                fit = base.clone().fit(profile.take(rows[~out[rows]]), near=known.get(title))
                known.setdefault(title, fit)
                predicted[test] = fit.predict(profile.take(test))
            except InputError as error:
                skipped.setdefault(title, reason(error))
    kept = np.flatnonzero(np.isfinite(predicted))
    if not len(kept):
        why = next(iter(skipped.values()), "no row was held out")
        raise InputError(profile.source, "", NoQuote(why), "enough rows to hold some out")
    titles = np.empty(len(profile), dtype=object)
    for title, rows in parts:
        titles[rows] = label(title)
    measured = profile.numbers(estimator.response)[kept]
    notes = tuple(f"{title or 'all'}: {why}" for title, why in skipped.items())
    return HeldOut(measured, predicted[kept], titles[kept], kept, notes)
