"""Annealing of the quadratic assignment problem, whose optimum for n = 7 is searched."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest

from optgap.models.compiled import compiled, interpreted, python_of
from optgap.models.limits import Limits
from optgap.solvers.engines.annealing import Random, allowed, anneal, draw, random_of, walk

N = 7
Order = tuple[int, ...]


class Facilities:
    """Flows between facilities times distances of their places, and swaps of two places."""

    def __init__(self, seed: int) -> None:
        rng = np.random.default_rng(seed)
        self.flow, self.distance = rng.integers(0, 10, (2, N, N))

    def cost(self, order: Order) -> float:
        return float((self.flow * self.distance[np.ix_(order, order)]).sum())

    def swapped(self, order: Order, i: int, j: int) -> tuple[Order, float]:
        other = list(order)
        other[i], other[j] = other[j], other[i]
        return tuple(other), self.cost(tuple(other))


@pytest.mark.parametrize("seed", range(2))
def test_both_forms_find_the_optimum_and_are_repeated_by_a_seed(seed: int) -> None:
    qap, first = Facilities(seed), tuple(range(N))
    optimum = min(map(qap.cost, permutations(range(N))))
    heats = optimum / 10, optimum / 500

    def walked(tries: int, limits: Limits, enough: float = -np.inf) -> tuple[Order, float]:
        rng = np.random.default_rng(seed)
        return walk(
            first, qap.cost(first), lambda order: qap.swapped(order, *rng.integers(N, size=2)),
            limits, tries=tries, heats=heats, rng=rng, enough=enough,
        )  # fmt: skip

    def in_batches(limits: Limits) -> tuple[float, int]:
        random, uniform, may_be = random_of(seed), python_of(draw), python_of(allowed)
        state = [first, qap.cost(first), qap.cost(first)]

        def batch(tries: int, hot: float, cold: float) -> None:
            assert heats[0] >= hot > cold >= heats[1] * (1 - 1e-12)
            limits.spend(1.0)
            for i in range(tries):
                order, value = qap.swapped(
                    state[0], int(N * uniform(random)), int(N * uniform(random))
                )
                if value - state[1] < may_be(i, tries, hot, cold, uniform(random)):
                    state[:] = order, value, min(value, state[2])

        done = anneal(batch, 3000, heats, limits, chunk=300)
        return state[2], done

    found = walked(3000, Limits())
    assert found == walked(3000, Limits())
    assert found[1] == optimum
    assert walked(3000, Limits(), enough=qap.cost(first)) == (first, qap.cost(first))
    assert walked(3000, Limits(0.0)) == (first, qap.cost(first))
    assert qap.cost(first) >= walked(5, Limits())[1] >= optimum
    assert in_batches(Limits()) == in_batches(Limits()) == (optimum, 3000)
    assert in_batches(Limits(work=2.0))[1] == 600
    assert in_batches(Limits(0.0)) == (qap.cost(first), 0)


@compiled
def drawn(random: Random, tries: int) -> tuple[float, float]:
    """Return the means of random numbers and of what is allowed at them."""
    number, worse = 0.0, 0.0
    for i in range(tries):
        u = draw(random)
        number += u
        worse += allowed(i, tries, 2.0, 2.0, u)
    return number / tries, worse / tries


def test_random_numbers_are_alike_compiled_and_by_python() -> None:
    with interpreted(True):
        expected = drawn(random_of(3), 5000)
    random = random_of(3)
    assert drawn(random, 5000) == pytest.approx(expected, rel=1e-12)
    assert random.tolist() != random_of(3).tolist()
    # uniform, and exponential with the temperature as its mean
    assert expected == (pytest.approx(0.5, abs=0.02), pytest.approx(2.0, abs=0.1))
