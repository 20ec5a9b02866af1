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
LASTS, LASTS_S = 5, 3.0
"""Number of updates whose median is a lasting level, or time of a single reading."""
SLIP_LOW, SLIP_HIGH, SLIP = 1 / 6, 1.5, 2
"""Shares of lasting levels; up to `SLIP` updates below or above these are slips."""
UTIL, UTIL_SHARE, UTIL_KNOWN, UTIL_DEAD = 10.0, 0.3, 0.9, 5.0
"""Thresholds of busy samples: `UTIL` percent, or a share of the 95th percentile."""
MOVE, HELD, HELD_SHARE = np.log(1.03), 0.01, 0.9
"""Changes of a clock exceed `MOVE`; a clock is held if most samples are within `HELD`."""
UNSTEADY, UNHELD, BRIEF_S = 0.25, 0.05, 5.0
"""Thresholds of power spread, clock spread and run time of a suspect run."""


@dataclass
class Run:
    """Run of a device.

    Parameters
    ----------
    span: samples of the run.
    mean: samples that count in its means.
    time_s: duration, s; NaN if its beginning or end is missing.
    power_w: mean power, W.
    spreads: of power and clock, the 10th to the 90th percentile over the mean.
    doubts: reasons why the run is suspect.
    """

    span: slice
    mean: Flags
    time_s: float
    power_w: float
    spreads: tuple[float, float]
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

    order: NDArray[np.int64]
    seen: Floats
    period: float
    holes: list[tuple[int, float]]
    remarks: list[str] = field(default_factory=list)
    runs: list[Run] = field(default_factory=list)
    idle_w: float = float("nan")
    told: str = ""
    slips: Floats = field(default_factory=lambda: np.zeros(0))
    short_s: list[float] = field(default_factory=list)
    bridged_s: list[float] = field(default_factory=list)
    at_rest: int = 0


def cut_device(times: Floats, series: Mapping[str, Floats]) -> Cut:
    """Cut one device's samples into runs.

    Parameters
    ----------
    times: times of the log, s.
    series: ``power_w`` and other samples; ``counter_j`` is an energy counter.

    Raises
    ------
    ValueError: if the samples must be of several devices.
    """
    found = _timed(times)
    times, period = found.seen, found.period
    series = {name: values[found.order] for name, values in series.items()}
    cuts = np.array([k for k, _ in found.holes], dtype=np.int64)
    clock = series.get("frequency_mhz", np.full(len(times), np.nan))
    power, found.slips = without_slips(times, series["power_w"], period)
    busy, found.told = busy_samples(times, power, series.get("util_percent"), period)
    found.idle_w = _at_rest(times, power, busy)
    resting = power[~busy & np.isfinite(power)]
    if len(resting):
        low, high = np.percentile(resting, [10, 90])
        if high > 1.5 * low:
            found.remarks.append(f"power at rest is {low:.3g} to {high:.3g} W, not one level")
    by_power = found.told not in ("", IDLE)
    outside, lasted = ~busy, 0.0
    for start, stop in _spans(times, busy, cuts, period, found.bridged_s):
        length = float(times[stop - 1] - times[start] + period)
        if stop - start < SHORTEST or length < SHORTEST_S - 1e-6:
            found.short_s.append(length)
            continue
        if np.count_nonzero(np.isfinite(power[start:stop])) < 2:
            continue
        inside = slice(start, stop)
        outside[inside] = False
        edges = moves(times[inside], clock[inside], power[inside], period)
        edges = [start, *(start + k for k in edges), stop]
        seen = not (np.isin(start, cuts) or np.isin(stop, cuts)) and len(edges) == 2
        for first, last in pairwise(edges):
            part = slice(first, last)
            late = PAUSE_S if first > start else 0.0
            mean = _counted(times[part], power[part], by_power, late, period)
            spreads = spread(power[part][mean]), spread(clock[part][mean])
            lasts = float(times[last - 1] - times[first] + period)
            lasted += lasts
            doubts = {
                "its power spreads over more than 25 %: not one steady load": spreads[0] > UNSTEADY,
                "its clock spreads over more than 5 %: not held": spreads[1] > UNHELD,
                "its power has two levels: part of it may be idle": by_power
                and two_levels(power[part]),
                "shorter than 5 s: its mean power may be 16 % off": lasts < BRIEF_S,
            }
            watts = _power(times[part], power[part][mean], series.get("counter_j"), part)
            reasons = [words for words, holds in doubts.items() if holds]
            took = length if seen else float("nan")
            found.runs.append(Run(part, mean, took, watts, spreads, reasons))
    found.at_rest = int(np.count_nonzero(outside))
    if sum(found.short_s) > 0.25 * lasted:  # a fifth of the sum of both
        for run in found.runs:
            run.doubts.append("an intermittent load: a fifth of what is busy was too short")
    return found


