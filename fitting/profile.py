"""Profile, the tidy table that every reader returns and every estimator takes."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from html import escape
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from optgap.models.errors import InputError, NoQuote, shorten
from optgap.models.quantities import GO_ON, MEASURED, warn
from optgap.models.shown import MOST, ROWS, html_lines, html_table
from optgap.models.units import factors, parsed

Column = NDArray[Any]


QUANTITIES = MEASURED
"""Canonical columns by name."""

TEXTS = ("application", "gpu_model", "placement", "workload", "gpu")
"""Canonical columns of text."""
NO_LINE = -1


@dataclass(frozen=True)
class Trace:
    """Samples behind rows, for pictures.

    Parameters
    ----------
    device: name of the sampled device.
    times, power_w: times, s, and powers, W.
    runs: first sample of each run, and the first one after it.
    """

    device: str
    times: NDArray[np.float64]
    power_w: NDArray[np.float64]
    runs: tuple[tuple[int, int], ...]


@dataclass(frozen=True, repr=False)
class Profile:
    """Profile table of equally long columns, text as objects and numbers as float64.

    Parameters
    ----------
    columns: columns by name; canonical names are those of `QUANTITIES`, others are carried along.
    source: the file, or a name in its place.
    kind: name of the reader.
    lines: line number of each row in the source (`NO_LINE` if there is none).
    notes: what the reader changed or left out, one line each.
    published: columns of the source under their own names, if the reader renamed or joined them.
        These serve grouping, for instance, but no model reads them.
    called: names in the source of columns that have our names here.
    refused: by column of the source that was not read, the error that its use raises.
    traces: samples from which the rows were cut, if there were any.
    """

    columns: Mapping[str, Column]
    source: str = "table"
    kind: str = "table"
    lines: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    notes: tuple[str, ...] = ()
    published: Mapping[str, Column] = field(default_factory=dict)
    called: Mapping[str, str] = field(default_factory=dict)
    refused: Mapping[str, InputError] = field(default_factory=dict)
    traces: tuple[Trace, ...] = ()

    @classmethod
    def of(
        cls,
        table: object,
        source: str = "table",
        *,
        strict: bool = True,
        reads: Collection[str] = QUANTITIES,
    ) -> Profile:
        """Return a Profile from a Profile, a mapping of columns, or a pandas DataFrame.

        Parameters
        ----------
        reads: columns that matter; the magnitudes of others are not checked.
        strict: whether to refuse a column whose magnitudes suggest another unit rather than
            warn in one line. A Profile is taken as it is.

        Raises
        ------
        InputError: for columns of unequal length, a table of another kind, or another unit.
        """
        if isinstance(table, Profile):
            return table
        held: Any = table
        if not isinstance(table, Mapping) and not hasattr(table, "columns"):
            raise InputError(source, "", NoQuote(type(table).__name__), "a table of columns")
        given = {str(name): np.asarray(held[name]) for name in getattr(held, "columns", held)}
        count = next((len(v) for v in given.values() if v.ndim), 1)  # a number is of each row
        columns = {n: as_column(v if v.ndim else np.full(count, v[()])) for n, v in given.items()}
        if any(len(values) != count for values in columns.values()):
            found = ", ".join(f"{name} {len(values)}" for name, values in columns.items())
            raise InputError(source, "", NoQuote(found), "columns of one length")
        profile = cls(columns, source)
        check_magnitudes(profile, strict=strict, reads=reads)
        return profile

    def __repr__(self) -> str:
        words = f"{self.source} ({self.kind}): {len(self)} rows of {', '.join(self.columns)}"
        return f"<Profile {shorten(NoQuote(words), MOST)}>"

    def _repr_html_(self) -> str:
        head = self.to_frame().head(ROWS)
        rows = list(head.itertuples(index=False))
        lines = [escape(repr(self).strip("<>")), *map(escape, self.notes)]
        return html_lines(lines) + html_table(list(head.columns), rows, ())

    def __len__(self) -> int:
        return len(next(iter(self.columns.values()))) if self.columns else 0

    def __contains__(self, name: object) -> bool:
        return name in self.columns

    def __getitem__(self, name: str) -> Column:
        if name in self.columns:
            return self.columns[name]
        if name in self.refused:
            raise self.refused[name]
        if name in self.published:
            return self.published[name]
        if self._ours(name) in self.columns:
            return self.columns[self._ours(name)]
        names = ", ".join(theirs(known, self.called) for known in self.columns)
        raise InputError(self.source, "columns", NoQuote(names or "nothing"), _missing(name))

    def numbers(self, name: str) -> NDArray[np.float64]:
        """Return a numeric column; text in it is an error."""
        values = self[name]
        if values.dtype.kind not in "fiub":
            where = f"column {theirs(name, self.called)}"
            raise InputError(self.source, where, NoQuote("text"), "numbers")
        return values.astype(float)

    def where(self, row: int, name: str) -> str:
        """Return the place of a cell, for messages."""
        line = int(self.lines[row]) if len(self.lines) else NO_LINE
        shown = theirs(name, self.called)
        return f"row {row + 1 if line == NO_LINE else line}, column {shown}"

    def require(self, good: NDArray[np.bool_], name: str, expected: str, found: str = "") -> None:
        """Refuse the first row that is not good.

        Raises
        ------
        InputError: with `found`, or by default the value of the column there.
        """
        for row in np.flatnonzero(~good)[:1]:
            value = float(self[name][row])
            told = NoQuote(found or "nothing") if found or np.isnan(value) else value
            raise InputError(self.source, self.where(int(row), name), told, expected)

    def take(self, rows: NDArray[Any]) -> Profile:
        """Return the rows of an index or mask."""
        columns = {name: values[rows] for name, values in self.columns.items()}
        published = {name: values[rows] for name, values in self.published.items()}
        lines = self.lines[rows] if len(self.lines) else self.lines
        return replace(self, columns=columns, lines=lines, published=published)

    def with_columns(self, **columns: Column) -> Profile:
        return replace(self, columns={**self.columns, **columns})

    def noting(self, *notes: str) -> Profile:
        return replace(self, notes=(*self.notes, *notes))

    def groups(self, by: str | Sequence[str] | None) -> Iterator[tuple[str, NDArray[np.int64]]]:
        """Yield (label, row indices) of each value of the columns `by`, in order of appearance."""
        if not by:
            yield "", np.arange(len(self))
            return
        names = self.split(by) if isinstance(by, str) else list(by)
        if not len(self):
            return
        group = np.zeros(len(self), dtype=np.int64)
        for name in names:
            own = codes(self[name])
            group = np.unique(group * (own.max() + 1) + own, return_inverse=True)[1]
        order = np.argsort(group, kind="stable")
        parts = np.split(order, np.cumsum(np.bincount(group))[:-1])
        for rows in sorted(parts, key=lambda rows: int(rows[0])):
            yield " / ".join(label(self[name][rows[0]]) for name in names), rows

    def has(self, name: str) -> bool:
        """Tell whether there is a column of this name, canonical or the table's own."""
        return bool({name, self._ours(name)} & self.columns.keys()) or name in self.published

    def _ours(self, name: str) -> str:
        """Return the canonical name of the table's column `name`; "" if it has none."""
        return next((ours for ours, own in self.called.items() if own == name), "")

    def split(self, by: str) -> list[str]:
        """Return the columns of ``a,b``; a column of exactly that name is one column."""
        return [by] if self.has(by) else [name.strip() for name in by.split(",")]

    def to_frame(self) -> Any:
        """Return a pandas DataFrame with the same columns."""
        import pandas as pd

        return pd.DataFrame(dict(self.columns))


