"""Parameters of the methods over time, and the constants that users do not set."""

from __future__ import annotations

import math
from dataclasses import dataclass

from optgap.models.spec import parameter

FROM_0 = (0.0, math.inf)


@dataclass(frozen=True)
class BoundParams:
    """Parameters of `bound-over-time`."""

    buckets: int = parameter(
        0, "of time, about; 0 for 40, with more than 150 tasks 32", within=(0, 1000)
    )
    rounds: int = parameter(400, "of column generation, at most", within=(1, 1e6))
    close: float = parameter(
        1e-3, "relative distance to the program's value that is let be", within=FROM_0
    )


@dataclass(frozen=True)
class HindsightParams:
    """Parameters of `hindsight`."""

    moves: int = parameter(
        0, "that annealing tries; 0 for 20,000, fewer with few or many tasks", within=FROM_0
    )
    schedules: int = parameter(
        0, "that pack tasks; 0 for 1,000, fewer with more than 60 tasks", within=FROM_0
    )


@dataclass(frozen=True)
class Tuning:
    """Constants of the methods over time that users do not set.

    Parameters
    ----------
    most_tasks
        Number of tasks beyond which the bound is that of `bound-energy`. Default 1,500.
    tangents
        Number of tangents that support the power curve from below. Default 5.
    smoothing
        Weight of the best prices so far in the prices that are tried. Default 0.6.
    passes
        Runs of column generation; each gets shares made for the last solution. Default 2.
    most_present
        Number of tasks in a bucket up to which shares are made for it. Default 80.
    nodes
        Nodes of the search for a set that has more than its share. Default 5,000.
    sharper
        Relative gain from which on a share is kept. Default 0.002.
    hot, cold
        First and last temperature of annealing, in mean energies of a task.
    thresholds
        Thresholds of Martello and Toth's dual feasible functions. Default 0.15, 0.25, 0.35, 0.45.
    multiples
        Values of n in the dual feasible function ⌊(n + 1)x⌋/n. Default 1, 2, 3.
    cells
        Frequencies at which each power line is compared with the power curve. Default 4,096.
    fine
        Penalty for a second of work too much or too little, GPU-seconds at full pace. Default 3.
    new_rows
        Rows of shares that are added to the master at a time, for each bucket. Default 4.
    least_broken
        Least violation of a row that is added, as a share of the mean duration. Default 0.001.
    kept_courses
        Columns of each task that the next master begins with. Default 20.
    moves_at_once
        Annealing moves between two looks at the limits. Default 500.
    packings_at_once
        Packings between two looks at the limits. Default 100.
    summed_percent
        Summed mean utilisation that the rules of packing allow on a GPU, %.
    staying_percent
        The same where tasks may not move, %.
    beside_gangs_percent
        Upper limit on that sum where a task has several GPUs, %. Default 100.
    packed_levels
        Frequencies of the rules: 0 is the lowest that residents bear, 1 is f_max.
    longer
        Penalty for keeping a GPU active one mean task duration longer, where tasks may not move.
        A penalty of 1 equals that of leaving a whole GPU unused. Default 1.5.
    inserted
        Number of tasks up to which a schedule that moves no task is annealed as well. Default 150.
    few_tasks
        Number of tasks up to which that schedule is annealed even if it begins worse. Default 15.
    """

    most_tasks: int = 1500
    tangents: int = 5
    smoothing: float = 0.6
    passes: int = 2
    most_present: int = 80
    nodes: int = 5000
    sharper: float = 2e-3
    hot: float = 0.2
    cold: float = 2e-4
    thresholds: tuple[float, ...] = (0.15, 0.25, 0.35, 0.45)
    multiples: tuple[int, ...] = (1, 2, 3)
    cells: int = 4096
    fine: float = 3.0
    new_rows: int = 4
    least_broken: float = 1e-3
    kept_courses: int = 20
    moves_at_once: int = 500
    packings_at_once: int = 100
    summed_percent: tuple[float, ...] = (120.0, 80.0, 100.0, 135.0, 160.0, 200.0, math.inf)
    staying_percent: tuple[float, ...] = (200.0, math.inf)
    beside_gangs_percent: float = 100.0
    packed_levels: tuple[float, ...] = (1.0, 0.0)
    longer: float = 1.5
    inserted: int = 150
    few_tasks: int = 15


TUNING = Tuning()
