"""Migrations on small clusters, against every placement there is."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from enumeration import choices
from hypothesis import assume, given
from hypothesis import strategies as st
from strategies import placement_problems
from trust.agreement import examples

from optgap.models.limits import Limits
from optgap.models.placement import PlacementSolution
from optgap.models.placement.migrations import Further, MigrationProblem
from optgap.solvers.placement.aggregate import Aggregate
from optgap.solvers.placement.migrations import curve
from optgap.solvers.placement.migrations.bounds import exact
from optgap.solvers.placement.nodes import counted
from optgap.solvers.placement.patterns import bound_patterns


@st.composite
def migrations(draw: st.DrawFn) -> tuple[MigrationProblem, list[PlacementSolution]]:
    """A small cluster with a current placement, and every placement of all its tasks."""
    problem = draw(placement_problems(goals=("power",), max_nodes=3, max_tasks=4))
    problem = replace(problem, power=replace(problem.power, cpu_rule="packages"))
    partial: list[list[tuple[int, tuple[int, ...]] | None]] = [[]]
    for k in range(len(problem.tasks)):
        rest = [None] * (len(problem.tasks) - k - 1)
        longer = [[*p, choice] for p in partial for choice in choices(problem, k) if choice]
        partial = [p for p in longer if not problem.check(PlacementSolution.of([*p, *rest]))]
    every = [PlacementSolution.of(p) for p in partial]
    assume(0 < len(every) <= 400)
    current = draw(st.sampled_from(every))
    tasks, nodes = len(problem.tasks), len(problem.cluster)
    counts = np.bincount(current.node, minlength=nodes)
    room, further = counts + draw(st.integers(0, 3)), Further.of(problem)
    free = MigrationProblem.of(problem, current).allowed
    inside = [True] * nodes, draw(st.lists(st.booleans(), min_size=nodes, max_size=nodes))
    open_ = draw(st.lists(st.sampled_from([True, True, False]), min_size=nodes, max_size=nodes))
    confined = draw(st.lists(st.sampled_from([0, 0, 1]), min_size=tasks, max_size=tasks))
    return MigrationProblem.of(
        problem,
        current,
        draw(st.lists(st.sampled_from([True, True, False]), min_size=tasks, max_size=tasks)),
        [where & inside[k] & open_ for where, k in zip(free, confined, strict=True)],
        further=further._replace(capacity=np.vstack([room, further.capacity[1:]])),
    ), every


def least(migration: MigrationProblem, every: list[PlacementSolution], most: int) -> float:
    """The least power with at most so many tasks moved, by looking at all placements."""
    return min(
        migration.problem.evaluate(s).objective for s in every if not migration.check(s, most)
    )


@examples(15)
@given(migrations())
def test_exact_is_what_enumeration_finds(
    drawn: tuple[MigrationProblem, list[PlacementSolution]],
) -> None:
    migration, every = drawn
    grid = range(len(migration.problem.tasks) + 1)
    for most, solution, bound in exact(migration, grid, Limits(None), 0):
        best = least(migration, every, most)
        assert solution is not None
        assert bound == pytest.approx(best)
        assert not migration.check(solution, most)
        assert migration.problem.evaluate(solution).objective == pytest.approx(best)


def by_steps(migration: MigrationProblem, every: list[PlacementSolution]) -> list[float]:
    """The least power after at most 0, 1, 2, … single moves, until more help nothing."""
    found = [s for s in every if not migration.check(s)]
    table = np.array([np.concatenate([s.node, s.gpu_mask]) for s in found])
    tasks = len(migration.problem.tasks)
    start = next(k for k, s in enumerate(found) if s == migration.current)
    known, edge = {start}, {start}
    least_w: list[float] = []
    while edge:
        least_w.append(min(migration.problem.evaluate(found[k]).objective for k in known))
        beside: set[int] = set()
        for k in edge:
            differs = (table != table[k]).reshape(len(table), 2, tasks).any(axis=1).sum(axis=1)
            beside |= set(np.flatnonzero(differs == 1).tolist())
        edge = beside - known
        known |= edge
    return least_w


@examples(9)
@given(migrations())
def test_patterns_that_begin_with_what_is_there_prove_no_more_than_enumeration(
    drawn: tuple[MigrationProblem, list[PlacementSolution]],
) -> None:
    migration, every = drawn
    problem, aggregate = migration.problem, Aggregate(migration.problem)
    nodes = counted(aggregate, migration.current)
    cost = aggregate.base + sum(aggregate.cost(t, contents) for t, contents in nodes)
    assert cost == pytest.approx(problem.evaluate(migration.current).objective)
    bound = bound_patterns(problem, limits=Limits(None), seed=0, start=migration.current).bound
    assert bound <= min(problem.evaluate(s).objective for s in every) + 1e-6


@examples(9)
@given(migrations())
def test_the_curve_falls_to_what_any_number_of_moves_reaches_and_each_step_fits(
    drawn: tuple[MigrationProblem, list[PlacementSolution]],
) -> None:
    migration, every = drawn
    found = curve(migration, limits=Limits(None))
    powers = [point.power_w for point in found.points]
    assert powers == sorted(powers, reverse=True)
    steps = by_steps(migration, every)
    for point in found.points[:-1]:
        end, broken = migration.follow(point.moves)
        assert not broken
        assert not migration.check(end)
        assert len(point.moves) <= point.most
        reach = steps[min(point.most, len(steps) - 1)]
        assert point.bound_w - 1e-6 <= least(migration, every, point.most) <= reach + 1e-6
        assert reach <= point.power_w + 1e-6
    unrestricted = least(migration, every, len(every[0]))
    assert found.points[-1].bound_w == pytest.approx(unrestricted)
    if steps[-1] <= unrestricted + 1e-6:  # no tasks that block one another
        assert found.points[-1].power_w == pytest.approx(unrestricted)
