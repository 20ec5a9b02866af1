"""Settings of `hindsight`, with their meanings."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class HindsightTuning:
    """Settings of `hindsight` that users do not set.

    Parameters
    ----------
    proof: of a budget of work, for the bound, at most.
    placed_at_once: tasks that are put between two looks at the limits.
    chunks: looks while moves are made, where there are so many.
    hot, cold: first and last temperature, in what a task adds on average.
    nodes, tasks: whose tasks are taken off at once, and how many of them, at most.
    blinks: share of the nodes that are passed over when a task is put back.
    looks: nodes that are looked at when a task is put back, about.
    least_moves, most_moves: of one for each task, where nothing else is said.
    few_cells: nodes times tasks up to which Python makes `least_moves` sooner than the compiler is
        through.
    long_from: tasks from which the long ones are annealed alone first. They are few, and decide
        most of the energy.
    long_nodes: on so many nodes at most.
    long_share: of what all tasks run: what the long ones run.
    long_moves: times the moves, for the long ones alone.
    warm: of the first temperature, that the others begin at then.
    """

    proof: float = 0.4
    placed_at_once: int = 100
    chunks: int = 40
    hot: float = 1.0
    cold: float = 1e-2
    nodes: int = 3
    tasks: int = 24
    blinks: float = 0.01
    looks: int = 64
    least_moves: int = 1000
    most_moves: int = 20_000
    few_cells: int = 200
    long_from: int = 1000
    long_nodes: int = 100
    long_share: float = 0.8
    long_moves: int = 5
    warm: float = 0.1


TUNING = HindsightTuning()
