"""What tunes the methods over time, and what each of it means."""

from __future__ import annotations

import math
from dataclasses import dataclass

from optgap.models.spec import parameter


@dataclass(frozen=True)
class HindsightParams:
    """What tunes `hindsight`."""

    moves: int = parameter(
        0, "that annealing tries; 0 for one per task, 1,000 to 20,000", within=(0, math.inf)
    )
    hot: float = parameter(
        1.0, "first temperature, in what a task adds on average", within=(1e-9, 1e3)
    )
    cold: float = parameter(
        1e-2, "last temperature, in what a task adds on average", within=(1e-9, 1e3)
    )
    ease: float = parameter(
        -1.0,
        "how much less a device little used counts at first; -1: 0.3 on up to 100 nodes, 0 on more",
        within=(-1, 1),
    )
    nodes: int = parameter(3, "whose tasks are taken off at once, at most", within=(1, 100))
    tasks: int = parameter(24, "that are taken off at once, at most", within=(1, 1000))
    blinks: float = parameter(
        0.01, "share of the nodes that are passed over when a task is put back", within=(0, 0.9)
    )
    looks: int = parameter(
        64, "nodes that are looked at when a task is put back, about", within=(1, math.inf)
    )
    proof: float = parameter(0.4, "share of the time limit for the bound, at most", within=(0, 1))


@dataclass(frozen=True, slots=True)
class Tuning:
    """What tunes `hindsight` besides, and is not for users to set.

    Parameters
    ----------
    placed_at_once: tasks that are put between two looks at the limits.
    moves_at_once, chunks: moves between two, at most; and how many looks there are at least, where
        there are so many moves.
    first_moves: before the first look, where there is a limit.
    hurried: what a task costs that goes to the first node with room, of one that goes to the best:
        less.
    kept_s: seconds per task for judging a schedule and handing it over, about.
    ease, most_eased: λ of `eased` unless given, and the most nodes with which it is not 0:
        construction then is 0.1 to 0.4 % better without.
    eased_share: of the moves, after which energy is all that counts.
    least_moves, most_moves: of one for each task, where nothing else is said.
    few_cells: nodes times tasks up to which Python makes `least_moves` sooner than the compiler is
        through.
    long_from: tasks from which the long ones are annealed alone first. They are few, and decide
        most of the energy.
    long_share: of what all tasks run: what the long ones run.
    long_moves: times the moves, for the long ones alone.
    warm: of the first temperature, that the others begin at then.
    """

    placed_at_once: int = 100
    moves_at_once: int = 500
    chunks: int = 40
    first_moves: int = 20
    hurried: float = 0.1
    kept_s: float = 2e-5
    ease: float = 0.3
    most_eased: int = 100
    eased_share: float = 0.8
    least_moves: int = 1000
    most_moves: int = 20_000
    few_cells: int = 200
    long_from: int = 1000
    long_share: float = 0.8
    long_moves: int = 5
    warm: float = 0.1


TUNING = Tuning()
