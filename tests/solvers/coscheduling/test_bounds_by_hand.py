"""Bounds worked out by hand: one that became weaker or stronger fails."""

from __future__ import annotations

import importlib
import math
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies_coscheduling import three_jobs

from optgap.models.coscheduling import Application, CoschedulingProblem, Mode
from optgap.models.limits import Limits
from optgap.models.result import Status
from optgap.solvers.coscheduling.area import bound_area, least_cost_j, least_makespan
from optgap.solvers.coscheduling.integers import floor_of_bound, integers
from optgap.solvers.coscheduling.lanes import two_at_most
from optgap.solvers.coscheduling.oracle import oracle
from optgap.solvers.coscheduling.patterns import _some_releases, bound_patterns, patterns
from optgap.solvers.coscheduling.product import (
    Support,
    between,
    corner,
    least_product,
    lowest,
    priced,
)

X = Application("X", (Mode(1, 100.0, 300.0), Mode(2, 60.0, 250.0)))
"""25,000 and 24,000 J beyond idle; 100 and 120 GPU-s."""
Y = Application("Y", (Mode(1, 40.0, 200.0), Mode(4, 20.0, 150.0)))
"""6,000 and 8,000 J beyond idle; 40 and 80 GPU-s."""


def problem(*jobs: int, numa: int = 2, **more: Any) -> CoschedulingProblem:
    """Four GPUs of 50 W idle."""
    given: dict[str, Any] = {"gpus": 4, "idle_w": 50.0, **more}
    return CoschedulingProblem.of([X, Y], jobs, numa=numa, **given)


def bounds(problem: CoschedulingProblem) -> tuple[float, float]:
    area = bound_area(problem, limits=Limits(), seed=0).bound
    pattern = bound_patterns(problem, limits=Limits(), seed=0).bound
    assert area is not None
    assert pattern is not None
    return area, pattern


@pytest.mark.parametrize(
    ("jobs", "numa", "releases", "seconds"),
    [
        ((0, 1), 2, None, 60.0),  # X at its fastest
        ((0,) * 8, 6, None, 200.0),  # 800 GPU-s on four GPUs
        ((0,) * 8, 2, None, 240.0),  # 480 job-s in two domains
        ((0, 1), 2, [0.0, 100.0], 120.0),
        ((0,) + (1,) * 5, 2, [0.0] + [100.0] * 5, 150.0),
        ((0,) + (1,) * 6, 6, [0.0] + [100.0] * 6, 160.0),
        ((0,) * 9, 2, [0.0] + [5.0] * 8, 270.0),
        ((0,) * 9, 2, [0.0] + [40.0] * 8, 280.0),
    ],
)
def test_the_least_makespan_is_the_largest_of_three(
    jobs: tuple[int, ...], numa: int, releases: Any, seconds: float
) -> None:
    made = problem(*jobs, numa=numa, releases=releases, goal="makespan")
    assert least_makespan(made) == pytest.approx(seconds, rel=1e-14)
    bound = bounds(made)[0]
    assert bound == pytest.approx(seconds, rel=2e-12)
    assert bound < seconds


def test_the_least_energy_is_every_job_at_its_cheapest_and_the_node_idle() -> None:
    made = problem(0, 0, 1)
    assert least_cost_j(made) == 24_000 + 24_000 + 6_000
    bound = bounds(made)[0]
    # 120 + 20 job-s in two domains
    assert bound == pytest.approx(54_000 + 50 * 4 * 70, rel=2e-12)
    assert bound < 54_000 + 50 * 4 * 70
    assert bounds(problem(0, 0, 1, goal="edp"))[0] == pytest.approx(68_000 * 70, rel=2e-12)


