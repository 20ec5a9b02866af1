"""Bounds worked out by hand: one that became weaker or stronger fails."""

from __future__ import annotations

import itertools
from collections import Counter

import numpy as np
import pytest
from slow_placement import cost_of, fillings, nodes_of

from optgap.models.limits import Limits
from optgap.models.placement import (
    Cluster,
    PlacementObjective,
    PlacementProblem,
    TargetWorkload,
    Tasks,
)
from optgap.models.placement.cluster import TASKS_PER_NODE
from optgap.models.placement.power import CpuProfile, PowerModel
from optgap.models.result import Outcome, Status
from optgap.solvers.placement.aggregate import Aggregate, Contents, state_cost
from optgap.solvers.placement.columns import ColumnGeneration, Prices, cpu_units, stand_alone_cost
from optgap.solvers.placement.exact.search import bound_pooled, pooled_model, valid_bound
from optgap.solvers.placement.exact.tables import Counted
from optgap.solvers.placement.patterns import bound_patterns, patterns
from optgap.solvers.placement.pricing import Pricer

Row = tuple[int, int, int, int, str]
"""milli-vCPU, MiB, GPUs, milli-GPU of each, models."""
POWER = PowerModel({"T4": 10.0, "G2": 30.0}, {"T4": 70.0, "G2": 150.0})
"""60 and 120 W for a GPU more, 105 W for a package of 32 vCPU."""
NOTHING = np.zeros(0)
WORKLOAD = TargetWorkload.of([2000, 4000], [1000, 500], [2, 1], ["", ""], [0.25, 0.75])


def problem(
    *rows: Row, goal: str = "power", nodes: int = 2, power: PowerModel = POWER, **cluster: int
) -> PlacementProblem:
    """Equal nodes of 32 vCPU, 1000 MiB and two T4, unless told; 70 W idle."""
    cpu, memory, gpus = (cluster.get(k, v) for k, v in
                         (("cpu", 32_000), ("memory", 1000), ("gpus", 2)))  # fmt: skip
    return PlacementProblem.of(
        Cluster.of(
            [f"n{k}" for k in range(nodes)], [cpu] * nodes, [memory] * nodes, [gpus] * nodes,
            ["T4" if gpus else ""] * nodes,
        ),
        Tasks.of([f"t{k}" for k in range(len(rows))], *zip(*rows, strict=True)),
        WORKLOAD,
        power=power,
        objective=PlacementObjective(goal),  # type: ignore[arg-type]
    )  # fmt: skip


def solved(problem: PlacementProblem, method: str) -> Outcome:
    if method == "patterns":
        return bound_patterns(problem, limits=Limits(), seed=0, tolerance=1e-7)
    return bound_pooled(problem, limits=Limits(), seed=0)


LARGE: Row = (1000, 10, 1, 700, "")
HALF: Row = (1000, 10, 1, 500, "")
PAIR: Row = (1000, 10, 2, 1000, "")
BUSY: Row = (20_000, 10, 0, 0, "")


@pytest.mark.parametrize(
    ("rows", "patterns", "pooled"),
    [
        # three GPUs; packages: those of one and a half nodes, or a whole one
        ([LARGE] * 3, 1.5 * 225, 180 + 105),
        ([LARGE] * 2, 225, 120 + 105),
        ([HALF] * 3, 0.75 * 225, 120 + 105),
        ([HALF] * 4, 225, 120 + 105),
        ([PAIR], 225, 120 + 105),
        ([PAIR, LARGE], 225 + 225 / 2, 180 + 105),
        # 40 vCPU: two packages
        ([BUSY] * 2, 210, 210),
        ([BUSY, LARGE], 60 + 105, 60 + 105),
        ([(32_000, 10, 1, 100, "")], 60 + 105, 60 + 105),
    ],
)
def test_power_is_bounded_by_patterns_and_by_pooled_nodes(
    rows: list[Row], patterns: float, pooled: float
) -> None:
    made = problem(*rows)
    for method, more in (("patterns", patterns), ("pooled", pooled)):
        outcome = solved(made, method)
        assert outcome.status is Status.BOUND_ONLY
        assert outcome.bound == pytest.approx(70 + more, rel=2e-6), method
        assert outcome.bound <= 70 + more + 1e-9, method


