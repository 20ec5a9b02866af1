from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from optgap.models.limits import Limits
from optgap.solvers.backends import solve
from optgap.solvers.backends.linear import LinearBuilder, LinearModel
from optgap.solvers.backends.safe import outwards, safe_bound, solver_slack


def around(rng: np.random.Generator) -> tuple[LinearModel, np.ndarray]:
    """Numbers over twelve orders of magnitude, and a point that keeps every row by construction."""

    def wild(low: float = -6, high: float = 6) -> float:
        return float(rng.choice([-1, 1]) * 10.0 ** rng.uniform(low, high))

    builder = LinearBuilder("min", offset=wild())
    point = [abs(wild(-3, 3)) for _ in range(int(rng.integers(1, 7)))]
    for x in point:
        builder.variable(x * rng.uniform(0, 1), x * rng.uniform(1, 3), wild())
    for _ in range(int(rng.integers(1, 5))):
        terms = [(j, wild()) for j in range(len(point)) if rng.random() < 0.7]
        level = float(sum(Fraction(v) * Fraction(point[j]) for j, v in terms))
        room = abs(level) * 1e-12 + 1e-300
        sides = rng.random(2)
        builder.row(terms, level - room if sides[0] < 0.7 else -np.inf,
                    level + room if sides[1] < 0.7 else np.inf)  # fmt: skip
    return builder.build(), np.array(point)


@given(seed=st.integers(0, 2**32 - 1))
def test_no_price_however_wrong_puts_the_bound_above_a_feasible_point(seed: int) -> None:
    rng = np.random.default_rng(seed)
    model, point = around(rng)
    duals = rng.choice([-1, 1], model.rows) * 10.0 ** rng.uniform(-6, 6, model.rows)
    value = Fraction(model.offset)
    value += sum(Fraction(c) * Fraction(x) for c, x in zip(model.cost, point, strict=True))
    assert Fraction(safe_bound(model, duals)) <= value
    solved = solve(model, backend="highs", limits=Limits())
    if solved.duals is not None:
        assert Fraction(safe_bound(model, solved.duals)) <= value


@given(seed=st.integers(0, 2**32 - 1))
def test_at_the_solvers_prices_little_is_lost(seed: int) -> None:
    rng = np.random.default_rng(seed)
    builder = LinearBuilder("min")
    for _ in range(6):
        builder.variable(upper=float(rng.uniform(1, 5)), cost=float(rng.uniform(-1, 1)))
    for _ in range(4):
        builder.row([(j, float(rng.uniform(0, 1))) for j in range(6)], 0.5, 2.0)
    model = builder.build()
    solved = solve(model, backend="highs", limits=Limits())
    if solved.duals is not None and solved.objective is not None:
        found = safe_bound(model, solved.duals)
        assert found == pytest.approx(solved.objective, rel=1e-6, abs=1e-6)


def test_a_variable_without_a_limit_needs_one_where_it_would_be_cheap() -> None:
    builder = LinearBuilder("min")
    x = builder.variable(cost=1.0)
    builder.row([(x, 1.0)], lower=2.0)
    model = builder.build()
    assert safe_bound(model, np.array([0.75])) == pytest.approx(1.5, rel=1e-12)
    assert safe_bound(model, np.array([1.0])) == -np.inf  # it may be negative by rounding
    limited = safe_bound(model, np.array([1.0 + 1e-9]), np.array([10.0]))
    assert limited == pytest.approx(2 - 8e-9, abs=1e-12)
    assert safe_bound(model, np.array([-5.0])) == 0  # an upper limit that is not there
    assert solver_slack(model, 1e-6, np.array([10.0])) == pytest.approx(1e-5)
    with pytest.raises(ValueError, match="minimisation"):
        safe_bound(LinearBuilder("max").build(), np.zeros(0))


def test_sums_are_rounded_down() -> None:
    terms = [0.1] * 10 + [1e16, -1e16]
    assert outwards(terms) <= 1.0
    assert outwards([1.0, -np.inf]) == -np.inf