@pytest.mark.parametrize(
    ("counts", "gpus", "numa", "jobs", "found"),
    [
        ((1, 2), 4, 2, 9, [(2, 2)]),
        ((1, 2, 4), 4, 2, 9, [(4,), (2, 2)]),
        ((1, 2), 4, 3, 9, [(2, 2), (2, 1, 1)]),
        ((1, 2), 4, 9, 9, [(2, 2), (2, 1, 1), (1, 1, 1, 1)]),
        ((3, 4), 8, 2, 9, [(4, 4)]),
        ((3,), 8, 9, 9, [(3, 3)]),
        ((1, 2), 4, 9, 1, [(2,)]),
        ((1, 2), 5, 3, 9, [(2, 2, 1)]),
        ((1, 2, 3, 4), 4, 2, 5, [(1, 1), (2, 1), (2, 2), (3, 1), (4,)]),
    ],
)
def test_patterns_are_the_counts_that_may_run_together(
    counts: tuple[int, ...], gpus: int, numa: int, jobs: int, found: list[tuple[int, ...]]
) -> None:
    """All of `found` among them, and nothing that does not fit."""
    app = Application("a", tuple(Mode(g, 1.0, 1.0) for g in counts))
    made = CoschedulingProblem.of([app], [0] * jobs, gpus=gpus, numa=numa)
    every = patterns(made)
    assert set(found) <= set(every)
    assert len(set(every)) == len(every)
    for pattern in every:
        assert list(pattern) == sorted(pattern, reverse=True)
        assert sum(pattern) <= gpus
        assert len(pattern) <= min(numa, jobs)
        room = gpus - sum(pattern)
        assert len(pattern) == min(numa, jobs) or room < counts[0] or pattern[-1] > counts[0]


@pytest.mark.parametrize(
    ("jobs", "numa", "releases", "goal", "value"),
    [
        # three X on two domains: all on one GPU take 300/2 s, two GPUs 180/2
        ((0, 0, 0), 2, None, "makespan", 90.0),
        # three domains, on 2, 2 and 1 GPUs: 50 s of 2+1+1 for the last, 35 s of 2+2
        ((0, 0, 0), 3, None, "makespan", 85.0),
        # Y on all four GPUs for 20 s and X beside X for 60 s: 80 s; Y beside X, X: 100 s
        ((0, 0, 1), 2, None, "makespan", 80.0),
        ((0, 0), 2, [0.0, 30.0], "makespan", 90.0),
        # X on 2 GPUs and Y on 1 in 80 s; nothing is cheaper, and 60 + 60 s do not fit in less
        ((0, 0, 1), 2, None, "energy", 54_000.0 + 200 * 80),
        ((0, 1), 2, None, "energy", 30_000.0 + 200 * 60),
        ((0, 1), 2, None, "edp", 42_000.0 * 60),
        # 85 s as above: 2 · 24,000 + 25,000 J and idle power until then
        ((0, 0, 0), 3, None, "edp", (73_000.0 + 200 * 85) * 85),
        # those from 30 s on alone take 85 s more; what came before does not add to that
        ((1, 0, 0, 0), 3, [0.0, 30.0, 30.0, 30.0], "makespan", 115.0),
        ((0, 0, 0, 0, 1), 2, [0.0] * 4 + [110.0], "makespan", 140.0),
    ],
)
def test_the_pattern_bound_is_as_worked_out_by_hand(
    jobs: tuple[int, ...], numa: int, releases: Any, goal: str, value: float
) -> None:
    made = problem(*jobs, numa=numa, releases=releases, goal=goal)
    bound = bounds(made)[1]
    assert bound == pytest.approx(value, rel=3e-6)
    assert bound < value


@pytest.mark.parametrize(
    ("fast_w", "release", "value"),
    [
        # on one GPU 1,000 J in 100 s, on two 1,500 J in 60 s: idle power pays for the shorter
        (62.5, None, 1500.0 + 200 * 60),
        # 5,000 J in 60 s from 30 s on, when the others would end at 130 s
        (275 / 3, [30.0, 0.0, 0.0], 5000.0 + 200 * 90),
    ],
)
def test_a_job_takes_as_long_as_the_mode_it_is_charged_for(
    fast_w: float, release: Any, value: float
) -> None:
    app = Application("S", (Mode(1, 100.0, 60.0), Mode(2, 60.0, fast_w)))
    brief = Application("T", (Mode(1, 1.0, 50.0),))  # nothing beyond idle
    made = CoschedulingProblem.of(
        [app, brief], [0, 1, 1], gpus=4, numa=3, idle_w=50.0, releases=release
    )
    assert bounds(made)[1] == pytest.approx(value, rel=3e-6)
    assert bounds(made)[0] < value - 400


