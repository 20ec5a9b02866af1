"""What a profile holds, and which of its points are not to be trusted."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from optgap.fitting.profile import QUANTITIES, Profile

Floats = NDArray[np.float64]

CLOCK_EXCESS = 1.2
"""time x clock may not fall when the clock rises; by more than this the clock was not held."""

FEW_GROUPS = 3
"""Findings across groups need at least this many of them."""


@dataclass(frozen=True)
class Suspect:
    """One finding: the column and points it is about, and why, in words."""

    column: str
    where: str
    reason: str
    rows: NDArray[np.int64] = field(repr=False, default_factory=lambda: np.zeros(0, np.int64))

    def __str__(self) -> str:
        return f"{self.column} at {self.where}: {self.reason}"


@dataclass(frozen=True)
class Audit:
    """Rows, groups, ranges, gaps and suspect points of a profile."""

    source: str
    kind: str
    rows: int
    groups: int
    ranges: dict[str, tuple[float, float, int]]
    """Lowest and highest value and number of missing cells, by canonical column."""
    gaps: tuple[str, ...]
    suspects: tuple[Suspect, ...]
    notes: tuple[str, ...]

    def __str__(self) -> str:
        lines = [f"{self.source}: {self.kind}, {self.rows} rows, {self.groups} groups"]
        for name, (low, high, missing) in self.ranges.items():
            unit = QUANTITIES[name].unit
            extra = f", {missing} missing" if missing else ""
            lines.append(f"  {name:<18} {low:>12.6g} … {high:<12.6g} {unit}{extra}")
        lines += [f"  gap: {gap}" for gap in self.gaps]
        lines += [f"  suspect: {suspect}" for suspect in self.suspects]
        lines += [f"  note: {note}" for note in self.notes]
        return "\n".join(lines)

    def to_json(self) -> dict[str, Any]:
        """The schema ``optgap.audit/1``."""
        return {
            "schema": "optgap.audit/1",
            "source": self.source,
            "kind": self.kind,
            "rows": self.rows,
            "groups": self.groups,
            "ranges": {
                name: {"low": low, "high": high, "missing": missing, "unit": QUANTITIES[name].unit}
                for name, (low, high, missing) in self.ranges.items()
            },
            "gaps": list(self.gaps),
            "suspects": [
                {"column": s.column, "where": s.where, "reason": s.reason, "rows": s.rows.tolist()}
                for s in self.suspects
            ],
            "notes": list(self.notes),
        }

    @property
    def suspect_rows(self) -> NDArray[np.int64]:
        """Rows named by any suspect, sorted."""
        parts = [item.rows for item in self.suspects]
        return np.unique(np.concatenate(parts)) if parts else np.zeros(0, dtype=np.int64)


def audit(profile: Profile, by: str | None = None) -> Audit:
    """Look a profile over: `by` names the groups (default: application, when there is one)."""
    group = by or ("application" if "application" in profile else None)
    index = list(profile.groups(group))
    ranges = {}
    for name in QUANTITIES:
        if name in profile and profile[name].dtype.kind == "f":
            values = profile.numbers(name)
            known = values[np.isfinite(values)]
            if len(known):
                span = (float(known.min()), float(known.max()), len(values) - len(known))
                ranges[name] = span
    suspects = [
        *_unheld_clocks(profile, index),
        *_copied_columns(profile, index),
        *_outliers(profile, index),
        *_energies(profile),
        *_limited(profile),
        *_doubtful(profile),
    ]
    return Audit(
        profile.source,
        profile.kind,
        len(profile),
        len(index),
        ranges,
        tuple(_gaps(profile, index)),
        tuple(suspects),
        profile.notes,
    )


Index = list[tuple[str, NDArray[np.int64]]]


def _unheld_clocks(profile: Profile, index: Index) -> list[Suspect]:
    """Clocks at which work takes more cycles than a slower or faster clock can explain.

    A run takes at most as many cycles (time x clock) at a low clock as at the next higher one,
    since waiting for memory costs more cycles the faster the core runs. Where most groups
    break that by a wide margin the core did not run at the clock it claims.
    """
    if "frequency_mhz" not in profile or "time_s" not in profile:
        return []
    clock, time = profile.numbers("frequency_mhz"), profile.numbers("time_s")
    excess: dict[float, list[float]] = {}
    for _, rows in index:
        values, place = np.unique(clock[rows], return_inverse=True)
        if len(values) < FEW_GROUPS or not np.all(time[rows] > 0):
            continue
        cycles = np.array([np.median(time[rows[place == k]]) for k in range(len(values))]) * values
        for k in range(len(values) - 1):
            excess.setdefault(float(values[k]), []).append(float(cycles[k] / cycles[k + 1]))
    found = []
    for value, ratios in sorted(excess.items()):
        middle = float(np.median(ratios))
        if len(ratios) >= FEW_GROUPS and middle > CLOCK_EXCESS:
            many = sum(1 for ratio in ratios if ratio > CLOCK_EXCESS)
            most = float(np.percentile(ratios, 75))  # work that waits for the core alone
            reason = (
                f"time x clock is {middle:.2f} times that of the next higher clock "
                f"({many} of {len(ratios)} groups): the core ran near {value / most:.0f} MHz"
            )
            rows = np.flatnonzero(clock == value)
            found.append(Suspect("frequency_mhz", f"{value:g} MHz", reason, rows))
    return found


def _copied_columns(profile: Profile, index: Index) -> list[Suspect]:
    """Groups whose measured column repeats another group's, value by value."""
    found = []
    for name in ("time_s", "power_w", "energy_j"):
        if name not in profile:
            continue
        values = profile.numbers(name)
        seen: dict[bytes, str] = {}
        for title, rows in index:
            if len(rows) < 5 or len(np.unique(values[rows])) < 3:
                continue
            first = seen.setdefault(values[rows].tobytes(), title)
            if first != title:
                reason = f"every value equals that of {first}: one column may have been copied"
                found.append(Suspect(name, title, reason, rows))
    return found


