"""Division of one GPU's samples into runs: busy samples, ends of runs, and their power."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from optgap.fitting.readers.text import Floats

Flags = NDArray[np.bool_]
Index = NDArray[np.int64]

SHORTEST, SHORTEST_S = 5, 2.0
"""Least number of samples of a run, and its least length."""
PAUSE, PAUSE_S = 2, 1.0
"""Longest pause that is bridged (samples, s), because sensors average over a second."""
HOLE_PERIODS, HOLE_S = 10, 5.0
"""Times without a sample above both of which a log has a hole."""
LASTS_S = 3.0
"""Seconds (at least `SHORTEST` samples) whose median is a lasting level."""
SLIP_LOW, SLIP_HIGH = 1 / 6, 1.5
"""Shares of the lasting levels; readings below or above these are slips of the sensor."""
UTIL, UTIL_SHARE, UTIL_KNOWN, UTIL_DEAD = 10.0, 0.3, 0.9, 5.0
"""Thresholds of busy samples: `UTIL` percent, or a share of the 95th percentile."""
MOVE, HELD, HELD_SHARE = np.log(1.03), 0.01, 0.9
"""Changes of a clock exceed `MOVE`; a clock is held if most samples are within `HELD`."""
UNSTEADY, BLURRED, UNHELD, BRIEF_S = 0.25, 0.08, 0.05, 5.0
"""Thresholds of power spread (with and without utilisation), clock spread and run time."""
IDLE = "idle throughout"


@dataclass
class Run:
    """Run of a device: its samples, their means by our names, and reasons to suspect it."""

    span: slice
    values: dict[str, float]
    doubts: list[str]


@dataclass
class Cut:
    """Runs of a device, its power at rest, and remarks.

    Parameters
    ----------
    order: the samples by time.
    seen: their times without holes, s; `period` is the usual step.
    holes: the first sample after each hole or step back of the clock, and that step, s.
    idle_w: power at rest, W; NaN if unknown.
    told: criterion of busy samples, if not utilisation.
    """

    order: Index
    seen: Floats
    period: float
    holes: list[tuple[int, float]]
    runs: list[Run] = field(default_factory=list)
    idle_w: float = float("nan")
    told: str = ""
    slips: Floats = field(default_factory=lambda: np.zeros(0))
    short_s: list[float] = field(default_factory=list)
    at_rest: int = 0


def cut_device(times: Floats, series: Mapping[str, Floats]) -> Cut:
    """Cut one device's samples (``power_w`` and others) at `times` (s) into runs.

    Raises
    ------
    ValueError: if the samples must be of several devices.
    """
    found = _timed(times)
    times, period = found.seen, found.period
    width = max(SHORTEST, int(np.ceil(LASTS_S / period - 1e-6)))
    series = {name: values[found.order] for name, values in series.items()}
    clock = series.get("frequency_mhz", np.full(len(times), np.nan))
    power, found.slips = _without_slips(series["power_w"], width)
    series["power_w"] = power
    busy, found.told = _busy(power, series.get("util_percent"), width)
    found.idle_w = _at_rest(times, power, busy)
    cuts = np.array([k for k, _ in found.holes], dtype=np.int64)
    outside, lasted = ~busy, 0.0
    for start, stop in _spans(times, busy, cuts):
        length = float(times[stop - 1] - times[start] + period)
        if stop - start < SHORTEST or length < SHORTEST_S - 1e-6:
            found.short_s.append(length)
            continue
        outside[start:stop] = False
        inside = slice(start, stop)
        edges = [start, *(start + k for k in moves(clock[inside], width)), stop]
        whole = len(edges) == 2 and not np.isin([start, stop], cuts).any()
        for first, last in pairwise(edges):
            part = slice(first, last)
            if np.isfinite(power[part]).any():
                values = _means(times[part], {n: v[part] for n, v in series.items()},
                                PAUSE_S if first > start else 0.0, found.told != "")  # fmt: skip
                lasts = float(times[last - 1] - times[first] + period)
                lasted += lasts
                values["time_s"] = length if whole else float("nan")
                found.runs.append(Run(part, values, _doubts(values, lasts, found.told != "")))
    found.at_rest = int(np.count_nonzero(outside))
    if sum(found.short_s) > 0.25 * lasted:  # a fifth of the sum of both
        for run in found.runs:
            run.doubts.append("an intermittent load: a fifth of what is busy was too short")
    return found


def _timed(times: Floats) -> Cut:
    """Sort a device's samples, and take the holes out of their times.

    Raises
    ------
    ValueError: if the samples must be of several devices.
    """
    order = np.arange(len(times))
    if len(times) < 2:
        return Cut(order, np.zeros(len(times)), 1.0, [])
    steps = np.diff(times)
    back = np.count_nonzero(steps < 0)
    if back > max(1.0, 0.02 * len(steps)):
        order = np.lexsort((-order if back > len(steps) / 2 else order, times))
        steps = np.diff(times[order])
    long = float(np.percentile(np.abs(steps), 90))
    near = np.mean(np.abs(steps) < 0.15 * long)
    if len(steps) >= 2 * SHORTEST and (long == 0 or near >= 0.4):
        raise ValueError
    ahead = steps[steps > 0]
    period = float(np.median(ahead)) if len(ahead) else 1.0
    bad = (steps < 0) | (steps > max(HOLE_PERIODS * period, HOLE_S))
    seen = np.append(0.0, np.cumsum(np.where(bad, period, steps)))
    holes = [(int(k) + 1, float(steps[k])) for k in np.flatnonzero(bad)]
    return Cut(order, seen, period, holes)


def _lasting(values: Floats, width: int) -> Floats:
    """Return the running median of `width` samples: the levels that last for half of these."""
    from scipy.ndimage import median_filter

    return np.asarray(median_filter(values, width, mode="reflect"))


def _without_slips(power: Floats, width: int) -> tuple[Floats, Floats]:
    """Return power without impossible readings of the sensor, and these readings."""
    filled = _filled(power)
    low, high = _lasting(filled, width * 3 // 2).min(), _lasting(filled, width).max()
    with np.errstate(invalid="ignore"):  # two updates of a sensor take up to 2 s
        slip = (power <= 0) | (power < SLIP_LOW * low) | (power > SLIP_HIGH * high)
    if not np.isfinite(power[~slip]).any():  # then nothing tells a slip
        return power, power[:0]
    return np.where(slip, np.nan, power), power[slip]


def _busy(power: Floats, util: Floats | None, width: int) -> tuple[Flags, str]:
    """Return which samples are busy, and the criterion if it is not utilisation."""
    why = "no utilisation"
    if util is not None and np.mean(np.isfinite(util)) >= UTIL_KNOWN:
        if np.count_nonzero(util >= UTIL_DEAD) >= SHORTEST:
            top = float(np.nanpercentile(util, 95))
            least = min(UTIL, UTIL_SHARE * top) if top >= UTIL_DEAD else UTIL
            return _filled(util) >= least, ""
        low, high = np.nanpercentile(power, [10, 90])
        if high < 2 * low:
            return np.zeros(len(power), dtype=bool), IDLE
        why = "utilisation below 5 % whatever the power"
    level = _lasting(_filled(power), width)
    low, high = float(level.min()), float(level.max())
    limit = 1.1 * low + 0.02 * high
    often = len(_stretches(level <= limit)[0]) >= 3
    if high < 1.3 * low or not (low < 0.5 * high or often):
        return np.ones(len(power), dtype=bool), f"{why}: all taken for busy"
    return _filled(power) > limit, f"{why}: busy is what draws more than {limit:.3g} W"


def _stretches(flags: Flags) -> tuple[Index, Index]:
    """Return where stretches of true begin and end."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], flags, [False]])))
    return edges[::2], edges[1::2]


