"""Bounds worked out by hand: one that became weaker or stronger fails."""

from __future__ import annotations

import importlib
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from optgap.models.limits import Limits
from optgap.models.queueing import Jobs, QueueingProblem
from optgap.solvers.queueing.areas import bound_area, fluid, makespan, sum_of_waits
from optgap.solvers.queueing.prices import TUNING, bound_prices, priced
from optgap.solvers.queueing.ticks import ticks
from optgap.solvers.queueing.widths import _functions, widths


def problem(*rows: tuple[float, float, int], **more: Any) -> QueueingProblem:
    """Jobs of (arrival, seconds, GPUs) on one node of four GPUs."""
    jobs = Jobs.of(*zip(*rows, strict=True))
    return QueueingProblem.of(jobs, **{"nodes": 1, "gpus_per_node": 4, **more})


def floats(*values: float) -> np.ndarray:
    return np.array(values, dtype=float)


# -- one fast machine ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rows", "seconds", "by"),
    [
        ([(0, 10, 4), (0, 10, 4), (5, 20, 1)], 25.0, "longest job"),
        ([(0, 10, 4), (0, 10, 4), (5, 16, 1)], 24.0, "area after an arrival"),
        ([(100, 10, 4), (100, 10, 4), (105, 16, 1)], 24.0, "area after an arrival"),
        ([(0, 1, 1), (50, 10, 4), (50, 10, 4)], 70.0, "area after an arrival"),
        ([(0, 90, 1), (50, 10, 4), (50, 10, 4)], 90.0, "longest job"),
        ([(0, 10, 3), (0, 10, 3)], 20.0, "area after an arrival"),  # no two fit together
    ],
)
def test_the_makespan_is_at_least_area_and_longest_job(
    rows: list[tuple[float, float, int]], seconds: float, by: str
) -> None:
    made = problem(*rows, goal="makespan")
    assert makespan(made) == (pytest.approx(seconds, rel=1e-14), by)
    for method in (bound_area, bound_prices):
        outcome = method(made, limits=Limits(), seed=0)
        assert outcome.bound == pytest.approx(seconds * (1 - 1e-9), rel=1e-12)
        assert outcome.bound_by == by


@pytest.mark.parametrize(
    ("rows", "wait", "by"),
    [
        # three halves of the node: mean busy times 2.5, 7.5 and 12.5 s of 5
        ([(0, 10, 2)] * 3, 7.5, "mean busy times"),
        # the first is interrupted: busy at 6.8 in the mean (1.8 s waited), or ends at 12
        ([(0, 10, 4), (1, 2, 4)], 2.0, "shortest remaining area first"),
        # at 7 s the first has 3 s left, fewer than the other's 4: it is not interrupted
        ([(0, 10, 4), (7, 4, 4)], 3.0, "shortest remaining area first"),
        ([(0, 10, 4), (50, 5, 4)], 0.0, "no job starts before it arrives"),
        ([(7, 10, 4), (7, 10, 4)], 10.0, "mean busy times"),
        # of more than half a node each, so that they exclude one another
        ([(0, 10, 3)] * 2, 10.0, "mean busy times"),
    ],
)
def test_the_sum_of_waits_is_that_of_one_fast_machine(
    rows: list[tuple[float, float, int]], wait: float, by: str
) -> None:
    found, who = sum_of_waits(problem(*rows))
    assert found == pytest.approx(wait, abs=1e-6)
    assert found <= wait
    assert who == by
    mean = sum(r[1] for r in rows) / len(rows)
    for goal, more in (("mean_wait", 0.0), ("mean_jct", mean)):
        outcome = bound_area(problem(*rows, goal=goal), limits=Limits(), seed=0)
        assert outcome.bound == pytest.approx(wait / len(rows) + more, abs=1e-6)
        assert outcome.bound < wait / len(rows) + more or wait == more == 0
        assert outcome.bound_by == by


def test_jobs_of_no_weight_are_left_out() -> None:
    """Eight GPUs on two nodes: three jobs of three are two thirds of what there is, and fit no
    two of them on one node."""
    made = problem((0, 10, 3), (0, 10, 3), (0, 10, 3), (0, 5, 1), nodes=2)
    found, _ = sum_of_waits(made)
    assert found == pytest.approx(5 * (0.5 + 1.5 + 2.5) - 15, abs=1e-6)


def test_the_machine_runs_what_has_least_of_its_key_and_interrupts() -> None:
    arrival, work = floats(0, 1, 50), floats(10, 2, 4)
    busy, done = fluid(arrival, work, work, False)
    assert done.tolist() == [12, 3, 54]
    assert busy.tolist() == pytest.approx([(1 * 0.5 + 9 * 7.5) / 10, 2.0, 52.0])
    # at 7 s the first has 3 s left, fewer than the 4 of the other, whose whole work is less
    arrival, work = floats(0, 7), floats(10, 4)
    assert fluid(arrival, work, work, False)[1].tolist() == [14, 11]
    assert fluid(arrival, work, work, True)[1].tolist() == [10, 14]
    # equals by number; what comes when another ends waits for nobody
    assert fluid(floats(0, 0), floats(5, 5), floats(5, 5), False)[1].tolist() == [5, 10]
    assert fluid(floats(0, 5), floats(5, 1), floats(5, 1), True)[1].tolist() == [5, 6]
    assert fluid(floats(0, 5), floats(5, 1), floats(5, 1), False)[1].tolist() == [5, 6]
    ends = fluid(floats(0, 9.5), floats(10, 0.2), floats(10, 0.2), True)[1]
    assert ends.tolist() == pytest.approx([10.2, 9.7])
    assert fluid(floats(0, 5), floats(5, 1), floats(1, 9), False)[0].tolist() == [2.5, 5.5]


