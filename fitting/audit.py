"""Audit of a profile: its contents, and its suspect points."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from optgap.fitting.profile import QUANTITIES, Profile
from optgap.models.units import STATISTICS, parsed

Floats = NDArray[np.float64]
Rows = NDArray[np.int64]
Index = list[tuple[str, Rows]]

MOST_LINES = 12
"""Largest number of findings on a screen; JSON has all."""
APART = 1.05
"""Factor between medians of a response at one clock above which rows mix several things."""
GROWS = 0.7
"""Exponent of power over GPUs above which a column holds the power of all GPUs."""
UNREAD = ("memory_mhz", "power_limit_w", "gpus", "nodes", "local_batch")
"""Columns in which rows at one clock may differ."""
CYCLES = 1.2
"""Fall of time × clock at a higher clock beyond which the GPU did not hold the clock."""
GROUPS = 3
"""Least number of groups of a finding across groups, which also needs a third of all."""
TOP, BELOW = 3, 4
"""Least numbers of clocks at which power is level, and of those below, where power rises."""
LEVEL, RISE = 0.015, 5.0
"""Share within which power is level (or 3 times its noise); 5 times that is a rise."""
AGREE, MARGIN = 0.02, 1.003
"""Tolerance of groups' highest clocks; rows above it by this factor did not reach their clock."""
LIMITED, SPENT = 0.02, 0.05
"""Shares: power this close to its limit is limited, energy this close to power × time agrees."""


@dataclass(frozen=True)
class Suspect:
    """Finding with its column, its points and its reason in words."""

    column: str
    where: str
    reason: str
    rows: Rows

    def __str__(self) -> str:
        return f"{self.column} at {self.where}: {self.reason}"


