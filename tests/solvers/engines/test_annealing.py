"""Annealing of the quadratic assignment problem, whose optimum for n = 7 is searched."""

from __future__ import annotations

from itertools import pairwise, permutations

import numpy as np
import pytest

from optgap.models.compiled import compiled, interpreted
from optgap.models.limits import Limits
from optgap.solvers.engines.annealing import Random, allowed, anneal, draw, random_of, walk

N, TRIES = 7, 3000
Order = list[int]


@pytest.mark.parametrize("seed", range(2))
def test_both_forms_find_the_optimum_and_are_repeated_by_a_seed(seed: int) -> None:
    flow, distance = np.random.default_rng(seed).integers(0, 10, (2, N, N))

    def cost(order: Order) -> float:
        return float((flow * distance[np.ix_(order, order)]).sum())

    first = list(range(N))
    optimum, heats = min(cost(list(order)) for order in permutations(first)), (100.0, 2.0)

    def swapped(order: Order, random: Random) -> tuple[Order, float]:
        other, (i, j) = order.copy(), (int(N * draw(random)) for _ in range(2))
        other[i], other[j] = other[j], other[i]
        return other, cost(other)

    def walked(tries: int, limits: Limits, enough: float = -np.inf) -> tuple[Order, float]:
        rng, random = np.random.default_rng(seed), random_of(seed)
        return walk(
            first, cost(first), lambda order: swapped(order, random), limits, tries=tries,
            heats=heats, rng=rng, enough=enough,
        )  # fmt: skip

    def in_batches(limits: Limits) -> tuple[float, int]:
        random, best = random_of(seed), cost(first)
        order, value = first, best

        def batch(tries: int, hot: float, cold: float) -> None:
            nonlocal order, value, best
            assert heats[0] >= hot > cold >= heats[1] * (1 - 1e-12)
            limits.spend(1.0)
            for i in range(tries):
                other, now = swapped(order, random)
                if now - value < allowed(i, tries, hot, cold, draw(random)):
                    order, value, best = other, now, min(best, now)

        done = anneal(batch, TRIES, heats, limits, chunk=300)
        return best, done

    found = walked(TRIES, Limits())
    assert found == walked(TRIES, Limits())
    assert found[1] == optimum == cost(found[0])
    assert walked(TRIES, Limits(), enough=cost(first)) == (first, cost(first))
    assert walked(TRIES, Limits(0.0)) == (first, cost(first))
    assert cost(first) >= walked(5, Limits())[1] >= optimum
    assert in_batches(Limits()) == in_batches(Limits()) == (optimum, TRIES)
    assert in_batches(Limits(work=2.0))[1] == 600
    assert in_batches(Limits(0.0)) == (cost(first), 0)


@pytest.mark.parametrize("heat", [1e-9, 1e9])
def test_a_cold_walk_takes_nothing_worse_and_a_hot_one_everything(heat: float) -> None:
    rng, seen = np.random.default_rng(0), list[int]()

    def near(x: int) -> tuple[int, float]:
        seen.append(x)
        other = abs(x + int(rng.choice((-1, 1))))
        return other, float(other)

    walk(20, 20.0, near, Limits(), tries=200, heats=(heat, heat), rng=rng)
    descends = seen == sorted(seen, reverse=True)
    moves = all(a != b for a, b in pairwise(seen))
    assert (descends, moves) == (heat < 1, heat > 1)


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
    assert drawn(random_of(3), 5000) == pytest.approx(expected, rel=1e-12)
    # uniform, and exponential with the temperature as its mean
    assert expected == (pytest.approx(0.5, abs=0.02), pytest.approx(2.0, abs=0.1))
