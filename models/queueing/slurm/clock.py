"""When the rows of accounting were submitted, began and ended, on whatever clock sacct printed."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo
from itertools import product
from zoneinfo import ZoneInfo

import numpy as np
from numpy.typing import NDArray

from optgap.models.errors import InputError, NoQuote
from optgap.models.queueing.arrays import FloatArray, floats
from optgap.models.queueing.slurm.fields import NEVER, limit_s
from optgap.models.queueing.slurm.table import COMMAND, Table

CHANGES_S = (1800.0, 3600.0)
"""By how much clocks are put back or forward, s."""
QUARTER_S = 900
"""Clocks are changed at the full quarter of an hour."""
OPEN = "in an hour that clocks showed twice"
MISFIT = "whose End is not Start + ElapsedRaw + Suspended"
_NAMES = ("submit", "eligible", "start", "end")


@dataclass(frozen=True)
class Times:
    """(rows,) times in s; NaN where there is none.

    Parameters
    ----------
    submit, eligible: not after the start.
    end: that of the log for a row that still runs.
    still, early: whether a row still runs, and began before its submission.
    unfit: why a row cannot be used; "" where it can.
    zone: that of the clock.
    """

    submit: FloatArray
    eligible: FloatArray
    start: FloatArray
    end: FloatArray
    still: NDArray[np.bool_]
    early: NDArray[np.bool_]
    unfit: Sequence[str]
    zone: tzinfo

    def at(self, time_s: float) -> str:
        """A time as sacct prints it."""
        return datetime.fromtimestamp(time_s, self.zone).strftime("%Y-%m-%dT%H:%M:%S")


def read_times(table: Table, zone: str | None, source: str) -> Times:
    """Times on one clock: every row's End is its Start + ElapsedRaw + Suspended.

    Parameters
    ----------
    zone: whose local time sacct printed; UTC without it.

    Raises
    ------
    InputError: for an unknown zone, dates in a form that cannot be told, and the first row that
        shows that clocks were changed and does not fit in this zone either.
    """
    try:
        clock = UTC if zone is None else ZoneInfo(zone)
    except (KeyError, ValueError, OSError):
        raise InputError("--set", "zone", zone, "a time zone such as Europe/Berlin") from None
    local = {name: _local(table, name, source) for name in _NAMES}
    unix = all(text.isdigit() for text in table.column("start") if text.lower() not in NEVER)
    clock = UTC if unix else clock
    read = {name: _readings(column, clock) for name, column in local.items()}
    for name, (first, _) in read.items():
        for k in np.flatnonzero(np.isnan(first) & ~np.isnan(local[name]))[:1].tolist():
            where = f"{table.rows[k]}, column {name}"
            expected = f"a time that clocks in {zone} showed"
            raise InputError(source, where, table.column(name)[k], expected)
    elapsed = [float(t) if t.strip().isdigit() else math.nan for t in table.column("elapsedraw")]
    suspended = [limit_s(text) for text in table.column("suspended")]
    lasted = np.array(elapsed) + np.where(np.isfinite(suspended), suspended, 0.0)
    # of the readings of start and end, those that fit each other, and that of the submission
    began, ended = (
        np.array(columns) for columns in zip(*product(read["start"], read["end"]), strict=True)
    )
    over = ~np.isnan(began[0]) & ~np.isnan(ended[0])
    off = np.where(np.isnan(lasted), 0.0, ended - began - lasted)
    if "suspended" not in table.columns:  # then what is over may be that
        off[(off > 0) & ~np.isin(off, CHANGES_S)] = 0
    backwards = ended < began
    fits = (off == 0) & ~backwards
    wrong = over & ~fits.any(axis=0)
    changed = np.isin(np.abs(off), CHANGES_S) | (backwards & np.isnan(lasted))
    for k in np.flatnonzero(wrong & changed.any(axis=0) & (not unix))[:1].tolist():
        first, last = table.column("start")[k], table.column("end")[k]
        found = NoQuote(f"Start {first}, End {last}: clocks were changed")
        way = "another zone" if zone else "--set zone=Europe/Berlin, say, for local times"
        expected = f"times of one clock, as `{COMMAND}` prints; or {way}"
        raise InputError(source, table.rows[k], found, expected)
    later = fits & (began >= read["submit"][0])
    fits = np.where(later.any(axis=0), later, fits)
    chosen, row = np.argmax(fits, axis=0), np.arange(len(table))
    start = np.where(over, began[chosen, row], began[0])
    end = np.where(over, ended[chosen, row], ended[0])
    other = fits & ((began != start) | (ended != end))
    unsure = np.where(over, other.any(axis=0), read["start"][0] != read["start"][1])
    for name in ("submit", "eligible"):
        unsure |= (read[name][0] != read[name][1]) & (read[name][1] <= start)
    submit = np.fmin(read["submit"][0], start)
    eligible = read["eligible"][0]
    eligible = np.clip(np.where(np.isnan(eligible), submit, eligible), submit, start)
    still = np.isnan(end) & ~np.isnan(start)
    stamps = np.concatenate([submit, start, end, (start + lasted)[still]])
    latest = float(np.nanmax(stamps)) if np.isfinite(stamps).any() else 0.0
    early = read["submit"][0] > start
    end = floats(np.where(still, latest, end))
    unfit = np.where(wrong, MISFIT, np.where(unsure, OPEN, "")).tolist()
    return Times(floats(submit), floats(eligible), floats(start), end, still, early, unfit, clock)


def _readings(local_s: FloatArray, zone: tzinfo) -> tuple[FloatArray, FloatArray]:
    """The earlier and the later time that a clock may have meant; NaN for what it never showed."""
    if zone is UTC:
        return local_s, local_s
    known = np.isfinite(local_s)
    quarters, place = np.unique(local_s[known] // QUARTER_S, return_inverse=True)
    found = []
    for fold in (0, 1):
        offset = []
        for quarter in quarters.tolist():
            shown = datetime.fromtimestamp(quarter * QUARTER_S, UTC).replace(tzinfo=None)
            time = shown.replace(tzinfo=zone, fold=fold)
            there = datetime.fromtimestamp(time.timestamp(), zone).replace(tzinfo=None) == shown
            offset.append(time.utcoffset().total_seconds() if there else math.nan)  # type: ignore[union-attr]  # has a zone
        read = local_s.copy()
        read[known] -= np.array(offset)[place]
        found.append(read)
    return found[0], found[1]


def _local(table: Table, name: str, source: str) -> FloatArray:
    """Seconds since 1970 of a column as if its clock were UTC's; NaN for none.

    Raises
    ------
    InputError: for dates in another form than sacct's own, which SLURM_TIME_FORMAT makes: their
        days and months cannot be told apart, or they have no day.
    """
    import pandas as pd

    texts = pd.Series(table.column(name), dtype=object)
    given = texts[~texts.str.strip().str.lower().isin(NEVER)]
    found = np.full(len(texts), math.nan)
    if given.str.isdigit().all():
        found[given.index] = given.astype(np.int64)
    else:
        dates = pd.to_datetime(given, format="%Y-%m-%dT%H:%M:%S", errors="coerce")
        for k in given.index[dates.isna()][:1].tolist():
            expected = "2026-11-24T03:38:28, as sacct prints without SLURM_TIME_FORMAT"
            raise InputError(source, f"{table.rows[k]}, column {name}", given[k], expected)
        found[given.index] = (dates - pd.Timestamp(0)).dt.total_seconds()
    found[found <= 0] = math.nan
    return floats(found)
