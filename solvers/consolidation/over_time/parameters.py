"""Parameters of the methods over time, and the constants that users do not set."""

from __future__ import annotations

import math
from dataclasses import dataclass

from optgap.models.spec import parameter

FROM_0 = (0.0, math.inf)


@dataclass(frozen=True)
class BoundParams:
    """Parameters of `bound-over-time`."""

    rounds: int = parameter(400, "of column generation, at most", within=(1, 1e6))
    close: float = parameter(
        1e-3, "relative distance to the program's value that is let be", within=FROM_0
    )


@dataclass(frozen=True)
class HindsightParams:
    """Parameters of `hindsight`."""

    schedules: int = parameter(
        0,
        "that are tried; 0 for 1,000, or 3,000 without moves, and fewer beyond 60 tasks",
        within=FROM_0,
    )


@dataclass(frozen=True)
class OverTimeTuning:
    """Constants of the methods over time that users do not set.

    Parameters
    ----------
    most_tasks
        Number of tasks beyond which the first prices alone give the bound. Default 1,500.
    cells
        Frequencies at which each power line is compared with the power curve. Default 4,096.
    fine
        Penalty for a second of work too much or too little, GPU-seconds at full pace. Default 3.
    new_rows
        Rows of shares that are added to the master at a time, for each bucket. Default 4.
    least_broken
        Least violation of a row that is added, as a share of the mean duration. Default 0.001.
    packings_at_once
        Packings between two looks at the limits. Default 100.
    summed_percent
        Summed mean utilisation that the rules of packing allow on a GPU, %.
    staying_percent
        The same where tasks may not move, %.
    beside_gangs_percent
        Upper limit on that sum where a task has several GPUs, %. Default 100.
    longer
        Penalty for keeping a GPU active one mean task duration longer, where tasks may not move.
        A penalty of 1 equals that of leaving a whole GPU unused. Default 1.5.
    """

    most_tasks: int = 1500
    cells: int = 4096
    fine: float = 3.0
    new_rows: int = 4
    least_broken: float = 1e-3
    packings_at_once: int = 100
    summed_percent: tuple[float, ...] = (120.0, 80.0, 100.0, 135.0, 160.0, 200.0, math.inf)
    staying_percent: tuple[float, ...] = (200.0, math.inf)
    beside_gangs_percent: float = 100.0
    longer: float = 1.5


TUNING = OverTimeTuning()
