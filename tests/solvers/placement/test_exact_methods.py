"""The exact methods agree with each other and with brute force, and do not overstate."""

from __future__ import annotations

import itertools
import re
from dataclasses import replace
from typing import Any
from unittest import mock

import numpy as np
import pytest
from conftest import TWO_NODES
from hypothesis import given
from hypothesis import strategies as st
from slow_placement import exhaustive
from trust.agreement import enumerated, examples

import optgap
from optgap.models.errors import InputError, RefereeError
from optgap.models.limits import Limits
from optgap.models.placement import (
    Cluster,
    PlacementObjective,
    PlacementProblem,
    PlacementSolution,
    PowerModel,
    presets,
)
from optgap.models.placement.fragmentation import node_fragmentation
from optgap.models.placement.presets import small
from optgap.models.result import Status, Termination
from optgap.solvers.backends import solve
from optgap.solvers.backends.linear import Solved
from optgap.solvers.placement import auto
from optgap.solvers.placement.aggregate import fragment
from optgap.solvers.placement.exact import search
from optgap.solvers.placement.exact.search import (
    decode,
    exact,
    greedy,
    objective_of,
    placing_model,
    pooled_model,
)
from optgap.solvers.placement.exact.tables import Counted, cpu_steps
from optgap.solvers.placement.milp import milp
from optgap.solvers.placement.patterns import bound_patterns
from tests.strategies import GOALS, placement_problems, placements_that_fit, power_models, tasks_of


@examples(36)
@given(problem=placement_problems(max_nodes=3, max_tasks=6))
def test_the_search_agrees_with_brute_force(problem: PlacementProblem) -> None:
    """Without a start and a bound, which alone often prove a small problem."""
    truth = enumerated(problem)
    with (
        mock.patch.object(search, "greedy", return_value=None),
        mock.patch.object(search.ExactSearch, "pool", return_value=""),
    ):
        found = optgap.solve(problem, "exact")
    assert found.status is truth.status
    if truth.objective is None:
        assert found.message
    else:
        assert found.objective == pytest.approx(truth.objective, rel=2e-6, abs=2e-6)


@pytest.mark.parametrize("goal", GOALS)
def test_eight_nodes_and_thirty_tasks_are_proven(goal: str) -> None:
    problem = small(seed=2, size=30, goal=goal)  # type: ignore[arg-type]
    assert auto(problem) == "exact"
    assert optgap.solve(problem).status is Status.OPTIMAL  # refereed


def infeasible(rows: list[tuple[int, int, int, int, str]], **nodes: Any) -> PlacementProblem:
    usual = {"cpu": [8000] * 2, "memory": [4096] * 2, "gpus": [2, 2], "models": ["G2", "T4"]}
    return PlacementProblem.of(Cluster.of("ab", *{**usual, **nodes}.values()), tasks_of(rows))


@pytest.mark.parametrize(
    ("problem", "words"),
    [
        (infeasible([(0, 0, 2, 1000, "P100")]), "arrival 0. fits no node.*2 G2 GPUs: not of P100"),
        (
            infeasible([(9000, 0, 1, 500, "G2")], cpu=[8000, 9000]),
            "G2 GPUs: short by 1000 milli-CPU; .*2 T4 GPUs: not of G2",
        ),
        (infeasible([(0, 0, 4, 1000, "T4")], gpus=[4, 2]), "2 T4 GPUs: short by 2 GPUs"),
        (infeasible([(0, 3000, 1, 1, "T4")], memory=[4096, 1024]), "2 T4 GPUs: short by 1976 MiB"),
        (infeasible([(6000, 0, 0, 0, "")] * 3), "18,000 milli-CPU asked for, 16,000 there"),
        (infeasible([(0, 3000, 0, 0, "")] * 3), "9,000 MiB asked for, 8,192 there"),
        (infeasible([(0, 0, 1, 900, "")] * 5), "4.5 GPUs asked for, 4 there"),
        (infeasible([(0, 0, 1, 600, "")] * 5), "5 GPUs .more than half.*has 4"),
        (infeasible([(0, 0, 1, 500, "T4")] * 5), "GPUs of T4: 2.5 GPUs asked for, 2 there"),
        (infeasible([(5000, 0, 0, 0, "")] * 3), "no placement of all of them exists"),
    ],
)
def test_infeasible_problems_say_why(problem: PlacementProblem, words: str) -> None:
    assert exhaustive(problem).status is Status.INFEASIBLE
    by_totals = (bound_patterns,) if "no placement" not in words else ()
    for method in (exact, milp, *by_totals):
        outcome = method(problem, limits=Limits(), seed=0)
        assert outcome.status is Status.INFEASIBLE
        assert re.search(words, outcome.message), outcome.message
        assert "\n" not in outcome.message


def test_a_solver_that_denies_a_placement_at_hand_is_not_believed() -> None:
    denial = Solved(Status.INFEASIBLE, Termination.COMPLETED, solver="liar")
    with (
        mock.patch.object(search, "solve_counted", return_value=denial),
        pytest.raises(RefereeError, match="liar"),
    ):
        exact(TWO_NODES, limits=Limits(), seed=0)


def test_a_solver_that_fails_leaves_the_greedy_placement_and_its_own_words() -> None:
    problem = small(seed=2, size=20, goal="power")
    failed = Solved(Status.ERROR, Termination.ERROR, solver="HiGHS", message="out of luck")
    with (
        mock.patch.object(search.ExactSearch, "pool", return_value=""),
        mock.patch.object(search, "solve", return_value=failed),
    ):
        found = optgap.solve(problem, "exact")
    assert (found.status, found.termination) == (Status.FEASIBLE, Termination.ERROR)
    assert "out of luck" in found.message


