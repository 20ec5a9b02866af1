"""The tree, and what decides on counts."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class FeasibilityParams:
    """Whether counts can be realised.

    Parameters
    ----------
    seconds: per 100 tasks, for one vector of counts; more after each round of patience.
    first_s, turn_growth: seconds per 100 tasks for each program at first; how much longer later.
    columns: of a program at most. large_columns: with `gang=server`, or where tasks are many.
    spread: columns that leave no task in fewer, of programs that come first.
    pools: columns of programs that come first where columns are told apart by server.
    nearly_all: times a pool up to which all columns are taken at once.
    least_share: of what lies between bound and cost, where there are too many columns: it is halved
        down to this, which proves nothing, but may find a placement.
    near, nearer: with `gang=server`, relative gaps below which counts are decided as if a task's
        GPUs could be anywhere, and in one server.
    """

    seconds: float = 8.0
    first_s: float = 0.4
    turn_growth: float = 2.0
    columns: int = 20_000
    large_columns: int = 4000
    spread: tuple[int, ...] = (12, 24)
    pools: tuple[int, ...] = (500, 2000)
    nearly_all: float = 1.5
    least_share: float = 0.02
    near: float = 1e-2
    nearer: float = 3e-3


@dataclass(frozen=True)
class CheapestCoverParams:
    """With many levels: the cheapest cover by all columns of use.

    Parameters
    ----------
    columns: of the program at most. node_columns, node_s: of a node's own, and seconds for it.
    first_s: seconds of the first one; the next has twice as long.
    wait: times what it took until it is tried again.
    """

    columns: int = 15_000
    node_columns: int = 600
    node_s: float = 0.5
    first_s: float = 0.5
    wait: float = 1.0


@dataclass(frozen=True)
class TreeParams:
    """The tree.

    Parameters
    ----------
    tasks: up to which it is grown.
    decided_tasks: up to which all columns that counts allow are enumerated.
    decided_levels: up to which counts are decided one by one; with more they are hardly ever whole.
    split_levels: with `gang=server`, levels up to which denied counts are split off.
    small_gangs, small_gangs_memory: tasks up to which branching on servers denies sooner; with
        memory alone.
    node_s: seconds per 100 tasks after which the linear program of a large tree waits for those of
        other nodes.
    patience_growth: how much longer each time what was decided neither way is looked at again.
    first_nodes, heuristic_s: nodes before heuristics have their first turn, and seconds per 100
        tasks of a turn.
    heuristic_share, gang_share: share of the time that they have; where there are more tasks of
        several GPUs than `small_gangs`.
    far: relative gap above which they look for placements between nodes.
    best_shown: nodes that they see.
    """

    tasks: int = 600
    decided_tasks: int = 256
    decided_levels: int = 12
    split_levels: int = 8
    small_gangs: int = 192
    small_gangs_memory: int = 100
    node_s: float = 1.0
    patience_growth: float = 3.0
    first_nodes: int = 1
    heuristic_share: float = 0.5
    gang_share: float = 0.8
    heuristic_s: float = 2.5
    far: float = 1e-3
    best_shown: int = 8
