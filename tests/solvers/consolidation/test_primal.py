"""Primal heuristics: what they leave keeps the rules, and costs what they say."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from strategies_consolidation import consolidation_problems
from trees_consolidation import least_watts, tree_of
from trust.agreement import examples

from optgap.models.consolidation import ConsolidationProblem
from optgap.models.consolidation.presets import mixed
from optgap.models.consolidation.problem import Capacity, Gang
from optgap.models.limits import Limits
from optgap.solvers.consolidation.instance import instance_of
from optgap.solvers.consolidation.outcome import Incumbent
from optgap.solvers.consolidation.primal.construction import construct
from optgap.solvers.consolidation.primal.diving import Diving
from optgap.solvers.consolidation.primal.iterated_greedy import improve

RNG = np.random.default_rng


def agrees(problem: ConsolidationProblem, incumbent: Incumbent) -> None:
    """The referee takes the incumbent, at the power that it is kept with."""
    assert incumbent.placement is not None
    solution = incumbent.instance.solution(incumbent.placement)
    assert problem.check(solution) == []
    power = problem.evaluate(solution).objective
    assert power == pytest.approx(incumbent.watts, rel=1e-12)


# -- any instance --------------------------------------------------------------------------


@examples(10)
@given(problem=consolidation_problems())
def test_placements_made_again_keep_the_rules_and_cost_no_less_than_the_optimum(
    problem: ConsolidationProblem,
) -> None:
    incumbent = Incumbent(instance_of(problem))
    construct(incumbent, Limits(), RNG(0))
    least, before = least_watts(problem), incumbent.watts
    if incumbent.placement is None:
        return
    improve(incumbent, Limits(), 0.0, RNG(0))
    assert incumbent.instance.total_flat(incumbent.flat) == pytest.approx(incumbent.watts)
    agrees(problem, incumbent)
    assert least is not None
    assert least * (1 - 1e-9) <= incumbent.watts <= before


# -- dives ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("gang", "capacity", "kappas", "seed"),
    [("free", "none", 0, 3), ("server", "none", 0, 3), ("free", "mean", 4, 2)],
)
def test_dives_better_a_first_placement_by_one_that_the_referee_takes(
    gang: Gang, capacity: Capacity, kappas: int, seed: int
) -> None:
    problem = mixed(seed=seed, size=48, capacity=capacity, gang=gang, kappas=kappas)
    tree = tree_of(problem)
    value, before = tree.generation.solve(Limits()).value, tree.incumbent.watts
    made = Diving()
    for _ in range(12):
        if tree.incumbent.watts == before:
            made.improve(tree, Limits(10.0))
            made.realise(tree, tree.root, tree.root.rounded, Limits(0.2))
    assert tree.incumbent.watts < before
    agrees(problem, tree.incumbent)
    tree.generation.master.set_box(tree.root.box)
    tree.generation.master.set_servers(tree.root.assignment)
    again = tree.generation.solve(Limits())  # what was fixed is let go
    assert again.value == pytest.approx(value, rel=1e-7)
