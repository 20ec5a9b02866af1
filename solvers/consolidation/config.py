"""Everything that tunes the methods of this family, with units; nothing else does.

Tolerances that proofs are stated with are in `numerics`. Times called "per 100 tasks" grow with the
number of tasks. A method takes a `Params` of its own where the defaults do not suit.
"""

from __future__ import annotations

from dataclasses import dataclass, field


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
    server_s: seconds for that program.
    column_tasks, column_levels: tasks up to which columns are generated for a bound alone, and
        levels that their costs are merged into.
    """

    levels: int = 48
    alphas: int = 40
    rows_times_levels: int = 5000
    all_alphas: int = 40_000
    gang_literals: int = 60_000
    server_s: float = 20.0
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


@dataclass(frozen=True)
class MasterParams:
    """The restricted master.

    Parameters
    ----------
    columns, columns_per_task: beyond which half of the columns are removed.
    first_penalty, penalty_growth, max_penalty: what a GPU beyond the counts costs, in times the
        dearest GPU and a server: at first, times as much where one is used, at most.
    target_penalty: the same where only duals are asked for.
    stall_rounds: rounds in which a value that is to be lowered has to be.
    """

    columns: int = 1500
    columns_per_task: int = 16
    first_penalty: float = 1.0
    penalty_growth: float = 4.0
    max_penalty: float = 50.0
    target_penalty: float = 4.0
    stall_rounds: int = 3


@dataclass(frozen=True)
class EnumerationParams:
    """Enumeration by reduced cost.

    Parameters
    ----------
    nodes: of the search, at most.
    """

    nodes: int = 5_000_000


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
    steps: of a first run, for each GPU that a task has. growth: of later runs.
    most_steps: between two looks at the clock; fewer where the limit is nearer.
    least_s: seconds that are taken to be left, at least.
    hot, cold: first and last temperature, in the dearest GPU's power; the first is drawn.
    fill: what the square of a full GPU's load is worth, in the same; drawn.
    gang_moves, swaps: shares of the steps that move a whole task, and that swap two shares.
    """

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
class OverloadParams:
    """Placements with given counts by level.

    Parameters
    ----------
    effort: times the steps of a first attempt, within the tree. most_effort: before it.
    steps, most_steps: annealing steps of an attempt for each GPU that a task has, and at most.
    attempts: at the same counts. vectors: of counts that are tried in order of cost.
    heats, warm_heats, cold: overload in GPUs that annealing begins to allow, near an earlier
        attempt, and ends with.
    warm_share, by_server: how often an attempt begins near an earlier one, and, with `gang=server`,
        with servers of one level.
    least_order: factor by which the order of tasks of several GPUs is disturbed.
    gang_moves, swaps: shares of the steps that move a whole task, and that swap two shares.
    near: overload in GPUs below which tasks are exchanged between two GPUs.
    hopeful, hopeful_cost: overload per GPU below which that goes on longer, and an attempt counts
        for less.
    near_per_gpu: the same below which the cheapest counts are tried again.
    noise: of a GPU's memory, by which the overload may rise in an exchange.
    pairs, most_pairs: of GPUs that are looked at, per GPU at first, and at most.
    missed, most_missed, most_counts: overload in GPUs beyond which counts were missed, and after
        how many misses, or vectors, they are left to others.
    first_hope, hope_growth, most_hope: share of the gap that guessed counts may keep, how it grows
        while nothing is found, and at most.
    """

    effort: float = 2.0
    most_effort: float = 256.0
    steps: int = 800
    most_steps: int = 4_000_000
    attempts: int = 2
    vectors: int = 4000
    heats: tuple[float, float] = (0.005, 0.06)
    warm_heats: tuple[float, float] = (0.001, 0.006)
    cold: float = 2e-4
    warm_share: float = 0.3
    by_server: float = 0.5
    least_order: float = 0.5
    gang_moves: float = 0.3
    swaps: float = 0.35
    near: float = 1.0
    hopeful: float = 5e-4
    hopeful_cost: float = 0.25
    near_per_gpu: float = 2e-3
    noise: float = 0.02
    pairs: int = 120
    most_pairs: int = 40_000
    missed: float = 0.02
    most_missed: int = 2
    most_counts: int = 8
    first_hope: float = 0.5
    hope_growth: float = 1.2
    most_hope: float = 0.95