def test_rows_are_repeated_for_a_dozen_releases_at_most() -> None:
    for count, found in ((3, [1, 2, 3]), (12, range(1, 13)), (13, range(1, 14, 2)),
                         (25, range(1, 26, 3))):  # fmt: skip
        releases = [*map(float, range(1, count + 1)), 0.0, 1.0]
        made = problem(*[1] * (count + 2), releases=releases)
        assert _some_releases(made) == [0, *found]


def test_more_patterns_than_are_wanted_are_none(monkeypatch: pytest.MonkeyPatch) -> None:
    app = Application("a", tuple(Mode(g, 1.0, 1.0) for g in (1, 2, 3)))
    made = CoschedulingProblem.of([app], [0] * 9, gpus=9, numa=9)
    every = patterns(made)
    assert every is not None
    module = importlib.import_module("optgap.solvers.coscheduling.patterns")
    monkeypatch.setattr(module, "MOST_PATTERNS", len(every) - 1)
    assert patterns(made) is None
    monkeypatch.setattr(module, "MOST_PATTERNS", 2 * len(every))
    assert patterns(made) == every


# -- energy times makespan -----------------------------------------------------------------

INF = float("inf")
CHEAP = Support(0.0, 100.0, 100.0, 30.0)
MIDDLE = Support(10.0, 300.0, 105.0, 20.0)
SHORT = Support(INF, 15.0, 200.0, 15.0)


def test_lines_of_two_prices_meet_in_a_corner() -> None:
    assert corner(CHEAP, MIDDLE) == (20.0, 100.0, 2000.0)
    assert corner(CHEAP, SHORT) == (15.0, 100.0, 1500.0)
    assert corner(MIDDLE, SHORT) == (15.0, 150.0, 2250.0)
    assert corner(Support(5.0, 200.0, 1, 1), Support(15.0, 400.0, 1, 1)) == (20.0, 100.0, 2000.0)
    assert (CHEAP.product, SHORT.product) == (3000.0, 3000.0)


def test_the_least_product_is_at_a_corner_below_no_line() -> None:
    """The corner of the first and the last, at 1500, lies 50 J below the line between them."""
    known = lowest([CHEAP, MIDDLE, SHORT])
    assert known == pytest.approx(2000, rel=1e-11)
    assert known < 2000
    assert lowest([CHEAP, SHORT]) == pytest.approx(1500)
    # one that lies below by rounding alone is kept
    near = Support(10.0, 250.0 + 1e-4, 1, 1)
    assert lowest([CHEAP, near, SHORT]) == pytest.approx(1500)
    # nothing left of the shortest makespan, however near
    assert lowest([CHEAP, MIDDLE, Support(INF, 20.5, 1, 1)]) == pytest.approx(2050)
    late = Support(INF, 25.0, 1, 1)
    assert lowest([CHEAP, MIDDLE, late]) == pytest.approx(2500)
    # a line below the others does not raise the bound
    known = [Support(0.0, 10.0, 1, 1), Support(2.0, 16.0, 1, 1), Support(INF, 1.0, 1, 1)]
    below = Support(1.0, 10.5, 1, 1)
    assert lowest([known[0], below, *known[1:]]) == pytest.approx(lowest(known))


