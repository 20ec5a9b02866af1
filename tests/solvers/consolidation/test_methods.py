from __future__ import annotations

from typing import Any

import pytest
from binpacking import bin_packing
from strategies_consolidation import micro
from trust.agreement import outcome_of as solved
from trust.agreement import value_of as value

from optgap.models.consolidation import ConsolidationProblem, GpuKind, Server, Task
from optgap.models.consolidation.presets import mixed
from optgap.models.consolidation.problem import Rules
from optgap.models.limits import Limits
from optgap.models.result import Status, Termination
from optgap.solvers.consolidation import METHODS, auto, auto_bound


@pytest.mark.parametrize("method", ["exact", "printed"])
@pytest.mark.parametrize(
    ("rules", "watts"),
    [({}, 222.741), ({"capacity": "mean"}, 345.481), ({"capacity": "slot"}, 345.481)],
)
def test_three_tasks_take_what_was_worked_out_by_hand(
    method: str, rules: dict[str, Any], watts: float
) -> None:
    problem = micro(**rules)
    outcome = solved(problem, method)
    assert outcome.status is Status.OPTIMAL
    assert value(problem, outcome) == pytest.approx(watts, abs=1e-3)


def test_a_grid_of_clocks_costs_the_next_one_up() -> None:
    grid = tuple(135.0 + 15 * k for k in range(82))
    problem = micro(capacity="slot", kind=GpuKind(frequencies_mhz=grid))
    for method in ("exact", "printed"):
        assert value(problem, solved(problem, method)) == pytest.approx(346.4)


def test_three_pairs_that_exclude_one_another_need_a_whole_number_of_gpus() -> None:
    # any two of three fit one GPU: half of each pair is a cover, 1.5 GPUs of power
    tasks = [Task(f"t{k}", 8.0, kappa=1.0) for k in range(3)]
    problem = ConsolidationProblem.of(
        [GpuKind(memory_gb=16.0)], [Server((0,))] * 3, tasks, rules=Rules(gang="free")
    )
    outcome = solved(problem, "exact")
    assert outcome.bound == pytest.approx(2 * 144.8, rel=1e-6)
    assert outcome.claimed == pytest.approx(2 * 144.8)


def test_a_model_that_time_left_half_written_is_no_answer() -> None:
    outcome = METHODS["printed"].load()(mixed(seed=0, size=30), limits=Limits(0.0), seed=0)
    assert outcome.status is Status.NO_SOLUTION
    assert outcome.termination is Termination.TIME_LIMIT


@pytest.mark.parametrize("kind", ["u120", "t60"])
def test_bin_packing_classes_are_proven(kind: str) -> None:
    problem = bin_packing(seed=2, kind=kind)
    outcome = solved(problem, "exact")
    assert outcome.status is Status.OPTIMAL
    if kind == "t60":
        assert value(problem, outcome) == 20


def test_mixed_tasks_are_proven_and_the_bounds_are_in_order() -> None:
    problem = mixed(seed=2, size=24, capacity="none")
    best = solved(problem, "exact")
    area, columns = solved(problem, "bound-area").bound, solved(problem, "bound-columns").bound
    assert best.status is Status.OPTIMAL
    assert area <= columns * (1 + 1e-9) <= best.bound * (1 + 2e-6)


@pytest.mark.parametrize(("capacity", "most"), [("none", 0.001), ("mean", 0.006)])
def test_thousands_of_tasks_are_placed_close_to_the_bound(capacity: str, most: float) -> None:
    problem = mixed(seed=0, size=3000, capacity=capacity)  # type: ignore[arg-type]
    outcome = solved(problem, "filling", tries=12)
    assert value(problem, outcome) <= outcome.bound * (1 + most)


def test_filling_has_an_answer_where_servers_differ_or_are_few() -> None:
    tasks = [Task(f"t{k}", d) for k, d in enumerate((9.0, 7.0, 6.0, 5.0, 5.0))]
    apart = ConsolidationProblem.of(
        [GpuKind(memory_gb=16.0)], [Server((0,)), Server((0, 0))], tasks
    )
    outcome = solved(apart, "filling")
    assert value(apart, outcome) == pytest.approx(2 * 122.7406, abs=1e-3)
    full = ConsolidationProblem.of([GpuKind(memory_gb=10.0)], [Server((0, 0))], tasks)
    assert solved(full, "filling").solution is None


def test_what_fits_nowhere_is_proven_infeasible() -> None:
    tasks = [Task(f"t{k}", 20.0) for k in range(3)]
    problem = ConsolidationProblem.of([GpuKind()], [Server((0, 0))], tasks)
    for method in ("exact", "printed"):
        assert solved(problem, method).status is Status.INFEASIBLE, method


def test_auto_goes_by_goal_and_size() -> None:
    assert auto(micro()) == "exact"
    assert auto(micro(goal="energy")) == "hindsight"
    assert auto_bound(micro()) == "bound-columns"
    assert auto_bound(mixed(seed=0, size=700)) == "bound-area"
    assert auto(mixed(seed=0, size=700)) == "filling"
