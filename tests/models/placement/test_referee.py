"""What the referee of placements says, to the last milli-GPU and watt."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

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


MORE: Row = (1000, 10, 1, 501, "")
FULL: Row = (15_000, 490, 0, 0, "")
PICKY: Row = (1000, 10, 1, 500, "V100M16|T4")
NUMBER, NODE = "one placement per task", "a node of the cluster"
COUNT, INDEX, MODEL = "as many GPUs as requested", "GPUs of the node", "GPU model (Cond. 5)"
CPUS, MEMORY = "CPU capacity in milli-vCPU (Cond. 1)", "memory capacity in MiB (Cond. 2)"
SHARE = "GPU capacity in milli-GPU (Cond. 3)"


@pytest.mark.parametrize(
    ("rows", "places", "broken"),
    [
        ([HALF, HALF], [(0, [0])], [(NUMBER, "solution", 1, 2)]),
        ([CPU, CPU], [(0, [])] * 3, [(NUMBER, "solution", 3, 2)]),
        *(([CPU], [(node, [])], [(NODE, "task 0", node, 2)]) for node in (-2, 3, 7)),
        *(([CPU], [(node, [])], []) for node in (0, 2)),
        ([HALF], [(1, [])], [(COUNT, "task 0 on b", 0, 1)]),
        ([HALF], [(1, [0, 1])], [(COUNT, "task 0 on b", 2, 1)]),
        ([TWO], [(1, [1])], [(COUNT, "task 0 on b", 1, 2)]),
        ([CPU], [(1, [0])], [(COUNT, "task 0 on b", 1, 0)]),
        ([WHOLE, WHOLE], [(0, [1]), (1, [3])], []),
        ([HALF, TWO], [(0, [2]), (1, [3, 4])], [(INDEX, "task 0 on a", 2, 1),
                                                (INDEX, "task 1 on b", 4, 3)]),
        ([HALF], [(0, [5])], [(INDEX, "task 0 on a", 5, 1)]),
        ([PICKY], [(1, [0])], []),
        ([PICKY], [(0, [0])], [(MODEL, "task 0 on a", "G2", "V100M16|T4")]),
        ([(1000, 10, 0, 0, "G2")], [(1, [])], []),
        ([FULL, CPU], [(2, []), (2, [])], []),
        ([FULL, (1001, 10, 0, 0, "")], [(2, []), (2, [])], [(CPUS, "c", 16_001, 16_000)]),
        ([FULL, (1000, 11, 0, 0, "")], [(2, []), (2, [])], [(MEMORY, "c", 501, 500)]),
        ([FULL, (1001, 11, 0, 0, "")], [(2, []), (1, [])], []),
        ([HALF, MORE, HALF], [(0, [0]), (0, [1]), (0, [0])], []),
        ([HALF, MORE, MORE], [(0, [0]), (0, [1]), (0, [1])], [(SHARE, "a GPU 1", 1002, 1000)]),
        ([HALF, MORE], [(0, [0]), (0, [0])], [(SHARE, "a GPU 0", 1001, 1000)]),
        ([TWO, HALF], [(1, [0, 2]), (1, [2])], [(SHARE, "b GPU 2", 1500, 1000)]),
    ],
)  # fmt: skip
def test_a_placement_breaks_no_more_than_is_said(
    rows: list[Row], places: list[Place], broken: list[Any]
) -> None:
    assert check(problem(*rows), *places) == [Violation(*one) for one in broken]


def test_what_is_not_placed_has_no_gpus() -> None:
    made = PlacementSolution.of_arrays(np.array([-1, -1]), np.array([0, 2]))
    found = problem(HALF, HALF).check(made)
    assert found == [Violation("no GPUs for an unplaced task", "task 1", "some", "none")]


def test_part_of_a_models_name_is_another_model() -> None:
    a10 = Cluster.of(["a"], [32_000], [1000], [2], ["A10"])
    other = PlacementProblem.of(a10, tasks_of([(1000, 10, 1, 500, "A100|G3")]), WORKLOAD)
    assert [v.constraint for v in check(other, (0, [0]))] == [MODEL]


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


def test_the_objective_is_the_one_asked_for() -> None:
    weighted = {"alpha": 0.25, "watts_per_gpu": 100.0}
    for made, value in (
        (problem(*ROWS, goal="accepted_gpu"), 3000.0),
        (problem(*ROWS, goal="fragmentation"), 1650.0),
        (problem(*ROWS, goal="weighted", **weighted), 0.25 * 880 + 0.75 * 100 * 1.65),
    ):
        found = made.evaluate(PlacementSolution.of(PLACES))
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
