"""Several runs over the arrival axis, brought to one grid of loads and averaged."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from optgap.models.errors import InputError, NoQuote
from optgap.models.placement.arrays import FloatArray, IntArray
from optgap.models.placement.series import Series

STEPS = 200
"""Grid points per unit of load: the papers' 0, 0.005, … 1.0."""

Value = str | Callable[[Series], FloatArray]
"""An attribute of `Series` by name (``"power_w"``), or a function of it."""


@dataclass(frozen=True, eq=False)
class Curve:
    """One quantity over load, averaged over S runs.

    Parameters
    ----------
    load: (X,) GPU demand arrived, as a share of capacity.
    runs: (S, X) the value of each run.
    mean: (X,) what is drawn.
    """

    load: FloatArray
    runs: FloatArray
    mean: FloatArray

    @property
    def std(self) -> FloatArray:
        """(X,) sample standard deviation over the runs; NaN for a single one."""
        if len(self.runs) < 2:
            return np.full(len(self.load), np.nan)
        spread: FloatArray = self.runs.std(axis=0, ddof=1)
        return spread

    def at(self, load: float) -> float:
        """The mean at the grid point nearest to `load`."""
        return float(self.mean[self._nearest(load)])

    def spread_at(self, load: float) -> float:
        """The standard deviation at the grid point nearest to `load`."""
        return float(self.std[self._nearest(load)])

    def between(self, low: float, high: float) -> FloatArray:
        """The means from load `low` to load `high`, both included."""
        part: FloatArray = self.mean[self._nearest(low) : self._nearest(high) + 1]
        return part

    def _nearest(self, load: float) -> int:
        return int(np.argmin(np.abs(self.load - load)))


def loads(upto: float = 1.0, steps: int = STEPS) -> FloatArray:
    """(X,) the loads 0, 1/steps, … `upto`."""
    return np.arange(round(upto * steps) + 1) / steps


def on_grid(
    arrived_gpu_milli: IntArray,
    capacity_gpu_milli: int,
    values: FloatArray,
    upto: float = 1.0,
    steps: int = STEPS,
) -> FloatArray:
    """The values of one run at the loads 0, 1/steps, … `upto`, as the PWR paper reads them off.

    Arrivals without GPU demand leave the load where it is: of rows with the same load the first
    counts. A load that lies between two rows takes the value half-way between theirs, wherever
    it lies between them; m such loads between the same two rows divide the step evenly. Loads
    before the first row take its value. Loads after the last row are NaN: the run says nothing
    about them (the published runs go on to 1.3, and never get there).

    Parameters
    ----------
    arrived_gpu_milli: (T,) GPU demand arrived so far, milli-GPU, never falling.
    capacity_gpu_milli: GPU capacity of the cluster, milli-GPU.
    values: (T,) one value after each arrival.

    Returns
    -------
    (X,) one value per grid point.

    Raises
    ------
    InputError: for columns of different lengths, no arrivals, no GPUs, or demand that falls.
    """
    arrived = np.asarray(arrived_gpu_milli, dtype=np.int64)
    if len(values) != len(arrived):
        found = NoQuote(f"{len(values)} values")
        raise InputError("values", "", found, f"{len(arrived)}, one per arrival")
    if not len(arrived) or capacity_gpu_milli <= 0:
        raise InputError("series", "", NoQuote("no arrivals or no GPUs"), "both, to have a load")
    if (np.diff(arrived) < 0).any():
        raise InputError("arrived_gpu_milli", "", NoQuote("demand that falls"), "a running total")
    distinct, first = np.unique(arrived, return_index=True)
    row = np.asarray(values, dtype=np.float64)[first]
    # whole numbers on both sides: a load of exactly 0.35 must meet the grid's 0.35
    wanted = np.arange(round(upto * steps) + 1) * capacity_gpu_milli
    place = distinct * steps
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


def aggregate(runs: Sequence[Series], value: Value, upto: float = 1.0, steps: int = STEPS) -> Curve:
    """Mean and spread of one quantity over several runs, at the loads 0, 1/steps, … `upto`.

    >>> import optgap
    >>> from optgap.models.placement.series import replay
    >>> from optgap.reproduce import aggregate
    >>> runs = []
    >>> for seed in range(42, 52):  # doctest: +SKIP
    ...     problem = optgap.generate("placement", "alibaba", seed=seed, load=1.0)
    ...     runs.append(replay(problem, optgap.run(problem, "fgd").solution))
    >>> aggregate(runs, "power_w").at(0.5)  # doctest: +SKIP

    A grid point that one of the runs does not reach is NaN: an average over those that do would
    be one over another set of runs.

    Parameters
    ----------
    runs: one series per run, see `optgap.models.placement.series.replay`.
    value: an attribute of `Series` (``"power_w"``, ``"grar"``, ``"frag_gpu_milli"``), or a
        function of it that gives one value per arrival.

    Raises
    ------
    InputError: for no runs, or an unknown attribute.
    """
    if not runs:
        raise InputError("runs", "", NoQuote("none"), "at least one run")
    rows = []
    for series in runs:
        if isinstance(value, str) and not hasattr(series, value):
            raise InputError("value", "", value, "an attribute of Series")
        column = getattr(series, value) if isinstance(value, str) else value(series)
        rows.append(
            on_grid(series.arrived_gpu_milli, series.capacity_gpu_milli, column, upto, steps)
        )
    return curve_of(loads(upto, steps), np.array(rows))


def curve_of(load: FloatArray, runs: FloatArray) -> Curve:
    """The curve of (S, X) values."""
    return Curve(load, runs, runs.mean(axis=0))


def savings(reference: Curve, policy: Curve) -> Curve:
    """(reference − policy) / reference, in percent, at equal load.

    The mean is a ratio of means, as in the PWR paper; the runs are the ratios of each seed, so
    that their spread is that of the saving and not of the power. Both curves must have the same
    seeds in the same order.

    Raises
    ------
    InputError: for curves of different shapes.
    """
    if reference.runs.shape != policy.runs.shape:
        raise InputError("policy", "", policy.runs.shape, f"{reference.runs.shape}, as reference")
    return Curve(
        reference.load,
        100 * (reference.runs - policy.runs) / reference.runs,
        100 * (reference.mean - policy.mean) / reference.mean,
    )
