"""Parameters of the methods for tasks that are all present; nothing else in the package tunes.

A time "per 100 tasks" is in seconds and grows in proportion to the number of tasks. Nodes of a
knapsack search are steps of its depth-first search. Tolerances that proofs are stated with are in
`numerics`; methods for tasks that come and go have `over_time.parameters`.
"""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class BoundParams:
    """Lower bounds that no tree is grown for.

    Parameters
    ----------
    levels: cost levels that the closed form tells apart. Beyond it levels are merged downwards:
        fewer are faster, and the bound is lower.
    l2_thresholds: thresholds α that Martello and Toth's L2 tries for one capacity row at most. More
        may raise the bound.
    l2_evaluations: levels × rows × thresholds of L2 at most, which is about a second of work.
    column_tasks: number of tasks up to which columns are generated where no tree can be grown.
    column_levels: cost levels that the set covering bound tells apart; as `levels`.
    """

    levels: int = 48
    l2_thresholds: int = 40
    l2_evaluations: int = 40_000
    column_tasks: int = 600
    column_levels: int = 150


@dataclass(frozen=True)
class PricingParams:
    """Pricing: the knapsack searches for columns of negative reduced cost.

    Parameters
    ----------
    max_cells: cells that a GPU's capacity is divided into for the tables that cut a search off.
        More make the upper limits tighter, and each table slower to fill.
    min_cells, cells_per_task: with several capacity rows there are this many cells for each task,
        and at least `min_cells`: such tables are filled more often.
    table_cells: cells of all tables together, 8 bytes each: a limit on memory.
    first_nodes: nodes of the search for each dearest task at first. Where that leaves the bound
        open and gives no new column, there are `nodes_growth` times as many.
    heuristic_nodes, max_nodes: most nodes of one search where the linear program only guides a
        heuristic, and where it is to prove a bound; the second grows with the tree's patience.
    new, new_share: columns added to the restricted master at a time: the larger of a number and a
        share of the tasks.
    all_nodes, all_nodes_per_s: most nodes of an enumeration of all columns, in all and for each
        second that is left. Where that is too few, the counts stay undecided.
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
    all_nodes: int = 5_000_000
    all_nodes_per_s: float = 1e6


@dataclass(frozen=True)
class MasterParams:
    """The restricted master.

    Parameters
    ----------
    columns, columns_per_task: beyond the larger of both numbers of columns, half of them are
        removed. Larger keeps more of what may be needed again; each linear program takes longer.
    penalty: what a GPU beyond the node's counts costs, as a multiple of the dearest GPU and a
        server's static power. Above the gap it makes no difference to the value.
    """

    columns: int = 1500
    columns_per_task: int = 16
    penalty: float = 50.0


@dataclass(frozen=True)
class FeasibilityParams:
    """Deciding whether a vector of counts is feasible, by enumeration and an integer program.

    Parameters
    ----------
    seconds, assigned_s: time for one vector of counts, and for one under an assignment to servers,
        of which there are many; per 100 tasks, growing with the tree's patience.
    columns, large_columns: columns up to which the integer program is tried; the second where the
        tree is large (`TreeParams.enumerate_tasks`). They grow with the tree's patience, too.
    max_columns: columns that are enumerated at most, whatever the patience: a limit on memory.
    """

    seconds: float = 8.0
    assigned_s: float = 1.0
    columns: int = 20_000
    large_columns: int = 4000
    max_columns: int = 500_000


@dataclass(frozen=True)
class TreeParams:
    """The branch-and-price tree, and how much of the time its primal heuristics have.

    Parameters
    ----------
    tasks: number of tasks up to which a tree is grown at all.
    enumerate_tasks: number of tasks beyond which the tree is large: a node's linear program has
        limited time, and fewer columns are enumerated.
    node_s: time of a node's linear program in a large tree, per 100 tasks; a node that needs more
        is put aside as undecided.
    patience_growth: factor by which all limits on nodes and counts rise each time that undecided
        nodes are opened again.
    heuristic_s: time of one turn of a heuristic, per 100 tasks.
    heuristic_share: share of the tree's time that heuristics have.
    gang_tasks, gang_share: their share with `gang=server` and more tasks than this, where the gap
        is mostly the incumbent's; below, branching on servers closes it sooner.
    best_shown: open nodes of least bound that a heuristic is shown.
    """

    tasks: int = 600
    enumerate_tasks: int = 256
    node_s: float = 1.0
    patience_growth: float = 3.0
    heuristic_s: float = 2.5
    heuristic_share: float = 0.5
    gang_tasks: int = 100
    gang_share: float = 0.9
    best_shown: int = 8


@dataclass(frozen=True)
class AnnealingParams:
    """Simulated annealing of the power. Temperatures are multiples of the dearest GPU's power.

    Parameters
    ----------
    rounds: runs, each from the best placement so far.
    steps: moves of the first run, for each GPU that a task takes.
    growth: how many times as many moves each run has as the one before.
    max_steps: moves between two looks at the clock; fewer where the time limit is nearer.
    hot, cold: first temperature, drawn from this range, and last. Hotter accepts more that is
        worse.
    fill: reward for the squared load of a GPU, drawn from this range, as a multiple of the dearest
        GPU's power. More fills GPUs that are full and empties the others sooner.
    gang_moves: share of the moves of a task in one server that take all of it to another server.
    swaps: share of the other moves that exchange two tasks' GPUs instead of moving one.
    """

    rounds: int = 6
    steps: int = 4000
    growth: float = 1.3
    max_steps: int = 8_000_000
    hot: tuple[float, float] = (0.01, 0.6)
    cold: float = 1e-4
    fill: tuple[float, float] = (0.03, 1.0)
    gang_moves: float = 0.35
    swaps: float = 0.45


@dataclass(frozen=True)
class ExchangeParams:
    """Pairwise exchange of tasks between overloaded GPUs.

    Parameters
    ----------
    noise: by how much an exchange may raise the overload where none lowers it, as a share of a
        GPU's memory. More leaves local optima sooner, and converges later.
    pairs: pairs of GPUs looked at in one attempt, for each GPU.
    """

    noise: float = 0.02
    pairs: int = 800


@dataclass(frozen=True)
class DivingParams:
    """Diving on columns, and on the servers of tasks of several GPUs first.

    Parameters
    ----------
    dives_per_counts: dives to a vector of integer counts that the tree has come to.
    residual_share: share of the tasks at which those left uncovered become a smaller program.
    lp_gap: relative gap between value and bound at which a linear program is solved well enough to
        read the shares of tasks in servers off it.
    clear_share: share of a task in one server from which on it is assigned there without a draw.
    least_share: share below which no server is drawn; the widest task opens the next server
        instead.
    """

    dives_per_counts: int = 3
    residual_share: float = 0.6
    lp_gap: float = 1e-4
    clear_share: float = 0.95
    least_share: float = 0.05


@dataclass(frozen=True)
class GangLayoutParams:
    """Gang-first layouts: annealing of where tasks of several GPUs go.

    Parameters
    ----------
    levels: cost levels that the annealing tells apart; more are merged in groups.
    cells, memory_cells: cells that each of the two lines of free room is divided into, and the one
        line where memory is the only capacity.
    moves: moves for each task of several GPUs.
    max_updates: capacity rows of GPUs that all moves may touch together, which limits their number.
    hot_w, cold_w: first and last temperature, W.
    shortage_weight: cost of each GPU that a layout makes necessary beyond the counts wanted, as a
        multiple of its power.
    overload_weight, overload_offset: cost of a GPU over a limit, as a multiple of the dearest GPU:
        the weight times (overload as a share of the limit + the offset).
    target_share: share of the counts wanted that duals are taken at: below 1 makes what is scarce
        have a price.
    lp_gap: relative gap between value and bound at which such a linear program is solved well
        enough.
    dual_s: time per 100 tasks after which its duals are taken as they are.
    residual_s: time per 100 tasks for the tree that places the tasks of one GPU.
    incumbent_servers: probability that a layout uses as many servers as the incumbent, where the
        counts need fewer: with many capacity rows layouts in fewer servers are often infeasible.
    """

    levels: int = 16
    cells: int = 100
    memory_cells: int = 400
    moves: int = 1500
    max_updates: float = 5e7
    hot_w: float = 30.0
    cold_w: float = 0.03
    shortage_weight: float = 3.0
    overload_weight: float = 50.0
    overload_offset: float = 0.3
    target_share: float = 0.98
    lp_gap: float = 2e-3
    dual_s: float = 0.3
    residual_s: float = 0.4
    incumbent_servers: float = 0.25


@dataclass(frozen=True)
class LnsParams:
    """Large neighbourhood search over a few servers at a time.

    Parameters
    ----------
    servers: numbers of servers to choose from; repeated ones are drawn more often.
    max_tasks: tasks on the chosen servers at most: larger trees end nowhere in their time.
    neighbourhood_s: time in s of one neighbourhood.
    turn_s, tries: time of a turn, per 100 tasks, and choices of servers in it at most; most choices
        are skipped, as a task lies across the border or they were solved before.
    """

    servers: tuple[int, ...] = (2, 2, 3, 3, 4)
    max_tasks: int = 90
    neighbourhood_s: float = 0.3
    turn_s: float = 1.0
    tries: int = 200


@dataclass(frozen=True)
class LargeScaleParams:
    """Filling GPU by GPU, for thousands of tasks.

    Parameters
    ----------
    bound_levels: cost levels that its bound tells apart; each costs a pass over the tasks.
    level_tasks: average number of tasks in a level where levels are merged: that leaves more sets
        to choose from, and fills dear GPUs with cheap tasks.
    breadths: how many tasks are tried as first, second, … of a set, in turns of two searches; the
        last holds for all later. A broad one fills GPUs better, a deep one finds servers to save.
    first_power, power: exponent of a capacity row's scarcity in its weight: in the first placement,
        and the range that it is drawn from in the others. Higher looks at the scarcest row alone.
    full: weighted room of a GPU, as a share, that is not worth searching on for.
    """

    bound_levels: int = 400
    level_tasks: int = 200
    breadths: tuple[tuple[int, ...], ...] = ((200, 30, 10, 3, 1), (40, 12, 5, 2))
    first_power: float = 6.0
    power: tuple[float, float] = (1.0, 14.0)
    full: float = 1e-4


@dataclass(frozen=True)
class ExactParams:
    """What `exact` does before and after the tree.

    Parameters
    ----------
    fillings: placements that are filled GPU by GPU to begin with.
    search_share: share of the time limit that any one search before a proof may take.
    compact_literals: size of the compact model, in literals, beyond which it is not built.
    """

    fillings: int = 20
    search_share: float = 0.25
    compact_literals: int = 1_500_000


@dataclass(frozen=True)
class Params:
    """The parameters of all parts, as `exact` and `filling` take them."""

    bounds: BoundParams = field(default_factory=BoundParams)
    pricing: PricingParams = field(default_factory=PricingParams)
    master: MasterParams = field(default_factory=MasterParams)
    feasibility: FeasibilityParams = field(default_factory=FeasibilityParams)
    tree: TreeParams = field(default_factory=TreeParams)
    annealing: AnnealingParams = field(default_factory=AnnealingParams)
    exchange: ExchangeParams = field(default_factory=ExchangeParams)
    diving: DivingParams = field(default_factory=DivingParams)
    gang_layout: GangLayoutParams = field(default_factory=GangLayoutParams)
    lns: LnsParams = field(default_factory=LnsParams)
    large_scale: LargeScaleParams = field(default_factory=LargeScaleParams)
    exact: ExactParams = field(default_factory=ExactParams)


DEFAULT = Params()
