"""The 0/1 knapsack as a minimisation of minus the value, with Dantzig's bound of the relaxation."""

from __future__ import annotations

import itertools
from typing import NamedTuple

import numpy as np
import pytest

from optgap.models.limits import Limits
from optgap.models.result import Termination
from optgap.solvers.engines.best_first import BestFirst

ITEMS = 11


class Node(NamedTuple):
    """Items that are decided, by falling value per weight."""

    bound: float
    taken: tuple[bool, ...]


class Knapsack:
    """Items in a bag. `most` nodes are expanded before a pause; those of `depth` are set aside."""

    def __init__(self, seed: int, most: float = np.inf, depth: int = ITEMS + 1) -> None:
        rng = np.random.default_rng(seed)
        weight, value = rng.integers(3, 30, ITEMS), rng.integers(3, 30, ITEMS)
        order = np.argsort(-value / weight)
        self.weight, self.value = weight[order], value[order]
        self.room, self.most, self.depth = int(weight.sum() // 2), most, depth
        self.found, self.expanded = 0.0, list[Node]()
        self.search = BestFirst([self.node(())], self.expand, lambda: self.found)

    def least(self) -> float:
        every = np.array(list(itertools.product((0, 1), repeat=ITEMS)))
        return -float((every @ self.value)[every @ self.weight <= self.room].max())

    def node(self, taken: tuple[bool, ...]) -> Node:
        """Fill what is left of the room in the order of the items, the last one in part."""
        n = len(taken)
        room, value = self.room - self.weight[:n] @ taken, float(self.value[:n] @ taken)
        for w, v in zip(self.weight[n:].tolist(), self.value[n:].tolist(), strict=True):
            value += v * min(1.0, max(0.0, room) / w)
            room -= w
        return Node(-value if self.weight[:n] @ taken <= self.room else 0.0, taken)

    def expand(self, node: Node) -> list[Node] | None:
        if len(self.expanded) >= self.most:
            return None
        self.expanded.append(node)
        assert self.search.bound <= node.bound  # also while it is expanded
        if len(node.taken) == self.depth:
            self.search.set_aside(node)
            return []
        if len(node.taken) == ITEMS:
            self.found = min(self.found, node.bound)
            self.search.prune(node.bound)
            return []
        return [self.node((*node.taken, take)) for take in (True, False)]


@pytest.mark.parametrize("seed", range(4))
def test_the_search_ends_at_the_optimum_and_its_bound_holds_wherever_it_pauses(seed: int) -> None:
    whole = Knapsack(seed)
    least = whole.least()
    assert whole.search.run(Limits()) is None
    assert not whole.search.active
    assert whole.found == pytest.approx(whole.search.bound) == pytest.approx(least)
    bounds = [node.bound for node in whole.expanded]
    assert bounds == sorted(bounds)
    paused = Knapsack(seed, most=0)
    for paused.most in range(len(bounds) + 2):
        paused.search.run(Limits())
        assert paused.search.bound == pytest.approx([*bounds, least, least][int(paused.most)])
    assert paused.expanded == whole.expanded  # as if it had not paused
    assert paused.found == whole.found


def test_nodes_that_are_set_aside_count_until_they_are_opened_again() -> None:
    bag = Knapsack(0, depth=3)
    assert bag.search.run(Limits()) is None
    assert (bag.search.active, bag.found) == (False, 0.0)
    assert bag.search.best == min(bag.search.aside)
    assert bag.search.bound == min(bag.search.aside).bound <= bag.least()
    bag.depth = ITEMS + 1
    bag.search.reopen()
    assert (bag.search.active, bag.search.aside) == (True, [])
    bag.search.run(Limits())
    assert min(bag.search.bound, bag.found) == pytest.approx(bag.least())


def test_limits_and_turns_of_a_heuristic_leave_the_bound_valid() -> None:
    bag = Knapsack(1)
    first = bag.search.bound
    assert bag.search.run(Limits(work=0.0)) is Termination.WORK_LIMIT
    assert (bag.search.bound, bag.expanded) == (first, [])

    def primal() -> bool:
        """Know the optimum from the first turn on."""
        had, bag.found = bag.found < 0, bag.least()
        return not had

    search = BestFirst([bag.node(())], bag.expand, lambda: bag.found, primal)
    bag.search = search
    assert search.run(Limits()) is None
    assert search.bound == pytest.approx(bag.least())
    nothing = BestFirst[Node]([], bag.expand, lambda: 0.0)
    assert (nothing.active, nothing.best, nothing.bound) == (False, None, np.inf)
