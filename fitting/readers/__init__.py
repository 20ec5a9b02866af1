"""Readers of profiler output into one tidy table; its header identifies the source."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from optgap.fitting.profile import (
    NO_LINE,
    QUANTITIES,
    Column,
    Profile,
    check_magnitudes,
)
from optgap.fitting.readers import samples, tidy
from optgap.fitting.readers.dialects import DIALECTS
from optgap.fitting.readers.naming import CANONICAL, by_name
from optgap.fitting.readers.text import RawTable, parse_csv
from optgap.models.columns import mapped, said
from optgap.models.errors import InputError, one_of
from optgap.models.reading import Held, held_table, read_text

__all__ = ["read_profile", "read_profiles"]


def read_profile(
    path: str | os.PathLike[str] | Any,
    *,
    columns: Mapping[str, str] | None = None,
    units: Mapping[str, str] | None = None,
    fields: Sequence[str] = (),
    sampled: bool = True,
    strict: bool = True,
    by: str | None = None,
    reads: Collection[str] | None = None,
) -> Profile:
    """Read measurements of any known source, in canonical columns and units.

    Parameters
    ----------
    path
        The file, plain or gzip; or a DataFrame or a mapping of columns. A named index counts as a
        column, and messages number the rows of a DataFrame from 0.
    columns
        Our names for the table's own, with their unit if it is another:
        ``{"sm_clock": "frequency_mhz:GHz"}``. Common names, and units in names such as
        ``Power (kW)``, are recognised; a note says what was taken for what.
    units
        Units of canonical columns that are not the canonical ones, such as ``{"time_s": "ms"}``.
    fields
        Names of the columns of a file without a header.
    sampled
        Whether to cut a table that looks like one of samples into runs. Default True.
    strict
        Whether to refuse, rather than warn of, values that suggest another unit. Default True.
    by
        Columns that separate groups; the magnitudes of each group are checked.
    reads
        Columns that matter, such as ``estimator.reads()``. Default: all.

    Returns
    -------
    Profile
        The table, with `to_frame`.

    Raises
    ------
    InputError
        For a file that cannot be read or recognised, a cell that is no number, or values that
        suggest another unit.

    Examples
    --------
    >>> import optgap
    >>> profile = optgap.read_profile({"clock (GHz)": [0.6, 0.9], "power_w": [80, 107]})
    >>> list(profile.to_frame().columns)
    ['frequency_mhz', 'power_w']
    """
    for name, given in (("columns", columns), ("units", units)):
        if not isinstance(given or {}, Mapping):
            raise InputError(name, "", given, "a mapping, such as {'power': 'power_w:kW'}")
    held = path if isinstance(path, (str, os.PathLike)) else held_table("table", path)
    source, text = str(held), read_text(held)
    columns, units = columns or {}, units or {}
    raw = parse_csv(text, source, fields)
    if isinstance(held, Held):
        raw = replace(raw, lines=raw.lines - 2)
    profile = _read(raw, columns, units, reads, sampled=sampled)
    stated = {told.partition(":")[0] for told in columns.values() if ":" in told}
    stated |= {by_name(name)[0].name for name in units}
    if profile.traces and profile.kind != "samples":  # the tool's own units
        stated |= {"power_w", "power_limit_w"}
    stated |= {"idle_w"} & set(profile.columns) if "power_w" in stated else set()
    check_magnitudes(profile, by, strict=strict, reads=reads or QUANTITIES, stated=stated)
    return profile


def _read(
    raw: RawTable,
    columns: Mapping[str, str],
    units: Mapping[str, str],
    reads: Collection[str] | None,
    *,
    sampled: bool,
) -> Profile:
    """Return the table under canonical names, from the reader of its kind.

    Raises
    ------
    InputError: for a missing column that the user renames, and a table of no known kind.
    """
    own = {n: by_name(n)[0].name for n in units if n in raw.cells and n not in columns}
    own = {name: ours for name, ours in own.items() if ours in QUANTITIES}
    named = mapped({**columns, **{n: f"{ours}:{units[n]}" for n, ours in own.items()}}, CANONICAL)
    others = {name: f"{name}:{unit}" for name, unit in units.items() if name not in own}
    measured = [name for name, quantity in QUANTITIES.items() if quantity.units]
    units = {want.name: want.unit for want in mapped(others, measured, "--unit").values()}
    for name in named:
        if name not in raw.cells:
            raise InputError(raw.source, "columns", name, one_of(raw.cells))
    found = next((item for item in DIALECTS if item.matches(raw.cells.keys())), None)
    log = samples.read_log(raw, named, units) if sampled and found is None else None
    if log is not None:
        return log.noting(*filter(None, [said(named)]))
    raw.require_regular()
    raw = raw.noting(raw.again, "times the header stands below itself: left out")
    if found is not None:
        known = {want.name for want in named.values()}
        theirs = {n: w for n, w in mapped(found.columns).items() if w.name not in known}
        raw = found.rewritten(raw)
        named = {**{n: w for n, w in theirs.items() if n in raw.cells}, **named}
    profile = tidy.read_tidy(raw, named, units, reads)
    return profile if found is None else replace(profile, kind=found.name)


def read_profiles(paths: Sequence[str | os.PathLike[str]], **how: Any) -> Profile:
    """Read several files one below the other, with common columns and a ``file`` column.

    Parameters
    ----------
    how: arguments of `read_profile`.
    """
    tables = [read_profile(path, **how) for path in paths]
    notes = tuple(note for table in tables for note in table.notes)
    # a log of an idle GPU has no row, and no columns to share
    tables = [table for table in tables if len(table)] or tables[:1]
    if len(tables) == 1:
        return replace(tables[0], notes=notes)
    files = [np.full(len(table), table.source, dtype=object) for table in tables]
    lines = [t.lines if len(t.lines) else np.full(len(t), NO_LINE) for t in tables]
    return replace(
        tables[0],
        notes=notes,
        columns=_stacked([table.columns for table in tables]) | {"file": np.concatenate(files)},
        source=", ".join(table.source for table in tables),
        kind="+".join(dict.fromkeys(table.kind for table in tables)),
        lines=np.concatenate(lines),
        published=_stacked([table.published for table in tables]),
        refused={name: why for table in tables for name, why in table.refused.items()},
        traces=tuple(trace for table in tables for trace in table.traces),
    )


def _stacked(tables: Sequence[Mapping[str, Column]]) -> dict[str, Column]:
    """Return the columns that all tables have, one table below the other."""
    shared = [name for name in tables[0] if all(name in table for table in tables)]
    return {name: np.concatenate([table[name] for table in tables]) for name in shared}
