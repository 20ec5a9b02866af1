"""Tasks of several GPUs bound to servers: for so many W, or for as little as can be."""

from __future__ import annotations

import math

import numpy as np
import pytest
from trees_consolidation import built

from optgap.models.consolidation.presets import mixed
from optgap.models.limits import Limits
from optgap.solvers.consolidation.branching import Tree
from optgap.solvers.consolidation.master import Binding
from optgap.solvers.consolidation.packing import packing
from optgap.solvers.consolidation.plunge import Plunge


def relaxed(tree: Tree, binding: Binding) -> float:
    """What no placement in the root's box undercuts under a binding, W."""
    tree.master.confine(tree.root.box)
    tree.master.bind(binding)
    return tree.master.run(Limits()).bound


def rooted(seed: int = 1) -> tuple[Tree, Plunge, float]:
    """A tree with servers, a way down in it, and what its root costs at least, W."""
    tree, _ = built(packing(mixed(seed=seed, size=32, capacity="mean", gang="server")))
    least = relaxed(tree, tree.root.binding)
    return tree, Plunge(tree.master, Limits(20), np.random.default_rng(0), 0.0), least


def costs(tree: Tree, binding: Binding) -> float:
    """Of a linear program under a binding of all tasks of several GPUs, W."""
    assert (binding.server[tree.pack.width > 1] >= 0).all()
    return relaxed(tree, binding)


def test_nothing_is_bound_for_less_than_the_root_costs() -> None:
    tree, plunge, least = rooted()
    box, none = tree.root.box, tree.root.binding
    assert plunge.bound(box, none, 0.9 * least, -math.inf) is None
    assert plunge.bound(box, none, 0.8 * least, -math.inf, dearest=0.9 * least) is None


@pytest.mark.parametrize("seconds", [0.0, math.inf])
@pytest.mark.parametrize("seed", [1, 2])
def test_what_a_binding_may_cost_rises_as_far_as_it_has_to(seed: int, seconds: float) -> None:
    tree, plunge, least = rooted(seed)
    box, none, dearest = tree.root.box, tree.root.binding, 1.2 * least
    whole = plunge.bound(box, none, 0.9 * least, -math.inf, dearest=dearest, seconds=seconds)
    assert whole is not None
    assert least * (1 - 1e-9) <= costs(tree, whole) <= dearest * (1 + 1e-9)


def test_a_binding_at_the_least_loss_costs_less_than_one_at_any() -> None:
    careful, careless = [], []
    for seed in range(1, 5):
        tree, plunge, least = rooted(seed)
        box, none = tree.root.box, tree.root.binding
        near = plunge.bound(box, none, least * 1.001, -math.inf, dearest=1.2 * least)
        far = plunge.bound(box, none, 1.2 * least, -math.inf)
        assert near is not None
        assert far is not None
        careful.append(costs(tree, near) / least)
        careless.append(costs(tree, far) / least)
    assert np.mean(careful) < np.mean(careless)


def test_a_small_tree_far_from_its_bound_is_dived_from_its_root() -> None:
    problem = mixed(seed=1, size=48, capacity="mean", gang="server")
    tree, search = built(packing(problem))
    before = search.watts
    assert before > tree.bound * 1.01
    for _ in range(2):  # with few GPUs, and with any number
        tree._nearest(tree.root)
    assert tree.dives == 2
    assert search.watts < before
    assert search.places is not None
    assert problem.check(tree.pack.solution(search.places)) == []