def test_memory_limits_what_a_node_takes() -> None:
    """A node of 1000 MiB takes one of two tasks of 600: no less than the idle cluster, at least."""
    rows: list[Row] = [(1000, 600, 1, 400, "")] * 2
    assert solved(problem(*rows), "patterns").bound == pytest.approx(70)


def test_a_node_has_no_more_gpus_than_its_type() -> None:
    """On a: 32 vCPU and two GPUs; what does not fit goes to the dearer type."""
    both = PlacementProblem.of(
        Cluster.of(["a", "b"], [32_000] * 2, [1000, 4000], [2, 4], ["T4", "G2"]),
        Tasks.of(["x", "y", "z"], [1000] * 3, [0] * 3, [1] * 3, [800, 700, 800], [""] * 3),
        WORKLOAD,
        power=POWER,
    )
    idle = 15 + 20 + 15 + 4 * 30
    # two on a, and a quarter of what four of them cost on b
    assert solved(both, "patterns").bound == pytest.approx(idle + 225 + 585 / 4, rel=1e-6)
    generation = ColumnGeneration(Aggregate(both), np.array([500.0, 500.0]))
    generation.run(1000.0, Limits(), tolerance=1e-9)
    assert not generation.short  # columns of both types are in the program
    assert generation.upper == pytest.approx(idle + 225 + 585 / 4, rel=1e-9)


def test_a_node_of_no_whole_cores_needs_its_second_package_for_its_last_core() -> None:
    """17 cores of 32.001 vCPU, one of them busy when idle: the 17th begins after 30.001 vCPU."""
    aggregate = Aggregate(problem(BUSY, cpu=32_001))
    found = [(band.max_used_milli, band.cpu_cost) for band in aggregate.bands(0)]
    assert found == [(30_001, 0.0), (32_001, 105.0)]
    for vcpu, more in ((30_000, 0), (31_000, 105)):
        made = problem((vcpu, 10, 0, 0, ""), cpu=32_001)
        assert solved(made, "patterns").bound == pytest.approx(2 * (135 + 20) + more, rel=1e-6)


def test_what_does_not_fit_is_infeasible_for_every_bound() -> None:
    over = problem(*[LARGE] * 5)
    assert solved(over, "patterns").status is Status.INFEASIBLE
    assert solved(over, "pooled").status is Status.INFEASIBLE
    split = PlacementProblem.of(
        Cluster.of(["a", "b"], [32_000, 2000], [1000, 1000], [0, 1], ["", "T4"]),
        Tasks.of(["x"], [4000], [0], [1], [500], [""]),
        WORKLOAD, power=POWER,
    )  # fmt: skip
    for method in ("patterns", "pooled"):
        assert solved(split, method).status is Status.INFEASIBLE, method


def test_a_placement_is_optimal_where_it_meets_its_bound_and_not_elsewhere() -> None:
    for count, status, watts in ((2, Status.OPTIMAL, 295.0), (3, Status.FEASIBLE, 460.0)):
        made = problem(*[LARGE] * count)
        outcome = patterns(made, limits=Limits(), seed=0, tolerance=1e-7, rounds=3)
        assert outcome.status is status
        assert outcome.claimed == pytest.approx(watts)
        assert made.check(outcome.solution) == []
        assert made.evaluate(outcome.solution).objective == pytest.approx(watts)
    assert patterns(problem(*[LARGE] * 5), limits=Limits(), seed=0).status is Status.INFEASIBLE


def test_what_fills_the_cluster_fits_and_a_little_more_does_not() -> None:
    full = problem(PAIR, PAIR)
    assert solved(full, "patterns").bound == pytest.approx(70 + 450, rel=1e-6)
    over = solved(problem(PAIR, PAIR, HALF), "patterns")
    assert over.status is Status.INFEASIBLE
    assert over.message == "GPUs: 4.5 GPUs asked for, 4 there, short by 0.5 GPUs"
    assert solved(problem(*[LARGE] * 4), "patterns").status is Status.BOUND_ONLY
    two_fit: Row = (1000, 10, 1, 400, "")  # on each GPU
    found = solved(problem(*[two_fit] * 14, nodes=3), "patterns")
    assert found.message == "at least 2 of 14 tasks cannot be placed together"


