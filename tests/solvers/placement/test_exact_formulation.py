"""The counted formulation says of every placement what the referee says, pooled or not."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from slow_placement import exhaustive
from trust.agreement import examples

from optgap.models.limits import Limits
from optgap.models.placement import PlacementProblem, PlacementSolution, PowerModel
from optgap.models.placement.fragmentation import node_fragmentation
from optgap.solvers.backends import solve
from optgap.solvers.backends.linear import LinearBuilder
from optgap.solvers.placement.exact.code import claim, decode, encode
from optgap.solvers.placement.exact.counted import CountedModel, Unit
from optgap.solvers.placement.exact.lattice import DENOMINATORS, common_denominator, lattice
from optgap.solvers.placement.exact.pooled import pooled_model, values_of
from optgap.solvers.placement.exact.search import first_solutions
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
    counted = Counted(problem)
    objective = problem.evaluate(solution).objective
    for model in (node_by_node(counted), pooled_model(counted)):
        assert model.model.violation(encode(model, solution)) <= 1e-9
        assert claim(model, solution) == pytest.approx(objective, abs=close(objective))
    again = decode(node_by_node(counted), encode(node_by_node(counted), solution))
    assert not problem.check(again)
    value = problem.evaluate(again).objective
    if counted.sizes.exact or counted.accepting:
        assert value == pytest.approx(objective, abs=close(objective))
    else:  # GPUs have room for more than was on them, so decoding may pack tighter
        assert value <= objective + close(objective)


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


def test_popularities_of_a_trace_have_their_common_denominator() -> None:
    assert common_denominator([1 / 3, 2 / 3]) == 3
    assert common_denominator([3 / 7749, 7746 / 7749]) == 2583
    assert common_denominator([0.5, 0.123456789123, 0.376543210877]) is None


@given(st.lists(st.floats(0, 1, allow_nan=False), min_size=1, max_size=6))
def test_no_value_of_the_objective_is_passed_over(costs: list[float]) -> None:
    builder = LinearBuilder("min", 3.0)
    for cost in costs:
        builder.variable(0, 5, cost, integer=True)
    model = builder.build()
    values = lattice(model, common_denominator(costs))
    rng = np.random.default_rng(0)
    for _ in range(20 if values else 0):
        value = model.objective(rng.integers(0, 6, len(costs)).astype(float))
        assert values is not None
        assert values.raised(value) <= value * (1 + 1e-9)
        # a bound a little lower is not raised beyond a point that has it
        assert values.raised(value - 1e-9) <= value * (1 + 1e-9)


def test_a_bound_moves_on_to_a_value_that_the_objective_can_take() -> None:
    builder = LinearBuilder("min", 1.0)
    builder.variable(0, 5, 15.0, integer=True)
    builder.variable(0, 5, 120.0, integer=True)
    values = lattice(builder.build(), None)
    assert values is not None
    assert values.scale == 1.0
    assert values.raised(30.5) == 31.0
    assert values.raised(31.0 + 1e-8) == pytest.approx(31.0, abs=2e-8)


def test_arbitrary_popularities_have_no_such_values() -> None:
    builder = LinearBuilder("min")
    builder.variable(0, 5, 0.1234567890123, integer=True)
    assert lattice(builder.build(), None) is None


@given(placement_problems(max_nodes=2, max_tasks=4))
def test_the_greedy_start_is_a_placement(problem: PlacementProblem) -> None:
    for start in first_solutions(problem):
        assert not problem.check(start)
        assert problem.serves_all(start) or problem.objective.goal == "accepted_gpu"


def test_the_default_workload_is_solved_in_integers() -> None:
    from optgap.models.placement.presets import small

    problem = small(seed=0, size=10, goal="fragmentation")
    assert values_of(pooled_model(Counted(problem))) is not None
    assert len(problem.tasks) <= DENOMINATORS