def _filled(values: Floats) -> Floats:
    """Return a series with each missing value replaced by the one before, or the first known."""
    known = np.isfinite(values)
    place = np.maximum.accumulate(np.where(known, np.arange(len(values)), -1))
    return values[np.where(place < 0, int(np.argmax(known)), place)]


def _spans(times: Floats, busy: Flags, cuts: Index) -> list[tuple[int, int]]:
    """Return where runs begin and end; short pauses are bridged."""
    edges = np.unique(np.concatenate([*_stretches(busy), cuts[busy[cuts]]]))
    inside = np.append(busy, False)[edges]
    starts, stops = edges[inside], edges[np.flatnonzero(inside) + 1]
    if not len(starts):
        return []
    idle, pause = starts[1:] - stops[:-1], times[starts[1:]] - times[stops[:-1]]
    whole = np.searchsorted(cuts, starts[1:], "right") == np.searchsorted(cuts, stops[:-1])
    joined = whole & ((idle <= PAUSE) | (pause <= PAUSE_S + 1e-6))
    firsts, lasts = np.append(True, ~joined), np.append(~joined, True)
    return [(int(a), int(b)) for a, b in zip(starts[firsts], stops[lasts], strict=True)]


def moves(clock: Floats, width: int) -> list[int]:
    """Return where the clock of a run moves from one held level to another and stays there.

    A level is held where nine of ten samples about it are within 1 % of it. Under a power limit
    the clock wanders, and no level is held.
    """
    from scipy.ndimage import uniform_filter1d

    usable = np.where(clock > 0, clock, np.nan)
    if len(clock) < 2 * width or not np.isfinite(usable).any():
        return []
    logs = np.log(_filled(usable))
    level = _lasting(logs, width)
    near = uniform_filter1d((np.abs(logs - level) <= HELD).astype(float), width)
    held = np.flatnonzero(near >= HELD_SHARE)
    cuts = [0]
    for k in np.flatnonzero(np.abs(np.diff(level[held])) > MOVE).tolist():
        last, first = held[k], held[k + 1]
        between = np.abs(logs[last + 1 : first + 1, None] - level[[last, first]])
        cuts.append(int(last) + 1 + int(np.argmax(between[:, 1] < between[:, 0])))
    cuts.append(len(clock))
    return [k for a, k, b in zip(cuts, cuts[1:], cuts[2:], strict=False)
            if min(k - a, b - k) >= width]  # fmt: skip


