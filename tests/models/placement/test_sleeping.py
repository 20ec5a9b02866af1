"""Nodes that are switched off while they hold nothing: energy by hand, files, refusals."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from strategies import timed_placement_problems

import optgap
from optgap.models.errors import InputError
from optgap.models.jsonio import Fields
from optgap.models.placement import Cluster, OverTime, PlacementProblem, PlacementSolution, Tasks
from optgap.models.placement.csvout import placements
from optgap.models.placement.presets import from_csv
from optgap.models.placement.presets_over_time import small_time
from optgap.models.placement.timeline import timeline
from optgap.models.result import Status

CLUSTER = Cluster.of(["a", "b"], [32_000, 16_000], [1000, 500], [2, 0], ["G2", ""])


def problem(second_s: float, **rules: Any) -> PlacementProblem:
    """Two tasks of a GPU for 10 s, at 0 s and later: 300 W on node a, which draws 75 W empty."""
    tasks = Tasks.of(
        ["t0", "t1"], [1000] * 2, [10] * 2, [1] * 2, [1000] * 2, [""] * 2,
        submit_s=[0.0, second_s], duration_s=[10.0] * 2,
    )  # fmt: skip
    given = {"horizon_s": 40.0, "sleep_after_s": 3.0, "wake_s": 2.0, "off_w": 5.0, **rules}
    return PlacementProblem.of(CLUSTER, tasks, over_time=OverTime(**given))


def on_a(made: PlacementProblem) -> PlacementSolution:
    return PlacementSolution.of_arrays(np.zeros(2, int), np.array([1, 1]), made.tasks.submit_s)


@pytest.mark.parametrize("epoch_s", [0.0, 1.7e9])
@pytest.mark.parametrize(
    ("second_s", "holding_s", "idle_s", "boots"),
    [
        (14.0, 12 + 10, 2 + 3, 1),  # two seconds after the first has ended: still on
        (15.0, 12 + 10, 3 + 3, 1),
        (16.0, 12 + 12, 3 + 3, 2),
        (1.0, 13, 3, 1),  # it boots until 2 s: both run then, the first until 12 s
    ],
)
def test_energy_by_hand(
    second_s: float, holding_s: float, idle_s: float, boots: int, epoch_s: float
) -> None:
    made = problem(second_s).moved(epoch_s)
    solution = on_a(made)
    if second_s == 1.0:  # on the other GPU
        solution = PlacementSolution.of_arrays(np.zeros(2, int), np.array([1, 2]), solution.start_s)
        watts = 295 * 12 + 120 * 11.0
        want, idle_s, holding_s = 2 * 5 * 40 + watts + 70 * 3, 3, 12
    else:
        want = 2 * 5 * 40 + 295 * holding_s + 70 * idle_s
    assert not made.check(solution)
    found = made.evaluate(solution)
    assert found.objective == pytest.approx(want, rel=1e-9)
    assert found.metrics["boots"] == boots
    assert found.metrics["mean_nodes_on"] == pytest.approx((holding_s + idle_s) / 40)


def test_after_the_horizon_an_empty_node_is_not_counted() -> None:
    made = problem(14.0, horizon_s=25.0, sleep_after_s=100.0)
    found = made.evaluate(on_a(made))
    assert found.objective == 2 * 5 * 25 + 295 * 22 + 70 * (2 + 1)
    assert found.metrics["energy_after_horizon_j"] == 0.0
    late = problem(24.0, horizon_s=25.0)  # cut to 1 s, which it runs when its node has booted
    assert late.evaluate(on_a(late)).metrics["energy_after_horizon_j"] == 295 * 2


@settings(max_examples=25)
@given(
    problem=timed_placement_problems(goals=("energy",), sleeping=True)
    | timed_placement_problems(goals=("energy",), sleeping=True, gangs=True, max_tasks=4)
)
def test_energy_is_the_integral_of_the_power_that_is_drawn(problem: PlacementProblem) -> None:
    rules = problem.over_time
    assert rules is not None
    ran = optgap.run(problem, "firstfit")
    line, off = timeline(problem, ran.solution), len(problem.cluster) * rules.off_w
    spans = np.append(np.diff(line.time_s), 0.0)
    energy = off * rules.horizon_s + float((spans * (line.power_w - off)).sum())
    assert energy == pytest.approx(ran.objective, rel=1e-5, abs=1e-3)
    assert line.power_w[0] >= off - 1e-9
    assert line.power_w[-1] == pytest.approx(off, abs=1e-6)


def test_a_problem_survives_its_file_and_one_whose_nodes_stay_on_says_nothing() -> None:
    made = problem(14.0)
    again = PlacementProblem.from_json(Fields(json.loads(json.dumps(made.to_json())), "file"))
    assert again.over_time == made.over_time
    assert set(small_time(seed=0).to_json()["over_time"]) == {"queue", "begin_s", "horizon_s"}


def test_the_table_of_placements_has_the_ends_that_boots_make_later() -> None:
    made = problem(16.0)
    rows = placements(made, on_a(made)).splitlines()
    assert rows[1:] == ["0,a,0,0.0,12.0", "1,a,0,16.0,28.0"]


@pytest.mark.parametrize(
    ("rules", "named"),
    [
        ({"sleep_after_s": -1.0}, "over_time.sleep_after_s: found -1.0, expected at least 0"),
        ({"wake_s": math.nan}, "over_time.wake_s: found nan, expected 0 to 1e+06"),
        ({"off_w": 16.0}, "over_time.off_w: found 16.0, expected at most 15 W"),
        ({"sleep_after_s": math.inf}, "over_time.wake_s: found 2.0, expected sleep_after_s beside"),
    ],
)
def test_what_cannot_be_is_refused_in_one_line(rules: dict[str, float], named: str) -> None:
    with pytest.raises(InputError) as refused:
        problem(14.0, **rules)
    assert named in str(refused.value)
    assert "\n" not in str(refused.value)


def test_fragmentation_is_refused() -> None:
    with pytest.raises(InputError, match="expected energy or mean_accepted_gpu"):
        small_time(seed=0, goal="mean_fragmentation", sleep_after_s=60.0)


def test_the_exact_method_takes_no_nodes_that_boot_for_tasks_of_several(tmp_path: Path) -> None:
    nodes, tasks = tmp_path / "nodes.csv", tmp_path / "tasks.csv"
    of_two = "sn,cpu_milli,memory_mib,gpu,model\na,32000,4000,2,G2\nb,32000,4000,2,G2\n"
    nodes.write_text(of_two)
    head = "name,cpu_milli,memory_mib,num_gpu,gpu_milli,nodes,submit_s,duration_s"
    tasks.write_text(f"{head}\nt0,1000,10,2,1000,2,0,10\n")
    rules = {"sleep_after_s": 60.0, "goal": "energy"}
    made = [from_csv(nodes, tasks, seed=0, wake_s=w, **rules) for w in (0.0, 9.0)]
    assert optgap.solve(made[0], "exact-over-time").status is Status.OPTIMAL
    with pytest.raises(InputError, match="0 beside tasks of several nodes"):
        optgap.solve(made[1], "exact-over-time")


def test_lists_of_tasks_take_it_and_those_without_times_do_not(tmp_path: Path) -> None:
    nodes, tasks = tmp_path / "nodes.csv", tmp_path / "tasks.csv"
    nodes.write_text("sn,cpu_milli,memory_mib,gpu,model\na,32000,4000,2,G2\n")
    head, row = "name,cpu_milli,memory_mib,num_gpu,gpu_milli", "t0,1000,10,1,500"
    tasks.write_text(f"{head},submit_s,duration_s\n{row},0,10\n")
    made = from_csv(nodes, tasks, seed=0, sleep_after_s=60.0, wake_s=5.0, off_w=1.0, goal="energy")
    assert made.over_time == OverTime("reject", 0.0, 10.0, 60.0, 5.0, 1.0)
    tasks.write_text(f"{head}\n{row}\n")
    with pytest.raises(InputError, match="found tasks without times"):
        from_csv(nodes, tasks, seed=0, wake_s=5.0)


def test_the_compiled_loop_and_the_referee_agree_on_many_tasks() -> None:
    made = optgap.generate("placement", "alibaba-time", size=1500, queue="backfill", days=3)
    rules = replace(made.over_time, sleep_after_s=300.0, wake_s=120.0, off_w=3.0)
    asleep = replace(made, over_time=rules)
    ran = optgap.run(asleep, "pwr")  # its own sum is compared with the referee's
    assert ran.metrics["boots"] > 10
    assert ran.objective < 0.9 * optgap.run(made, "pwr").objective
