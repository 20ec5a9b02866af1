"""What the referee of placements says, to the last milli-GPU and watt."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from strategies import tasks_of

from optgap.models.errors import InputError
from optgap.models.placement import (
    Cluster,
    PlacementObjective,
    PlacementProblem,
    PlacementSolution,
    TargetWorkload,
)
from optgap.models.placement.cluster import TASKS_PER_NODE
from optgap.models.placement.fragmentation import Buckets, node_fragmentation
from optgap.models.placement.power import CpuProfile, PowerModel
from optgap.models.result import Violation

Place = tuple[int, Sequence[int]] | None
Row = tuple[int, int, int, int, str]
"""milli-vCPU, MiB, GPUs, milli-GPU of each, models."""

CLUSTER = Cluster.of(
    ["a", "b", "c"], [32_000, 64_000, 16_000], [1000, 2000, 500], [2, 4, 0], ["G2", "T4", ""]
)
WORKLOAD = TargetWorkload.of(
    [1000, 8000, 4000], [500, 1000, 0], [1, 2, 0], ["", "T4|P100", ""], [0.5, 0.3, 0.2]
)


def problem(*rows: Row, goal: str = "power", **objective: float) -> PlacementProblem:
    made = PlacementObjective(goal, **objective)  # type: ignore[arg-type]
    return PlacementProblem.of(CLUSTER, tasks_of(rows), WORKLOAD, objective=made)


def check(problem: PlacementProblem, *places: Place) -> list[Violation]:
    return problem.check(PlacementSolution.of(places))


HALF: Row = (1000, 10, 1, 500, "")
WHOLE: Row = (1000, 10, 1, 1000, "")
TWO: Row = (1000, 10, 2, 1000, "")
CPU: Row = (1000, 10, 0, 0, "")


def test_there_is_a_placement_for_each_task() -> None:
    found = check(problem(HALF, HALF), (0, [0]))
    assert found == [Violation("one placement per task", "solution", 1, 2)]
    found = check(problem(CPU, CPU), *[(0, [])] * 3)
    assert found == [Violation("one placement per task", "solution", 3, 2)]


def test_nodes_are_the_clusters() -> None:
    for node in (-2, 3, 7):
        found = check(problem(CPU), (node, []))
        assert found == [Violation("a node of the cluster", "task 0", node, 2)]
    assert check(problem(CPU), (2, [])) == check(problem(CPU), (0, [])) == []


def test_what_is_not_placed_has_no_gpus() -> None:
    made = PlacementSolution.of_arrays(np.array([-1, -1]), np.array([0, 2]))
    found = problem(HALF, HALF).check(made)
    assert found == [Violation("no GPUs for an unplaced task", "task 1", "some", "none")]


@pytest.mark.parametrize(("row", "gpus"), [(HALF, []), (HALF, [0, 1]), (TWO, [1]), (CPU, [0])])
def test_tasks_have_as_many_gpus_as_they_ask_for(row: Row, gpus: list[int]) -> None:
    found = check(problem(row), (1, gpus))
    assert found == [Violation("as many GPUs as requested", "task 0 on b", len(gpus), row[2])]


def test_gpus_are_the_nodes() -> None:
    assert check(problem(WHOLE, WHOLE), (0, [1]), (1, [3])) == []
    found = check(problem(HALF, TWO, HALF), (0, [2]), (1, [3, 4]), (0, [5]))
    assert found == [
        Violation("GPUs of the node", "task 0 on a", 2, 1),
        Violation("GPUs of the node", "task 1 on b", 4, 3),
        Violation("GPUs of the node", "task 2 on a", 5, 1),
    ]


def test_gpus_are_of_a_model_that_the_task_takes() -> None:
    picky: Row = (1000, 10, 1, 500, "V100M16|T4")
    assert check(problem(picky), (1, [0])) == []
    found = check(problem(picky), (0, [0]))
    assert found == [Violation("GPU model (Cond. 5)", "task 0 on a", "G2", "V100M16|T4")]
    # part of a name is another model; a task without GPUs does not care
    a10 = Cluster.of(["a"], [32_000], [1000], [2], ["A10"])
    other = PlacementProblem.of(a10, tasks_of([(1000, 10, 1, 500, "A100|G3")]), WORKLOAD)
    assert [v.constraint for v in check(other, (0, [0]))] == ["GPU model (Cond. 5)"]
    none: Row = (1000, 10, 0, 0, "G2")
    assert check(problem(none), (1, [])) == []


def test_one_more_than_a_node_has_is_refused() -> None:
    full: Row = (15_000, 490, 0, 0, "")
    assert check(problem(full, CPU), (2, []), (2, [])) == []
    assert check(problem(full, (1001, 10, 0, 0, "")), (2, []), (2, [])) == [
        Violation("CPU capacity in milli-vCPU (Cond. 1)", "c", 16_001, 16_000)
    ]
    assert check(problem(full, (1000, 11, 0, 0, "")), (2, []), (2, [])) == [
        Violation("memory capacity in MiB (Cond. 2)", "c", 501, 500)
    ]
    assert check(problem(full, (1001, 11, 0, 0, "")), (2, []), (1, [])) == []
    more: Row = (1000, 10, 1, 501, "")
    assert check(problem(HALF, more, HALF), (0, [0]), (0, [1]), (0, [0])) == []
    assert check(problem(HALF, more, more), (0, [0]), (0, [1]), (0, [1])) == [
        Violation("GPU capacity in milli-GPU (Cond. 3)", "a GPU 1", 1002, 1000)
    ]
    assert [v.found for v in check(problem(HALF, more), (0, [0]), (0, [0]))] == [1001]
    assert [v.where for v in check(problem(TWO, HALF), (1, [0, 2]), (1, [2]))] == ["b GPU 2"]


def test_a_node_takes_no_more_tasks_than_the_simulators_do() -> None:
    nothing: Row = (0, 0, 0, 0, "")
    most = [(1, [])] * TASKS_PER_NODE
    assert check(problem(*[nothing] * len(most)), *most) == []
    found = check(problem(*[nothing] * (len(most) + 1)), *most, (1, []))
    assert found == [Violation("tasks per node", "b", TASKS_PER_NODE + 1, TASKS_PER_NODE)]


ROWS = [
    (33_000, 10, 1, 300, ""),
    (1000, 10, 2, 1000, ""),
    (31_000, 10, 1, 700, ""),
    (16_000, 10, 0, 0, ""),
    (1000, 10, 1, 400, ""),
    (40_000, 10, 1, 500, "G2"),
]
PLACES: list[Place] = [(1, [1]), (1, [0, 3]), (0, [0]), (2, []), None, None]
"""Packages of 32 vCPU, 15 W idle and 120 W busy. b: 34 vCPU used, both packages active, three of
four T4 (70 W, idle 10 W) busy, on one of which 300 are used. a: 31 vCPU used, its package active,
one of two G2 (150 W, idle 30 W). c: its package active."""


def test_metrics_are_as_worked_out_by_hand() -> None:
    made = problem(*ROWS)
    placed = PlacementSolution.of(PLACES)
    assert made.check(placed) == []
    found = made.evaluate(placed)
    cpu_w, gpu_w = 4 * 120, 150 + 30 + 3 * 70 + 10
    # a: 1300 free, 1000 vCPU-milli: t1 fits on the idle GPU (300 useless), the others do not
    a = 0.5 * 300 + 0.3 * 1300 + 0.2 * 1300
    # b: 700 and 1000 free, 30 vCPU: t1 fits on both, two whole GPUs there are not
    b = 0.3 * 1700 + 0.2 * 1700
    assert found.objective == pytest.approx(cpu_w + gpu_w)
    assert dict(found.metrics) == pytest.approx(
        {
            "power_w": 880.0,
            "power_cpu_w": 480.0,
            "power_gpu_w": 400.0,
            "frag_gpu_milli": a + b,
            "frag_share": (a + b) / 6000,
            "frag_ratio": (a + b) / 3000,
            "arrived_gpu_milli": 3900,
            "used_gpu_milli": 3000,
            "used_cpu_milli": 81_000,
            "allocated_share": 0.5,
            "grar": 3000 / 3900,
            "active_gpus": 4,
            "active_packages": 4,
            "tasks": 6,
            "failed_tasks": 2,
            "never_fit_tasks": 1,
        }
    )


@pytest.mark.parametrize(
    ("goal", "objective", "value"),
    [
        ("accepted_gpu", {}, 3000.0),
        ("fragmentation", {}, 1650.0),
        ("weighted", {"alpha": 0.25, "watts_per_gpu": 100.0}, 0.25 * 880 + 0.75 * 100 * 1.65),
    ],
)
def test_the_objective_is_the_one_asked_for(
    goal: str, objective: dict[str, float], value: float
) -> None:
    found = problem(*ROWS, goal=goal, **objective).evaluate(PlacementSolution.of(PLACES))
    assert found.objective == pytest.approx(value)


def test_an_idle_and_a_full_cluster_have_numbers_too() -> None:
    made = problem(CPU)
    idle = made.evaluate(PlacementSolution.of([None]))
    assert idle.objective == 4 * 15 + 2 * 30 + 4 * 10
    assert idle.metrics["grar"] == 1.0
    assert (idle.metrics["allocated_share"], idle.metrics["active_packages"]) == (0, 0)
    assert idle.metrics["never_fit_tasks"] == 0
    full = problem(TWO, (1000, 10, 4, 1000, ""))
    found = full.evaluate(PlacementSolution.of([(0, [0, 1]), (1, [0, 1, 2, 3])])).metrics
    assert (found["frag_ratio"], found["allocated_share"], found["grar"]) == (0, 1, 1)
    none = Cluster.of(["c"], [16_000], [500], [0], [""])
    bare = PlacementProblem.of(none, made.tasks, WORKLOAD)
    found = bare.evaluate(PlacementSolution.of([(0, [])])).metrics
    assert (found["frag_share"], found["frag_ratio"], found["allocated_share"]) == (0, 0, 0)


def test_what_is_refused_is_evaluated_all_the_same() -> None:
    made = problem(HALF, HALF, HALF, HALF, HALF)
    places: list[Place] = [(7, [0]), (-2, [1]), (0, [2]), (3, [0]), (0, [5])]
    found = made.evaluate(PlacementSolution.of(places)).metrics
    assert (found["failed_tasks"], found["active_gpus"], found["used_gpu_milli"]) == (3, 0, 1000)


def test_a_thousandth_of_a_gpu_wakes_it() -> None:
    found = problem((1000, 10, 1, 1, "")).evaluate(PlacementSolution.of([(1, [2])])).metrics
    assert found["active_gpus"] == 1
    assert found["power_gpu_w"] == 2 * 30 + 70 + 3 * 10


def test_a_nodes_free_gpu_is_split_by_what_a_task_could_do_with_it() -> None:
    """Free: 400, 1000 and 1000; one class at a time, of popularity 1."""
    free = (400, 1000, 1000)

    def of(cpu: int, milli: int, count: int, spec: str = "", has: int = 4000) -> Buckets:
        one = TargetWorkload.of([cpu], [milli], [count], [spec], [1.0])
        return node_fragmentation(one, "T4", has, free)

    nothing = dict.fromkeys(Buckets._fields, 0.0)
    for found, expected in (
        (of(4000, 400, 1), {"q3": 2400}),
        (of(4000, 401, 1), {"q2": 400, "q3": 2000}),
        (of(4001, 401, 1), {"q4": 2400}),
        (of(4000, 1000, 2), {"q2": 400, "q3": 2000}),
        (of(4000, 1000, 3), {"q2": 2400}),
        (of(4001, 1000, 3), {"q1": 2400}),
        (of(4000, 0, 0), {"xl": 2400}),
        (of(4001, 0, 0), {"xr": 2400}),
        (of(4000, 1000, 2, "G2|P100"), {"na": 2400}),
        (of(4000, 1000, 2, "G2|T4"), {"q2": 400, "q3": 2000}),
    ):
        assert found._asdict() == {**nothing, **expected}
        assert found.fragment == 2400 - expected.get("q3", 0)
    assert Buckets(1, 2, 4, 8, 16, 32, 64).fragment == 127 - 4
    three = TargetWorkload.of([1] * 3, [0, 400, 400], [0, 1, 1], ["", "G2", ""], [0.25, 0.25, 0.5])
    found = node_fragmentation(three, "T4", 4000, free)
    assert found._asdict() == {**nothing, "xl": 600, "na": 600, "q3": 1200}


@pytest.mark.parametrize(
    ("rule", "capacity", "free", "active", "watts"),
    [
        # 24 physical cores are two packages; a core counts as busy unless both its vCPUs are free
        ("packages", 48_000, 48_000, 0, 30),
        ("packages", 48_000, 47_999, 1, 135),
        ("packages", 48_000, 16_000, 1, 135),
        ("packages", 48_000, 15_999, 2, 240),
        ("packages", 48_000, 0, 2, 240),
        ("packages", 32_001, 32_001, 1, 135),
        ("packages", 2000, 0, 1, 120),
        ("packages", 96_000, 65_000, 1, 150),
        # as printed: packages that are neither full nor free draw nothing
        ("eq1", 48_000, 48_000, 0, 15),
        ("eq1", 48_000, 47_999, 0, 135),
        ("eq1", 48_000, 31_999, 0, 120),
        ("eq1", 48_000, 16_000, 0, 120),
        ("eq1", 48_000, 15_999, 0, 240),
    ],
)
def test_cpu_power_is_by_packages_or_as_printed(
    rule: str, capacity: int, free: int, active: int, watts: float
) -> None:
    power = PowerModel(cpu_rule=rule)  # type: ignore[arg-type]
    assert power.cpu_w(capacity, free) == watts
    if rule == "packages":
        assert power.active_packages(capacity, free) == active
        assert power.packages(capacity) == {2000: 1, 96_000: 3}.get(capacity, 2)
    assert CpuProfile().vcpu_milli == 32_000


def test_devices_draw_what_the_table_says() -> None:
    """Table II, and the two models taken for others: idle and full power in W."""
    table = {
        "T4": (10, 70), "A10": (30, 150), "G2": (30, 150), "P100": (25, 250), "V100M16": (30, 300),
        "V100M32": (30, 300), "A100": (50, 400), "G3": (50, 400),
    }  # fmt: skip
    power = PowerModel()
    assert {m: (power.gpu_w(m, [1000]), power.gpu_w(m, [999])) for m in table} == table
    assert power.gpu_w("nothing", []) == 0


@pytest.mark.parametrize(
    ("idle", "full", "cpu", "said"),
    [
        ({"a": 2.0}, {"a": 2.0}, CpuProfile(4, 5.0, 5.0), None),
        ({"a": 2.0}, {"a": 1.9}, CpuProfile(), "gpu_full_w.a: found 1.9, expected at least"),
        ({"a": 2.0}, {}, CpuProfile(), "gpu_full_w.a"),
        ({}, {"a": 2.0}, CpuProfile(), "gpu_idle_w.a"),
        ({"a": 2.0}, {"a": 2.0}, CpuProfile(4, 5.0, 4.9), "cpu_full_w: found 4.9"),
    ],
)
def test_no_device_draws_less_when_it_is_used(
    idle: dict[str, float], full: dict[str, float], cpu: CpuProfile, said: str | None
) -> None:
    """Bounds take the idle cluster for the least."""
    power = PowerModel(idle, full, cpu)
    if said is None:
        power.validate("x")
        return
    with pytest.raises(InputError, match=said):
        power.validate("x")