@dataclass(frozen=True)
class Audit:
    """Rows, groups, ranges and suspect points of a profile."""

    source: str
    kind: str
    rows: int
    groups: int
    ranges: dict[str, tuple[float, float, int]]
    """Lowest and highest value and number of missing cells, by canonical column."""
    suspects: tuple[Suspect, ...]
    notes: tuple[str, ...]
    advice: tuple[str, ...] = ()
    """Groups that would explain the differences between rows at one clock."""

    def __str__(self) -> str:
        lines = [f"{self.source}: {self.kind}, {self.rows} rows, {self.groups} groups"]
        for name, (low, high, missing) in self.ranges.items():
            extra = QUANTITIES[name].unit + (f", {missing} missing" if missing else "")
            lines.append(f"  {name:<18} {low:>12.6g} … {high:<12.6g} {extra}")
        kinds = {"suspect": self.suspects, "advice": self.advice, "note": self.notes}
        told = [f"  {kind}: {item}" for kind, items in kinds.items() for item in items]
        if len(told) > MOST_LINES:
            told[MOST_LINES:] = [f"  and {len(told) - MOST_LINES} more: --json - has all of them"]
        return "\n".join(lines + told)

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form, ``optgap.audit/1``."""
        names = ("low", "high", "missing", "unit")
        ranges = {n: dict(zip(names, (*v, QUANTITIES[n].unit), strict=True))
                  for n, v in self.ranges.items()}  # fmt: skip
        suspects = [{**vars(item), "rows": item.rows.tolist()} for item in self.suspects]
        lists = {"suspects": suspects, "notes": list(self.notes), "advice": list(self.advice)}
        return {"schema": "optgap.audit/1", **vars(self), "ranges": ranges, **lists}

    @property
    def suspect_rows(self) -> Rows:
        """Return the rows that any finding names, sorted."""
        rows = {row for item in self.suspects for row in item.rows.tolist()}
        return np.array(sorted(rows), dtype=np.int64)


def audit(profile: Profile, by: str | None = None) -> Audit:
    """Audit a profile; `by` names the groups (default: the application, if there is one)."""
    index = list(profile.groups(by or ("application" if "application" in profile else None)))
    ranges = {}
    for name in QUANTITIES:
        if name in profile and profile[name].dtype.kind == "f":
            values = profile.numbers(name)
            known = values[np.isfinite(values)]
            if len(known):
                ranges[name] = float(known.min()), float(known.max()), len(values) - len(known)
    suspects = [*unheld(profile, index), *unreached(profile, index), *_energies(profile)]
    suspects += [*_limited(profile), *_doubtful(profile)]
    return Audit(profile.source, profile.kind, len(profile), len(index), ranges,
                 tuple(suspects), profile.notes, tuple(advice(profile, by)))  # fmt: skip


def _has(profile: Profile, *names: str) -> bool:
    return all(name in profile for name in names)


# --- what rows at one clock differ in ------------------------------------------------------------


def advice(profile: Profile, by: str | None, reads: Sequence[str] = ()) -> list[str]:
    """Name the differences of rows at one clock, and the groups that would separate the rows.

    Parameters
    ----------
    by: columns that separate groups now.
    reads: columns that a model reads; rows may differ in these.
    """
    found = _of_all_gpus(profile, by)
    if "frequency_mhz" not in profile or "frequency_mhz" not in (reads or ("frequency_mhz",)):
        return found
    usual = by or ("application" if "application" in profile else None)
    names = profile.split(usual) if usual else []
    alike = [rows for _, rows in profile.groups([*names, "frequency_mhz"])]
    differ = [n for n in UNREAD if n in profile and n not in reads and n not in names]
    differ = [name for name in differ if any(np.ptp(profile[name][rows]) > 0 for rows in alike)]
    if differ:
        groups = ",".join([*names, *differ])
        return [*found, f"rows at one clock differ in {' and '.join(differ)}: --by {groups}?"]
    if by or usual in profile.columns.keys() - profile.called.keys():
        return found  # rows are grouped already
    values = [profile.numbers(name) for name in ("time_s", "power_w") if name in profile]
    if not any(_apart(v[rows]) for _, rows in profile.groups("frequency_mhz") for v in values):
        return found
    texts = {**profile.published, **profile.columns}
    words = [name for name, values in texts.items() if values.dtype.kind == "O"]
    words = [name for name in words if 1 < len(set(texts[name].tolist())) <= len(profile) / 2]
    differ_by = f"rows at one clock differ by more than {100 * (APART - 1):.0f} %"
    return found + [f"{differ_by}: --by {name}?" for name in words[:1]]


def _apart(values: Floats) -> bool:
    """Tell whether values at one clock measured different things."""
    known = values[np.isfinite(values)]
    return len(known) > 1 and bool(known.max() > APART * max(known.min(), 1e-300))


def _of_all_gpus(profile: Profile, by: str | None) -> list[str]:
    """Warn if power grows with the GPU count, as the power of all GPUs together does."""
    growth = []
    for _, rows in profile.groups(by) if _has(profile, "power_w", "gpus") else ():
        gpus, power = profile.numbers("gpus")[rows], profile.numbers("power_w")[rows]
        if np.ptp(gpus) > 0:
            ends = [np.median(power[gpus == end]) for end in (gpus.min(), gpus.max())]
            growth.append(np.log(ends[1] / ends[0]) / np.log(gpus.max() / gpus.min()))
    if not growth or not np.median(growth) > GROWS:
        return []
    return ["power_w grows with the GPUs as that of all of them does: it has to be that of one"]


def _some(names: Iterable[str], most: int = 4) -> str:
    """Return the first few names of a list."""
    names = list(names)
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


# --- rows that are not to be believed ------------------------------------------------------------


def _energies(profile: Profile) -> list[Suspect]:
    """Find energies that differ from power × time."""
    if not _has(profile, "energy_j", "power_w", "time_s"):
        return []
    gpus = profile.numbers("gpus") if "gpus" in profile else 1.0
    product = profile.numbers("power_w") * profile.numbers("time_s") * gpus
    # a product of 0 is compared without dividing by it
    off = np.flatnonzero(np.abs(profile.numbers("energy_j") - product) > SPENT * np.abs(product))
    reason = f"differs from power x time by more than 5 % in {len(off)} of {len(profile)} rows"
    return [Suspect("energy_j", "the table", reason, off)] if len(off) else []


def _limited(profile: Profile) -> list[Suspect]:
    """Find rows at their power limit, where the limit decides the clock instead of the request."""
    words = parsed(profile.called.get("frequency_mhz", "")).words.split("_")
    reached = any(STATISTICS.get(word) == 0 for word in words)  # an average, not a request
    if (
        reached
        or "clock_spread" in profile
        or not _has(profile, "power_w", "power_limit_w", "frequency_mhz")
    ):
        return []
    with np.errstate(divide="ignore", invalid="ignore"):
        off = profile.numbers("power_w") / profile.numbers("power_limit_w") - 1
    rows = np.flatnonzero(np.abs(off) <= LIMITED)
    reason = f"{len(rows)} rows draw their power limit: the clock was lower than asked for"
    return [Suspect("frequency_mhz", "the power limit", reason, rows)] if len(rows) else []


def _doubtful(profile: Profile) -> list[Suspect]:
    """Find suspect runs that were cut from samples; each reason makes one finding."""
    rows: dict[str, list[int]] = {}
    cut = _has(profile, "suspect", "power_spread")
    for k, reasons in enumerate(profile["suspect"] if cut else ()):
        for reason in filter(None, str(reasons).split("; ")):
            rows.setdefault(reason, []).append(k)
    return [
        Suspect("run", _some(f"{k:g}" for k in profile["run"][own]), reason, np.array(own))
        for reason, own in rows.items()
    ]


# A sweep lists clocks that were asked for. Two findings tell which of them the core did not run at:
# cycles that cannot be, and power that no longer follows the clock.


def unheld(profile: Profile, index: Index) -> list[Suspect]:
    """Find clocks at which work takes more cycles than a slower or faster clock can explain.

    A run takes at most as many cycles (time × clock) at a low clock as at the next higher one,
    because waiting for memory costs more cycles at a faster clock. If most groups violate this
    by a wide margin, the core did not run at the clock in the table.
    """
    excess: dict[float, list[float]] = {}
    for _, rows in index if _has(profile, "time_s", "frequency_mhz") else ():
        x, time = curve(profile, "time_s", rows)
        if len(x) >= GROUPS:
            for value, ratio in zip(np.exp(x), np.exp(-np.diff(time + x)), strict=False):
                excess.setdefault(round(float(value), 6), []).append(float(ratio))
    found = []
    for value, ratios in sorted(excess.items()):
        middle = float(np.median(ratios))
        if len(ratios) >= GROUPS and middle > CYCLES:
            many = sum(1 for ratio in ratios if ratio > CYCLES)
            most = float(np.percentile(ratios, 75))  # work that waits for the core alone
            reason = (
                f"time x clock is {middle:.2f} times that of the next higher clock "
                f"({many} of {len(ratios)} groups): the core ran near {value / most:.0f} MHz"
            )
            rows = np.flatnonzero(np.abs(profile.numbers("frequency_mhz") / value - 1) < 1e-6)
            found.append(Suspect("frequency_mhz", f"{value:g} MHz", reason, rows))
    return found


def unreached(profile: Profile, index: Index) -> list[Suspect]:
    """Find the top clocks between which neither power nor time changes, although power should.

    Groups that agree on the highest clock make one finding. If enough groups agree, the finding
    holds for every group. Level time alone proves nothing, because work may wait for memory.
    """
    if not _has(profile, "power_w", "frequency_mhz"):
        return []
    each = {title: _highest(profile, rows) for title, rows in index}
    highest = {title: value for title, value in each.items() if value is not None}
    clock, rows_of = profile.numbers("frequency_mhz"), dict(index)
    findings: list[Suspect] = []
    while highest:
        top = max(highest.values())
        agree = [title for title, value in highest.items() if value >= top * (1 - AGREE)]
        middle = float(np.median([highest.pop(title) for title in agree]))
        many = not findings and len(agree) >= max(GROUPS, len(index) / 3)
        rows = np.concatenate([rows_of[t] for t in (rows_of if many else agree)])
        reached = float(clock[rows][clock[rows] <= middle * MARGIN].max())
        rows = np.sort(rows[clock[rows] > middle * MARGIN])
        what = "neither time nor power changes" if "time_s" in profile else "power does not change"
        reason = f"{what} although power rose before: {len(rows)} rows did not reach their clock"
        of = f"{len(agree)} of {len(index)} groups" if len(agree) > 1 else agree[0] or "all rows"
        findings.append(Suspect("frequency_mhz", f"more than {reached:g} MHz ({of})", reason, rows))
    return findings


def _highest(profile: Profile, rows: Rows) -> float | None:
    """Return the clock (MHz) at which the rising line meets the top level; None without a level."""
    x, power = curve(profile, "power_w", rows)
    at, time = curve(profile, "time_s", rows) if "time_s" in profile else (x[:0], x[:0])
    level, still = (max(LEVEL, 3 * noise(*pair)) for pair in ((x, power), (at, time)))
    for first in range(BELOW, len(x) - TOP + 1):
        top, upper = float(np.median(power[first:])), time[at >= x[first]]
        if np.abs(power[first:] - top).max() > level:
            continue
        if len(upper) > 1 and np.abs(upper - np.median(upper)).max() > still:
            return None
        lower = slice(first - BELOW, first)
        slope, start = np.polyfit(x[lower], power[lower], 1)
        error = noise(x, power) / (np.std(x[lower]) * np.sqrt(BELOW))
        if (slope - 2 * error) * (x[-1] - x[first]) < RISE * level:
            return None
        return float(np.exp(np.clip((top - start) / slope, x[first - 1], x[-1])))
    return None


def curve(profile: Profile, name: str, rows: Rows) -> tuple[Floats, Floats]:
    """Return ln of the rows' distinct clocks, ascending, and ln of a column's median there."""
    clock, values = profile.numbers("frequency_mhz")[rows], profile.numbers(name)[rows]
    with np.errstate(invalid="ignore"):
        known = (clock > 0) & (values > 0) & np.isfinite(clock) & np.isfinite(values)
    distinct, place = np.unique(clock[known], return_inverse=True)
    order = np.argsort(place, kind="stable")
    parts = np.split(values[known][order], np.cumsum(np.bincount(place))[:-1])
    medians = [float(np.median(part)) for part in parts[: len(distinct)]]
    return np.log(distinct), np.log(np.array(medians))


def noise(x: Floats, y: Floats) -> float:
    """Return the robust standard deviation about a smooth curve, from second differences."""
    if len(x) < TOP:
        return 0.0
    share = (x[1:-1] - x[:-2]) / (x[2:] - x[:-2])
    off = y[1:-1] - (1 - share) * y[:-2] - share * y[2:]
    return 1.4826 * float(np.median(np.abs(off) / np.sqrt(1 + (1 - share) ** 2 + share**2)))