def theirs(name: str, called: Mapping[str, str]) -> str:
    """Return the table's name of a column, with the canonical name if that differs.

    >>> theirs("power_w", {"power_w": "watts"}), theirs("gpus", {})
    ('watts (power_w)', 'gpus')
    """
    return f"{called[name]} ({name})" if name in called else name


def _missing(name: str) -> str:
    """Say what a missing column would hold, and how to name one that is there."""
    quantity = QUANTITIES.get(name)
    if quantity is None:
        return f"a column {name}"
    unit = f" in {quantity.unit}" if quantity.units else ""
    return f"a column {name}: {quantity.meaning}{unit}; where it is called x, --column x={name}"


def as_column(values: Any) -> Column:
    """Return numbers as float64, and everything else as text objects."""
    array = np.asarray(values)
    try:
        return array.astype(float)
    except (TypeError, ValueError):
        return np.array([str(item) for item in array.tolist()], dtype=object)


def codes(values: Column) -> NDArray[np.int64]:
    """Return a number for each value of a column; texts are numbered as they appear."""
    if values.dtype.kind == "f":
        return np.unique(values, return_inverse=True)[1]
    seen: dict[str, int] = {}
    return np.array([seen.setdefault(value, len(seen)) for value in values.tolist()], np.int64)


def label(value: object) -> str:
    """Return a group's name; whole numbers have no decimal point."""
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value)


def drop_missing(profile: Profile, columns: Sequence[str]) -> Profile:
    """Return the rows in which all named columns that exist hold finite numbers."""
    numbers = [profile[n] for n in columns if n in profile and profile[n].dtype.kind == "f"]
    known = [np.isfinite(values) for values in numbers if np.isfinite(values).any()]
    good = np.all(known, axis=0) if known else np.ones(len(profile), dtype=bool)
    left = int(np.sum(~good))  # what no row has is not a row's fault
    return (
        profile.take(good).noting(f"{left} rows with missing values dropped") if left else profile
    )


