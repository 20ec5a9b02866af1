"""Energy times makespan by prices of time."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies_coscheduling import three_jobs

from optgap.heuristics.coscheduling import POLICIES
from optgap.models.coscheduling import Application, CoschedulingProblem, Mode
from optgap.models.limits import Limits
from optgap.models.result import Status
from optgap.solvers.coscheduling.oracle import oracle
from optgap.solvers.coscheduling.product import Support, least_product, lowest, priced

SIZES = st.floats(-6, 6).map(lambda power: 10.0**power)
POINTS = st.lists(st.tuples(st.floats(1, 100), st.floats(1, 100)), min_size=1, max_size=8)  # (E, C)


def test_a_price_of_time_adds_to_energy_what_it_says() -> None:
    problem = three_jobs()
    solution = POLICIES["marble"].load()(problem, limits=Limits(), seed=0).solution
    found = problem.evaluate(solution).metrics
    dearer = priced(problem, 12.0).evaluate(solution).metrics
    assert dearer["energy_j"] == pytest.approx(found["energy_j"] + 12 * found["makespan_s"])


@given(points=POINTS)
def test_the_best_of_any_points_is_found_with_proof(points: list[tuple[float, float]]) -> None:
    problem = three_jobs()
    problem_price = problem.idle_w * problem.gpus

    def solve(part: CoschedulingProblem) -> tuple[float, float, float]:
        if part.objective.goal == "makespan":
            energy, makespan = min(points, key=lambda p: (p[1], p[0]))
            return makespan, energy, makespan
        price = part.idle_w * part.gpus - problem_price
        energy, makespan = min(points, key=lambda p: p[0] + price * p[1])
        value = energy + price * makespan
        return value, value, makespan

    bound = least_product(problem, Limits(), solve)
    assert bound == pytest.approx(min(e * c for e, c in points), rel=1e-4)
    assert bound <= min(e * c for e, c in points) * (1 + 1e-9)


@given(
    points=st.lists(st.tuples(SIZES, SIZES), min_size=1, max_size=6),
    prices=st.lists(SIZES, max_size=4),
    apart=st.sampled_from((1e-15, 1e-12, 1e-9, 1e-6)),
)
def test_no_schedule_above_all_lines_is_below_the_bound(
    points: list[tuple[float, float]], prices: list[float], apart: float
) -> None:
    """However near prices are to each other; exactly, in fractions."""
    exact = [(Fraction(e), Fraction(c)) for e, c in points]
    known = []
    for price in sorted({0.0, *prices, *(p * (1 + apart) for p in prices)}):
        least = min(e + Fraction(price) * c for e, c in exact)
        level = float(least)
        level = level if Fraction(level) <= least else math.nextafter(level, 0.0)
        known.append(Support(price, level, 0.0, 0.0))
    known.append(Support(math.inf, min(c for _, c in points), 0.0, 0.0))
    assert Fraction(lowest(known)) <= min(e * c for e, c in exact)


def test_a_line_below_the_others_does_not_raise_the_bound() -> None:
    known = [
        Support(0.0, 10.0, 10.0, 9.0),
        Support(1.0, 10.5, 0.0, 0.0),
        Support(2.0, 16.0, 14.0, 1.0),
        Support(math.inf, 1.0, 14.0, 1.0),
    ]
    without = [known[0], known[2], known[3]]
    assert lowest(known) == pytest.approx(lowest(without))


def test_cp_sat_is_not_asked_for_products_as_it_gets_this_one_wrong() -> None:
    """One job; with multiplication CP-SAT 9.15 calls 60 J·s optimal, and it takes 20."""
    pool = [Application("a", (Mode(1, 3.0, 10.0), Mode(2, 1.0, 10.0)))]
    problem = CoschedulingProblem.of(pool, gpus=3, numa=1, idle_w=0.0, goal="edp")
    outcome = oracle(problem, limits=Limits(20), seed=0)
    assert outcome.status is Status.OPTIMAL
    assert outcome.claimed == pytest.approx(20.0)