@dataclass(frozen=True)
class DivingParams:
    """Diving.

    Parameters
    ----------
    at_counts: dives to counts that the tree has come to.
    clear_share, least_share: of a task in a server from which it is assigned at once, and below
        which it is not drawn.
    gap, rough_gap: between bound and value where only shares are looked at, and where nothing is
        taken back.
    stall: share of the value by which some rounds have to lower it there.
    most_wrong, rise: assignments that are taken back, and by how much more than is needed what a
        dive may cost rises then.
    at_once: fractional columns for each that is fixed at a time beyond the first.
    most_unfixed: columns that are let go again.
    least_loss, assign_s: what assigning tasks may cost at first, relative to the bound, and seconds
        per 100 tasks after which anything better than the incumbent will do.
    from_assignment: dives from an assignment.
    hoped_share: of what is left of the gap, that a placement may cost.
    dive_s: seconds per 100 tasks of a turn between nodes.
    residual_share, residual_tasks: tasks of which what is left becomes a problem of its own, as a
        share; and up to which that is decided by its columns.
    residual_s, residual_columns: seconds for that, and columns at most.
    lost_share: of what may be lost, that a step there may lose before more columns are looked for.
    """

    at_counts: int = 3
    clear_share: float = 0.95
    least_share: float = 0.05
    gap: float = 1e-4
    rough_gap: float = 1e-3
    stall: float = 1e-4
    most_wrong: int = 60
    rise: float = 3e-4
    at_once: int = 25
    most_unfixed: int = 5
    least_loss: float = 1e-3
    assign_s: float = 1.0
    from_assignment: int = 2
    dive_s: float = 2.5
    hoped_share: float = 0.3
    residual_share: float = 0.6
    residual_tasks: int = 45
    residual_s: float = 0.4
    residual_columns: int = 8000
    lost_share: float = 0.1


@dataclass(frozen=True)
class GangLayoutParams:
    """Gang-first layouts.

    Parameters
    ----------
    levels: that a layout tells apart. cells, cells_memory: of each line of room; with memory alone.
    moves, most_work: annealing moves for each task of several GPUs, and rows of GPUs that they may
        touch in all.
    hot_w, cold_w: first and last temperature, W.
    warm_share, warm_w: how often the best layout is begun with, and the temperature then, W; drawn.
    beyond: times what a GPU costs beyond those wanted.
    too_full, over_at_all: times the dearest GPU: what one costs that is as much again over its
        limit; and the share of that for being over it at all.
    tight: of the counts wanted: what duals are taken at, so that what is scarce has a price.
    rest_s, repair_share: seconds per 100 tasks for the others, and share of that for overload
        repair.
    gap, learn_s: how close a bound is to the value where duals are no proof; seconds per 100 tasks
        after which they are taken as they are.
    pool, beside: columns that are handed on from one layout to the next, and beside each task.
    same_servers: how often a layout has as many servers as the incumbent, where counts need fewer.
    first_hope, hope_growth: share of the gap that a placement may keep; how it grows.
    """

    levels: int = 16
    cells: int = 100
    cells_memory: int = 400
    moves: int = 1500
    most_work: float = 5e7
    hot_w: float = 30.0
    cold_w: float = 0.03
    warm_share: float = 0.3
    warm_w: tuple[float, float] = (1.0, 15.0)
    beyond: float = 3.0
    too_full: float = 50.0
    over_at_all: float = 0.3
    tight: float = 0.98
    rest_s: float = 0.4
    repair_share: float = 0.3
    gap: float = 2e-3
    learn_s: float = 0.3
    pool: int = 600
    beside: int = 25
    same_servers: float = 0.25
    first_hope: float = 0.5
    hope_growth: float = 1.2


@dataclass(frozen=True)
class LnsParams:
    """Large neighbourhood search.

    Parameters
    ----------
    servers: how many are solved together, one of these. few_servers: up to which there is none.
    most_tasks: on them; with more, branching ends nowhere in its time.
    each_s: seconds for one neighbourhood. turn_s, tries: seconds per 100 tasks of a turn, and
        choices of servers in it at most, of which most are of no use.
    from_nothing: dives before the first that keeps a part of the incumbent.
    kept_share: of the incumbent that later ones keep; drawn.
    same_servers: how often with as many servers as the incumbent.
    """

    servers: tuple[int, ...] = (2, 2, 3, 3, 4)
    few_servers: int = 5
    most_tasks: int = 90
    each_s: float = 0.3
    turn_s: float = 1.0
    tries: int = 200
    from_nothing: int = 4
    kept_share: tuple[float, float] = (0.3, 0.8)
    same_servers: float = 0.25


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


@dataclass(frozen=True)
class Params:
    """All of them."""

    bounds: BoundParams = field(default_factory=BoundParams)
    pricing: PricingParams = field(default_factory=PricingParams)
    master: MasterParams = field(default_factory=MasterParams)
    enumeration: EnumerationParams = field(default_factory=EnumerationParams)
    feasibility: FeasibilityParams = field(default_factory=FeasibilityParams)
    cheapest_cover: CheapestCoverParams = field(default_factory=CheapestCoverParams)
    tree: TreeParams = field(default_factory=TreeParams)
    construction: ConstructionParams = field(default_factory=ConstructionParams)
    annealing: AnnealingParams = field(default_factory=AnnealingParams)
    overload: OverloadParams = field(default_factory=OverloadParams)
    diving: DivingParams = field(default_factory=DivingParams)
    gang_layout: GangLayoutParams = field(default_factory=GangLayoutParams)
    lns: LnsParams = field(default_factory=LnsParams)
    large_scale: LargeScaleParams = field(default_factory=LargeScaleParams)
    exact: ExactParams = field(default_factory=ExactParams)
    repack: RepackParams = field(default_factory=RepackParams)


DEFAULT = Params()
