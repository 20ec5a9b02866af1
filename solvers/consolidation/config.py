"""Parameters of the methods for tasks that are all present; nothing else in the package tunes.

Work "per 100 tasks" is in units (`models.work`), about a second of a quiet core each, and grows in
proportion to the number of tasks. Nodes of a knapsack search are steps of its depth-first search.
Tolerances that proofs are stated with are in `numerics`; the methods for tasks that come and go
have `over_time.parameters`.
"""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class BoundParams:
    """Parameters of the lower bounds that no tree is grown for.

    Parameters
    ----------
    levels
        Cost levels that the closed form tells apart. Beyond this number levels are merged
        downwards: fewer levels are faster, and the bound is lower. Default 48.
    l2_evaluations
        Limit on levels × rows × thresholds of Martello and Toth's L2. Default 40,000.
    column_tasks
        Number of tasks up to which columns are generated if no tree can be grown. Default 600.
    column_levels
        Cost levels that the set covering bound tells apart. Default 150.
    """

    levels: int = 48
    l2_evaluations: int = 40_000
    column_tasks: int = 600
    column_levels: int = 150


@dataclass(frozen=True)
class PricingParams:
    """Parameters of pricing, the knapsack searches for columns of negative reduced cost.

    Parameters
    ----------
    max_cells
        Cells that a GPU's capacity is divided into in the tables that cut a search off. More cells
        make the upper limits tighter, and each table slower to fill. Default 4,096.
    min_cells, cells_per_task
        Cells with several capacity rows: so many for each task, and at least `min_cells`, because
        such tables are filled more often. Defaults 800 and 8.
    first_nodes
        Nodes of the first search for each dearest task. Default 100.
    nodes_growth
        Factor on the nodes if a search leaves the bound open and finds no new column. Default 10.
    heuristic_nodes
        Limit on the nodes of a search whose linear program guides a heuristic. Default 2,000.
    max_nodes
        Limit on the nodes of a search that is to prove a bound; it grows with the tree's patience.
        Default 200,000.
    all_nodes
        Limit on the nodes of an enumeration of all columns. If an enumeration needs more, the
        counts stay undecided. Default 5,000,000.
    """

    max_cells: int = 4096
    min_cells: int = 800
    cells_per_task: int = 8
    first_nodes: int = 100
    nodes_growth: int = 10
    heuristic_nodes: int = 2000
    max_nodes: int = 200_000
    all_nodes: int = 5_000_000


@dataclass(frozen=True)
class FeasibilityParams:
    """Parameters of the decision whether a vector of counts is feasible.

    Parameters
    ----------
    units
        Work for one vector of counts per 100 tasks; it grows with the tree's patience. Default 8.
    assigned_units
        The same under an assignment to servers, of which there are many. Default 1.
    columns
        Number of columns up to which the integer program is tried; it grows with the tree's
        patience. Default 20,000.
    """

    units: float = 8.0
    assigned_units: float = 1.0
    columns: int = 20_000


@dataclass(frozen=True)
class TreeParams:
    """Parameters of the branch-and-price tree.

    Parameters
    ----------
    tasks
        Number of tasks up to which a tree is grown at all. Default 600.
    patience_growth
        Factor on all limits of nodes and counts each time undecided nodes are opened again.
        Default 3.
    heuristic_units
        Work of one turn of the heuristic, per 100 tasks. Default 2.5.
    heuristic_share
        Share of the tree's work that the heuristic has. Default 0.5.
    """

    tasks: int = 600
    patience_growth: float = 3.0
    heuristic_units: float = 2.5
    heuristic_share: float = 0.5


@dataclass(frozen=True)
class LargeScaleParams:
    """Parameters of filling GPU by GPU, for thousands of tasks.

    Parameters
    ----------
    bound_levels
        Cost levels that the bound tells apart; each costs a pass over the tasks. Default 400.
    level_tasks
        Average number of tasks in a merged level. Default 200.
    breadths
        Number of tasks that are tried as first, second, … of a set, in turns of two searches; the
        last number holds for all later ones. A broad search fills GPUs better, a deep search finds
        servers to save.
    power
        Range that the exponent of a capacity row's scarcity in its weight is drawn from. Default
        1 to 14.
    fillings
        Placements that are made. Default 60.
    """

    bound_levels: int = 400
    level_tasks: int = 200
    breadths: tuple[tuple[int, ...], ...] = ((200, 30, 10, 3, 1), (40, 12, 5, 2))
    power: tuple[float, float] = (1.0, 14.0)
    fillings: int = 60


@dataclass(frozen=True)
class ExactParams:
    """Parameters of what `exact` does before and after the tree.

    Parameters
    ----------
    fillings
        Placements that are filled GPU by GPU to begin with. Default 20.
    cover_columns
        Number of columns beyond which the set covering program is not built. Default 40,000.
    steps
        Steps of iterated greedy for each task, where it is not built. Default 50.
    """

    fillings: int = 20
    steps: int = 50
    cover_columns: int = 40_000


@dataclass(frozen=True)
class Params:
    """The parameters of all parts."""

    bounds: BoundParams = field(default_factory=BoundParams)
    pricing: PricingParams = field(default_factory=PricingParams)
    feasibility: FeasibilityParams = field(default_factory=FeasibilityParams)
    tree: TreeParams = field(default_factory=TreeParams)
    large_scale: LargeScaleParams = field(default_factory=LargeScaleParams)
    exact: ExactParams = field(default_factory=ExactParams)


DEFAULT = Params()
