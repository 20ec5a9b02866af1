"""What tunes the methods over time, and what each of it means."""

from __future__ import annotations

from dataclasses import dataclass

from optgap.models.spec import parameter


@dataclass(frozen=True)
class BoundParams:
    """What tunes `bound-over-time`."""

    buckets: int = parameter(0, "of time, about; 0 for 40, with more than 150 tasks 32")
    most_tasks: int = parameter(1500, "with more, the bound is that of bound-energy")
    tangents: int = parameter(5, "that support the power curve from below")
    rounds: int = parameter(400, "of column generation, at most")
    smoothing: float = parameter(0.6, "weight of the best prices so far in those that are tried")
    passes: int = parameter(2, "with shares made for what tasks did in the last one")
    most_present: int = parameter(80, "tasks in a bucket for which shares are made")
    nodes: int = parameter(5000, "of the search for a set that has more than its share")
    sharper: float = parameter(2e-3, "relative gain for which a share is kept")
    close: float = parameter(2e-4, "relative distance to the program's value that is let be")


@dataclass(frozen=True)
class ExactParams:
    """What tunes `exact-over-time`."""

    moves: int = parameter(20_000, "that annealing of clocks and places tries at the end")


@dataclass(frozen=True)
class HindsightParams:
    """What tunes `hindsight`."""

    moves: int = parameter(0, "that annealing tries; 0 for 60,000, fewer with more than 300 tasks")
    hot: float = parameter(0.2, "first temperature, in mean energies of a task")
    cold: float = parameter(2e-4, "last temperature, in mean energies of a task")
    proof: float = parameter(0.4, "share of the time limit for the bound, at most")
