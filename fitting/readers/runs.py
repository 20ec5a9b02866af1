"""Raw samples into runs: find what is busy, cut where it pauses or the clock moves, average."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

BUSY_SHARE = 0.1
"""A sample is busy above this share of the way from the lowest to the 95th percentile of power."""

IDLE_SHARE = 0.5
"""A lowest power above this share of the 95th percentile is no idling."""

CLOCK_STEP_MHZ = 25.0
"""A lasting move of the clock by more than this starts another run."""


PAUSE, SHORTEST = 3, 5
"""The idle samples that end a run, and the fewest samples that make one."""


def busy_mask(power_w: Floats) -> NDArray[np.bool_]:
    """Which samples are busy; all of them when none looks idle.

    Idle samples draw less than `IDLE_SHARE` of the 95th percentile and at least 10 W less.
    """
    known = power_w[np.isfinite(power_w)]
    if not len(known):
        return np.zeros(len(power_w), dtype=bool)
    low, high = float(np.min(known)), float(np.percentile(known, 95))
    if high - low < 10.0 or low > IDLE_SHARE * high:
        return np.ones(len(power_w), dtype=bool)
    return np.asarray(power_w > low + BUSY_SHARE * (high - low))


def busy_span(power_w: Floats) -> slice:
    """From the first to the last busy sample: idle start-up and idle end are trimmed."""
    index = np.flatnonzero(busy_mask(power_w))
    return slice(int(index[0]), int(index[-1]) + 1) if len(index) else slice(0, len(power_w))


def runs(power_w: Floats, clock_mhz: Floats | None) -> list[slice]:
    """The runs in one GPU's samples, in order of time.

    A run ends where `PAUSE` idle samples follow one another, or where the clock settles
    on another level.
    """
    busy = np.flatnonzero(busy_mask(power_w))
    if not len(busy):
        return []
    breaks = np.flatnonzero(np.diff(busy) > PAUSE)
    starts = np.concatenate(([busy[0]], busy[breaks + 1]))
    ends = np.concatenate((busy[breaks], [busy[-1]])) + 1
    found: list[slice] = []
    for start, end in zip(starts, ends, strict=True):
        edges = (
            [start, *(_moves(clock_mhz[start:end]) + start), end]
            if (clock_mhz is not None)
            else [start, end]
        )
        found += [slice(int(a), int(b)) for a, b in pairwise(edges) if b - a >= SHORTEST]
    return found


def _moves(clock_mhz: Floats) -> NDArray[np.int64]:
    """Where the clock's level (median of `SHORTEST` samples on either side) moves."""
    if len(clock_mhz) < 2 * SHORTEST:
        return np.zeros(0, dtype=np.int64)
    windows = np.median(np.lib.stride_tricks.sliding_window_view(clock_mhz, SHORTEST), axis=1)
    step = np.abs(windows[SHORTEST:] - windows[:-SHORTEST])
    moves: list[int] = []
    k = 0
    while k < len(step):
        if step[k] > CLOCK_STEP_MHZ:
            last = k
            while last + 1 < len(step) and step[last + 1] > CLOCK_STEP_MHZ:
                last += 1
            part = step[k : last + 1]
            # medians are level for as long as most of a window is: the edge is in the middle
            level = np.flatnonzero(part >= part.max() - 1.0)
            moves.append(k + int(level[0] + level[-1]) // 2 + SHORTEST)
            k = last + 1
        else:
            k += 1
    return np.array(moves, dtype=np.int64)
