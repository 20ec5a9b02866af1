"""Bounds, pricing, the restricted master, enumeration."""

from __future__ import annotations

from dataclasses import dataclass


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