IDLE = "idle throughout"


def busy_samples(
    times: Floats, power: Floats, util: Floats | None, period: float
) -> tuple[Flags, str]:
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
    low, high = levels(times, power, period)
    limit = 1.1 * low + 0.02 * high
    rest = _filled(power) <= limit
    starts, stops = _stretches(rest)
    lasting = (stops - starts > PAUSE) & (times[stops - 1] - times[starts] + period > PAUSE_S)
    if high < 1.3 * low or not (low < 0.5 * high or np.count_nonzero(lasting) >= 3):
        return np.ones(len(power), dtype=bool), f"{why}: all taken for busy"
    return ~rest, f"{why}: busy is what draws more than {limit:.3g} W"


def levels(times: Floats, power: Floats, period: float) -> tuple[float, float]:
    """Return the lowest and the highest level of power that lasts, in W."""
    value, _, lasts = _updates(times, power, period)
    found = value[lasts >= LASTS_S]
    if len(value) >= LASTS:
        rows = np.lib.stride_tricks.sliding_window_view(value, LASTS)
        found = np.append(found, np.median(rows, axis=1))
    else:  # a few constant levels: those that make up a run's length
        level, which = np.unique(value, return_inverse=True)
        found = np.append(found, level[np.bincount(which, lasts) >= SHORTEST_S - 1e-6])
    found = found if len(found) else np.median(value, keepdims=True)
    return float(found.min()), float(found.max())


def without_slips(times: Floats, power: Floats, period: float) -> tuple[Floats, Floats]:
    """Return power without impossible readings of the sensor, and these readings."""
    value, start, lasts = _updates(times, power, period)
    low, high = levels(times, power, period)
    bad = (value <= 0) | (value < SLIP_LOW * low) | (value > SLIP_HIGH * high)
    ends = np.append(start[1:], len(power))
    clean = power.copy()
    for first, last in zip(*_stretches(bad), strict=True):
        if last - first <= SLIP and lasts[first:last].sum() < LASTS_S:
            clean[start[first] : ends[last - 1]] = np.nan
    if not np.isfinite(clean).any():  # then nothing tells a slip
        return power, power[:0]
    return clean, power[np.isfinite(power) & ~np.isfinite(clean)]


def _updates(times: Floats, power: Floats, period: float) -> tuple[Floats, Index, Floats]:
    """Return the sensor's readings, each as often as it changed: value, first sample, seconds."""
    known = np.flatnonzero(np.isfinite(power))
    start = known[np.append(0, np.flatnonzero(np.diff(power[known])) + 1)]
    return power[start], start, np.diff(np.append(times[start], times[-1] + period))


