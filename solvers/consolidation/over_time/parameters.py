"""What tunes the methods over time, and what each of it means."""

from __future__ import annotations

import math
from dataclasses import dataclass

from optgap.models.spec import parameter

FROM_0 = (0.0, math.inf)


@dataclass(frozen=True)
class BoundParams:
    """What tunes `bound-over-time`."""

    buckets: int = parameter(
        0, "of time, about; 0 for 40, with more than 150 tasks 32", within=(0, 1000)
    )
    most_tasks: int = parameter(1500, "with more, the bound is that of bound-energy", within=FROM_0)
    tangents: int = parameter(5, "that support the power curve from below", within=(2, 100))
    rounds: int = parameter(400, "of column generation, at most", within=(1, 1e6))
    smoothing: float = parameter(
        0.6, "weight of the best prices so far in those that are tried", within=(0, 0.99)
    )
    passes: int = parameter(
        2, "with shares made for what tasks did in the last one", within=(1, 100)
    )
    most_present: int = parameter(80, "tasks in a bucket for which shares are made", within=FROM_0)
    nodes: int = parameter(
        5000, "of the search for a set that has more than its share", within=FROM_0
    )
    sharper: float = parameter(2e-3, "relative gain for which a share is kept", within=FROM_0)
    close: float = parameter(
        1e-3, "relative distance to the program's value that is let be", within=FROM_0
    )
    most_lives: int = parameter(
        80, "tasks, where none may move, for which the program of lives is solved", within=FROM_0
    )
    branching: float = parameter(
        15.0, "seconds of branch and bound in the program of lives, at most", within=FROM_0
    )


@dataclass(frozen=True)
class ExactParams:
    """What tunes `exact-over-time`."""

    moves: int = parameter(
        20_000, "that annealing of clocks and places tries where no proof is at hand", within=FROM_0
    )
    gap: float = parameter(
        1e-3, "relative gap that is proven where clocks are a choice", within=(1e-5, 1)
    )
    nodes: int = parameter(
        400_000, "of the searches for clocks of sets, at most in all", within=FROM_0
    )


@dataclass(frozen=True)
class HindsightParams:
    """What tunes `hindsight`."""

    moves: int = parameter(
        0, "that annealing tries; 0 for 20,000, fewer with few or many tasks", within=FROM_0
    )
    schedules: int = parameter(
        0, "that pack tasks anew, where they may move; 0 for 1,000, fewer with more than 60 tasks",
        within=FROM_0,
    )  # fmt: skip
    hot: float = parameter(0.2, "first temperature, in mean energies of a task", within=(1e-9, 1e3))
    cold: float = parameter(
        2e-4, "last temperature, in mean energies of a task", within=(1e-9, 1e3)
    )
    proof: float = parameter(0.4, "share of the time limit for the bound, at most", within=(0, 1))


@dataclass(frozen=True)
class Tuning:
    """What tunes them besides, and is not for users to set.

    Parameters
    ----------
    thresholds, multiples: of the shares in closed form: Martello and Toth's, and n of ⌊(n + 1)x⌋/n.
    cells: clocks at which a power line is held against the curve.
    fine: for a second of work too much or too little, in seconds of a GPU at full pace.
    new_rows, least_broken: of the program, that are added at a time, for each bucket; and by how
        much of the tasks' mean duration one is broken at least.
    kept_courses: for each task, that another program begins with.
    moves_at_once, packings_at_once, sets_at_once: of annealing, of packing anew, and of the table
        of all sets, between two looks at the limits.
    clocks_hot, clocks_cold: first and last temperature of `exact-over-time`, in mean energies of a
        task.
    first_splits, most_splits: how often boxes of a set's clocks are split first, and at a time at
        most. least_sets: that are searched at least before partitions are looked at again.
    sample_parts, coarse_cells, halvings: of progress, as in `Grid`. finest_level: least change of a
        clock that is tried, as a share of what it may change by.
    rounding: share of the gap to be proven that sums of bounds may miss.
    summed_percent: mean utilisation that the tasks of a GPU may add up to where they are packed
        anew; beside_gangs_percent: or, if less, where one of them has several GPUs;
        staying_percent: where they may not move. packed_levels: clocks, 0 the lowest that
        residents bear, 1 f_max. longer: where none may move, what it counts that a GPU is kept
        awake for a task's mean duration longer, in shares of a GPU left free.
    inserted: tasks, where they may move, up to which a schedule that moves none is made as well;
        few_tasks: and annealed, even if it begins worse.
    moments: of a leader's life for which the program of lives adds up the work done by then, at
        most. lives_gap: relative gap at which its branch and bound ends.
    """

    thresholds: tuple[float, ...] = (0.15, 0.25, 0.35, 0.45)
    multiples: tuple[int, ...] = (1, 2, 3)
    cells: int = 4096
    fine: float = 3.0
    new_rows: int = 4
    least_broken: float = 1e-3
    kept_courses: int = 20
    moves_at_once: int = 500
    packings_at_once: int = 100
    sets_at_once: int = 1024
    clocks_hot: float = 0.02
    clocks_cold: float = 1e-5
    first_splits: int = 2
    most_splits: int = 4096
    least_sets: int = 4
    sample_parts: int = 64
    coarse_cells: float = 4.0
    halvings: int = 5
    finest_level: float = 1 / 32
    rounding: float = 1e-3
    summed_percent: tuple[float, ...] = (120.0, 80.0, 100.0, 135.0, 160.0, 200.0, math.inf)
    beside_gangs_percent: float = 100.0
    packed_levels: tuple[float, ...] = (1.0, 0.0)
    staying_percent: tuple[float, ...] = (200.0, math.inf)
    longer: float = 1.5
    inserted: int = 150
    few_tasks: int = 15
    moments: int = 40
    lives_gap: float = 1e-4


TUNING = Tuning()