# -- what jobs weigh -----------------------------------------------------------------------


def demands(problem: QueueingProblem) -> set[tuple[float, ...]]:
    """Per job and unit of capacity, in twelfths."""
    return {tuple(np.round(12 * d / c, 6).tolist()) for d, c in widths(problem)}


def test_every_set_of_jobs_that_fits_a_node_weighs_no_more_than_it() -> None:
    for size in (1, 2, 3, 4, 6, 8):
        rows = [(0.0, 1.0, n) for n in range(1, size + 1)]
        for demand, capacity in widths(problem(*rows, gpus_per_node=size)):
            weight = dict(zip(range(1, size + 1), demand.tolist(), strict=True))
            most = [0.0] * (size + 1)
            for room in range(1, size + 1):
                most[room] = max(weight[n] + most[room - n] for n in range(1, room + 1))
            assert most[size] <= capacity * (1 + 1e-12), size


def test_large_jobs_weigh_more_than_their_share_and_small_ones_nothing() -> None:
    found = demands(problem((0, 1, 3), (0, 1, 2), (0, 1, 1)))
    assert found == {(9, 6, 3), (12, 6, 0)}
    # above a half: all; of six GPUs 4 and 2 as they are or 4 alone
    six = demands(problem((0, 1, 4), (0, 1, 2), gpus_per_node=6))
    assert (8, 4) in six
    assert (12, 0) in six
    # thirds of five GPUs: two of them are 2/3 · 1 … as no three fit together
    five = demands(problem((0, 1, 2), gpus_per_node=5))
    assert five == {(12 * 2 / 5,), (6,)}
    # on two nodes: jobs of three weigh a node each, and one of five a node and a quarter
    two = demands(problem((0, 1, 3), (0, 1, 5), nodes=2))
    assert (4.5, 7.5) in two
    assert (6.0, 6.0) in two


@pytest.mark.parametrize(
    ("size", "present", "values"),
    [
        (4, [0, 1, 2, 3], ["0 1 2 3", *["0 0 2 4"] * 4, "0 1 2 3"]),
        (5, [2, 4], ["0 0 2 3 5", "0 0 0 5 5", "0 0 2.5 2.5 5", "0 0 5/3 10/3 5", "0 1 2 3 4"]),
        (
            6,
            [2],
            [
                "0 0 2 3 4 6", "0 0 0 3 6 6", "0 0 0 3 6 6", "0 0 2 3 4 6", "0 0 2 3 4 6",
                "0 0 1.5 3 4.5 6", "0 1 2 3 4 5",
            ],
        ),
    ],
)  # fmt: skip
def test_functions_of_what_jobs_weigh_are_as_worked_out(
    size: int, present: list[int], values: list[str]
) -> None:
    """What 0, 1, … GPUs of a node weigh, in GPUs."""
    found = [f * size for f in _functions(size, np.array(present))]
    wanted = [[float(Fraction(x)) for x in row.split()] for row in values]
    assert len(found) == len(wanted)
    for one, other in zip(found, wanted, strict=True):
        assert one.tolist() == pytest.approx(other)


def test_functions_of_nodes_count_where_jobs_are_on_nodes() -> None:
    """Of twelve GPUs a job of three is a quarter; of three nodes of four it is one."""
    three = ((0, 1, 3),)
    assert demands(problem(*three, nodes=3)) == {(3,), (4,)}
    assert demands(problem(*three, nodes=3, placement="count")) == {(3,)}
    assert demands(problem(*three, nodes=1, gpus_per_node=12)) == {(3,)}
    # of two nodes of five it is one, too: no two fit a node
    assert (6,) in demands(problem(*three, nodes=2, gpus_per_node=5))


# -- prices --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("release", "duration", "demand", "cost", "used"),
    [
        # prices 3, 1 and 0 in intervals of 10 s
        (0.0, 5.0, 0.5, 7.5, [5, 0, 0]),  # at once: 5 s at 3; a second later saves none
        (0.0, 5.0, 1.0, 15.0, [5, 0, 0]),  # waiting 5 s and more saves what it costs at best
        (8.0, 5.0, 1.0, 2 + 5, [0, 5, 0]),  # after the first
        (8.0, 5.0, 0.1, 0.9, [2, 3, 0]),
        (0.0, 20.0, 2.0, 20 + 0.0, [0, 0, 10]),  # after all
        (12.0, 4.0, 1.0, 4.0, [0, 4, 0]),
        (25.0, 9.0, 1.0, 0.0, [0, 0, 5]),
        (-5.0, 3.0, 1.0, 0.0, [0, 0, 0]),
        (30.0, 4.0, 1.0, 0.0, [0, 0, 0]),
        (35.0, 4.0, 1.0, 0.0, [0, 0, 0]),
    ],
)
def test_a_job_starts_where_waiting_and_paying_cost_least(
    release: float, duration: float, demand: float, cost: float, used: list[float]
) -> None:
    usage = np.zeros(3)
    edges, price = floats(0, 10, 20, 30), floats(3, 1, 0)
    total, _ = priced(floats(release), floats(duration), floats(demand), edges, price, usage)
    assert total == pytest.approx(cost)
    assert usage.tolist() == pytest.approx([demand * u for u in used])


