"""Submission, start and end of the rows of accounting, on the clock that sacct printed."""

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
from optgap.models.queueing.slurm.table import COMMAND, NEVER, Table, limit_s

CHANGES_S = (1800.0, 3600.0)
"""Amounts by which clocks change, s."""
OPEN = "in an hour that clocks showed twice"
MISFIT = "whose End is not Start + ElapsedRaw + Suspended"


@dataclass(frozen=True)
class Times:
    """Times of the rows, (rows,), s; NaN if a row has none.

    Parameters
    ----------
    submit, eligible: submission and eligibility, never after the start.
    end: end; for a running row, the end of the log.
    still, early: whether a row still runs, and whether it began before its submission.
    unfit: reason why a row cannot be used; "" if it can.
    zone: time zone of the clock.
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
        """Return a time as sacct prints it."""
        return datetime.fromtimestamp(time_s, self.zone).strftime("%Y-%m-%dT%H:%M:%S")


def read_times(table: Table, zone: str | None, source: str) -> Times:
    """Return times on one clock: every row's End is its Start + ElapsedRaw + Suspended.

    Parameters
    ----------
    zone: time zone whose local time sacct printed. Default: UTC.

    Raises
    ------
    InputError: for an unknown zone, dates of an ambiguous form, and the first row that shows a
        change of clocks and does not fit this zone either.
    """
    try:
        clock = UTC if zone is None else ZoneInfo(zone)
    except (KeyError, ValueError, OSError):
        raise InputError("--set", "zone", zone, "a time zone such as Europe/Berlin") from None
    names = ("submit", "eligible", "start", "end")
    read = {name: _readings(table, name, clock, source) for name in names}
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
    for k in np.flatnonzero(wrong & changed.any(axis=0))[:1].tolist():
        first, last = table.column("start")[k], table.column("end")[k]
        found = NoQuote(f"Start {first}, End {last}: clocks were changed")
        way = "another zone" if zone else "--set zone=Europe/Berlin, say, for local times"
        expected = f"times of one clock, as `{COMMAND}` prints; or {way}"
        raise InputError(source, table.rows[k], found, expected)
    later = fits & (began >= read["submit"][0])
    fits = np.where(later.any(axis=0), later, fits)
    chosen, row = np.argmax(fits, axis=0), np.arange(len(table.rows))
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


def _readings(table: Table, name: str, zone: tzinfo, source: str) -> list[FloatArray]:
    """Return the earlier and the later meaning of clock times, s since 1970; NaN for none.

    Raises
    ------
    InputError: for a time that the clock never showed, and for dates in another form than sacct's
        own, as SLURM_TIME_FORMAT makes, because their days and months are ambiguous.
    """
    import pandas as pd

    texts = pd.Series(table.column(name), dtype=object)
    given = texts[~texts.str.strip().str.lower().isin(NEVER)]
    dates = pd.to_datetime(given, format="%Y-%m-%dT%H:%M:%S", errors="coerce")

    def refuse(bad: pd.Series[bool], expected: str) -> None:
        for k in given.index[bad][:1].tolist():
            raise InputError(source, f"{table.rows[k]}, column {name}", given[k], expected)

    refuse(dates.isna(), "2026-11-24T03:38:28, as sacct prints without SLURM_TIME_FORMAT")
    found = []
    for earlier in (True, False):
        twice = np.full(len(dates), earlier)
        shown = dates.dt.tz_localize(zone, ambiguous=twice, nonexistent="NaT")
        refuse(shown.isna(), f"a time that clocks in {zone} showed")
        read = np.full(len(texts), math.nan)
        read[given.index] = (shown - pd.Timestamp(0, tz="UTC")).dt.total_seconds()
        found.append(floats(read))
    return found
