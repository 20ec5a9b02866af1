from __future__ import annotations

from dataclasses import replace
from itertools import chain
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies_consolidation import consolidation_problems, micro
from trust.agreement import examples
from trust.agreement import outcome_of as solved
from trust.agreement import value_of as value

import optgap
from optgap.heuristics.consolidation import POLICIES
from optgap.models.consolidation import ConsolidationProblem, GpuKind, PowerLine, Server, Task
from optgap.models.consolidation.presets import mixed, pai
from optgap.models.consolidation.problem import Rules
from optgap.models.errors import InputError
from optgap.models.limits import Limits
from optgap.models.result import Status
from optgap.solvers.consolidation import METHODS, auto, auto_bound
from optgap.solvers.consolidation.over_time import hindsight, loop, pricing_kernels, repacking
from optgap.solvers.consolidation.over_time.hindsight import Repacking


@pytest.mark.parametrize("triplets", [True, False])
def test_bin_packing_classes_are_proven(triplets: bool) -> None:
    """Test u120 and t60 of Falkenauer (J. Heur. 1996): a GPU is a bin in a server of its own."""
    rng = np.random.default_rng(2)
    capacity, sizes = (100.0, []) if triplets else (150.0, rng.integers(20, 101, 120).tolist())
    for _ in range(20 if triplets else 0):
        first = int(rng.integers(380, 491))
        rest = 1000 - first
        second = int(rng.integers(250, rest // 2 + 1))
        sizes += [first / 10, second / 10, (rest - second) / 10]
    tasks = [Task(f"t{k}", float(sizes[k]), duration_s=1.0) for k in rng.permutation(len(sizes))]
    gpu = GpuKind(memory_gb=capacity, power=PowerLine(1.0, 0.0))
    problem = ConsolidationProblem.of([gpu], [Server((0,))] * len(tasks), tasks)
    outcome = solved(problem, "exact")
    assert outcome.status is Status.OPTIMAL
    assert not triplets or value(problem, outcome) == 20


def test_mixed_tasks_are_proven_and_the_bounds_are_in_order() -> None:
    problem = mixed(seed=2, size=24, capacity="none")
    best = solved(problem, "exact")
    area, columns = solved(problem, "bound-area").bound, solved(problem, "bound-columns").bound
    assert best.status is Status.OPTIMAL
    assert area <= columns * (1 + 1e-9) <= best.bound * (1 + 2e-6)


@pytest.mark.parametrize(("capacity", "most"), [("none", 0.001), ("mean", 0.006)])
def test_thousands_of_tasks_are_placed_close_to_the_bound(capacity: str, most: float) -> None:
    problem = mixed(seed=0, size=3000, capacity=capacity)  # type: ignore[arg-type]
    outcome = METHODS["filling"].load()(problem, limits=Limits(effort=0.2), seed=0)
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


def test_auto_goes_by_goal_and_size() -> None:
    assert auto(micro()) == "exact"
    assert auto(micro(goal="energy")) == "hindsight"
    assert auto_bound(micro()) == "bound-columns"
    assert auto_bound(mixed(seed=0, size=700)) == "bound-area"
    assert auto(mixed(seed=0, size=700)) == "filling"


# -- over time: what holds on any problem, and what can be said by hand --------------------


RUNS = consolidation_problems(goal="energy", capacities=("none", "mean", "peak"))
QUICK = {"hindsight": {"schedules": 20}}


def quickly(problem: ConsolidationProblem, method: str) -> optgap.Result:
    return optgap.solve(problem, method, time_limit=60, **QUICK.get(method, {}))


@examples(10, long=1000)
@given(problem=RUNS, moves=st.booleans())
def test_no_schedule_is_below_the_bound_over_time(
    problem: ConsolidationProblem, moves: bool
) -> None:
    problem = replace(problem, rules=replace(problem.rules, migration=moves))
    bound = quickly(problem, "bound-over-time").bound
    searched = quickly(problem, "hindsight")  # refereed, its claim and its bound with it
    if searched.objective is not None:
        assert bound <= searched.objective * (1 + 1e-9)
    for name, entry in POLICIES.items():
        if name == "opt_repack":  # below
            continue
        outcome = entry.load()(problem, limits=Limits(20), seed=0)
        if outcome.solution is None:
            continue
        assert problem.check(outcome.solution) == [], name
        found = problem.evaluate(outcome.solution)
        if problem.serves_all(outcome.solution):
            assert bound <= found.objective * (1 + 1e-9), name


@examples(2, long=200)
@given(problem=RUNS)
def test_moves_for_nothing_do_not_reach_below_the_bound(problem: ConsolidationProblem) -> None:
    bound = quickly(problem, "bound-over-time").bound
    packed = optgap.run(problem, "opt_repack", effort=0.1)
    assert bound is not None
    if packed.objective is not None and problem.serves_all(packed.solution):
        assert bound <= packed.objective * (1 + 1e-9)


FLAT = GpuKind(power=PowerLine(40.0, 0.1))
NO_STATIC = GpuKind(power=PowerLine(0.0, 0.1))


def timed(
    rows: list[tuple[float, float, float]], util: float, servers: list[Server],
    kind: GpuKind = FLAT, kappa: float = 1.0, period_s: float = 1000.0, **rules: Any,
) -> ConsolidationProblem:  # fmt: skip
    """Tasks of (GB, arrival, seconds) that start as they arrive; GPUs of 32 GB and 175 W."""
    tasks = [
        Task(f"t{k}", gb, kappa=kappa, submit_s=at, duration_s=lasts, util_percent=np.array([util]))
        for k, (gb, at, lasts) in enumerate(rows)
    ]
    kept = Rules(waiting=False, **rules)
    return ConsolidationProblem.of(
        [kind], servers, tasks, goal="energy", rules=kept, period_s=period_s
    )


def two_tasks(**rules: Any) -> ConsolidationProblem:
    """Two tasks of 20 GB: they never share a GPU."""
    return timed([(20, 0, 100), (20, 30, 40)], 50, [Server((0,))] * 2, period_s=200, **rules)


def test_two_tasks_that_cannot_share_cost_what_their_bound_says() -> None:
    found = optgap.solve(two_tasks())
    assert found.method == "hindsight"
    assert found.objective == pytest.approx(140 * 175.0)
    assert found.bound == pytest.approx(140 * 175.0, rel=1e-3)


def test_the_bound_charges_the_stretch_of_a_low_clock() -> None:
    problem = timed([(4, 0, 1000)], 40, [Server((0,))], GpuKind(), 1.2)
    assert optgap.bound(problem).method == "bound-over-time"
    found = optgap.bound(problem, close=1e-6)
    # at the lowest clock it would draw 122.7 W, and last for 1,200 s
    assert 144_799 <= found.bound <= 144_800 + 1e-6  # type: ignore[operator]


@pytest.mark.parametrize("contention", [0.5, 1.0])
def test_gpus_without_static_power_are_bounded_by_their_work(contention: float) -> None:
    problem = timed(
        [(4, 0, 100)] * 2, 50, [Server((0,))] * 2, NO_STATIC, 1.2, 100, contention=contention
    )
    found = optgap.solve(problem, "hindsight", schedules=20)
    assert 0 < found.bound <= found.objective * (1 + 1e-9)


def test_the_pace_of_one_gpu_is_not_lent_to_another() -> None:
    # b fills a GPU; a and c may be apart from it, and no clock of b's lets them end in time
    rows = [(4, 0, 1000), (30, 0, 500), (4, 200, 1000)]
    problem = timed(rows, 10, [Server((0, 0))] * 2, GpuKind(), 1.2)
    found = optgap.solve(problem, "hindsight", schedules=50)
    assert found.bound > 230_000  # 223,919 J where rows of progress do not count the least pace
    assert found.objective == pytest.approx(245_481, abs=1)


def test_a_lower_cap_beside_gangs_saves_energy(monkeypatch: pytest.MonkeyPatch) -> None:
    def by_hand() -> float:
        packed = Repacking(problem, Limits(), seed=0)
        packed.search(len(packed.first))
        return packed.joules

    problem = pai(seed=1, size=40, capacity="none")
    both = by_hand()
    same_for_all = replace(hindsight.TUNING, beside_gangs_percent=np.inf)
    monkeypatch.setattr(hindsight, "TUNING", same_for_all)
    assert both < 0.99 * by_hand()


def test_packing_anew_heeds_its_limits_between_packings_and_goes_on_where_it_was() -> None:
    problem = pai(seed=2, size=120, present=40)
    whole, stopped = Repacking(problem, Limits(), seed=0), Repacking(problem, Limits(0.0), seed=0)
    whole.search(1)
    stopped.search(1)
    assert np.isinf(stopped.joules)
    assert whole.joules == pytest.approx(problem.evaluate(whole.solution()).objective)


def test_where_tasks_may_move_packing_them_anew_saves_energy() -> None:
    problem = pai(seed=2, size=20, present=25)
    held = replace(problem, rules=replace(problem.rules, migration=False))
    moving = optgap.solve(problem, "hindsight", schedules=40)
    staying = optgap.solve(held, "hindsight", schedules=40)
    assert "packed anew" in moving.message
    assert moving.objective < staying.objective  # type: ignore[operator]


def test_a_problem_in_whole_numbers_compiles_nothing_once_more() -> None:
    def kernels() -> int:
        known = [vars(m).values() for m in (loop, pricing_kernels, repacking)]
        return sum(len(k.kernel.overloads) for k in chain(*known) if hasattr(k, "kernel"))

    results, counts = [], []
    for number in (float, int):
        rows = [(number(16), number(100 * k), number(600 + 60 * k)) for k in range(4)]
        problem = timed(rows, number(45), [Server((0,))] * 4, kappa=number(1))
        results.append(quickly(problem, "hindsight").objective)
        counts.append(kernels())
    assert counts[0] == counts[1] > 0
    assert results[0] == results[1]


def test_hindsight_beats_every_policy_on_a_trace_and_its_claim_holds() -> None:
    problem = pai(seed=5, size=20, present=12)
    best = optgap.solve(problem, "hindsight", schedules=60)
    assert best.status is Status.FEASIBLE
    for policy in ("cats", "bestfit", "opt_nomig"):
        assert optgap.run(problem, policy).objective > best.objective  # type: ignore[operator]


def test_where_no_task_may_move_tasks_join_those_that_end_with_them() -> None:
    # a and b keep a GPU awake together; c and d leave the other early
    rows = [(16, 0, 1000), (16, 0, 900), (16, 0, 100), (16, 0, 100)]
    problem = timed(rows, 45, [Server((0,))] * 4, migration=False)
    best = optgap.solve(problem, "hindsight", schedules=50)
    assert best.objective == pytest.approx(1100 * 175.0)
    assert "moves no task" in best.message


def test_a_task_that_may_not_move_does_not() -> None:
    problem = two_tasks(migration=False)
    found = optgap.solve(problem).solution
    first = found.assignments[0]
    moved = replace(
        found, assignments=(*found.assignments, replace(first, gpus=(1,), start_s=90.0))
    )
    assert "may not move" in str(problem.check(moved)[0])
    assert optgap.check(replace(problem, rules=Rules(waiting=False)), moved).feasible
    with pytest.raises(InputError, match="moves tasks"):
        optgap.run(problem, "opt_repack")


def test_stopped_at_once_the_methods_over_time_still_say_what_is_proven() -> None:
    problem = pai(seed=6, size=12, present=6)
    for name in ("bound-over-time", "hindsight"):
        assert METHODS[name].goals == ("energy",)
        stopped = optgap.solve(problem, name, time_limit=1e-9)
        assert stopped.bound > 0