def test_what_can_be_accepted_is_bounded_from_above() -> None:
    """Five of 0.7 GPU on four GPUs: four of them; by totals 4 GPUs."""
    made = problem(*[LARGE] * 5, goal="accepted_gpu")
    for method, most in (("patterns", 2800), ("pooled", 2800)):
        bound = solved(made, method).bound
        assert bound == pytest.approx(most, rel=1e-3), method
        assert bound >= most, method
    few = problem(*[LARGE] * 3, goal="accepted_gpu")
    assert solved(few, "patterns").bound == pytest.approx(2100, rel=1e-6)


def test_accepted_demand_is_bounded_in_whole_milli_gpus() -> None:
    accepted = pooled_model(Counted(problem(*[LARGE] * 5, goal="accepted_gpu")))
    assert valid_bound(accepted, 2800.9) == 2800
    assert valid_bound(accepted, 2799.9999) == 2800
    assert valid_bound(accepted, 2799.9) == 2799
    assert valid_bound(accepted, 0.2) == 0
    assert valid_bound(accepted, 1_000_000.5) == 1_000_001  # a millionth is a solver's tolerance


def test_fragmentation_is_bounded_node_by_node() -> None:
    """Two of 0.7 GPU leave 300 and 300 on a node, of no use to either class; full GPUs none."""
    for count in (1, 2, 3, 4):
        made = problem(*[LARGE] * count, goal="fragmentation")
        assert solved(made, "patterns").bound == pytest.approx(300 * count, rel=1e-6)
    full = problem(PAIR, goal="fragmentation")
    assert solved(full, "patterns").bound == pytest.approx(0, abs=1e-6)
    # 3 vCPU are left of 32, too few for the second class
    tight = problem((29_000, 10, 1, 500, ""), goal="fragmentation")
    assert solved(tight, "patterns").bound == pytest.approx(0.25 * 1500 + 0.75 * 1500, rel=1e-6)
    assert solved(tight, "pooled").bound <= 1500 + 1e-6


# -- what a node's contents cost -----------------------------------------------------------


def test_contents_keep_to_their_node_and_give_away_what_is_too_much() -> None:
    """CPU, memory, GPUs and the number of tasks limit a node; memory alone weighs nothing."""
    rows: list[Row] = [(0, 400, 1, 500, ""), (0, 0, 1, 700, ""), PAIR, BUSY, (0, 200, 0, 0, "")]
    made = problem(*rows, (0, 200, 0, 0, ""))
    aggregate = Aggregate(made)
    half, large, pair, busy, light = made.tasks.class_of[:5].tolist()
    for fits, contents in (
        (True, Contents(shares=((half, half), (large,)), cpu_only=(light,))),
        (False, Contents(shares=((half, half),), cpu_only=(light, light))),
        (False, Contents(shares=((large, half),))),
        (False, Contents(shares=((half,),), multi=(pair,))),
        (False, Contents(cpu_only=(busy, busy))),
    ):
        assert aggregate.feasible(0, contents) is fits
    none = Aggregate(problem((0, 0, 0, 0, "")))
    for tasks in (TASKS_PER_NODE, TASKS_PER_NODE + 1):
        assert none.feasible(0, Contents(cpu_only=(0,) * tasks)) is (tasks == TASKS_PER_NODE)
    assert aggregate.base == 70
    assert aggregate.demand_counter(weightless=True)[light] == 2
    assert aggregate.demand_counter(weightless=False) == Counter([half, large, pair, busy])
    assert stand_alone_cost(aggregate)[[half, pair, busy]].tolist() == [60, 225, 105]
    both = Contents(shares=((half, half),), cpu_only=(light,))
    assert both.tasks == Counter({half: 2, light: 1})
    less = both.without(Counter({half: 1, light: 5}))
    assert less == Contents(shares=((half,),))
    assert both.without(Counter({half: 2})) == Contents(cpu_only=(light,))


