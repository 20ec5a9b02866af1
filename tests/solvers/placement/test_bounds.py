"""bound ≤ optimum ≤ everything that serves all tasks, on problems small enough to enumerate."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from trust.agreement import examples

import optgap
from optgap.models.jsonio import Fields
from optgap.models.limits import Limits
from optgap.models.placement import Cluster, PlacementProblem, Tasks, presets
from optgap.models.result import Result, Status, Termination
from optgap.solvers.placement import METHODS
from optgap.solvers.placement.aggregate import Aggregate, Contents
from optgap.solvers.placement.columns import cpu_units
from optgap.solvers.placement.pricing import Pricer
from tests.enumeration import optimum
from tests.strategies import placement_problems

POLICIES = ("fgd", "pwr", "pwr+fgd", "bestfit", "dotprod", "gpupacking", "greedy-exact")


def tolerance(value: float) -> float:
    return 1e-6 * max(1.0, abs(value))


def assert_valid_bound(problem: PlacementProblem, result: Result, best: float) -> None:
    """The bound, when there is one, is on the right side of the optimum."""
    assert result.status is not Status.INFEASIBLE
    if result.bound is None:
        return
    if problem.objective.described.sense == "max":
        assert result.bound >= best - tolerance(best)
    else:
        assert result.bound <= best + tolerance(best)


def assert_not_better(problem: PlacementProblem, result: Result, best: float) -> None:
    """A solution that serves what is asked does not beat the optimum."""
    assert result.objective is not None
    if problem.objective.described.sense == "max":
        assert result.objective <= best + tolerance(best)
    elif problem.serves_all(result.solution):
        assert result.objective >= best - tolerance(best)


@examples(20)
@given(placement_problems(max_nodes=3, max_tasks=4, max_gpus=3))
def test_bounds_and_solutions_enclose_the_optimum(problem: PlacementProblem) -> None:
    best = optimum(problem)
    bounded = [optgap.bound(problem, "bound-patterns")]
    if problem.objective.goal == "power":
        bounded.append(optgap.bound(problem, "bound-pooled"))
    offline = optgap.solve(problem, "patterns", rounds=3)
    for policy in POLICIES:
        result = optgap.run(problem, policy)
        if best is not None:
            assert_not_better(problem, result, best[0])
        else:
            assert not problem.serves_all(result.solution)
    if best is None:
        assert offline.objective is None
        return
    for result in (*bounded, offline):
        assert_valid_bound(problem, result, best[0])
    if offline.objective is not None:
        assert_not_better(problem, offline, best[0])
    if offline.status is Status.OPTIMAL:
        assert offline.objective == pytest.approx(best[0], rel=1e-6)


@examples(13)
@given(placement_problems(max_nodes=2, max_tasks=5, max_gpus=3), st.sampled_from((-1, 0, 1, 2)))
def test_no_contents_beat_their_price(problem: PlacementProblem, counted: int) -> None:
    """A priced node is worth at least as much as anything that fits it.

    What is in use counts for nothing by itself (−1), or is all that costs (0, 1), or is worth as
    much as it may be (2).
    """
    if problem.objective.weights[1] or problem.power.cpu_rule != "packages":
        counted = -1
    worth_of = np.zeros(2) if counted in (-1, 2) else -np.eye(2)[counted]
    aggregate = Aggregate(problem, None if counted in (-1, 2) else (0.0, 0.0), counted >= 0)
    if counted == 2:
        worth_of = aggregate.unit_cost
    prices = np.linspace(0.0 if counted == 2 else 40.0, 200.0, len(aggregate.classes))
    prices = prices / 100 if counted in (0, 1) else prices
    for unit in (cpu_units(aggregate, 50), cpu_units(aggregate, 10_000)):
        pricer = Pricer(aggregate, unit)
        priced = np.where(pricer.priceable, prices, 0.0)
        for offer in pricer.price(priced, worth_of):
            t = offer.type_index
            for c in range(len(aggregate.classes)):
                for contents in alone_and_paired(aggregate, c):
                    if not aggregate.feasible(t, contents):
                        continue
                    worth = sum(priced[k] * n for k, n in contents.tasks.items())
                    worth += float(worth_of @ aggregate.in_use(t, contents))
                    assert worth - aggregate.cost(t, contents) <= offer.value + 1e-9


def alone_and_paired(aggregate: Aggregate, c: int) -> list[Contents]:
    if aggregate.num_gpu[c] == 0:
        return [Contents(cpu_only=(c,)), Contents(cpu_only=(c, c))]
    if aggregate.num_gpu[c] > 1:
        return [Contents(multi=(c,)), Contents(multi=(c, c))]
    return [Contents(shares=((c,),)), Contents(shares=((c, c),)), Contents(shares=((c,), (c,)))]


def test_every_method_keeps_its_bound_below_a_small_alibaba_optimum() -> None:
    problem = presets.small(seed=3, size=25)
    bounds = [
        optgap.bound(problem, name).bound
        for name, entry in METHODS.items()
        if entry.kind in ("bound", "offline") and "power" in entry.goals
    ]
    offline = optgap.solve(problem, "patterns")
    assert all(bound is not None and bound <= offline.objective for bound in bounds)


@pytest.mark.parametrize(("goal", "most"), [("power", 0.03), ("fragmentation", 0.12)])
def test_the_gap_is_proven_small_on_24_nodes(goal: str, most: float) -> None:
    problem = presets.alibaba(seed=1, size=24, load=0.6, goal=goal)  # type: ignore[arg-type]
    result = optgap.solve(problem, "patterns", rounds=1)
    assert result.status is Status.FEASIBLE
    assert result.gap <= most
    assert problem.serves_all(result.solution)
    assert optgap.run(problem, "greedy-exact").objective > result.objective


def test_an_overloaded_cluster_is_proven_infeasible() -> None:
    problem = presets.alibaba(seed=0, size=40, load=1.2)
    result = optgap.bound(problem, "bound-patterns")
    assert result.status is Status.INFEASIBLE
    asked, there = problem.tasks.demand_milli.sum() / 1000, int(problem.cluster.gpus.sum())
    assert f"{asked:g} GPUs asked for, {there} there" in result.message


def test_tasks_that_only_add_up_are_proven_not_to_fit_together() -> None:
    """Three GPUs for seven tasks of 0.4 GPU: enough in total, too few in truth."""
    problem = PlacementProblem.of(
        Cluster.of(["a", "b"], [8000, 8000], [4096, 4096], [2, 1], ["T4", "T4"]),
        Tasks.of(["t"] * 7, [1000] * 7, [0] * 7, [1] * 7, [400] * 7, [""] * 7),
    )
    result = optgap.bound(problem, "bound-patterns")
    assert result.status is Status.INFEASIBLE
    assert "at least 1 of 7 tasks" in result.message


def test_a_task_that_fits_nowhere_is_named() -> None:
    problem = presets.alibaba(seed=0, size=40, load=0.2)
    tasks = problem.tasks.to_json()
    tasks["gpu_spec"] = ["V100M32" if n == 8 else "T4" for n in tasks["num_gpu"]]
    tasks["num_gpu"][5], tasks["gpu_milli"][5], tasks["gpu_spec"][5] = 8, 1000, "T4"
    document = {**problem.to_json(), "tasks": tasks}
    changed = PlacementProblem.from_json(Fields(document, "test"))
    result = optgap.bound(changed, "bound-patterns")
    assert result.status is Status.INFEASIBLE
    assert "(arrival 5) fits no node" in result.message


def test_an_interrupt_keeps_the_bound_so_far() -> None:
    problem = presets.alibaba(seed=1, size=121, load=0.5)
    limits = Limits()
    seen: list[float] = []

    def progress(phase: str, incumbent: float | None, bound: float | None) -> None:
        if bound is not None and np.isfinite(bound):
            seen.append(bound)
        if len(seen) == 60:
            limits.interrupted.set()

    limits = Limits(progress=progress, interrupted=limits.interrupted)
    result = optgap.bound(problem, "bound-patterns", limits=limits)
    assert result.termination is Termination.INTERRUPTED
    assert result.status is Status.BOUND_ONLY
    assert result.bound == pytest.approx(max(seen), rel=1e-6)