def test_the_next_price_joins_two_schedules_if_it_is_new() -> None:
    assert between(CHEAP, SHORT) == pytest.approx(100 / 15)
    assert between(CHEAP, MIDDLE) == pytest.approx(0.5)
    assert between(MIDDLE, SHORT) == pytest.approx(19.0)
    assert between(CHEAP, Support(0.4, 1.0, 105.0, 20.0)) is None  # 0.5 is not below that
    assert between(Support(0.6, 1.0, 100.0, 30.0), MIDDLE) is None
    assert between(CHEAP, Support(10.0, 1.0, 100.0, 20.0)) is None  # no dearer
    assert between(CHEAP, Support(10.0, 1.0, 105.0, 30.0)) is None  # no shorter


def test_a_price_of_time_is_idle_power() -> None:
    made = priced(problem(0, 1, goal="edp"), 8.0)
    assert made.idle_w == 52.0
    assert made.objective.goal == "energy"
    assert [m.power_per_gpu_w for m in made.applications[0].modes] == [302.0, 252.0]
    assert [made.cost_j(m) for m in made.applications[0].modes] == [25_000.0, 24_000.0]


def test_areas_and_lanes_are_no_whole_numbers() -> None:
    assert least_makespan(timed(*[7.3] * 3)) == pytest.approx(3 * 7.3 / 2)
    assert least_makespan(timed(*[7.3] * 9, numa=8)) == pytest.approx(9 * 7.3 / 4)


# -- integers ------------------------------------------------------------------------------


def timed(*seconds: float, idle_w: float = 0.0, **more: Any) -> CoschedulingProblem:
    apps = [Application(f"a{k}", (Mode(1, t, 100.0),)) for k, t in enumerate(seconds)]
    return CoschedulingProblem.of(apps, gpus=4, idle_w=idle_w, **more)


@pytest.mark.parametrize(
    ("seconds", "tick", "exact", "ticks"),
    [
        ((3.0, 20.0), 1.0, True, [3, 20]),
        ((0.5, 20.0), 0.1, True, [5, 200]),
        ((0.25, 20.0), 0.01, True, [25, 2000]),
        ((1e-6, 2.0), 1e-6, True, [1, 2_000_000]),
        ((10 / 3, 2.0009), 1e-3, False, [3333, 2000]),
        ((0.57,), 0.01, True, [57]),  # 56.99999999999999 hundredths
    ],
)
def test_ticks_are_the_coarsest_power_of_ten_or_rounded_down(
    seconds: tuple[float, ...], tick: float, exact: bool, ticks: list[int]
) -> None:
    found = integers(timed(*seconds))
    assert found.tick_s == pytest.approx(tick)
    assert found.exact is exact
    assert list(found.ticks.values()) == ticks
    assert found.horizon == sum(ticks)
    assert found.unit("makespan") == found.tick_s
    assert found.unit("energy") == found.quantum_j
    late = integers(timed(3.0, 20.0, releases=[0.0, 7.5]))  # releases are times, too
    assert late.tick_s == pytest.approx(0.1)
    assert late.horizon == 230 + 75


def test_quanta_divide_the_idle_power_of_a_tick_and_costs_are_rounded_down() -> None:
    made = timed(3.0, 7.0, idle_w=10.0)
    found = integers(made)
    assert found.exact
    assert found.idle * found.quantum_j == pytest.approx(40.0, rel=1e-15)
    assert found.quantum_j <= 1e-3
    for (a, g), cost in found.costs.items():
        mode = made.applications[a].mode(g)
        assert mode is not None
        real = made.cost_j(mode)
        assert real - found.quantum_j <= cost * found.quantum_j <= real * (1 + 1e-9)
    assert found.largest_cost == sum(found.costs.values())
    assert found.jobs == 2
    loss = 2 * found.quantum_j + 2e-9 * (270 + 630)
    assert found.error("energy", 5000.0) == pytest.approx(loss + 2e-9 * 5000, rel=1e-6)
    assert found.error("makespan", 5000.0) == pytest.approx(2e-9 * 5000)