@pytest.mark.parametrize(
    ("rule", "goal", "edges", "costs"),
    [
        # 40 vCPU on packages of 16: 20 cores are three packages, 8 cores each
        ("packages", "power", [0, 16_000, 32_000, 40_000], [0, 100, 200, 300]),
        ("packages", "fragmentation", [36_000, 38_000, 40_000], [0, 0, 0]),
        # as printed: idle 2.5 packages count for two of 10 W
        ("eq1", "power", [0, 8000, 16_000, 24_000, 32_000, 40_000], [0, 110, 100, 210, 200, 310]),
        ("eq1", "power", [0, 8000], [0, 110]),  # no whole package is idle
        (
            "eq1",
            "power",
            [0, 1, 16_000, 16_001, 32_000, 32_001, 48_000, 48_001],
            [0, 110, 100, 210, 200, 310, 300, 410],
        ),
    ],
)
def test_bands_change_where_power_and_what_fits_do(
    rule: str, goal: str, edges: list[int], costs: list[float]
) -> None:
    """Each band at its least; use is counted from the top of the band before."""
    cpu = edges[-1]
    power = PowerModel(POWER.gpu_idle_w, POWER.gpu_full_w, CpuProfile(8, 10.0, 110.0), rule)  # type: ignore[arg-type]
    bands = Aggregate(problem(HALF, goal=goal, power=power, cpu=cpu)).bands(0)
    assert [band.max_used_milli for band in bands] == edges
    assert [band.cpu_cost for band in bands] == pytest.approx(costs)


def test_fragments_split_over_gpus_add_up_to_those_of_the_node() -> None:
    made = problem(HALF, goal="fragmentation", gpus=3)
    aggregate = Aggregate(made)
    for band in aggregate.bands(0):
        active, idle = aggregate.fragment_weights(0, band)
        for free in itertools.product((0, 300, 500, 999, 1000), repeat=3):
            lone = [r for r in free if r < 1000]
            split = sum(float(active[r]) for r in lone) + float(idle[3 - len(lone)])
            left = 32_000 - band.max_used_milli
            whole = state_cost(
                made, aggregate.weights, aggregate.types[0], left, gpu_free=list(free)
            )
            assert split == pytest.approx(whole)


# -- prices --------------------------------------------------------------------------------


@pytest.mark.parametrize("goal", ["power", "fragmentation", "weighted"])
@pytest.mark.parametrize("memory", [1000, 250])
def test_an_offer_is_the_most_valuable_contents(goal: str, memory: int) -> None:
    """With whole CPU units nothing is given away; where memory is short, no more than its price."""
    rows: list[Row] = [
        (8000, 100, 1, 500, ""), (4000, 50, 1, 700, ""), (2000, 100, 2, 1000, ""),
        (16_000, 100, 0, 0, ""),
    ]  # fmt: skip
    made = problem(*rows, goal=goal, memory=memory, nodes=1)
    aggregate, (node,) = Aggregate(made), nodes_of(made)
    idle = cost_of(made, [node])
    every = [
        (filled.tasks.copy(), cost_of(made, [node]) - idle)
        for filled in fillings(node, list(aggregate.classes), most=5)
    ]
    pricer, coarse = Pricer(aggregate, 2000.0), Pricer(aggregate, 3000.0)
    rng = np.random.default_rng(3)
    for _ in range(6):
        prices = rng.uniform(0, 250 if goal == "power" else 600, 4)
        best = max(prices[tasks].sum() - cost for tasks, cost in every)
        (offer,) = pricer.price(prices)
        assert offer.value >= best - 1e-9
        assert coarse.price(prices)[0].value >= best - 1e-9  # rounded down, never up
        if memory == 1000:
            assert offer.value == pytest.approx(best, abs=1e-9)
            contents = offer.contents[0]
            worth = prices[list(contents.tasks.elements())].sum()
            assert aggregate.cost(0, contents) == pytest.approx(worth - best)