def _outliers(profile: Profile, index: Index) -> list[Suspect]:
    """Points far from the median of their four neighbours along the clock."""
    if "frequency_mhz" not in profile:
        return []
    found = []
    clock = profile.numbers("frequency_mhz")
    for name in ("power_w", "time_s"):
        if name not in profile:
            continue
        values = profile.numbers(name)
        for title, rows in index:
            order = rows[np.argsort(clock[rows], kind="stable")]
            if len(order) < 12 or len(np.unique(clock[order])) < 12:
                continue
            logs = np.log(np.maximum(values[order], 1e-300))
            near = np.lib.stride_tricks.sliding_window_view(np.pad(logs, 2, mode="reflect"), 5)
            off = logs - np.median(np.delete(near, 2, axis=1), axis=1)
            spread = 1.4826 * float(np.median(np.abs(off - np.median(off))))
            for k in np.flatnonzero(np.abs(off) > max(0.15, 8 * spread)):
                where = f"{title or 'all'}, {clock[order[k]]:g} MHz"
                reason = f"{100 * np.expm1(off[k]):+.0f} % off its neighbours"
                found.append(Suspect(name, where, reason, order[k : k + 1]))
    return found


def _energies(profile: Profile) -> list[Suspect]:
    """Energy that is not power times time."""
    if not all(name in profile for name in ("energy_j", "power_w", "time_s")):
        return []
    gpus = profile.numbers("gpus") if "gpus" in profile else 1.0
    product = profile.numbers("power_w") * profile.numbers("time_s") * gpus
    # a product of 0 is compared without dividing by it
    off = np.flatnonzero(np.abs(profile.numbers("energy_j") - product) > 0.05 * np.abs(product))
    if not len(off):
        return []
    reason = f"differs from power x time by more than 5 % in {len(off)} of {len(profile)} rows"
    return [Suspect("energy_j", "the table", reason, off)]


LIMITED = 0.02
"""Power within this of its limit is what the limit leaves."""
MEASURED = ("avg", "mean", "average", "actual", "measured", "effective", "current")
"""Words in the name of a clock that was reached rather than asked for."""


def _limited(profile: Profile) -> list[Suspect]:
    """Rows at their power limit: the clock is what the limit leaves, not what was asked for."""
    if not all(name in profile for name in ("power_w", "power_limit_w", "frequency_mhz")):
        return []
    name = profile.called.get("frequency_mhz", "").lower()
    if "clock_spread" in profile or any(word in name for word in MEASURED):
        return []
    with np.errstate(divide="ignore", invalid="ignore"):
        off = profile.numbers("power_w") / profile.numbers("power_limit_w") - 1
    rows = np.flatnonzero(np.abs(off) <= LIMITED)
    if not len(rows):
        return []
    reason = f"{len(rows)} rows draw their power limit: the clock was lower than asked for"
    return [Suspect("frequency_mhz", "the power limit", reason, rows)]


def _doubtful(profile: Profile) -> list[Suspect]:
    """Runs cut from samples that are suspect by themselves, each reason once."""
    if "suspect" not in profile or "power_spread" not in profile:
        return []
    rows: dict[str, list[int]] = {}
    for k, reasons in enumerate(profile["suspect"]):
        for reason in filter(None, str(reasons).split("; ")):
            rows.setdefault(reason, []).append(k)
    return [
        Suspect("run", _some(profile["run"][found]), reason, np.array(found, dtype=np.int64))
        for reason, found in rows.items()
    ]


def _some(numbers: Floats) -> str:
    """The first few numbers of a list."""
    more = f" and {len(numbers) - 6} more" if len(numbers) > 6 else ""
    return ", ".join(f"{number:g}" for number in numbers[:6]) + more


def _gaps(profile: Profile, index: Index) -> list[str]:
    """Grid points that most groups have and some lack."""
    gaps = []
    for name in ("frequency_mhz", "gpus", "local_batch", "power_limit_w"):
        if name not in profile or len(index) < 2:
            continue
        values = profile.numbers(name)
        counts: dict[float, int] = {}
        for _, rows in index:
            for value in np.unique(values[rows]):
                counts[float(value)] = counts.get(float(value), 0) + 1
        common = {value for value, count in counts.items() if count > len(index) / 2}
        for title, rows in index:
            missing = sorted(common - {float(value) for value in values[rows]})
            if missing and len(missing) < len(common):
                shown = ", ".join(f"{value:g}" for value in missing[:4])
                more = f" and {len(missing) - 4} more" if len(missing) > 4 else ""
                gaps.append(f"{title} lacks {name} {shown}{more}")
    return gaps
