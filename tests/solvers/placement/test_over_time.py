"""Bounds over time are below every schedule, and hindsight lies between them and every policy."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import replace
from unittest import mock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from slow_placement import fillings, least_in_use, nodes_of, optimum, power_w
from small_time import small_time
from strategies import MODELS, tasks_of, timed_placement_problems
from trust.agreement import examples

import optgap
from optgap.models.errors import InputError
from optgap.models.limits import Limits
from optgap.models.placement import (
    Cluster,
    OverTime,
    PlacementProblem,
    PlacementSolution,
    PowerModel,
    Tasks,
)
from optgap.models.placement.power import CpuProfile
from optgap.models.placement.presets import small
from optgap.models.placement.presets_over_time import alibaba_time
from optgap.models.result import Outcome, Status, Termination
from optgap.solvers.placement import METHODS, auto
from optgap.solvers.placement.aggregate import Aggregate
from optgap.solvers.placement.columns import cpu_units
from optgap.solvers.placement.over_time import bounding
from optgap.solvers.placement.over_time import hindsight as method
from optgap.solvers.placement.over_time.bounding import Refinement, bound_over_time
from optgap.solvers.placement.over_time.demand import Demand
from optgap.solvers.placement.over_time.hindsight import (
    HindsightSearch,
    beyond_empty_j,
    hindsight,
    long_rows,
)
from optgap.solvers.placement.over_time.parameters import TUNING
from optgap.solvers.placement.over_time.search_kernels import try_moves
from optgap.solvers.placement.patterns import bound_patterns, generation_for
from optgap.solvers.placement.pricing import Pricer


def places(problem: PlacementProblem, k: int) -> Iterator[tuple[int, int]]:
    """Every node and set of GPUs for a task, whatever else runs."""
    wanted = int(problem.tasks.num_gpu[k])
    for node, gpus in enumerate(problem.cluster.gpus.tolist()):
        for chosen in itertools.combinations(range(gpus), wanted):
            yield node, sum(1 << g for g in chosen)


def schedules(problem: PlacementProblem) -> Iterator[PlacementSolution]:
    """Every placement of all tasks."""
    options = [list(places(problem, k)) for k in range(len(problem.tasks))]
    for choice in itertools.product(*options):
        nodes, masks = zip(*choice, strict=True)
        yield PlacementSolution.of_arrays(np.array(nodes), np.array(masks), problem.tasks.submit_s)


TIMED = timed_placement_problems(max_nodes=2, max_tasks=3, max_gpus=2)


@examples(18)
@given(problem=TIMED, data=st.data())
def test_no_schedule_of_all_tasks_is_below_the_bound(
    problem: PlacementProblem, data: st.DataObject
) -> None:
    """Nor below that of a part of them, at the prices that were found for all."""
    sign = 1 if problem.objective.described.sense == "min" else -1

    def is_below_all(part: PlacementProblem, bound: Outcome) -> None:
        kept = (one for one in schedules(part) if not part.check(one))
        best = min((sign * part.evaluate(one).objective for one in kept), default=None)
        if best is not None:
            assert bound.status is Status.BOUND_ONLY
            assert sign * bound.bound <= best + 1e-9 * abs(best)

    size, found = len(problem.tasks), {}
    whole = bound_over_time(problem, limits=Limits(), seed=0, found=found)
    is_below_all(problem, whole)
    part = problem.subset(range(data.draw(st.integers(1, size))))
    shared = bound_over_time(part, limits=Limits(), seed=0, found=found)
    alone = bound_over_time(part, limits=Limits(), seed=0)
    assert shared.status is alone.status
    if alone.bound is not None and shared.bound is not None:
        assert sign * shared.bound >= sign * alone.bound - 3e-3 * abs(alone.bound)
        is_below_all(part, shared)


@pytest.mark.parametrize("goal", ["energy", "mean_weighted"])
def test_tasks_that_all_come_and_leave_together_are_bounded_as_if_they_stayed(goal: str) -> None:
    still = small(seed=1, size=4)
    count = len(still.tasks)
    tasks = replace(still.tasks, submit_s=np.full(count, 5.0), duration_s=np.full(count, 10.0))
    at_once = replace(still, objective=replace(still.objective, goal=goal).at_a_moment)
    timed = PlacementProblem.of(
        still.cluster, tasks, still.workload, still.ranks, still.power,
        replace(still.objective, goal=goal), over_time=OverTime(),
    )  # fmt: skip
    want = bound_patterns(at_once, limits=Limits(), seed=0).bound
    found = bound_over_time(timed, limits=Limits(), seed=0).bound
    assert want is not None
    assert found is not None
    if goal == "energy":  # in watts, and what is in use is counted whole as well
        most = METHODS["exact"].load()(at_once, limits=Limits(), seed=0)
        assert most.status is Status.OPTIMAL
        assert want * 10.0 * (1 - 2e-3) <= found <= most.claimed * 10.0
    else:
        assert found == pytest.approx(want, rel=2e-3)
    later = bound_over_time(timed.moved(1.7e9), limits=Limits(), seed=0).bound
    assert later == pytest.approx(found, rel=1e-5)


def test_more_moments_are_looked_at_where_demand_changes() -> None:
    still = small(seed=1, size=10)
    still = replace(still, power=replace(still.power, cpu_rule="eq1"))  # nothing counted whole
    count = len(still.tasks)
    submit = np.arange(count) * 60.0
    tasks = replace(still.tasks, submit_s=submit, duration_s=np.full(count, 300.0))
    timed = PlacementProblem.of(
        still.cluster, tasks, still.workload, still.ranks, still.power, over_time=OverTime()
    )
    found = bound_over_time(timed, limits=Limits(), seed=0, tolerance=1e-4)
    demand = Demand.of(timed)
    exact = 0.0  # a static bound for every moment
    for event in np.flatnonzero(demand.lasts_s > 0).tolist():
        running = demand.running(event)
        at_once = still.subset(running.tolist()) if len(running) else None
        bound = bound_patterns(at_once, limits=Limits(), seed=0).bound if at_once else None
        assert bound is not None  # somebody runs from the first to the last event
        exact += demand.lasts_s[event] * bound
    assert found.info["moments"] > 8
    assert found.bound >= 0.995 * exact


# -- GPUs and CPU packages in use ----------------------------------------------------------


@st.composite
def roomless(draw: st.DrawFn) -> PlacementProblem:
    """Two nodes, of which each has room for a few tasks only, GPUs of different power."""
    sizes = st.sampled_from(((32_000, 8192), (48_000, 16_384), (64_000, 10_000)))
    models = "T4", draw(st.sampled_from(MODELS))
    nodes = [(*draw(sizes), draw(st.integers(0, 2)), model) for model in models]
    most_cpu, most_memory, most_gpus, _ = map(max, zip(*nodes, strict=True))
    rows = []
    for _ in range(draw(st.integers(1, 4))):
        number = draw(st.integers(0, most_gpus))
        cpus = (0, 8000, 16_000, 32_000) if number else (15_999, 16_000, 33_000)
        milli = {0: (0,), 1: (400, 501, 1000)}.get(number, (1000,))
        cpu, memory = draw(st.sampled_from(cpus)), draw(st.sampled_from((4096, 4097, 6000, 9000)))
        share = draw(st.sampled_from(milli))
        rows.append((min(cpu, most_cpu), min(memory, most_memory), number, share, ""))
    full = {"T4": 20.0, "G2": 110.0, "P100": 60.0}
    return PlacementProblem.of(
        Cluster.of(["m", "n"], *zip(*nodes, strict=True)),
        replace(tasks_of(rows), duration_s=np.ones(len(rows))),
        power=PowerModel(dict.fromkeys(MODELS, 10.0), full, CpuProfile(8, 5.0, 40.0)),
        over_time=OverTime(),
    )


@examples(33)
@given(problem=roomless(), data=st.data())
def test_nothing_that_fits_a_node_beats_its_price(
    problem: PlacementProblem, data: st.DataObject
) -> None:
    """At any prices of tasks and of what is in use; also where the latter is all that costs."""
    what = data.draw(st.sampled_from((None, None, 0, 1)))
    aggregate = Aggregate(problem, (0.0, 0.0) if what is not None else None, counting=True)
    share = st.sampled_from((0.0, 0.3, 1.0))
    worth = aggregate.unit_cost * data.draw(st.tuples(share, share))
    price = st.sampled_from((0.0, 0.001, 7.5, 20.0, 60.0, 110.0))
    size = len(aggregate.classes)
    prices = np.array(data.draw(st.lists(price, min_size=size, max_size=size)))
    if what is not None:
        worth, prices = -np.eye(2)[what], prices / 60
    pricer = Pricer(aggregate, cpu_units(aggregate, data.draw(st.sampled_from((7, 50, 10_000)))))
    priced = np.where(pricer.priceable, prices, 0.0)
    offers = pricer.price(priced, worth)
    for number, node in enumerate(nodes_of(problem)):
        t = int(problem.cluster.type_of[number])
        limit = max(0.0, offers[t].value) + 1e-9 * (1.0 + float(priced.max()))
        idle_w = power_w(problem, node)
        for filled in fillings(node, list(aggregate.classes), most=5):
            used = filled.in_use(problem.power.cpu.cores)
            value = sum(priced[c] for c in filled.tasks) + float(worth @ used[:2])
            if what is None:
                value -= power_w(problem, filled) - idle_w
            assert value <= limit


@examples(13)
@given(problem=timed_placement_problems(goals=("energy",), max_nodes=2, max_gpus=2, max_tasks=4))
def test_no_more_are_counted_than_the_fewest_that_will_do(problem: PlacementProblem) -> None:
    problem = replace(problem, power=replace(problem.power, cpu_rule="packages"))
    if problem.never_fits:
        return
    aggregate = Aggregate(problem, counting=True)
    made = Refinement(problem, 5e-4, Limits(), generation_for(aggregate))
    assert made.counting is not None
    events = np.flatnonzero(made.demand.lasts_s > 1e-3).tolist()
    for event in events:
        made.counting.raise_at(made.running(event), (0, 1), Limits(), units=15_000)
    for event in events:
        fewest = least_in_use(problem, made.demand.running(event).tolist())
        if fewest is not None:
            assert (made.counting.least[:, event] <= fewest[:2]).all()


def alike(
    nodes: int, gpus: int, tasks: int, *, milli: int = 1000, cpu: int = 0
) -> PlacementProblem:
    """Equal nodes of 96 vCPU and equal tasks that come together; of GPUs unless `milli` is 0."""
    power = PowerModel({"T4": 10.0}, {"T4": 70.0}, CpuProfile(16, 15.0, 120.0))
    return PlacementProblem.of(
        Cluster.of(
            [f"n{i}" for i in range(nodes)],
            [96_000] * nodes, [10_000] * nodes, [gpus] * nodes, ["T4"] * nodes,
        ),
        Tasks.of(
            [f"t{k}" for k in range(tasks)],
            [cpu] * tasks, [0] * tasks, [int(milli > 0)] * tasks, [milli] * tasks, [""] * tasks,
            submit_s=[0.0] * tasks, duration_s=[10.0] * tasks,
        ),
        power=power,
        over_time=OverTime(),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("problem", "fewest"),
    [
        (alike(2, 2, 5, milli=500), (3, 0, 2)),  # 2.5 GPUs, of which two nodes have two each
        (alike(2, 2, 3, milli=0, cpu=24_000), (0, 3, 1)),  # 2.25 packages
    ],
)
def test_what_is_whole_is_counted_whole_and_the_bound_is_the_optimum(
    problem: PlacementProblem, fewest: tuple[int, int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert least_in_use(problem, list(range(len(problem.tasks)))) == fewest
    best = optimum(problem)
    assert best is not None
    found = bound_over_time(problem, limits=Limits(), seed=0).bound
    assert found == pytest.approx(best, rel=1e-3)
    assert found <= best
    monkeypatch.setattr(bounding, "counts", lambda _problem: False)
    without = bound_over_time(problem, limits=Limits(), seed=0).bound
    assert without < 0.99 * best


def test_a_task_more_changes_the_bound_by_no_more_than_is_taken_off_for_it() -> None:
    problem = alike(3, 2, 5, milli=500)
    made = bounding.refinement_for(problem, 5e-4, Limits(), {})
    most = made.pool.largest + made.counting.rises(made.pool.dearest)
    assert made.pool.dearest[0] > 0
    for prices in made.pool.prices:
        task = float(np.diff(np.ceil(np.arange(6) / 2)).max())
        assert prices.task.max() + prices.in_use[0] * task <= most + 1e-9


# -- hindsight -----------------------------------------------------------------------------


@examples(7)
@given(problem=timed_placement_problems(goals=("energy",), max_tasks=5, max_gpus=3))
def test_it_lies_between_the_optimum_and_the_bound(problem: PlacementProblem) -> None:
    # the referee checks the schedule, and its bound
    found = optgap.solve(problem, "hindsight", moves=20)
    if found.solution is None:
        assert found.status is Status.INFEASIBLE or "no room found" in found.message
        return
    assert problem.serves_all(found.solution)
    want = optimum(problem)
    assert found.objective >= want - 1e-6 * max(1.0, abs(want))


def test_it_comes_close_to_the_optimum_of_small_problems() -> None:
    for seed, least in ((0, 78_025.0), (1, 82_405.0)):  # J, proven by an integer program
        found = optgap.solve(small_time(seed=seed, size=7), "hindsight", moves=300).objective
        assert least * (1 - 1e-9) <= found <= 1.002 * least


def test_it_beats_every_policy_and_a_seed_gives_one_schedule(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    problem = alibaba_time(seed=2, size=50, days=1)
    monkeypatch.setattr(method, "TUNING", replace(TUNING, long_from=30))
    assert 0 < len(long_rows(problem)) < 30
    found = optgap.solve(problem, "hindsight", moves=40)
    best = min(optgap.run(problem, name).objective for name in ("pwr", "pwr+fgd"))
    assert found.bound <= found.objective < 0.995 * best
    again = optgap.solve(problem, "hindsight", moves=40)
    assert np.array_equal(again.solution.node, found.solution.node)
    assert auto(problem) == "hindsight"


@examples(6)
@given(
    problem=timed_placement_problems(goals=("energy",), max_tasks=8, max_nodes=4),
    data=st.data(),
)
def test_what_moves_change_is_what_the_referee_sees(
    problem: PlacementProblem, data: st.DataObject
) -> None:
    with mock.patch.object(method, "TUNING", replace(TUNING, tasks=2)):
        agree(problem, data)


def agree(problem: PlacementProblem, data: st.DataObject) -> None:
    search = HindsightSearch(problem, Limits(), seed=0)
    search.construct(np.array(data.draw(st.permutations(range(len(problem.tasks))))))
    assert not problem.check(search.solution_of(search.book))
    search.anneal(10, 1e6)
    before = search.solution_of(search.book)
    changed, found = try_moves(search.case, search.book, search.choice, 10, 1e6, 1e3, search.random)
    after = search.solution_of(search.book)
    assert not problem.check(after)
    assert found == (before.node < 0).sum() - (after.node < 0).sum()
    loss = problem.evaluate(after).objective - problem.evaluate(before).objective
    assert changed == pytest.approx(loss, rel=1e-6, abs=1e-2)
    assert search.best_j <= beyond_empty_j(problem, before) or search.missing


def test_at_a_limit_no_task_is_put_just_anywhere() -> None:
    problem = small_time(seed=0, size=30)
    found = hindsight(problem, limits=Limits(0.0), seed=0)
    assert found.termination is Termination.TIME_LIMIT
    assert found.solution is None
    limits = Limits()
    limits.interrupted.set()
    assert hindsight(problem, limits=limits, seed=0).termination is Termination.INTERRUPTED


def test_one_task_without_room_is_left_out_and_named() -> None:
    """Two nodes of one GPU. Halves a and c have to share one, beside w0; so b is on the other.

    Once c has left, a and b have a GPU each, and w1 finds none, though at no moment there is too
    much: no bound can tell.
    """
    tasks = Tasks.of(
        ["a", "c", "w0", "b", "w1"], [0] * 5, [0] * 5, [1] * 5, [500, 500, 1000, 500, 1000],
        [""] * 5, submit_s=[0.0, 0.0, 0.0, 2.0, 4.0], duration_s=[6.0, 3.0, 1.0, 4.0, 1.0],
    )  # fmt: skip
    nodes = Cluster.of(["m", "n"], [8000] * 2, [1024] * 2, [1, 1], ["T4", "T4"])
    problem = PlacementProblem.of(nodes, tasks)
    found = optgap.solve(problem, "hindsight")
    assert found.status is Status.FEASIBLE
    assert found.metrics["failed_tasks"] == 1
    lost = int(np.flatnonzero(found.solution.node < 0)[0])
    assert f"no room found for 1 of 5 tasks: {tasks.names[lost]}" in found.message
    table = optgap.compare(problem, ["pwr", "fgd"], "hindsight")
    row = table.row("hindsight")
    assert (row.bound_scope, row.gap_to_bound is None) == ("accepted", False)
    known = next(line for line in table.head() if line.startswith("best known of a part"))
    assert f"by hindsight: no room found for 1 of 5 tasks: {tasks.names[lost]}" in known
    for policy in ("pwr", "fgd"):
        ran = table.row(policy).result
        assert ran.metrics["failed_tasks"] >= 1
        if np.array_equal(ran.solution.node < 0, found.solution.node < 0):
            assert found.objective <= ran.objective


def test_what_cannot_run_together_is_proven_not_to_fit() -> None:
    still = small_time(seed=0, size=8)
    tasks = still.tasks.take([k for k in range(8) for _ in range(9)])
    tasks = replace(tasks, submit_s=np.zeros(72), duration_s=np.full(72, 10.0))
    crowd = PlacementProblem.of(still.cluster, tasks, still.workload)
    assert optgap.solve(crowd, "hindsight", moves=100).status is Status.INFEASIBLE
    bound = bound_over_time(crowd, limits=Limits(), seed=0)
    assert bound.status is Status.INFEASIBLE
    assert "cannot be placed together at" in bound.message


def test_what_it_is_not_for_it_refuses_in_one_line() -> None:
    problem = small_time(seed=0, size=30, goal="mean_fragmentation")
    named = r"\A.*objective\.goal: found 'mean_fragmentation'.*\Z"
    with pytest.raises(InputError, match=named):
        hindsight(problem, limits=Limits(), seed=0)
    assert auto(problem) == "bound-over-time"
