"""Everything that tunes the methods for one instant, with units; nothing else does.

Tolerances that proofs are stated with are in `numerics`. Times called "per 100 tasks" grow with the
number of tasks. A method takes a `Params` of its own where the defaults do not suit. Methods for
tasks that come and go have `over_time.parameters`.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from optgap.solvers.consolidation.config.primal import (
    AnnealingParams,
    ConstructionParams,
    DivingParams,
    ExchangeParams,
    GangLayoutParams,
    LnsParams,
    ServerDivingParams,
    TargetParams,
)


@dataclass(frozen=True)
class BoundParams:
    """Closed forms, and the bounds that solve a program once.

    Parameters
    ----------
    levels: of cost that are told apart; more are merged, which lowers the bound.
    alphas: thresholds of Martello and Toth's L2, for each row.
    rows_times_levels, all_alphas: rows, and thresholds, that are looked at for all levels together:
        about a second.
    gang_literals: tasks of several GPUs times servers in the program of servers; with more, those
        tasks are only counted.
    server_share: of the time limit, for that program at most.
    column_tasks, column_levels: tasks up to which columns are generated for a bound alone, and
        levels that their costs are merged into.
    """

    levels: int = 48
    alphas: int = 40
    rows_times_levels: int = 5000
    all_alphas: int = 40_000
    gang_literals: int = 60_000
    server_share: float = 0.5
    column_tasks: int = 600
    column_levels: int = 150


@dataclass(frozen=True)
class PricingParams:
    """The search for columns.

    Parameters
    ----------
    max_cells, min_cells, cells_per_task: of the tables that cut it off; with several rows at least
        so many, and so many for each task.
    table_cells: of all tables together, 8 bytes each.
    first_nodes, nodes_growth: of the search for each first task, and times as many where fewer
        leave it open.
    heuristic_nodes: at most where the relaxation is no proof. max_nodes: at most for one.
    new, new_share: columns that are added at a time: so many, or that share of the tasks.
    new_preplaced, new_each_preplaced: the same where tasks are preplaced, as those programs are
        solved once; and beside each of them.
    all_nodes, all_nodes_per_s: of the enumeration, at most; and of each second that is left.
    """

    max_cells: int = 4096
    min_cells: int = 800
    cells_per_task: int = 8
    table_cells: int = 16_000_000
    first_nodes: int = 100
    nodes_growth: int = 10
    heuristic_nodes: int = 2000
    max_nodes: int = 200_000
    new: int = 50
    new_share: float = 0.25
    new_preplaced: int = 150
    new_each_preplaced: int = 30
    all_nodes: int = 5_000_000
    all_nodes_per_s: float = 1e6


@dataclass(frozen=True)
class MasterParams:
    """The restricted master.

    Parameters
    ----------
    columns, columns_per_task: beyond which half of the columns are removed.
    first_penalty, penalty_growth, max_penalty: what a GPU beyond the counts costs, in times the
        dearest GPU and a server: at first, times as much where one is used, at most.
    target_penalty: the same where only duals are asked for.
    """

    columns: int = 1500
    columns_per_task: int = 16
    first_penalty: float = 1.0
    penalty_growth: float = 4.0
    max_penalty: float = 50.0
    target_penalty: float = 4.0


@dataclass(frozen=True)
class FeasibilityParams:
    """Whether counts can be realised.

    Parameters
    ----------
    seconds: per 100 tasks, for one vector of counts; more after each round of patience.
    quick_s: seconds per 100 tasks of a program before other ways are tried.
    columns, large_columns: of a program at first; where tasks are many. max_columns: at most, which
        is for memory.
    """

    seconds: float = 8.0
    quick_s: float = 0.4
    columns: int = 20_000
    large_columns: int = 4000
    max_columns: int = 500_000


@dataclass(frozen=True)
class TreeParams:
    """The tree.

    Parameters
    ----------
    tasks: up to which it is grown.
    decided_tasks: up to which all columns that counts allow are enumerated.
    decided_levels: up to which counts are decided one by one; with more they are hardly ever whole.
    small_gangs: tasks up to which branching on servers denies sooner.
    node_s: seconds per 100 tasks after which the linear program of a large tree waits for those of
        other nodes.
    patience_growth: how much longer each time what was decided neither way is looked at again.
    heuristic_s: seconds per 100 tasks of a heuristic's turn.
    heuristic_share, gang_share: share of the time that they have; where there are more tasks of
        several GPUs than `small_gangs`.
    far: relative gap above which they look for placements between nodes.
    best_shown: nodes that they see.
    """

    tasks: int = 600
    decided_tasks: int = 256
    decided_levels: int = 12
    small_gangs: int = 100
    node_s: float = 1.0
    patience_growth: float = 3.0
    heuristic_share: float = 0.5
    gang_share: float = 0.9
    heuristic_s: float = 2.5
    far: float = 1e-3
    best_shown: int = 8


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


@dataclass(frozen=True)
class ExactParams:
    """The order of `exact`: construction, exchange, the tree, the compact model.

    Parameters
    ----------
    fillings: placements that are made GPU by GPU.
    search_share: of the time limit, at most, for any search before a proof.
    exchange_s: seconds per 100 tasks of pairwise exchange before the tree.
    far, far_s: with `gang=server`, relative gap above which a placement is annealed before the
        tree, and seconds per 100 tasks.
    compact_literals: up to which the compact model is built.
    """

    fillings: int = 20
    search_share: float = 0.25
    exchange_s: float = 2.0
    far: float = 1e-2
    far_s: float = 0.2
    compact_literals: int = 1_500_000


@dataclass(frozen=True)
class Params:
    """All of them."""

    bounds: BoundParams = field(default_factory=BoundParams)
    pricing: PricingParams = field(default_factory=PricingParams)
    master: MasterParams = field(default_factory=MasterParams)
    feasibility: FeasibilityParams = field(default_factory=FeasibilityParams)
    tree: TreeParams = field(default_factory=TreeParams)
    construction: ConstructionParams = field(default_factory=ConstructionParams)
    annealing: AnnealingParams = field(default_factory=AnnealingParams)
    exchange: ExchangeParams = field(default_factory=ExchangeParams)
    target: TargetParams = field(default_factory=TargetParams)
    diving: DivingParams = field(default_factory=DivingParams)
    server_diving: ServerDivingParams = field(default_factory=ServerDivingParams)
    gang_layout: GangLayoutParams = field(default_factory=GangLayoutParams)
    lns: LnsParams = field(default_factory=LnsParams)
    large_scale: LargeScaleParams = field(default_factory=LargeScaleParams)
    exact: ExactParams = field(default_factory=ExactParams)


DEFAULT = Params()
