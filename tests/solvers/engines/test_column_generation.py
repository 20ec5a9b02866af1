"""Cutting stock (Gilmore and Gomory 1961): rolls of one width are cut into ordered widths."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pytest
from scipy.optimize import linprog

from optgap.models.limits import Limits
from optgap.models.result import Termination
from optgap.solvers.engines.column_generation import Pricing, Solved, generate, unsmoothed

Duals = npt.NDArray[np.float64]
Pattern = tuple[int, ...]
ROLL = 60


@dataclass
class CuttingStock:
    """The fewest rolls. `search` limits the patterns that pricing looks at before it estimates."""

    seed: int
    search: int = 10**9
    bounds: list[float] = field(default_factory=list)
    told: list[tuple[float, float]] = field(default_factory=list)

    def __post_init__(self) -> None:
        rng = np.random.default_rng(self.seed)
        self.width = np.sort(rng.choice(np.arange(9, 45), 7, replace=False))
        self.demand = rng.integers(5, 40, 7)
        self.columns: list[Pattern] = [tuple(p) for p in np.diag(ROLL // self.width).tolist()]
        counts = itertools.product(*(range(ROLL // w + 1) for w in self.width.tolist()))
        self.all: list[Pattern] = [p for p in counts if self.width @ p <= ROLL]

    def relaxed(self, patterns: list[Pattern]) -> Solved[Duals]:
        """Solve the linear program over some patterns."""
        found = linprog(np.ones(len(patterns)), -np.array(patterns).T, -self.demand)
        return Solved(found.fun, -found.ineqlin.marginals)

    def solve_master(self, limits: Limits) -> Solved[Duals] | None:
        limits.spend(1.0)
        return self.relaxed(self.columns)

    def price(self, duals: Duals, limits: Limits) -> Pricing[Duals]:
        """Farley's bound: what the demand is worth, over the most that a pattern is worth."""
        worth = np.array(self.all[: self.search]) @ duals
        best, pattern = float(worth.max()), self.all[int(worth.argmax())]
        if self.search < len(self.all):  # no pattern is worth more than its width at the best rate
            best = float((duals / self.width).max()) * ROLL
        self.bounds.append(float(duals @ self.demand) / max(1.0, best))
        new = float(duals @ pattern) > 1 + 1e-9 and pattern not in self.columns
        self.columns += [pattern] * new
        return Pricing(self.bounds[-1], duals, int(new))

    def closed(self, value: float, bound: float) -> bool:
        return bound >= value * (1 - 1e-7)

    def escalate(self, closed: bool, limits: Limits) -> bool:
        """Look at twice as many patterns, if any were left out."""
        self.search, before = 2 * self.search, self.search
        return not closed and before < len(self.all)

    def tell(self, value: float, bound: float) -> None:
        self.told.append((value, bound))


def wentges(best: Duals, last: Duals) -> Duals:
    return 0.7 * best + 0.3 * last


@pytest.mark.parametrize("seed", range(3))
def test_the_bound_is_the_value_of_the_program_over_all_patterns(seed: int) -> None:
    """Also where pricing is cut short at first, and with smoothing."""
    optimum = CuttingStock(seed).relaxed(CuttingStock(seed).all[1:]).value
    for search, smooth in itertools.product((10**9, 20), (unsmoothed, wentges)):
        stock = CuttingStock(seed, search)
        found = generate(stock, Limits(), smooth=smooth, tell=stock.tell)
        assert found.bound == pytest.approx(optimum, rel=1e-6)
        assert found.bound == max(stock.bounds) <= optimum * (1 + 1e-9)
        assert (found.rounds, found.stopped) == (len(stock.bounds), None)
        assert len(stock.columns) < len(stock.all) / 2
        assert all(value >= optimum * (1 - 1e-9) for value, _ in stock.told)
        assert [bound for _, bound in stock.told] == list(itertools.accumulate(stock.bounds, max))
        assert found.duals is not None
        assert stock.price(found.duals, Limits()).bound == found.bound


@pytest.mark.parametrize(
    ("limits", "more", "stopped"),
    [
        (Limits(work=0.0), {}, Termination.WORK_LIMIT),
        (Limits(work=4.0), {}, Termination.WORK_LIMIT),
        (Limits(), {"rounds": 3}, None),
        (Limits(), {"patience": 2}, None),
    ],
)
def test_a_bound_that_is_cut_short_holds(
    limits: Limits, more: dict[str, int], stopped: Termination | None
) -> None:
    stock = CuttingStock(0, 30)
    optimum = stock.relaxed(stock.all[1:]).value
    found = generate(stock, limits, bound=1.0, **more)
    assert found.bound == max([1.0, *stock.bounds]) < optimum * (1 - 1e-3)
    assert (found.stopped, found.rounds) == (stopped, len(stock.bounds))
    assert (found.duals is None) == (not stock.bounds)
    assert found.rounds == 3 or "rounds" not in more


def test_pricing_that_is_never_exact_ends_with_a_bound_that_holds() -> None:
    stock = CuttingStock(1, 30)
    stock.escalate = lambda closed, limits: False  # type: ignore[method-assign]
    found = generate(stock, Limits())
    assert 0 < found.bound < stock.relaxed(stock.all[1:]).value
