"""The tidy profile table that every reader gives and every estimator takes."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from optgap.models.errors import InputError, NoQuote

Column = NDArray[Any]


@dataclass(frozen=True, slots=True)
class Quantity:
    """A canonical column: what it means, its unit, and where its median is believed.

    Outside `low`..`high` a median is taken for a wrong unit; `units` gives the factor to the
    canonical unit for each unit a user may name.
    """

    meaning: str
    unit: str
    low: float = 0.0
    high: float = math.inf
    units: Mapping[str, float] = field(default_factory=dict)


_TIME = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "min": 60.0, "h": 3600.0}
_POWER = {"W": 1.0, "mW": 1e-3, "kW": 1e3}
_CLOCK = {"MHz": 1.0, "GHz": 1e3, "kHz": 1e-3, "Hz": 1e-6}
_ENERGY = {"J": 1.0, "mJ": 1e-3, "kJ": 1e3, "Wh": 3600.0}
_SHARE = {"fraction": 1.0, "%": 1e-2}

QUANTITIES: Mapping[str, Quantity] = {
    "frequency_mhz": Quantity("core clock", "MHz", 50, 5000, _CLOCK),
    "memory_mhz": Quantity("memory clock", "MHz", 50, 20000, _CLOCK),
    "power_w": Quantity("mean power of one GPU", "W", 1, 2500, _POWER),
    "power_limit_w": Quantity("power limit of one GPU", "W", 10, 2500, _POWER),
    "time_s": Quantity("time of the run, or of one iteration", "s", 1e-7, 1e6, _TIME),
    "sync_s": Quantity("synchronisation inside time_s", "s", 0, 1e6, _TIME),
    "energy_j": Quantity("energy of the run, all GPUs", "J", 1e-7, 1e9, _ENERGY),
    "gpus": Quantity("GPUs of the job", "GPUs", 1, 1e5),
    "nodes": Quantity("nodes of the job", "nodes", 1, 1e5),
    "gpus_on_node": Quantity("GPUs on its fullest node", "GPUs", 1, 64),
    "local_batch": Quantity("samples per GPU and iteration", "samples", 0, 1e7),
    "global_batch": Quantity("samples per iteration", "samples", 0, 1e9),
    "dram_active": Quantity("DRAM-active share, mean of the GPUs", "0..1", 0, 1.0, _SHARE),
    "dram_sum": Quantity("DRAM-active share summed over the GPUs", "0..GPUs", 0, 64),
    "fp_active": Quantity("floating-point share, mean of the GPUs", "0..1", 0, 3.0, _SHARE),
    "util_percent": Quantity("GPU utilisation", "%", 0, 100, {"%": 1.0, "fraction": 100.0}),
    "util_sum_percent": Quantity("utilisation summed over co-located jobs", "%", 0, 6400),
    "speed": Quantity("speed relative to running alone", "1 = alone", 0, 3),
    "samples": Quantity("samples behind the row", "samples", 0),
}
"""Canonical columns by name."""


@dataclass(frozen=True)
class Profile:
    """A profile table: equally long columns, text as objects and numbers as float64.

    Parameters
    ----------
    columns: by name; canonical names as in `QUANTITIES`, others are carried along.
    source: the file or what stands for it.
    kind: which reader gave it.
    lines: line number of each row in the source (0 where there is none).
    notes: what the reader changed or left out, one line each.
    published: the source's own columns, by the names they have there, where the reader gave them
        another name or folded them into one. They can be asked for, to group by for instance,
        but no model looks at them.
    """

    columns: Mapping[str, Column]
    source: str = "table"
    kind: str = "table"
    lines: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    notes: tuple[str, ...] = ()
    published: Mapping[str, Column] = field(default_factory=dict)

    @classmethod
    def of(cls, table: object, source: str = "table") -> Profile:
        """A Profile from a Profile, a mapping of columns, or a pandas DataFrame.

        Raises
        ------
        InputError: for columns of unequal length or a table of another kind.
        """
        if isinstance(table, Profile):
            return table
        if hasattr(table, "columns") and hasattr(table, "__getitem__"):
            frame: Any = table
            items = {str(name): frame[name].to_numpy() for name in frame.columns}
        elif isinstance(table, Mapping):
            items = {str(name): np.asarray(values) for name, values in table.items()}
        else:
            raise InputError(source, "", NoQuote(type(table).__name__), "a table of columns")
        columns = {name: as_column(values) for name, values in items.items()}
        lengths = {len(values) for values in columns.values()}
        if len(lengths) > 1:
            found = ", ".join(f"{name} {len(values)}" for name, values in columns.items())
            raise InputError(source, "", NoQuote(found), "columns of one length")
        return cls(columns, source)

    def __len__(self) -> int:
        return len(next(iter(self.columns.values()))) if self.columns else 0

    def __contains__(self, name: object) -> bool:
        return name in self.columns

    def __getitem__(self, name: str) -> Column:
        if name in self.published and name not in self.columns:
            return self.published[name]
        if name not in self.columns:
            raise InputError(
                self.source,
                "columns",
                NoQuote(", ".join(self.columns) or "nothing"),
                f"a column {name}",
            )
        return self.columns[name]

    def numbers(self, name: str) -> NDArray[np.float64]:
        """A numeric column; text in it is an error."""
        values = self[name]
        if values.dtype.kind not in "fiub":
            raise InputError(self.source, f"column {name}", NoQuote("text"), "numbers")
        return values.astype(float)

    def where(self, row: int, name: str) -> str:
        """The place of a cell, for messages."""
        line = int(self.lines[row]) if len(self.lines) else 0
        return f"row {line or row + 1}, column {name}"

    def take(self, rows: NDArray[Any]) -> Profile:
        """The rows of an index or mask."""
        columns = {name: values[rows] for name, values in self.columns.items()}
        published = {name: values[rows] for name, values in self.published.items()}
        lines = self.lines[rows] if len(self.lines) else self.lines
        return replace(self, columns=columns, lines=lines, published=published)

    def with_columns(self, **columns: Column) -> Profile:
        return replace(self, columns={**self.columns, **columns})

    def noting(self, *notes: str) -> Profile:
        return replace(self, notes=(*self.notes, *notes))

    def groups(self, by: str | Sequence[str] | None) -> Iterator[tuple[str, NDArray[np.int64]]]:
        """(label, row indices) per distinct value of the columns `by`, in order of appearance."""
        if not by:
            yield "", np.arange(len(self))
            return
        names = [by] if isinstance(by, str) else list(by)
        keys = [
            tuple(label(value) for value in row)
            for row in zip(*(self[n] for n in names), strict=True)
        ]
        order: dict[tuple[str, ...], list[int]] = {}
        for row, key in enumerate(keys):
            order.setdefault(key, []).append(row)
        for key, rows in order.items():
            yield " / ".join(key), np.array(rows, dtype=np.int64)

    def to_frame(self) -> Any:
        """A pandas DataFrame with the same columns."""
        import pandas as pd

        return pd.DataFrame(dict(self.columns))


def as_column(values: Any) -> Column:
    """Numbers as float64, everything else as text objects."""
    array = np.asarray(values)
    if array.dtype.kind in "fiub":
        return array.astype(float)
    try:
        return array.astype(float)
    except (TypeError, ValueError):
        return np.array([str(item) for item in array.tolist()], dtype=object)


def label(value: object) -> str:
    """A group's name: whole numbers without a decimal point."""
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value)
