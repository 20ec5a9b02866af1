"""The counted formulation says of every placement what the referee says, pooled or not."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from slow_placement import exhaustive
from trust.agreement import examples

from optgap.models.limits import Limits
from optgap.models.placement import PlacementProblem, PlacementSolution, PowerModel
from optgap.models.placement.fragmentation import node_fragmentation
from optgap.models.result import Status
from optgap.solvers.backends import solve
from optgap.solvers.placement.exact.counted import CountedModel, Unit
from optgap.solvers.placement.exact.pooled import pooled_model
from optgap.solvers.placement.exact.search import decode, greedy, objective_of
from optgap.solvers.placement.exact.tables import Counted, cpu_steps, fragment
from tests.strategies import placement_problems, power_models


def close(value: float) -> float:
    return 1e-6 * max(1.0, abs(value))


def some_placement(problem: PlacementProblem, seed: int) -> PlacementSolution:
    """Tasks in random order on random nodes and GPUs that have room; the rest left out."""
    rng = np.random.default_rng(seed)
    cluster, tasks = problem.cluster, problem.tasks
    cpu, memory = cluster.cpu_milli.tolist(), cluster.memory_mib.tolist()
    gpus = [[1000] * int(count) for count in cluster.gpus]
    placed: list[tuple[int, tuple[int, ...]] | None] = [None] * len(tasks)
    for k in rng.permutation(len(tasks)).tolist():
        task = tasks.task_class(k)
        for n in rng.permutation(len(cluster)).tolist():
            fitting = [g for g, free in enumerate(gpus[n]) if free >= task.gpu_milli]
            if not problem.fits_empty(task, cluster.types[int(cluster.type_of[n])]):
                continue
            if cpu[n] < task.cpu_milli or memory[n] < task.memory_mib:
                continue
            if len(fitting) < task.num_gpu:
                continue
            chosen = tuple(rng.choice(fitting, task.num_gpu, replace=False).tolist())
            cpu[n] -= task.cpu_milli
            memory[n] -= task.memory_mib
            for g in chosen if task.num_gpu else ():
                gpus[n][g] -= task.gpu_milli
            placed[k] = (n, chosen)
            break
    return PlacementSolution.of(placed)


def node_by_node(counted: Counted) -> CountedModel:
    types = counted.problem.cluster.type_of.tolist()
    return CountedModel(counted, [Unit(t, (n,)) for n, t in enumerate(types)])


@examples(50)
@given(placement_problems(max_nodes=4, max_tasks=8), st.integers(0, 2**20))
def test_every_placement_has_its_cost_in_the_formulation(
    whole: PlacementProblem, seed: int
) -> None:
    solution = some_placement(whole, seed)
    if not (solution.node >= 0).any():
        return
    problem = whole.restrict(solution)
    solution = PlacementSolution.of_arrays(
        solution.node[solution.node >= 0], solution.gpu_mask[solution.node >= 0]
    )
    assert not problem.check(solution)
    counted, objective = Counted(problem), problem.evaluate(solution).objective
    class_of, sign = problem.tasks.class_of, -1 if problem.objective.goal == "accepted_gpu" else 1
    for model in (node_by_node(counted), pooled_model(counted)):
        lower, upper = model.model.lower.copy(), model.model.upper.copy()
        for unit, columns in zip(model.units, model.columns, strict=True):
            here = class_of[np.isin(solution.node, unit.nodes)]
            assert set(here.tolist()) <= set(columns.tasks)
            for c, column in columns.tasks.items():
                lower[column] = upper[column] = int((here == c).sum())
        fixed = replace(model.model, lower=lower, upper=upper)
        solved = solve(fixed, backend="highs", limits=Limits())
        assert solved.status is Status.OPTIMAL
        assert solved.objective is not None
        assert solved.values is not None
        assert sign * solved.objective <= sign * objective + close(objective)
        if len(model.units) == len(problem.cluster):
            again = decode(model, solved.values)
            assert not problem.check(again)
            assert problem.serves_all(again)
            value = problem.evaluate(again).objective
            assert sign * value <= sign * solved.objective + close(objective)


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
    assert total == pytest.approx(expected, abs=close(expected))


@examples(13)
@given(placement_problems(goals=("fragmentation", "weighted", "power"), max_nodes=2, max_tasks=6))
def test_the_optimum_of_the_formulation_is_that_of_all_placements(
    problem: PlacementProblem,
) -> None:
    model = node_by_node(Counted(problem))
    solved = solve(model.model, backend="highs", limits=Limits())
    best = exhaustive(problem)
    assert solved.status is best.status
    if solved.values is not None:
        solution = decode(model, solved.values)
        assert not problem.check(solution)
        assert problem.serves_all(solution)
        assert best.claimed is not None
        assert solved.objective == pytest.approx(best.claimed, abs=close(best.claimed))


@given(placement_problems(max_nodes=2, max_tasks=4))
def test_the_greedy_start_is_a_placement(problem: PlacementProblem) -> None:
    start, counted = greedy(Counted(problem)), Counted(problem)
    if start is not None:
        assert not problem.check(start)
        assert problem.serves_all(start) or counted.accepting
        objective = problem.evaluate(start).objective
        assert objective_of(counted, start) == pytest.approx(objective, abs=close(objective))
