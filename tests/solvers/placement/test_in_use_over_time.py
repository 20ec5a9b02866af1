"""GPUs and CPU packages in use: never counted too high, and counted at all."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from slow_placement import fillings, least_in_use, nodes_of, optimum
from strategies import MODELS, tasks_of, timed_placement_problems
from trust.agreement import examples

import optgap
from optgap.models.limits import Limits
from optgap.models.placement import Cluster, OverTime, PlacementProblem, PowerModel, Tasks
from optgap.models.placement.power import CpuProfile
from optgap.models.result import Status
from optgap.solvers.placement.aggregate import Aggregate
from optgap.solvers.placement.columns import cpu_units
from optgap.solvers.placement.over_time import bounding
from optgap.solvers.placement.over_time.bounding import Refinement, bound_over_time
from optgap.solvers.placement.patterns import generation_for
from optgap.solvers.placement.pricing import Pricer

ONLY = np.eye(2)


def counted(problem: PlacementProblem) -> PlacementProblem:
    """The same with the CPU rule by which packages are counted."""
    return replace(problem, power=replace(problem.power, cpu_rule="packages"))


def watts(problem: PlacementProblem, model: str, in_use: tuple[int, int, int]) -> float:
    """Power of a node of this GPU model beyond what it draws empty."""
    power = problem.power
    each = power.gpu_full_w[model] - power.gpu_idle_w[model] if in_use[0] else 0.0
    return in_use[0] * each + in_use[1] * (power.cpu.full_w - power.cpu.idle_w)


@st.composite
def roomless(draw: st.DrawFn) -> PlacementProblem:
    """Two nodes, of which each has room for a few tasks only, GPUs of different power."""
    sizes = st.sampled_from(((32_000, 8192), (48_000, 16_384), (64_000, 10_000)))
    nodes = [draw(sizes) for _ in range(2)]
    gpus, models = (
        [draw(st.integers(0, 2)) for _ in range(2)],
        ["T4", draw(st.sampled_from(MODELS))],
    )
    most_cpu, most_memory = (max(each) for each in zip(*nodes, strict=True))
    rows = []
    for _ in range(draw(st.integers(1, 4))):
        number = draw(st.integers(0, max(gpus)))
        cpu = draw(
            st.sampled_from((0, 8000, 16_000, 32_000) if number else (15_999, 16_000, 33_000))
        )
        memory = draw(st.sampled_from((4096, 4097, 6000, 9000)))
        milli = (
            0 if number == 0 else 1000 if number > 1 else draw(st.sampled_from((400, 501, 1000)))
        )
        rows.append((min(cpu, most_cpu), min(memory, most_memory), number, milli, ""))
    power = PowerModel(
        dict.fromkeys(MODELS, 10.0),
        {"T4": 20.0, "G2": 110.0, "P100": 60.0},
        CpuProfile(8, 5.0, 40.0),
    )
    tasks = replace(tasks_of(rows), duration_s=np.ones(len(rows)))
    return PlacementProblem.of(
        Cluster.of(["m", "n"], [n[0] for n in nodes], [n[1] for n in nodes], gpus, models),
        tasks,
        power=power,
        over_time=OverTime("reject"),
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
        worth, prices = -ONLY[what], prices / 60
    pricer = Pricer(aggregate, cpu_units(aggregate, data.draw(st.sampled_from((7, 50, 10_000)))))
    priced = np.where(pricer.priceable, prices, 0.0)
    offers = pricer.price(priced, worth)
    for number, node in enumerate(nodes_of(problem)):
        t = int(problem.cluster.type_of[number])
        limit = max(0.0, offers[t].value) + 1e-9 * (1.0 + float(priced.max()))
        for filled in fillings(node, list(aggregate.classes), most=5):
            used = filled.in_use(problem.power.cpu.cores)
            value = sum(priced[c] for c in filled.tasks) + float(worth @ used[:2])
            if what is None:
                value -= watts(problem, node.model, used)
            assert value <= limit


@examples(13)
@given(
    problem=timed_placement_problems(
        goals=("energy",), queues=("reject",), max_nodes=2, max_gpus=2, max_tasks=4
    )
    | timed_placement_problems(
        goals=("energy",), queues=("reject",), max_nodes=3, max_gpus=2, max_tasks=2, gangs=True
    )
)
def test_no_more_are_counted_than_the_fewest_that_will_do(problem: PlacementProblem) -> None:
    problem = counted(problem)
    if problem.never_fits:
        return
    aggregate = Aggregate(problem, counting=True)
    made = Refinement(problem, 5e-4, Limits(), generation_for(aggregate))
    assert made.counting is not None
    events = np.flatnonzero(made.demand.lasts_s > 1e-3).tolist()
    for event in events:
        made.counting.raise_at(event, made.running(event), (0, 1), Limits(), 15_000)
    for event in events:
        fewest = least_in_use(problem, made.demand.running(event).tolist())
        if fewest is not None:
            assert (made.counting.least[:, event] <= fewest[:2]).all()


@examples(10)
@given(
    problem=timed_placement_problems(
        goals=("energy",), queues=("reject",), max_nodes=3, max_tasks=5, max_gpus=2
    )
    | timed_placement_problems(
        goals=("energy",), queues=("reject",), max_tasks=3, max_gpus=2, gangs=True
    )
)
def test_bound_optimum_and_policies_are_in_order(problem: PlacementProblem) -> None:
    problem = counted(problem)
    found = bound_over_time(problem, limits=Limits(), seed=0)
    best = optimum(problem)
    if best is None:
        return
    assert found.status is Status.BOUND_ONLY
    assert found.bound <= best + 1e-9 * abs(best)
    for policy in ("pwr", "fgd", "bestfit"):
        ran = optgap.run(problem, policy)
        if problem.serves_all(ran.solution):
            assert ran.objective >= best - 1e-9 * abs(best)


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
        over_time=OverTime("reject"),
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
    made.run()
    assert made.counting is not None
    most = made.pool.largest + made.counting.rises(made.pool.dearest)
    assert made.pool.dearest[0] > 0
    for prices in made.pool.prices:
        task = float(np.diff(np.ceil(np.arange(6) / 2)).max())
        assert prices.task.max() + prices.in_use[0] * task <= most + 1e-9