def test_a_bound_in_integers_is_below_the_bound() -> None:
    made = timed(3.0, 7.0, goal="makespan")
    data = integers(made)
    assert floor_of_bound(made, data, 7.0) == 4  # less one by rounding down, and two
    made = timed(3.0, 7.0, idle_w=10.0)
    data = integers(made)
    known = floor_of_bound(made, data, 1000.0) * data.quantum_j
    assert 1000 - 0.02 < known < 1000 - 1e-3
    assert floor_of_bound(made, integers(timed(10 / 3)), 1000.0) == -(2**60)


@pytest.mark.parametrize(
    ("gpus", "numa", "counts", "jobs", "two"),
    [
        (4, 2, (1, 2), 5, True),
        (4, 3, (1, 2), 5, False),
        (4, 3, (2, 4), 5, True),
        (6, 3, (2, 4), 5, False),
        (4, 3, (1, 2), 2, True),
    ],
)
def test_two_lanes_are_enough_where_domains_gpus_or_jobs_say_so(
    gpus: int, numa: int, counts: tuple[int, ...], jobs: int, two: bool
) -> None:
    app = Application("a", tuple(Mode(g, 1.0, 1.0) for g in counts))
    made = CoschedulingProblem.of([app], [0] * jobs, gpus=gpus, numa=numa)
    assert two_at_most(made) is two
    stream = CoschedulingProblem.of(
        [app], [0] * jobs, gpus=gpus, numa=numa, releases=[0.0] * (jobs - 1) + [1.0]
    )
    assert not two_at_most(stream)


def test_all_costs_together_are_less_than_a_solver_can_add_up() -> None:
    """Three of 90 kJ on a node that takes next to nothing: quanta as fine as 2⁵⁸ of them allow."""
    pool = [Application(f"a{k}", (Mode(1, 100.0, 900.0),)) for k in range(3)]
    data = integers(CoschedulingProblem.of(pool, gpus=1, idle_w=1e-15))
    assert 2**57 < data.largest_cost <= 2**58
    assert data.largest_cost * data.quantum_j == pytest.approx(270_000)


@pytest.mark.parametrize(
    ("modes", "jobs", "more", "least"),
    [
        # 4 mJ a job beside 170 MJ from 9 s on: in one program a solver's tolerance was 1e-8 J
        ((Mode(1, 1e-3, 4.0), Mode(2, 1e6, 85.0)), 2, {"releases": [0.0, 9.0]}, 1260.008),
        # a microwatt on a node that idles at a megawatt, and never does
        ((Mode(2, 3.7, 1e-6),), 3, {"idle_w": 1e6}, 3 * 2 * 3.7e-6),
    ],
)
def test_costs_that_are_far_apart_or_cancel_leave_a_bound_below(
    modes: tuple[Mode, ...], jobs: int, more: dict[str, Any], least: float
) -> None:
    made = CoschedulingProblem.of([Application("a", modes)], [0] * jobs, gpus=2, **more)
    bound = bound_patterns(made, limits=Limits(), seed=0).bound
    assert 0 <= bound <= least
    assert "idle_w" in more or bound >= least * (1 - 1e-6)


# -- the same for any points ---------------------------------------------------------------


SIZES = st.floats(-6, 6).map(lambda power: 10.0**power)
POINTS = st.lists(st.tuples(st.floats(1, 100), st.floats(1, 100)), min_size=1, max_size=8)  # (E, C)


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


def test_cp_sat_is_not_asked_for_products_as_it_gets_this_one_wrong() -> None:
    """One job; with multiplication CP-SAT 9.15 calls 60 J·s optimal, and it takes 20."""
    pool = [Application("a", (Mode(1, 3.0, 10.0), Mode(2, 1.0, 10.0)))]
    problem = CoschedulingProblem.of(pool, gpus=3, numa=1, idle_w=0.0, goal="edp")
    outcome = oracle(problem, limits=Limits(20), seed=0)
    assert outcome.status is Status.OPTIMAL
    assert outcome.claimed == pytest.approx(20.0)