def _stretches(flags: Flags) -> tuple[Index, Index]:
    """Return where stretches of true begin and end."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], flags, [False]])))
    return edges[::2], edges[1::2]


def _filled(values: Floats) -> Floats:
    """Return a series with each missing value replaced by the one before, or the first known."""
    known = np.isfinite(values)
    place = np.maximum.accumulate(np.where(known, np.arange(len(values)), -1))
    return values[np.where(place < 0, int(np.argmax(known)), place)]


def _spans(
    times: Floats, busy: Flags, cuts: Index, period: float, bridged: list[float]
) -> list[tuple[int, int]]:
    """Return where runs begin and end; add the bridged pauses to `bridged`."""
    edges = np.unique(np.concatenate([*_stretches(busy), cuts[busy[cuts]]]))
    inside = np.append(busy, False)[edges]
    starts, stops = edges[inside], edges[np.flatnonzero(inside) + 1]
    if not len(starts):
        return []
    idle, pause = starts[1:] - stops[:-1], times[starts[1:]] - times[stops[:-1]]
    whole = np.searchsorted(cuts, starts[1:], "right") == np.searchsorted(cuts, stops[:-1])
    joined = whole & ((idle <= PAUSE) | (pause <= PAUSE_S + 1e-6))
    bridged += pause[joined].tolist()
    firsts, lasts = np.append(True, ~joined), np.append(~joined, True)
    return [(int(a), int(b)) for a, b in zip(starts[firsts], stops[lasts], strict=True)]


def moves(times: Floats, clock: Floats, power: Floats, period: float) -> list[int]:
    """Return where the clock of a run moves to another level and stays there.

    Candidates are moves of the median of `LASTS_S` seconds. One counts where the clock is held on
    both sides, or where it moves by more than twice its spread and power with it: under a power
    limit the clock wanders at constant power.
    """
    width = max(SHORTEST, int(np.ceil(LASTS_S / period - 1e-6)))
    usable = np.where(clock > 0, clock, np.nan)
    if len(clock) < 2 * width or not np.isfinite(usable).any():
        return []
    logs = np.log(_filled(usable))
    if np.ptp(logs) <= MOVE:
        return []
    from scipy.ndimage import median_filter

    middle = median_filter(logs, width, mode="nearest")[width // 2 : len(logs) - (width - 1) // 2]
    starts, stops = _stretches(np.abs(middle[width:] - middle[:-width]) > MOVE)
    late = int(np.ceil(PAUSE_S / period - 1e-6))
    cuts = []
    for first, last in zip(starts, stops, strict=True):
        near = logs[first + width : last + width]
        new = np.abs(near - middle[last - 1 + width]) < np.abs(near - middle[first])
        # the split with the fewest samples on the wrong side
        wrong = np.cumsum(np.append(0, np.where(new, 1, -1)))
        k = int(first + width + np.argmin(wrong))
        if _moved(logs, power, (max(0, k - width), k), (k + late, k + late + width)):
            step = abs(middle[min(k, len(middle) - 1)] - middle[max(0, k - width)])
            cuts.append((float(step), k))
    while cuts:  # then judged by the whole pieces; the least convincing goes first
        edges = [0, *(k for _, k in cuts), len(logs)]
        failed = [
            cut
            for a, cut, b in zip(edges, cuts, edges[2:], strict=False)
            if min(b - cut[1], cut[1] - a) < width
            or not _moved(logs, power, (a + late if a else 0, cut[1]), (cut[1] + late, b))
        ]
        if not failed:
            break
        cuts.remove(min(failed))
    return [k for _, k in cuts]


def _moved(logs: Floats, power: Floats, before: tuple[int, int], after: tuple[int, int]) -> bool:
    """Tell whether the clock's level differs between two stretches of samples."""
    sides, drawn = ([v[slice(*part)] for part in (before, after)] for v in (logs, power))
    if min(map(len, sides)) < SHORTEST - 1:
        return False
    levels_ = [float(np.median(side)) for side in sides]
    step = abs(levels_[1] - levels_[0])
    off = [np.abs(side - level) for side, level in zip(sides, levels_, strict=True)]
    if step <= MOVE or all(np.mean(part <= HELD) >= HELD_SHARE for part in off):
        return bool(step > MOVE)
    spread_ = max(float(np.ptp(np.percentile(side, [10, 90]))) for side in sides)
    if step <= 2 * spread_ or any(not np.isfinite(part).any() for part in drawn):
        return False
    return bool(abs(np.log(np.nanmedian(drawn[1]) / np.nanmedian(drawn[0]))) > MOVE)


def _counted(times: Floats, power: Floats, by_power: bool, late: float, period: float) -> Flags:
    """Return the samples that count in means, because sensors average the second before."""
    length = times[-1] - times[0] + period
    first = late or (min(0.5, 0.1 * length) if by_power else min(1.0, 0.2 * length))
    last = min(0.5, 0.1 * length) if by_power else 0.0
    inside = (times >= times[0] + first - 1e-6) & (times <= times[-1] - last + 1e-6)
    known = np.isfinite(power)
    return inside & known if np.any(inside & known) else known


