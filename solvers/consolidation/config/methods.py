"""The methods that put the parts together."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class LargeScaleParams:
    """Filling GPU by GPU.

    Parameters
    ----------
    bound_levels: that the bound tells apart: each costs a pass over the tasks.
    level_tasks: of a level to choose from, on average: with fewer, levels are merged.
    breadths: tasks that are tried in the first places of a set, for each way to search.
    first_power, power: of scarcity, by which rows are weighted; drawn but for the first time.
    full: room of a GPU that is not worth looking for better, as a share.
    anneal_s: seconds per task, where servers differ or the last task found no place.
    """

    bound_levels: int = 400
    level_tasks: tuple[int, ...] = (200, 400)
    breadths: tuple[tuple[int, ...], ...] = (
        (40, 12, 5, 2),
        (400, 60, 20, 4, 1),
        (200, 30, 10, 3, 1),
    )
    first_power: float = 6.0
    power: tuple[float, float] = (1.0, 14.0)
    full: float = 1e-4
    anneal_s: float = 0.02


@dataclass(frozen=True)
class ExactParams:
    """The order of `exact`: construction, repair, the tree, the compact model.

    Parameters
    ----------
    fillings: placements that are made GPU by GPU.
    search_share: of the time limit, at most, for any search before a proof.
    repair_s, repair_long_s: seconds per 100 tasks of overload repair before the tree; the latter
        with `gang=server` and more tasks than `long`, or with memory alone and more than
        `long_memory`.
    merged_levels, merged_s: with many levels, those that they are merged into for overload repair,
        and seconds per 100 tasks for each.
    far, far_s: with `gang=server`, relative gap above which a placement is annealed before the
        tree, and seconds per 100 tasks.
    anneal_s: seconds per 100 tasks of annealing where there is no tree.
    turn_s, turn_growth: seconds of the tree's first turn where the compact model has turns, and how
        much longer the next one is.
    compact_gpus, compact_tasks, compact_turn: GPUs and tasks up to which it has turns from the
        beginning, with memory alone and `gang=server`; how much longer than the tree's they are.
    compact_literals: up to which the compact model is built.
    """

    fillings: int = 20
    search_share: float = 0.25
    repair_s: float = 0.3
    repair_long_s: float = 2.0
    long_memory: int = 100
    long: int = 256
    merged_levels: tuple[int, ...] = (3, 6, 10)
    merged_s: float = 0.3
    far: float = 1e-2
    far_s: float = 0.2
    anneal_s: float = 2.0
    turn_s: float = 0.1
    turn_growth: float = 2.0
    compact_gpus: int = 16
    compact_tasks: int = 48
    compact_turn: float = 3.0
    compact_literals: int = 1_500_000


@dataclass(frozen=True)
class RepackParams:
    """The optimum at every event.

    Parameters
    ----------
    event_s, run_s: seconds for one event, and for all of them together.
    at_once_s: seconds where all tasks are present at once, at least.
    """

    event_s: float = 2.0
    run_s: float = 60.0
    at_once_s: float = 20.0
