"""Primal heuristics."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class ConstructionParams:
    """Tasks placed one by one.

    Parameters
    ----------
    tries: orders. least_noise: factor by which sizes are disturbed in the later ones.
    """

    tries: int = 8
    least_noise: float = 0.7


@dataclass(frozen=True)
class AnnealingParams:
    """Annealing of power.

    Parameters
    ----------
    rounds, steps, growth: runs, steps of the first for each GPU that a task has, times as many in
        each later one.
    most_steps: between two looks at the clock; fewer where the limit is nearer.
    least_s: seconds that are taken to be left, at least.
    hot, cold: first and last temperature, in the dearest GPU's power; the first is drawn.
    fill: what the square of a full GPU's load is worth, in the same; drawn.
    gang_moves, swaps: shares of the steps that move a whole task, and that swap two shares.
    """

    rounds: int = 6
    steps: int = 4000
    growth: float = 1.3
    most_steps: int = 8_000_000
    least_s: float = 0.05
    hot: tuple[float, float] = (0.01, 0.6)
    cold: float = 1e-4
    fill: tuple[float, float] = (0.03, 1.0)
    gang_moves: float = 0.35
    swaps: float = 0.45


@dataclass(frozen=True)
class ExchangeParams:
    """Pairwise exchange.

    Parameters
    ----------
    noise: of a GPU's memory, by which the overload may rise in an exchange.
    pairs, most_pairs: of GPUs that are looked at, per GPU at first, and in all.
    hopeful: overload in GPUs per GPU below which it goes on.
    """

    noise: float = 0.02
    pairs: int = 120
    most_pairs: int = 40_000
    hopeful: float = 5e-4


@dataclass(frozen=True)
class TargetParams:
    """Of the gap, what the next placement may keep.

    Parameters
    ----------
    first, growth, most: share, how it grows while nothing is found, and at most.
    """

    first: float = 0.5
    growth: float = 1.2
    most: float = 1.0


@dataclass(frozen=True)
class DivingParams:
    """Diving.

    Parameters
    ----------
    at_counts: dives to counts that the tree has come to.
    most_wrong_columns: columns that are let go again.
    at_once: fractional columns for each that is fixed at a time beyond the first.
    lost_share: of what may be lost, that a step may lose before more columns are looked for.
    residual_share, residual_tasks: tasks of which what is left becomes a problem of its own, as a
        share; and up to which that is decided by its columns.
    residual_s, residual_columns: seconds for that, and columns at most.
    """

    at_counts: int = 3
    most_wrong_columns: int = 5
    at_once: int = 25
    lost_share: float = 0.1
    residual_share: float = 0.6
    residual_tasks: int = 45
    residual_s: float = 0.4
    residual_columns: int = 8000


@dataclass(frozen=True)
class ServerDivingParams:
    """Diving into servers.

    Parameters
    ----------
    dive_s: seconds per 100 tasks of a turn.
    least_loss, assign_s: what assigning tasks may cost at first, relative to the bound, and seconds
        per 100 tasks after which anything better than the incumbent will do.
    gap: between bound and value where only shares are looked at.
    clear_share, least_share: of a task in a server from which it is assigned at once, and below
        which it is not drawn.
    most_wrong, rise: assignments that are taken back, and by how much more than is needed what a
        dive may cost rises then.
    from_assignment: dives from an assignment.
    """

    dive_s: float = 2.5
    least_loss: float = 1e-3
    assign_s: float = 1.0
    gap: float = 1e-4
    clear_share: float = 0.95
    least_share: float = 0.05
    most_wrong: int = 60
    rise: float = 3e-4
    from_assignment: int = 2


@dataclass(frozen=True)
class GangLayoutParams:
    """Gang-first layouts.

    Parameters
    ----------
    levels: that a layout tells apart. cells, cells_memory: of each line of room; with memory alone.
    moves, most_work: annealing moves for each task of several GPUs, and rows of GPUs that they may
        touch in all.
    hot_w, cold_w: first and last temperature, W.
    beyond: times what a GPU costs beyond those wanted.
    too_full, over_at_all: times the dearest GPU: what one costs that is as much again over its
        limit; and the share of that for being over it at all.
    tight: of the counts wanted: what duals are taken at, so that what is scarce has a price.
    rest_s, exchange_share: seconds per 100 tasks for the others, and share of that for pairwise
        exchange.
    gap, learn_s: how close a bound is to the value where duals are no proof; seconds per 100 tasks
        after which they are taken as they are.
    same_servers: how often a layout has as many servers as the incumbent, where counts need fewer.
    """

    levels: int = 16
    cells: int = 100
    cells_memory: int = 400
    moves: int = 1500
    most_work: float = 5e7
    hot_w: float = 30.0
    cold_w: float = 0.03
    beyond: float = 3.0
    too_full: float = 50.0
    over_at_all: float = 0.3
    tight: float = 0.98
    rest_s: float = 0.4
    exchange_share: float = 0.3
    gap: float = 2e-3
    learn_s: float = 0.3
    same_servers: float = 0.25


@dataclass(frozen=True)
class LnsParams:
    """Large neighbourhood search.

    Parameters
    ----------
    servers: how many are solved together, one of these. few_servers: up to which there is none.
    most_tasks: on them; with more, branching ends nowhere in its time.
    each_s: seconds for one neighbourhood. turn_s, tries: seconds per 100 tasks of a turn, and
        choices of servers in it at most, of which most are of no use.
    """

    servers: tuple[int, ...] = (2, 2, 3, 3, 4)
    few_servers: int = 5
    most_tasks: int = 90
    each_s: float = 0.3
    turn_s: float = 1.0
    tries: int = 200