@pytest.mark.parametrize(
    ("method", "nodes", "words"),
    [
        (milp, 41, "at most 40 nodes for milp"),
        (exact, 201, "at most 200 nodes"),
    ],
)
def test_problems_too_large_are_refused_with_a_way_out(method: Any, nodes: int, words: str) -> None:
    row = (8000, 4096, 1, "T4")
    cluster = Cluster.of([f"n{k}" for k in range(nodes)], *([row[i]] * nodes for i in range(4)))
    problem = PlacementProblem.of(cluster, tasks_of([(1, 1, 1, 100, "")] * 7))
    with pytest.raises(InputError, match=f"{words}.*patterns takes any size"):
        method(problem, limits=Limits(), seed=0)


def test_more_tasks_than_a_node_may_carry() -> None:
    cluster = Cluster.of(["a", "b"], [9000, 9000], [0, 0], [0, 1], ["", "T4"])
    problem = PlacementProblem.of(
        cluster, tasks_of([(1, 0, 0, 0, "")] * 1500), objective=PlacementObjective("power")
    )
    assert optgap.solve(problem, "exact").status is Status.OPTIMAL


# -- the counted formulation says of every placement what the referee says -----------------


def tight(value: float) -> float:
    return 1e-6 * max(1.0, abs(value))


@examples(50)
@given(placements_that_fit(max_nodes=4, max_tasks=8))
def test_every_placement_has_its_cost_in_the_formulation(
    drawn: tuple[PlacementProblem, PlacementSolution],
) -> None:
    whole, solution = drawn
    if not (solution.node >= 0).any():
        return
    problem = whole.restrict(solution)
    solution = PlacementSolution.of_arrays(
        solution.node[solution.node >= 0], solution.gpu_mask[solution.node >= 0]
    )
    assert not problem.check(solution)
    counted, objective = Counted(problem), problem.evaluate(solution).objective
    class_of, sign = problem.tasks.class_of, -1 if problem.objective.goal == "accepted_gpu" else 1
    for model in (placing_model(counted), pooled_model(counted)):
        lower, upper = model.model.lower.copy(), model.model.upper.copy()
        for unit, columns in zip(model.units, model.columns, strict=True):
            here = class_of[np.isin(solution.node, unit.nodes)]
            assert set(here.tolist()) <= set(columns.tasks)
            for c, column in columns.tasks.items():
                lower[column] = upper[column] = int((here == c).sum())
        fixed = replace(model.model, lower=lower, upper=upper)
        solved = solve(fixed, backend="highs", limits=Limits())
        assert solved.status is Status.OPTIMAL
        assert solved.values is not None
        assert sign * solved.objective <= sign * objective + tight(objective)
        if len(model.units) == len(problem.cluster):
            again = decode(model, solved.values)
            assert not problem.check(again)
            assert problem.serves_all(again)
            value = problem.evaluate(again).objective
            assert sign * value <= sign * solved.objective + tight(objective)


@given(power_models(), st.sampled_from((0, 1, 1999, 31_999, 32_000, 50_000, 96_000, 104_001)))
def test_the_staircase_is_the_cpu_power(power: PowerModel, capacity: int) -> None:
    steps = cpu_steps(power, capacity)
    assert steps[0].first == 0
    assert steps[-1].last == capacity
    for before, after in itertools.pairwise(steps):
        assert after.first == before.last + 1
        assert after.watts != before.watts
    uses = {0, capacity, *range(0, capacity, 977)}
    uses |= {use for step in steps for use in (step.first, step.last)}
    for use in uses:
        (watts,) = {step.watts for step in steps if step.first <= use <= step.last}
        assert watts == power.cpu_w(capacity, capacity - use)


@given(placement_problems(max_nodes=1, max_tasks=4), st.data())
def test_the_parts_add_up_to_the_fragmentation(
    problem: PlacementProblem, data: st.DataObject
) -> None:
    node = problem.cluster.types[0]
    if not node.gpus:
        return
    left = data.draw(st.lists(st.integers(0, 1000), min_size=node.gpus, max_size=node.gpus))
    free = data.draw(st.integers(0, node.cpu_milli))
    parts = fragment(problem.workload, node)
    idle = left.count(1000)
    total = parts.idle * idle + sum(float(parts.active[r]) for r in left if r < 1000)
    for need, served in parts.thresholds:
        total += sum(float(served[r]) for r in left) if free < need else 0.0
    for need, wanted, cost in parts.several:
        total += cost * idle if free < need or idle < wanted else 0.0
    expected = node_fragmentation(problem.workload, node.model, free, left).fragment
    assert total == pytest.approx(expected, abs=tight(expected))


@given(placement_problems(max_nodes=2, max_tasks=4))
def test_the_greedy_start_is_a_placement(problem: PlacementProblem) -> None:
    start, counted = greedy(Counted(problem)), Counted(problem)
    if start is not None:
        assert not problem.check(start)
        assert problem.serves_all(start) or counted.accepting
        objective = problem.evaluate(start).objective
        assert objective_of(counted, start) == pytest.approx(objective, abs=tight(objective))


# -- patterns on clusters beyond enumeration -----------------------------------------------


@pytest.mark.parametrize(
    ("goal", "nodes", "most"), [("power", 24, 0.03), ("fragmentation", 16, 0.04)]
)
def test_the_gap_is_proven_small_on_many_nodes(goal: Any, nodes: int, most: float) -> None:
    problem = presets.alibaba(seed=1, size=nodes, load=0.6, goal=goal)
    result = optgap.solve(problem, "patterns", rounds=1)
    assert result.status is Status.FEASIBLE
    assert result.gap <= most
    assert problem.serves_all(result.solution)
    assert optgap.run(problem, "greedy-exact").objective > result.objective


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
