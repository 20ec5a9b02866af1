"""A small placement problem whose tasks leave."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from optgap.models.placement import OverTime, PlacementObjective, PlacementProblem
from optgap.models.placement.making import (
    ORIGIN,
    cluster_of,
    power_model,
    target_of_classes,
    that_fit,
    trace_of_classes,
)
from optgap.models.placement.objective import TimeGoal
from optgap.models.placement.presets_over_time import drawn_lives

FEW = (
    ("G2", 8, 96_000, 393_216, 2),
    ("T4", 2, 104_000, 524_288, 1),
    ("P100", 2, 16_000, 122_880, 1),
    ("V100M16", 4, 32_000, 131_072, 1),
)


def small_time(*, seed: int, size: int = 30, goal: TimeGoal = "energy") -> PlacementProblem:
    """Five nodes with 24 GPUs, and `size` tasks that ask for 30 % of them on average.

    Arrivals at random, lives from the trace's quantiles, and a horizon that cuts them: as long as
    makes the tasks ask for that much, a minute at least.
    """
    arrivals, ranks, lives = np.random.default_rng(seed).spawn(3)
    cluster = cluster_of(FEW)
    trace = that_fit(trace_of_classes(), cluster)
    chosen = trace.take(arrivals.integers(len(trace), size=size).tolist())
    duration, when = drawn_lives(size, lives), np.sort(arrivals.random(size))
    share = chosen.demand_milli / cluster.gpu_capacity_milli
    low, high = 60.0, 1e9  # lives of which more is cut ask for more on average
    while high - low > 1:
        middle = (low + high) / 2
        asked = float(share @ np.minimum(duration, (1 - when) * middle)) / middle
        low, high = (middle, high) if asked > 0.3 else (low, middle)
    horizon_s = float(math.ceil(high))
    submit = np.floor(when * horizon_s)
    return PlacementProblem.of(
        cluster,
        replace(chosen, submit_s=submit - submit[0], duration_s=duration),
        target_of_classes(),
        ranks.permutation(len(cluster)),
        power_model(),
        PlacementObjective(goal),
        f"small-time, {size} tasks, seed {seed}",
        f"{ORIGIN}; synthetic times after its quantiles of lives",
        over_time=OverTime(math.nan, horizon_s),
    )