def _power(times: Floats, counted: Floats, counter: Floats | None, part: slice) -> float:
    """Return a run's mean power by its energy counter, else from the counted samples."""
    known = np.flatnonzero([] if counter is None else np.isfinite(counter[part]))
    if counter is not None and len(known) > 1:
        spent, took = counter[part][known], times[known[-1]] - times[known[0]]
        if np.all(np.diff(spent) >= 0) and spent[-1] > spent[0] and took >= 1.0:
            return float((spent[-1] - spent[0]) / took)
    return float(np.mean(counted))


def _at_rest(times: Floats, power: Floats, busy: Flags) -> float:
    """Return the median power of samples more than a second from any run; NaN without."""
    rest = ~busy & np.isfinite(power)
    work = times[busy]
    if len(work):
        after = np.searchsorted(work, times)
        since = times - work[np.maximum(after - 1, 0)]
        until = work[np.minimum(after, len(work) - 1)] - times
        rest &= ((since > PAUSE_S) | (since < 0)) & ((until > PAUSE_S) | (until < 0))
    return float(np.median(power[rest])) if np.any(rest) else float("nan")


def spread(values: Floats) -> float:
    """Return the 10th to the 90th percentile over the mean; NaN without values."""
    known = values[np.isfinite(values)]
    if not len(known) or not np.mean(known):
        return float("nan")
    return float(np.ptp(np.percentile(known, [10, 90])) / np.mean(known))


def two_levels(power: Floats) -> bool:
    """Tell whether power has two levels (Otsu), over 15 % apart, a tenth of the time each."""
    ordered = np.sort(power[np.isfinite(power)])
    n = len(ordered)
    total = float(np.var(ordered)) * n
    if n < 2 * SHORTEST or total == 0:
        return False
    low = np.arange(1, n)
    sums = np.cumsum(ordered)[:-1]
    means = sums / low, (ordered.sum() - sums) / (n - low)
    between = low * (n - low) / n * (means[1] - means[0]) ** 2
    k = int(np.argmax(between))
    apart = between[k] > 0.8 * total and means[1][k] > 1.15 * means[0][k]
    return bool(apart and 0.1 * n <= low[k] <= 0.9 * n)


def _timed(times: Floats) -> Cut:
    """Sort a device's samples, and take the holes out of their times.

    Raises
    ------
    ValueError: if the samples must be of several devices.
    """
    order = np.arange(len(times))
    if len(times) < 2:
        return Cut(order, np.zeros(len(times)), 1.0, [])
    remarks = []
    steps = np.diff(times)
    back = np.count_nonzero(steps < 0)
    if back > max(1.0, 0.02 * len(steps)):
        order = np.lexsort((-order if back > len(steps) / 2 else order, times))
        times = times[order]
        remarks.append("samples sorted by time")
    even = _spread_evenly(times)
    if even is not times:
        remarks.append("stamps of whole seconds spread evenly")
    steps = np.diff(even)
    size = np.abs(steps)
    long = float(np.percentile(size, 90))
    if len(steps) >= 2 * SHORTEST and (long == 0 or np.mean(size < 0.15 * long) >= 0.4):
        raise ValueError
    ahead = steps[steps > 0]
    period = float(np.median(ahead)) if len(ahead) else 1.0
    bad = (steps < 0) | (steps > max(HOLE_PERIODS * period, HOLE_S))
    seen = np.append(0.0, np.cumsum(np.where(bad, period, steps)))
    holes = [(int(k) + 1, float(steps[k])) for k in np.flatnonzero(bad)]
    return Cut(order, seen, period, holes, remarks)


def _spread_evenly(times: Floats) -> Floats:
    """Spread stamps of whole seconds, three or more a second in varying number, over the second.

    Samples of several devices would come in multiples of the number of devices.
    """
    if np.any(times != np.floor(times)) or np.any(np.diff(times) < 0):
        return times
    _, first, count = np.unique(times, return_index=True, return_counts=True)
    inner = count[1:-1]
    if len(inner) < SHORTEST or np.median(inner) < 3:
        return times
    if any(np.mean(inner % k == 0) >= 0.9 for k in range(2, 17)):
        return times
    place = np.arange(len(times)) - np.repeat(first, count)
    return np.asarray(times + place / np.repeat(count, count))
