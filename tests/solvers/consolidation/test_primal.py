"""Primal heuristics: what they leave keeps the rules, and costs what they say."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from strategies_consolidation import consolidation_problems
from trees_consolidation import least_watts, tree_of

from optgap.models.consolidation import ConsolidationProblem
from optgap.models.consolidation.presets import mixed
from optgap.models.consolidation.problem import Capacity, Gang
from optgap.models.limits import Limits
from optgap.solvers.consolidation.bounds.level_counts import (
    closed_form_w,
)
from optgap.solvers.consolidation.bounds.martello_toth import gpus_needed
from optgap.solvers.consolidation.branch_and_price.feasibility import pack_columns
from optgap.solvers.consolidation.column_generation.master import FREE
from optgap.solvers.consolidation.config import DEFAULT
from optgap.solvers.consolidation.exact import tree_heuristic
from optgap.solvers.consolidation.instance import instance_of
from optgap.solvers.consolidation.outcome import Incumbent
from optgap.solvers.consolidation.primal.annealing import anneal
from optgap.solvers.consolidation.primal.construction import construct
from optgap.solvers.consolidation.primal.diving import dive, dive_to

RNG = np.random.default_rng


def agrees(problem: ConsolidationProblem, incumbent: Incumbent) -> None:
    """The referee takes the incumbent, at the power that it is kept with."""
    assert incumbent.placement is not None
    solution = incumbent.instance.solution(incumbent.placement)
    assert problem.check(solution) == []
    power = problem.evaluate(solution).objective
    assert power == pytest.approx(incumbent.watts, rel=1e-12)


# -- any instance --------------------------------------------------------------------------


@settings(max_examples=30)
@given(problem=consolidation_problems())
def test_annealed_placements_keep_the_rules_and_cost_no_less_than_the_optimum(
    problem: ConsolidationProblem,
) -> None:
    incumbent = Incumbent(instance_of(problem))
    construct(incumbent, Limits(), RNG(0))
    least, before = least_watts(problem), incumbent.watts
    if incumbent.placement is None:
        return
    quick = replace(DEFAULT.annealing, rounds=2, steps=300, max_steps=2000)
    anneal(incumbent, Limits(), 0.0, RNG(0), quick)
    agrees(problem, incumbent)
    assert least is not None
    assert least * (1 - 1e-9) <= incumbent.watts <= before


# -- given counts --------------------------------------------------------------------------


@pytest.mark.parametrize("share", [0.3, 0.7, 1.0])
def test_richer_counts_are_no_fewer_and_as_dear_as_they_may_be(share: float) -> None:
    tree = tree_of(mixed(seed=1, size=16, capacity="none"))
    instance, levels, least = tree.instance, tree.levels, tree.root.box.low
    target = closed_form_w(instance, levels, least[:-1]) * (1 + 0.2 * share)
    for seed in range(5):
        state = replace(tree.state(), target=target, rng=RNG(seed))
        counts = state.richer_counts()
        assert all(a <= b for a, b in zip(least, counts, strict=True))
        counts = counts[:-1]
        assert list(counts) == sorted(counts, reverse=True)
        assert closed_form_w(instance, levels, counts) <= target
        for q in range(len(counts)):
            more = (*counts[:q], counts[q] + 1, *counts[q + 1 :])
            if list(more) == sorted(more, reverse=True) and more[0] <= instance.gpus:
                assert closed_form_w(instance, levels, more) > target


def test_counts_from_some_of_the_rows_are_no_more_than_from_all() -> None:
    instance = instance_of(mixed(seed=4, size=40, capacity="slot"))
    tasks = np.arange(instance.tasks)
    whole = gpus_needed(instance, tasks)
    area = max(-(-(instance.demand @ instance.width) // instance.max_capacity))
    for rows, alphas in (([0], 1), ([0, 3], 2), ([5], 40)):
        assert area <= gpus_needed(instance, tasks, np.array(rows), alphas) <= whole


# -- dives ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("gang", "capacity", "kappas"),
    [("free", "none", 0), ("server", "none", 0), ("free", "mean", 4)],
)
def test_dives_better_a_first_placement_by_one_that_the_referee_takes(
    gang: Gang, capacity: Capacity, kappas: int
) -> None:
    problem = mixed(seed=3, size=48, capacity=capacity, gang=gang, kappas=kappas)
    tree = tree_of(problem)
    value, before = tree.generation.solve(Limits()).value, tree.incumbent.watts
    made = tree_heuristic(tree.instance)
    for _ in range(12):
        if tree.incumbent.watts == before:
            tree.ambition = min(1.0, 1.2 * tree.ambition)
            made.improve(tree.state(), Limits(10.0))
            made.realise(tree.state(), tree.root, tree.root.rounded, Limits(0.2))
    assert tree.incumbent.watts < before
    agrees(problem, tree.incumbent)
    tree.generation.master.set_box(tree.root.box)
    tree.generation.master.set_servers(tree.root.assignment)
    again = tree.generation.solve(Limits())  # what was fixed is let go
    assert again.value == pytest.approx(value, rel=1e-7)


def test_no_dive_is_dearer_than_it_may_be() -> None:
    tree = tree_of(mixed(seed=2, size=40, gang="free", kappas=0, server_static_w=0.0))
    usage = dive(tree.generation, tree.root.box, 2 * tree.incumbent.watts, Limits())
    assert usage is not None
    columns = tree.generation.master.columns
    held = [one for one, n in zip(columns, usage, strict=True) for _ in range(n)]
    watts = sum(tree.instance.cost(0, list(one)) for one in held)
    assert watts < tree.incumbent.watts
    assert dive(tree.generation, tree.root.box, 0.9 * watts, Limits()) is None


def test_a_dive_to_counts_needs_no_more_gpus() -> None:
    tree = tree_of(mixed(seed=0, size=32, capacity="mean", gang="free"))
    counts = tuple(np.ceil(tree.generation.solve(Limits()).counts + 1 - 1e-6).astype(int).tolist())
    found = dive_to(tree.generation, counts, Limits())
    assert found is not None
    assert pack_columns(tree.generation.master, [(one, FREE) for one in found]) is not None
    tops = [int(tree.levels.of[list(one)].max()) for one in found]
    for q, count in enumerate(counts[:-1]):
        assert sum(top >= q for top in tops) <= count
