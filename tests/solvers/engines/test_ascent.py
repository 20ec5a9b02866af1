"""The Lagrangian bound of the assignment problem, plain and generalised: capacities have prices."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment

from optgap.models.limits import Limits
from optgap.models.result import Termination
from optgap.solvers.engines.ascent import Priced, Prices, ascend


def priced(cost: Prices, load: Prices, capacity: float, prices: Prices) -> Priced:
    """Every job goes to the machine of least cost and payment; the slope is the excess of loads."""
    total = cost + prices[:, None] * load
    chosen = total.argmin(axis=0)
    held = np.bincount(chosen, load[chosen, np.arange(len(chosen))], minlength=len(prices))
    bound = float(total.min(axis=0).sum() - capacity * prices.sum())
    return Priced(bound, held - capacity, chosen)


@pytest.mark.parametrize("seed", range(4))
def test_the_bound_of_an_assignment_comes_within_a_percent_of_its_optimum(seed: int) -> None:
    cost = np.random.default_rng(seed).uniform(1, 10, (30, 30))
    optimum = cost[linear_sum_assignment(cost)].sum()
    told: list[float] = []
    found = ascend(
        lambda prices: priced(cost, np.ones_like(cost), 1.0, prices),
        np.zeros(30), Limits(), rounds=400, scale=5.0, tell=told.append,
    )  # fmt: skip
    assert 0.99 * optimum <= found.bound <= optimum + 1e-9
    assert found.stopped is None
    assert told == sorted(told)
    assert len(told) == 400
    again = priced(cost, np.ones_like(cost), 1.0, found.prices)
    assert (again.bound, again.kept.tolist()) == (found.bound, found.kept.tolist())


@pytest.mark.parametrize("seed", range(4))
def test_no_price_of_a_generalised_assignment_proves_more_than_its_optimum(seed: int) -> None:
    rng = np.random.default_rng(seed)
    cost, load = rng.uniform(1, 10, (3, 7)), rng.uniform(1, 4, (3, 7))
    every = np.arange(7)
    optimum = min(
        float(cost[list(way), every].sum())
        for way in product(range(3), repeat=7)
        if (np.bincount(way, load[list(way), every], minlength=3) <= 7).all()
    )
    first = priced(cost, load, 7.0, np.full(3, 0.5))
    for limits in (Limits(), Limits(0.0)):
        found = ascend(
            lambda prices: priced(cost, load, 7.0, prices), np.full(3, 0.5), limits, rounds=200
        )
        assert first.bound <= found.bound <= optimum + 1e-9
    assert found.stopped is Termination.TIME_LIMIT
    assert found.prices.tolist() == [0.5] * 3


def test_the_rounds_of_every_length_fit_into_the_work() -> None:
    for limits, work, calls in ((Limits(), 20.0, 21), (Limits(work=40.0), 60.0, 40)):

        def evaluate(prices: Prices, limits: Limits = limits) -> Priced:
            limits.spend(1.0)
            return Priced(-abs(float(prices[0]) - 0.3), np.sign(0.3 - prices))

        found = ascend(evaluate, np.ones(1), limits, rounds=400, work=work)
        assert calls - 4 <= limits.spent <= calls
        assert found.bound > -0.4
        assert found.stopped is limits.cut is (Termination.WORK_LIMIT if calls == 40 else None)
