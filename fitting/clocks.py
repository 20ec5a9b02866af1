"""Points of a sweep of the clock that are not to be believed.

A sweep lists clocks that were asked for. Three findings tell which of them the core did not run
at, or what was measured wrongly: cycles that cannot be, power that no longer follows the clock, and
points off the line through their neighbours.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from optgap.fitting.profile import Profile

Floats = NDArray[np.float64]
Rows = NDArray[np.int64]
Index = list[tuple[str, Rows]]

CYCLES = 1.2
"""time × clock may not fall when the clock rises; by more than this the clock was not held."""
GROUPS = 3
"""Findings across groups need at least this many of them, and a third of all."""
TOP, BELOW = 3, 4
"""Clocks at which power is level, at least, and those below that tell how it rose."""
LEVEL, RISE = 0.015, 5.0
"""Power is level within this share, or 3 times its noise, and should have risen by 5 times that."""
AGREE, MARGIN = 0.02, 1.003
"""Groups agree on the highest clock within this; rows above it by this factor did not reach it."""
FAR, ERRORS = float(np.log(1.15)), 6.0
"""A point is off by at least 15 %, and by this many robust standard errors."""
REACH, FEWEST = 0.25, 6
"""An end is judged by a neighbour this close in ln f; a line takes this many clocks."""


@dataclass(frozen=True)
class Suspect:
    """One finding: the column and points it is about, and why, in words."""

    column: str
    where: str
    reason: str
    rows: NDArray[np.int64] = field(repr=False, default_factory=lambda: np.zeros(0, np.int64))

    def __str__(self) -> str:
        return f"{self.column} at {self.where}: {self.reason}"


def unheld(profile: Profile, index: Index) -> list[Suspect]:
    """Find clocks at which work takes more cycles than a slower or faster clock can explain.

    A run takes at most as many cycles (time × clock) at a low clock as at the next higher one,
    since waiting for memory costs more cycles the faster the core runs. Where most groups
    break that by a wide margin the core did not run at the clock it claims.
    """
    if "time_s" not in profile:
        return []
    clock, excess = profile.numbers("frequency_mhz"), dict[float, list[float]]()
    for _, rows in index:
        x, time = curve(profile, "time_s", rows)
        if len(x) < GROUPS:
            continue
        for value, ratio in zip(np.exp(x[:-1]), np.exp(-np.diff(time + x)), strict=True):
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
            rows = np.flatnonzero(np.abs(clock / value - 1) < 1e-6)
            found.append(Suspect("frequency_mhz", f"{value:g} MHz", reason, rows))
    return found


def unreached(profile: Profile, index: Index) -> list[Suspect]:
    """Find the top clocks between which neither power nor time changes, although power should.

    Groups that agree on the highest clock make one finding. Where enough of them do, it holds for
    every group. Level time alone says nothing: work may wait for memory.
    """
    if "power_w" not in profile:
        return []
    highest: dict[str, float] = {}
    for title, rows in index:
        found = _highest(profile, rows)
        if found is not None:
            highest[title] = found
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
    """Where the line below meets the level of the top clocks, in MHz; None without a level."""
    x, power = curve(profile, "power_w", rows)
    level = max(LEVEL, 3 * noise(x, power))
    for first in range(BELOW, len(x) - TOP + 1):
        top = float(np.median(power[first:]))
        if np.abs(power[first:] - top).max() > level:
            continue
        if "time_s" in profile:
            at, time = curve(profile, "time_s", rows)
            upper = time[at >= x[first]]
            known = len(upper) > 1
            if known and np.abs(upper - np.median(upper)).max() > max(LEVEL, 3 * noise(at, time)):
                return None
        lower = slice(first - BELOW, first)
        slope, start = np.polyfit(x[lower], power[lower], 1)
        error = noise(x, power) / (np.std(x[lower]) * np.sqrt(BELOW))
        if (slope - 2 * error) * (x[-1] - x[first]) < RISE * level:
            return None
        return float(np.exp(np.clip((top - start) / slope, x[first - 1], x[-1])))
    return None


def off_the_line(profile: Profile, index: Index, left_out: Rows) -> list[Suspect]:
    """Find points far from the line through their two neighbours and the parabola through four.

    The closer of both counts, in units of how it scales the points' noise. The worst point is left
    out, and the others are judged anew.
    """
    clock = profile.numbers("frequency_mhz")
    found: list[Suspect] = []
    for name in ("power_w", "time_s"):
        places: dict[float, list[str]] = {}
        rows_off: list[Rows] = []
        most = 0.0
        for title, rows in index if name in profile else ():
            whole, _ = curve(profile, name, rows)
            rows = np.setdiff1d(rows, left_out)
            x, y = curve(profile, name, rows)
            for k, off in _off(x, y, whole).items():
                value = round(float(np.exp(x[k])), 6)
                places.setdefault(value, []).append(title)
                rows_off.append(rows[np.abs(clock[rows] / value - 1) < 1e-6])
                most = off if abs(off) > abs(most) else most
        if places:
            of = {v: f"{len(t)} groups" if len(t) > 1 else t[0] for v, t in sorted(places.items())}
            where = some([f"{v:g} MHz ({t})" if t else f"{v:g} MHz" for v, t in of.items()])
            words = "up to " if len(rows_off) > 1 else ""
            reason = f"{words}{100 * np.expm1(most):+.0f} % off its neighbours"
            found.append(Suspect(name, where, reason, np.sort(np.concatenate(rows_off))))
    return found


def _off(x: Floats, y: Floats, whole: Floats) -> dict[int, float]:
    """How far points are off, by their place.

    An end is judged if it is that of the whole sweep: what was left out beyond it may be its cause.
    """
    found: dict[int, float] = {}
    kept = np.arange(len(x))
    while len(kept) >= FEWEST:
        off, scale = _distances(x[kept], y[kept])
        noise = 1.4826 * float(np.median(np.abs(off / scale)))
        beyond = np.abs(off) / np.maximum(FAR, ERRORS * noise * scale)
        for end, next_ in ((0, 1), (-1, -2)):
            here = x[kept[end]]
            if abs(here - x[kept[next_]]) > REACH or here != whole[end]:
                beyond[end] = 0.0  # an extrapolation that far tells nothing
        worst = int(np.argmax(beyond))
        if beyond[worst] <= 1:
            break
        found[int(kept[worst])] = float(off[worst])
        kept = np.delete(kept, worst)
    return found


def _distances(x: Floats, y: Floats) -> tuple[Floats, Floats]:
    """Distance of each point from the closer of line and parabola, and how that scales noise."""
    places = np.arange(len(x))[:, None] + np.array([-4, -3, -2, -1, 1, 2, 3, 4])
    inside = np.clip(places, 0, len(x) - 1)
    apart = np.where(places == inside, x[inside] - x[:, None], np.inf)
    nearest = np.argsort(np.abs(apart), axis=1, kind="stable")[:, :4]
    apart = np.take_along_axis(apart, nearest, axis=1)
    near = y[np.take_along_axis(inside, nearest, axis=1)]
    one, two = apart[:, 0], apart[:, 1]
    line = np.stack([two, -one], axis=1) / (two - one)[:, None]
    parabola = np.linalg.pinv(np.stack([np.ones_like(apart), apart, apart**2], axis=2))[:, 0]
    off = [y - np.sum(w * near[:, : w.shape[1]], axis=1) for w in (line, parabola)]
    scale = [np.sqrt(1 + np.sum(w**2, axis=1)) for w in (line, parabola)]
    closer = np.abs(off[0] / scale[0]) <= np.abs(off[1] / scale[1])
    return np.where(closer, off[0], off[1]), np.where(closer, scale[0], scale[1])


def curve(profile: Profile, name: str, rows: Rows) -> tuple[Floats, Floats]:
    """ln of each distinct clock among the rows, ascending, and of the median of a column there."""
    clock, values = profile.numbers("frequency_mhz")[rows], profile.numbers(name)[rows]
    with np.errstate(invalid="ignore"):
        known = (clock > 0) & (values > 0) & np.isfinite(clock) & np.isfinite(values)
    distinct, place = np.unique(clock[known], return_inverse=True)
    order = np.argsort(place, kind="stable")
    parts = np.split(values[known][order], np.cumsum(np.bincount(place))[:-1])
    medians = values[known][order] if len(distinct) == len(order) else [*map(np.median, parts)]
    return np.log(distinct), np.log(np.asarray(medians if len(distinct) else [], dtype=float))


def noise(x: Floats, y: Floats) -> float:
    """Robust standard deviation of points about a smooth curve, from second differences."""
    if len(x) < TOP:
        return 0.0
    share = (x[1:-1] - x[:-2]) / (x[2:] - x[:-2])
    off = y[1:-1] - (1 - share) * y[:-2] - share * y[2:]
    return 1.4826 * float(np.median(np.abs(off) / np.sqrt(1 + (1 - share) ** 2 + share**2)))


def some(names: Sequence[str], most: int = 4) -> str:
    """The first few names of a list."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more
