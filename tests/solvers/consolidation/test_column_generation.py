"""Duals, pricing, the restricted master and enumeration: by hand, and against all columns."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from exhaustive_consolidation import exhaustive
from hypothesis import given
from hypothesis import strategies as st
from strategies_consolidation import STEPS, consolidation_problems, on_even_gpus
from trees_consolidation import tree_of
from trust.agreement import examples

from optgap.models.consolidation import ConsolidationProblem, Task
from optgap.models.consolidation.presets import mixed
from optgap.models.limits import Limits
from optgap.solvers.consolidation.bounding import column_bound
from optgap.solvers.consolidation.bounds import cost_levels, counts_fix_power, level_counts
from optgap.solvers.consolidation.column_generation.dual_bound import dual_bound
from optgap.solvers.consolidation.column_generation.generation import (
    ColumnGeneration,
    enumerate_columns,
)
from optgap.solvers.consolidation.column_generation.kernels import (
    Knapsack,
    best_columns,
    fill_tables,
)
from optgap.solvers.consolidation.column_generation.master import PENALTY, Duals
from optgap.solvers.consolidation.column_generation.pricing import coarse_sizes
from optgap.solvers.consolidation.config import DEFAULT
from optgap.solvers.consolidation.instance import instance_of
from optgap.solvers.consolidation.numerics import CountBox

THREE = [Task(f"t{k}", 4.0, kappa=2.0) for k in range(3)]
"""Two of them fit a GPU of 60 W."""
WIDE = [
    Task("v", 6.0, gpus=2, kappa=2.0), Task("w", 6.0, gpus=2, kappa=2.0), Task("s", 4.0, kappa=2.0)
]  # fmt: skip
"""Two that need two GPUs each, and one that fits beside either."""
NODES = DEFAULT.pricing.max_nodes


def generation_of(
    tasks: list[Task], low: tuple[int, ...], high: tuple[int, ...], servers: int = 0
) -> ColumnGeneration:
    instance = instance_of(on_even_gpus(tasks))
    return ColumnGeneration(instance, cost_levels(instance), CountBox(low, high), servers)


def proven(generation: ColumnGeneration, values: list[float], nodes: int = NODES) -> float:
    """The bound of dual values of all rows, once they are priced."""
    rows, levels = np.array(values, dtype=float), len(generation.levels.quanta)
    duals = Duals.of_rows(rows, generation.instance.tasks, levels)
    priced = generation.pricer.price(duals, generation.master.assignment, nodes)
    return dual_bound(duals, generation.master, priced)


@pytest.mark.parametrize(
    ("tasks", "low", "high", "prices", "gpu_prices", "spread", "bound"),
    [
        # a GPU costs 60 and 50 of its server: any two tasks are worth it, half of it each
        (THREE, (1, 1), (16, 8), [55] * 3, [110], 50, 165),
        # where pairs are worth 120 all is scaled by 11/12, or 10 paid for each of few GPUs
        (THREE, (1, 1), (16, 8), [60] * 3, [110], 50, 165),
        (THREE, (1, 1), (2, 8), [60] * 3, [110], 50, 165),
        (THREE, (1, 1), (1, 8), [60] * 3, [110], 50, 170),
        (THREE, (1, 1), (2, 8), [55.25] * 3, [110], 50, 165),
        (THREE, (1, 1), (1, 8), [55.25] * 3, [110], 50, 165.25),
        (THREE, (1, 1), (16, 8), [55, 75, 35], [110], 50, 165 * 110 / 130),
        # servers that are not paid by their GPUs cost what the least of them do
        (THREE, (1, 1), (16, 8), [30] * 3, [60], 0, 90 + 100),
        (THREE, (2, 2), (16, 8), [30] * 3, [60], 0, 90 + 200),
        # gpu_prices below and above a GPU's cost: the least or the most GPUs, at the difference
        (THREE, (2, 1), (16, 8), [20] * 3, [40], 0, 60 + 2 * 20 + 100),
        (THREE, (2, 1), (5, 8), [40] * 3, [80], 0, 120 - 5 * 20 + 100),
        # servers paid for more than once: the most of them, at what is lost by each
        (THREE, (1, 1), (16, 3), [60] * 3, [120], 60, 180 - 3 * 20),
        # columns that cost nothing cannot be scaled but to nothing; a pair is worth 20
        (THREE, (1, 1), (2, 8), [10] * 3, [0], 0, 0 + 60 + 100),
        (THREE, (1, 1), (1, 8), [10] * 3, [0], 0, 30 - 20 + 60 + 100),
        (STEPS, (1, 1, 1, 1), (16, 16, 16, 8), [160, 140, 110, 0], [110, 30, 20], 50, 410),
        (STEPS, (1, 1, 1, 1), (16, 16, 16, 8), [150, 130, 100, 10], [110, 30, 20], 50, 390),
        (STEPS, (3, 2, 1, 2), (16, 16, 16, 8), [110, 90, 60, 0], [60, 30, 20], 0, 460),
        # the second level is 20 dearer than its rent
        (STEPS, (3, 2, 1, 2), (16, 16, 16, 8), [140, 120, 110, 0], [110, 10, 20], 50, 410),
        (STEPS, (3, 1, 1, 2), (16, 16, 16, 8), [140, 120, 110, 0], [110, 10, 20], 50, 390),
    ],
)
def test_duals_of_tasks_gpus_and_servers_prove_what_they_add_up_to(
    tasks: list[Task],
    low: tuple[int, ...],
    high: tuple[int, ...],
    prices: list[float],
    gpu_prices: list[float],
    spread: float,
    bound: float,
) -> None:
    generation = generation_of(tasks, low, high)
    found = proven(generation, [*prices, *gpu_prices, spread])
    assert found == pytest.approx(bound, rel=1e-7)
    assert found <= bound * (1 - 0.9e-9)  # sums are rounded
    nothing = [-1.0, *[0.0] * (len(prices) + len(gpu_prices))]  # duals below nothing are none
    assert proven(generation, nothing) == pytest.approx(generation.master.watts(low), rel=1e-7)


@pytest.mark.parametrize("nodes", [NODES, DEFAULT.pricing.heuristic_nodes])
@pytest.mark.parametrize(
    ("prices", "server_prices", "bound"),
    [
        # a GPU and half a server are 110 W; 10 more in the first server, which has two GPUs
        ([120, 110, 0], (10, 0), 2 * 230 - 2 * 10),
        ([110, 100, 10], (10, 0), 2 * 210 + 10 - 20),
        ([100, 100, 10], (0, 0), 2 * 200 + 10),
        ([110, 110, 10], (10, 10), 2 * 220 + 10 - 40),
        # the second is worth 120 in a server without a server_price: all but server_prices is
        # scaled by 11/12
        ([120, 120, 0], (10, 0), 480 * 11 / 12 - 20),
        ([120, 120, 0], (0, 10), 480 * 11 / 12 - 20),
        # what is assigned to no server is worth 130 without a price
        ([0, 0, 130], (21, 21), 130 * 11 / 13 - 84),
    ],
)
def test_gpus_of_a_server_cost_its_toll_and_are_no_more_than_it_has(
    prices: list[float], server_prices: tuple[float, float], bound: float, nodes: int
) -> None:
    generation = generation_of(WIDE, (4, 2), (16, 8), 2)
    generation.master.set_servers(np.array([0, 1, -1]))
    found = proven(generation, [*prices, 110, 50, *server_prices], nodes)
    assert found == pytest.approx(bound, rel=1e-7)
    assert found <= bound * (1 - 0.9e-9)  # sums are rounded


def test_columns_of_two_servers_are_not_used() -> None:
    sizes = (("v", 3.0, 2), ("w", 3.0, 2), ("s", 3.0, 1), ("r", 1.0, 1))
    tasks = [Task(name, size, gpus, kappa=2.0) for name, size, gpus in sizes]
    generation = generation_of(tasks, (2, 1), (16, 8), 3)
    master = generation.master
    master.add([(0, 1), (0, 2), (1, 2), (2, 3), (0, 1, 2)])
    master.set_servers(np.array([0, 1, -1, -1]))
    assert dict(zip(master.columns, master.column_server.tolist(), strict=True)) == {
        (0,): 0, (1,): 1, (2,): -1, (3,): -1, (0, 1): -2, (0, 2): 0, (1, 2): 1, (2, 3): -1,
        (0, 1, 2): -2,
    }  # fmt: skip
    # four GPUs of two servers
    assert generation.solve(Limits()).value == pytest.approx(4 * 60 + 200, rel=1e-6)
    # assigned anew, each column is where it would be had it been so from the start
    for again in map(np.array, ([1, 0, -1, -1], [-1, 2, -1, -1], [2, -1, 2, -1])):
        master.set_servers(again)
        fresh = generation_of(tasks, (2, 1), (16, 8), 3)
        fresh.master.add(master.columns)
        fresh.master.set_servers(again)
        known = dict(zip(fresh.master.columns, fresh.master.column_server, strict=True))
        assert master.column_server.tolist() == [known[one] for one in master.columns]
        found, other = generation.solve(Limits()), fresh.solve(Limits())
        assert found.value == pytest.approx(other.value, rel=1e-7)
        assert found.bound == pytest.approx(found.value, rel=1e-6)
        held = found.usage @ [[ell in one for ell in range(4)] for one in master.columns]
        assert (held >= generation.instance.width - 1e-6).all()
    # in one server there are two GPUs: a third is beyond the counts, and dear
    full = generation_of(WIDE[:2], (2, 1), (16, 8), 1)
    full.master.set_servers(np.array([0, 0]))
    assert full.solve(Limits()).value > 10 * (4 * 60 + 200)
    full.master.set_servers()
    assert full.solve(Limits()).value == pytest.approx(4 * 60 + 200, rel=1e-6)


@examples(20)
@given(problem=consolidation_problems(even=True, lines=False), data=st.data())
def test_no_placement_that_keeps_an_assignment_costs_less_than_the_bound_under_it(
    problem: ConsolidationProblem, data: st.DataObject
) -> None:
    truth = exhaustive(problem).solution
    instance = instance_of(problem)
    levels = cost_levels(instance)
    if truth is None or not counts_fix_power(instance, levels) or not instance.gang:
        return
    placed = sorted(truth.assignments, key=lambda one: one.task)
    homes = [one.gpus[0] // int(instance.server_gpus[0]) for one in placed]
    # servers are numbered as the tree numbers them: by their first task of several GPUs
    number = {home: k for k, home in enumerate(dict.fromkeys(homes))}
    assignment = np.full(instance.tasks, -1)
    for ell, home in enumerate(homes):
        if instance.width[ell] > 1 and data.draw(st.booleans()):
            assignment[ell] = number[home]
    servers, counts = len(instance.server_w), level_counts(instance, levels)
    box = CountBox((*counts, 1), (*[instance.gpus] * len(counts), servers))
    generation = ColumnGeneration(instance, levels, box, servers)
    generation.master.set_servers(assignment)
    least = problem.evaluate(truth).objective
    whole = generation.solve(Limits())
    assert whole.bound <= least * (1 + 1e-9) + 1e-5
    assert whole.bound == pytest.approx(whole.value, rel=1e-6, abs=1e-6)


def test_sizes_are_rounded_down_to_the_cells_of_a_table() -> None:
    """Rows of memory and capacities: the first, the mean of the others, and the mean of both."""
    one = np.array([[3, 4096]])
    for limit, sizes, cells in ((4096, [3, 4096], 4096), (8192, [1, 2047], 4096)):
        found, room = coarse_sizes(one, np.array([limit]))
        assert found.tolist() == [sizes]
        assert room.tolist() == [cells]
    rows, limits = np.array([[5000, 2500], [30, 90]]), np.array([10_000, 100])
    found, room = coarse_sizes(rows, limits)
    assert found.tolist() == [[399, 199], [239, 719], [319, 459]]
    assert room.tolist() == [800] * 3
    found, _ = coarse_sizes(np.vstack([rows, [[50, 10]]]), np.array([10_000, 100, 100]))
    assert found[1].tolist() == [319, 399]
    assert coarse_sizes(np.zeros((2, 1), int), np.array([0, 100]))[0].tolist() == [[0]] * 3
    many = np.full((2, 100_000), 5)
    assert coarse_sizes(many, np.array([10, 10]))[1].tolist() == [53] * 3
    few = coarse_sizes(np.full((2, 1_000_000), 5), np.array([10, 10]))
    assert few[1].tolist() == [50] * 3


@examples(26)
@given(seed=st.integers(0, 10**6), rows=st.integers(1, 3), most=st.sampled_from((0, 3, 10**6)))
def test_no_column_is_worth_more_than_pricing_says(seed: int, rows: int, most: int) -> None:
    rng = np.random.default_rng(seed)
    n, servers = 7, 3
    sizes = rng.integers(1, 60, (rows, n))
    limits = np.full(rows, 100, dtype=np.int64)
    profits = np.round(rng.uniform(0, 5, n), 2)
    cost = np.sort(np.round(rng.uniform(1, 6, n), 2))[::-1].copy()
    server = rng.integers(-1, servers, n)
    server_price = np.round(rng.uniform(0, 2, servers), 2)
    coarse, room = coarse_sizes(sizes, limits)
    tables = np.zeros((len(room), n + 1, int(room.max()) + 1))
    knapsack = Knapsack(sizes, limits, profits, coarse, room, tables, server, server_price)
    fill_tables(knapsack)
    value, upper, size, items, _ = best_columns(knapsack, cost, most)
    for first in range(n):
        best = -math.inf
        for k in range(n):
            for others in itertools.combinations(range(first + 1, n), k):
                inside = [first, *others]
                homes = {int(server[j]) for j in inside} - {-1}
                if len(homes) > 1 or (sizes[:, inside].sum(axis=1) > limits).any():
                    continue
                home = next(iter(homes), -1)
                worth = profits[inside].sum() - (server_price[home] if home >= 0 else 0.0)
                best = max(best, float(worth))
        assert upper[first] >= best - 1e-9
        if most > 3 and best > cost[first] + 1e-9:
            assert value[first] == pytest.approx(best)
            chosen = items[first, : size[first]].tolist()
            assert chosen[0] == first
            assert (sizes[:, chosen].sum(axis=1) <= limits).all()


@examples(13)
@given(problem=consolidation_problems(even=True, lines=False), share=st.floats(0.0, 2.0))
def test_every_column_of_a_cheap_enough_placement_is_enumerated(
    problem: ConsolidationProblem, share: float
) -> None:
    """Columns of small reduced cost, among all sets that fit a GPU."""
    instance = instance_of(problem)
    levels = cost_levels(instance)
    if not counts_fix_power(instance, levels):
        return
    counts = level_counts(instance, levels)
    box = CountBox((*counts, 1), (*[instance.gpus] * len(counts), len(instance.server_w)))
    if not box.nonempty:
        return
    generation = ColumnGeneration(instance, levels, box, 0)
    relaxed = generation.solve(Limits(), certified=True)
    watts = relaxed.bound + share * float(instance.watts.max())
    found = enumerate_columns(generation, relaxed.duals, watts, 10_000, limits=Limits())
    assert found is not None
    duals, listed = relaxed.duals, [set(column) for column in found]
    for n in range(1, instance.tasks + 1):
        for inside in itertools.combinations(range(instance.tasks), n):
            column = list(inside)
            if (instance.demand[:, column].sum(axis=1) > instance.max_capacity).any():
                continue
            rent = float(duals.gpu_prices[levels.of[column].max()])
            reduced = rent - float(duals.tasks[column].sum())
            if reduced <= watts - relaxed.bound - 1e-6:
                assert set(inside) in listed
    few = enumerate_columns(generation, relaxed.duals, watts, 1, limits=Limits())
    assert (few is None) == (len(found) > 1)


def test_a_box_that_is_set_back_leaves_no_trace() -> None:
    tree = tree_of(mixed(seed=0, size=40))
    generation, master, box = tree.generation, tree.generation.master, tree.root.box
    value = generation.solve(Limits()).value
    more = CountBox((*(2 * low for low in box.low[:-1]), 8), (*box.high[:-1], 99))
    master.set_box(more)
    assert generation.solve(Limits()).value > value + 1
    master.set_box(box)
    found = master.solve(Limits())
    assert found.value == pytest.approx(value, rel=1e-7)


def test_counts_that_are_too_few_cost_the_penalty_of_what_is_missing() -> None:
    tree = tree_of(mixed(seed=0, size=40, capacity="mean", gang="free"))
    generation, master, low = tree.generation, tree.generation.master, tree.root.box.low
    few = (*(count - 2 for count in low[:-1]), low[-1])
    own_watts, each = master.watts(few), master.dearest_gpu_w + master.static_w
    master.set_box(CountBox(few, few))
    asked = generation.solve(Limits(), stop_bound=own_watts + 0.5 * each)
    assert own_watts + 0.5 * each <= asked.bound
    at_most = generation.solve(Limits())
    penalty = PENALTY * each
    assert own_watts + penalty <= at_most.bound <= at_most.value * (1 + 1e-9)


def test_bounds_that_time_cuts_off_are_bounds() -> None:
    tree = tree_of(mixed(seed=0, size=128, capacity="mean", gang="free"))
    whole = tree.generation.solve(Limits())
    cut = tree_of(mixed(seed=0, size=128, capacity="mean", gang="free")).generation
    early = cut.solve(Limits(0.0))
    assert cut.master.watts(tree.root.box.low) - 1e-9 <= early.bound <= whole.bound
    assert len(early.usage) == len(cut.master.columns)
    assert cut.solve(Limits()).value == pytest.approx(whole.value, rel=1e-7)
    instance = instance_of(mixed(seed=1, size=40, capacity="mean"))
    full = column_bound(instance, [], Limits())
    assert column_bound(instance, [], Limits(0.0)) <= full * (1 + 1e-9)