def _means(
    times: Floats, series: Mapping[str, Floats], late: float, by_power: bool
) -> dict[str, float]:
    """Return the means of a run's series, and the spreads of power and clock.

    The first second does not count, because sensors average the second before; without
    utilisation half a second at either end does not. Most of a short run counts.
    """
    length, known = times[-1] - times[0], np.isfinite(series["power_w"])
    first = late or (min(0.5, 0.1 * length) if by_power else min(1.0, 0.2 * length))
    last = min(0.5, 0.1 * length) if by_power else 0.0
    inside = (times >= times[0] + first - 1e-6) & (times <= times[-1] - last + 1e-6) & known
    parts = {name: values[inside if inside.any() else known] for name, values in series.items()}
    parts = {name: values[np.isfinite(values)] for name, values in parts.items()}
    found = {name: float(np.mean(v)) if len(v) else float("nan") for name, v in parts.items()}
    for name, spread in (("power_w", "power_spread"), ("frequency_mhz", "clock_spread")):
        if name in parts:
            ends = np.percentile(parts[name], [10, 90]) if len(parts[name]) else [0.0, 0.0]
            found[spread] = float(np.ptp(ends) / found[name]) if found[name] else float("nan")
    return found


def _doubts(values: Mapping[str, float], lasts: float, by_power: bool) -> list[str]:
    """Return the reasons why a run is suspect."""
    most = BLURRED if by_power else UNSTEADY  # what is idle may have been taken for busy
    doubts = {
        f"its power spreads over more than {100 * most:.0f} %: not one steady load":
            values["power_spread"] > most,
        "its clock spreads over more than 5 %: not held": values.get("clock_spread", 0) > UNHELD,
        "shorter than 5 s: its mean power may be 16 % off": lasts < BRIEF_S,
    }  # fmt: skip
    return [words for words, holds in doubts.items() if holds]


def _at_rest(times: Floats, power: Floats, busy: Flags) -> float:
    """Return the median power of samples more than a second from any run; NaN without."""
    work = np.concatenate([[-np.inf], times[busy], [np.inf]])
    after = np.searchsorted(work, times)
    away = np.minimum(times - work[after - 1], work[after] - times)
    rest = (away > PAUSE_S) & np.isfinite(power)
    return float(np.median(power[rest])) if rest.any() else float("nan")