# --- units: named by the user, or questioned where magnitudes are not believable -----------------


MIXED_DECADES = 2.3
"""Gap (in powers of ten) within one group that shows two units in a column."""
EACH_GROUP = ("frequency_mhz", "power_w", "energy_j")
"""Columns that are checked in every group, and row by row at `FAR` times the range."""
FAR = 10.0
STATED = 0.05
"""Least plausible value of a column with a stated unit, as a share of the range's lower end."""

Groups = list[tuple[str, NDArray[np.int64]]]


def check_magnitudes(
    profile: Profile,
    by: str | None = None,
    *,
    strict: bool = True,
    reads: Collection[str] = QUANTITIES,
    stated: Collection[str] = (),
) -> None:
    """Question columns whose magnitudes suggest another unit, or two units in one column.

    Parameters
    ----------
    by: columns that separate groups. Default: the application.
    strict: whether to refuse rather than warn in one line per finding.
    reads: columns that matter.
    stated: columns whose unit the user has stated; these get a warning at most.

    Raises
    ------
    InputError: with `strict`, naming the column, its median and the unit to state if it is meant.
    """
    known = by is not None and all(profile.has(name) for name in profile.split(by))
    usual = "application" if "application" in profile else None
    groups = list(profile.groups(by if known else usual))
    for name in QUANTITIES:
        if name not in reads or name not in profile or profile[name].dtype.kind != "f":
            continue
        for error in islice(_doubts(profile, name, groups, name in stated), 1):
            if strict and name not in stated:
                raise error
            warn(str(error).removesuffix(f"; {GO_ON}"))


def _doubts(profile: Profile, name: str, groups: Groups, stated: bool) -> Iterator[InputError]:
    """Yield an error for each implausible property of a column."""
    values, quantity = profile.numbers(name), QUANTITIES[name]
    header = quantity.units.get(parsed(profile.called.get(name, "")).unit, 1.0)
    told = stated or header != 1  # by the user or by the header, and not our own
    low, high = quantity.low * (STATED if told else 1), quantity.high
    by_group, column = name in EACH_GROUP, f"column {theirs(name, profile.called)}"

    def doubt(where: str, found: str, value: float | None = None, expected: str = "") -> InputError:
        if value is not None:
            unit = "" if told else quantity.meant(value)
            hint = f"; if the column is in {unit}, say so: --unit {name}={unit}" if unit else ""
            expected = f"{quantity.unit} between {low:g} and {high:g}{hint}"
        return InputError(profile.source, where, NoQuote(found), f"{expected}; {GO_ON}")

    for title, rows in [("", np.arange(len(profile))), *(groups if by_group else ())]:
        known = values[rows][np.isfinite(values[rows])]
        middle = float(np.median(known)) if len(known) else low
        if not low <= middle <= high:
            yield doubt(column + (title and f" ({title})"), f"a median of {middle:g}", middle)
    with np.errstate(invalid="ignore"):
        far = by_group & (((values > 0) & (values < low / FAR)) | (values > high * FAR))
    for row in np.flatnonzero(far).tolist():
        yield doubt(profile.where(row, name), f"{values[row]:g}", float(values[row]))
    for title, rows in groups if by_group or name == "time_s" else ():
        known = rows[np.isfinite(values[rows]) & (values[rows] > 0)]
        order = known[np.argsort(values[known], kind="stable")]
        if len(order) < 4:
            continue
        decades = np.log10(values[order])  # two clusters of values, far apart?
        cut = int(np.argmax(np.diff(decades)))
        gap = decades[cut + 1] - decades[cut]
        spread = max(np.ptp(decades[: cut + 1]), np.ptp(decades[cut + 1 :]))
        if gap >= MIXED_DECADES and spread < gap - 0.5:
            odd = int(order[cut + 1] if cut + 1 > len(order) / 2 else order[cut])
            where = profile.where(odd, name) + (title and f" ({title})")
            found = f"{values[order[cut]]:g} and {values[order[cut + 1]]:g} side by side"
            yield doubt(where, found, expected=f"one unit, {quantity.unit}")
    if name == "energy_j" and {"power_w", "time_s"} <= profile.columns.keys():
        gpus = profile.numbers("gpus") if "gpus" in profile else 1.0
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = values / (profile.numbers("power_w") * profile.numbers("time_s") * gpus)
        ratio = ratio[np.isfinite(ratio) & (ratio > 0)]
        middle = float(np.median(ratio)) if len(ratio) else 1.0
        if not 0.02 < middle < 50:
            unit = next((u for u, size in factors("J").items() if 0.5 < middle * size < 2), "")
            hint = f"; if energy is in {unit}: --unit energy_j={unit}" if unit else ""
            found = f"energy {middle:g} times power x time"
            expected = f"J, W and s that belong together{hint}"
            yield doubt("columns energy_j, power_w, time_s", found, expected=expected)