@pytest.mark.parametrize(
    ("rows", "goal", "unit", "rounding", "prices", "tasks", "value"),
    [
        # without CPU left idle GPUs are fragments: four GPUs at 800, and not two of them at 1000
        ([(31_000, 0, 2, 1000, ""), (31_000, 0, 4, 1000, "")], "fragmentation", 1000, "down",
         [1000, 800], 1, 800),
        # three of 10 vCPU at 199 on two GPUs, and not one of 20 vCPU at 200 beside one of them
        ([(20_000, 0, 1, 500, ""), (10_000, 0, 1, 500, "")], "power", 2000, "down",
         [200, 199], 3, 3 * 199 - 225),
        # ten of 3.1 vCPU fit 32, by 3 vCPU each; of two units each (6 vCPU) five are offered
        ([(3100, 0, 0, 0, "")], "power", 3000, "down", [50], 10, 10 * 50 - 105),
        ([(3100, 0, 0, 0, "")], "power", 3000, "up", [50], 5, 5 * 50 - 105),
    ],
)  # fmt: skip
def test_an_offer_is_worth_what_was_worked_out(
    rows: list[Row], goal: str, unit: float, rounding: str, prices: list[float], tasks: int,
    value: float,
) -> None:  # fmt: skip
    made = problem(*rows, goal=goal, gpus=4 if goal == "fragmentation" else 2)
    by_class = np.zeros(len(rows))
    by_class[made.tasks.class_of] = prices
    (offer,) = Pricer(Aggregate(made), unit, rounding).price(by_class)  # type: ignore[arg-type]
    assert offer.contents[0].tasks.total() == tasks
    assert offer.value == pytest.approx(value)


def test_an_offer_has_tasks_of_gpus_alone_and_none_whose_need_is_rounded_away() -> None:
    """Three of 0.7 GPU and no CPU: 180 W. A CPU task of no units could be had without end."""
    assert solved(problem(*[(0, 10, 1, 700, "")] * 3), "patterns").bound == pytest.approx(250)
    aggregate = Aggregate(problem((1000, 0, 0, 0, ""), (0, 0, 1, 500, ""), (4000, 0, 0, 0, "")))
    priceable = Pricer(aggregate, 3000.0).priceable.tolist()
    assert priceable == [c.cpu_milli != 1000 for c in aggregate.classes]


def test_cpu_units_divide_all_needs_or_lose_little() -> None:
    aggregate = Aggregate(problem((6000, 0, 0, 0, ""), (10_000, 0, 0, 0, ""), (0, 0, 1, 500, "")))
    assert cpu_units(aggregate, 16) == 2000
    assert cpu_units(aggregate, 1000) == 2000
    coarse = cpu_units(aggregate, 10)
    assert 3200 <= coarse <= 4800
    lost = [
        u
        for u in 3200 * np.linspace(1, 1.5, 101)
        if 6000 % u + 10_000 % u < 6000 % coarse + 10_000 % coarse
    ]
    assert lost == []
    assert cpu_units(Aggregate(problem((0, 0, 1, 500, ""))), 10) == 32_000


def test_any_prices_bound_the_cost_of_serving_the_demand() -> None:
    """Three of 0.7 GPU at 112.5 each: what 1.5 nodes of two cost, 337.5 W."""
    aggregate = Aggregate(problem(*[LARGE] * 3))
    generation = ColumnGeneration(aggregate, np.array([500.0]))
    generation.run(1000.0, Limits(), tolerance=1e-9)
    assert generation.lower == pytest.approx(337.5, rel=1e-9)
    assert generation.bound == pytest.approx(407.5, rel=1e-9)
    assert generation.upper == pytest.approx(407.5, rel=1e-9)
    assert not generation.short
    assert generation.closed(generation.last.value, generation.lower)
    pricer = Pricer(aggregate, 1000.0)
    for price, bound in ((100.0, 300.0), (112.5, 337.5), (130.0, 390 - 2 * 35), (50.0, 150.0)):
        prices, _ = generation._offer(pricer, Prices(np.array([price]), NOTHING), Limits())
        assert generation.proven(prices, aggregate.demand) == pytest.approx(bound)
