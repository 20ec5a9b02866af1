"""Runs over the arrival axis, brought to one grid of loads and averaged, as the PWR paper does."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
from scipy.stats import t

from optgap.models.placement.arrays import FloatArray, IntArray
from reproduction.claims import SLACK, Verdict, holds

STEPS = 200
"""Grid points per unit of load: the paper's 0, 0.005, … 1.0."""
LOADS = np.arange(STEPS + 1) / STEPS
RAMP = 0.15
"""Load at which the paper's first phase, the initial gain, is over."""


@dataclass(frozen=True, eq=False)
class Curve:
    """One quantity over load, averaged over S runs.

    Parameters
    ----------
    runs
        Value of each run at each load, shape (S, 201).
    mean
        Mean over runs, shape (201,).
    """

    runs: FloatArray
    mean: FloatArray

    def at(self, load: float) -> float:
        """Return the mean at the grid point nearest to `load`."""
        return float(self.mean[nearest(load)])

    @property
    def half(self) -> FloatArray:
        """Half the width of the mean's 95 % interval over runs, shape (201,); 0 for one run."""
        count = len(self.runs)
        if count < 2:
            return np.zeros_like(self.mean)
        width: FloatArray = self.runs.std(axis=0, ddof=1) * t.ppf(0.975, count - 1) / count**0.5
        return width

    def between(self, low: float, high: float) -> FloatArray:
        """Return the means from load `low` to load `high`, both included."""
        part: FloatArray = self.mean[nearest(low) : nearest(high) + 1]
        return part


Curves = Mapping[str, Curve]


def nearest(load: float) -> int:
    """Return the grid point nearest to `load`."""
    return int(np.argmin(np.abs(LOADS - load)))


def curve_of(runs: FloatArray) -> Curve:
    """Return the curve of (S, 201) values."""
    return Curve(runs, runs.mean(axis=0))


def savings(reference: Curve, policy: Curve) -> Curve:
    """Return (reference − policy) / reference, percent, at equal load.

    The mean is a ratio of means, as in the paper; the runs are the ratios of each seed.
    """
    return Curve(
        100 * (reference.runs - policy.runs) / reference.runs,
        100 * (reference.mean - policy.mean) / reference.mean,
    )


def gap(above: Curve, below: Curve) -> Curve:
    """Return how far one curve lies above another, run by run."""
    return curve_of(above.runs - below.runs)


def on_grid(arrived: IntArray, capacity: int, values: FloatArray) -> FloatArray:
    """Return the values of one run at `LOADS`, as the PWR paper reads them off.

    Arrivals without GPU demand leave the load where it is: of rows with the same load the first
    counts. A load between two rows takes the value half-way between theirs, wherever it lies
    between them; m such loads between the same two rows divide the step evenly. Loads before the
    first row take its value; loads after the last row are NaN.

    Parameters
    ----------
    arrived
        GPU demand arrived so far, milli-GPU, shape (T,), never falling.
    capacity
        GPU capacity of the cluster, milli-GPU.
    values
        One value after each arrival, shape (T,).
    """
    distinct, first = np.unique(np.asarray(arrived, dtype=np.int64), return_index=True)
    row = np.asarray(values, dtype=np.float64)[first]
    # whole numbers on both sides: a load of exactly 0.35 must meet the grid's 0.35
    wanted, place = np.arange(STEPS + 1) * capacity, distinct * STEPS
    right = np.searchsorted(place, wanted)
    met = np.isin(wanted, place)
    result = np.full(len(wanted), np.nan)
    result[met] = row[right[met]]
    result[~met & (right == 0)] = row[0]
    between = ~met & (right > 0) & (right < len(row))
    for k in np.unique(right[between]):
        gap = np.flatnonzero(between & (right == k))
        share = np.arange(1, len(gap) + 1) / (len(gap) + 1)
        result[gap] = row[k - 1] + share * (row[k] - row[k - 1])
    return result


# -- what is read off ---------------------------------------------------------------------------


def only(curves: Curves, policies: Iterable[str]) -> dict[str, Curve]:
    """Return some of the curves."""
    return {policy: curves[policy] for policy in policies}


def until(curve: Curve, level: float, start: float = RAMP, widths: float = 0.0) -> float:
    """Return the last load up to which the mean stays at or above `level`, from `start` on.

    Parameters
    ----------
    widths
        Half widths of the 95 % interval that are added to the mean: -1 and 1 are its ends.
    """
    first = nearest(start)
    below = np.flatnonzero((curve.mean + widths * curve.half)[first:] < level)
    return float(LOADS[first + below[0] - 1]) if below.size else float(LOADS[-1])


def stays_above(
    curves: Curves, level: float, load: float, start: float = RAMP
) -> tuple[str, Verdict]:
    """Return, in words, until where all curves stay above `level`, and whether until `load`.

    Level and load have the slack of any number; the direction is that power is saved.
    """
    low, end, high = (
        min(until(curve, level, start, widths) for curve in curves.values())
        for widths in (-1.0, 0.0, 1.0)
    )
    lowest = min(float(curve.between(start, load).min()) for curve in curves.values())
    words = f"until {100 * end:.1f} % ({100 * low:.1f} to {100 * high:.1f} %)"
    words += f"; at least {lowest:.1f} % up to {100 * load:g} %"
    near = lowest >= (1 - SLACK) * level or end >= (1 - SLACK) * load or high >= load
    return words, holds(near, lowest > 0)


def peak(curves: Curves, start: float = 0.0) -> tuple[str, float, float]:
    """Return the largest mean among curves from `start` on: whose, how much, at which load."""
    best = ("", -np.inf, 0.0)
    for name, curve in curves.items():
        values = np.where(start <= LOADS, curve.mean, -np.inf)
        k = int(np.argmax(values))
        if values[k] > best[1]:
            best = (name, float(values[k]), float(LOADS[k]))
    return best


def first_failure(curves: Curves) -> tuple[str, float]:
    """Return the policy that fails a task at the smallest load in any run, and that load."""
    found: dict[str, float] = {}
    for name, curve in curves.items():
        failed = (curve.runs < 1).any(axis=0)
        found[name] = float(LOADS[int(np.argmax(failed))]) if failed.any() else np.inf
    name = min(found, key=lambda key: found[key])
    return name, found[name]


def lead(ours: Curves, rivals: Curves) -> tuple[float, str]:
    """Return the load up to which all of `ours` save most, from 5 % on, and who is next ahead."""
    best = np.max([curve.mean for curve in rivals.values()], axis=0)
    least = np.min([curve.mean for curve in ours.values()], axis=0)
    behind = np.flatnonzero((least < best) & (LOADS >= 0.05))
    if not behind.size:
        return 1.0, ""
    k = int(behind[0])
    return float(LOADS[k - 1]), max(rivals, key=lambda policy: rivals[policy].mean[k])


def span(values: Iterable[float], digits: int) -> str:
    """Return the smallest and the largest value, or the one that both are."""
    found = list(values)
    low, high = (f"{pick:.{digits}f}" for pick in (min(found), max(found)))
    return low if low == high else f"{low} to {high}"