def test_a_job_starts_where_its_end_meets_the_dear_interval() -> None:
    """12 s long at prices 5, 0 and 9: from 8 s on, and not from 10 s, it is in the first for 2 s
    and not in the last."""
    usage = np.zeros(3)
    total, _ = priced(
        floats(0), floats(12), floats(1), floats(0, 10, 20, 30), floats(5, 0, 9), usage
    )
    assert total == pytest.approx(8 + 2 * 5)
    assert usage.tolist() == pytest.approx([2, 10, 0])


def test_prices_are_worth_what_the_best_schedule_costs_where_it_is_one_job_after_another() -> None:
    """Three jobs that each fill the node: waits of 0, 10 and 20 s, and nothing less."""
    rows: list[tuple[float, float, int]] = [(0, 10, 4), (0, 10, 4), (0, 10, 4)]
    outcome = bound_prices(problem(*rows), limits=Limits(), seed=0)
    assert outcome.bound == pytest.approx(10.0, rel=1e-6)
    assert outcome.bound <= 10.0


@pytest.mark.parametrize(
    ("rows", "area", "prices", "best"),
    [
        ([(0, 1, 2), (0, 10, 1), (0, 10, 3), (2, 10, 2)], 0.5, 5 / 3, 2.5),
        ([(0, 10, 4), (4, 1, 3), (4, 2, 2), (4, 10, 2)], 1.05, 2.8744431, 4.25),
    ],
)
def test_prices_see_more_than_areas_do(
    rows: list[tuple[float, float, int]], area: float, prices: float, best: float
) -> None:
    """Areas by hand; the best prices of 2,048 intervals as the steps find them."""
    made = problem(*rows)
    assert bound_area(made, limits=Limits(), seed=0).bound == pytest.approx(area, rel=1e-7)
    outcome = bound_prices(made, limits=Limits(), seed=0)
    assert outcome.bound == pytest.approx(prices, rel=1e-4)
    assert outcome.bound < best
    assert outcome.bound_by == "prices on GPU time"


def test_prices_of_few_intervals_rise_where_jobs_crowd(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """On eight and then 32: as the steps find them, of the 5/3 that prices can prove."""
    module = importlib.import_module("optgap.solvers.queueing.prices")
    monkeypatch.setattr(module, "TUNING", replace(TUNING, cells=(8, 32)))
    made = problem((0, 1, 2), (0, 10, 1), (0, 10, 3), (2, 10, 2))
    few, more = (bound_prices(made, limits=Limits(), seed=0, steps=n).bound for n in (40, 120))
    assert few == pytest.approx(1.4680430, rel=1e-6)
    assert more == pytest.approx(1.6666436, rel=1e-6)


# -- ticks ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rows", "tick", "exact", "arrival", "duration"),
    [
        ([(5, 10, 1), (8, 3, 1)], 1.0, True, (0, 3), (10, 3)),
        ([(5, 10, 1), (8.5, 3, 1)], 0.1, True, (0, 35), (100, 30)),
        ([(5, 10, 1), (8, 3.25, 1)], 0.01, True, (0, 300), (1000, 325)),
        ([(0, 0.57, 1)], 0.01, True, (0,), (57,)),  # 56.99999999999999 hundredths
        ([(0, 1e-6, 1), (0, 1, 1)], 1e-6, True, (0, 0), (1, 1_000_000)),
        ([(0, 10 / 3, 1), (2.0009, 1, 1)], 1e-3, False, (0, 2000), (3333, 999)),
    ],
)
def test_times_in_ticks_are_exact_or_rounded_down(
    rows: Any, tick: float, exact: bool, arrival: tuple[int, ...], duration: tuple[int, ...]
) -> None:
    found = ticks(problem(*rows))
    assert found.tick_s == pytest.approx(tick)
    assert found.exact is exact
    assert found.arrival == arrival
    assert found.duration == duration
    assert found.horizon == max(arrival) + sum(duration) + 1


def test_a_schedule_has_no_more_than_so_many_ticks() -> None:
    """Two million seconds in microseconds are more than 2⁴⁰: as fine as that allows."""
    found = ticks(problem((0, 1e-6, 1), (0, 2e6, 1)))
    assert found.tick_s == pytest.approx(2e6 / 2**40)
    assert not found.exact
    assert found.duration[0] == 0
    assert found.duration[1] == pytest.approx(2**40, rel=1e-9)
    assert found.duration[1] < 2**40
