"""What the referee of elastic training says, to the joule and to the edge of its slack."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from strategies_elastic import FREE, jobs_of, rigid, table

from optgap.models.elastic import ElasticProblem, ElasticSolution, Kind, Overhead
from optgap.models.elastic.referee import (
    MOST_SHOWN,
    finished,
    idle_energy,
    profile_of_power,
    step_function,
    within_limit,
)
from optgap.models.result import Violation

RUN, RESTART, PROFILE, PRERUN = (int(kind) for kind in Kind)
TWO_CLOCKS = table("A", [[2.0, 1.0], [1.0, 0.5], [0.8, 0.4]], [[100, 200], [150, 300], [400, 700]])
"""s per iteration and W on 1, 2 and 4 GPUs at two clocks."""


def problem(*iterations: float, submit: Any = None, **more: Any) -> ElasticProblem:
    """Four GPUs in two nodes; no limit, nothing idle, restarts free, unless `more` says so."""
    given: dict[str, Any] = {
        "gpus": 4, "gpus_per_node": 2, "cap": "none", "idle_w": 0.0, "overhead": FREE, **more
    }  # fmt: skip
    return ElasticProblem.of(
        [TWO_CLOCKS], jobs_of([0] * len(iterations), iterations, submit), [600.0, 1200.0], **given
    )


def plan(*segments: tuple[Any, ...], **more: Any) -> ElasticSolution:
    """Segments of job, start, end, kind, GPUs, clock and, unless nowhere in particular, place."""
    return ElasticSolution.of([(*s, -1)[:7] for s in segments], **more)  # type: ignore[misc]


def names(made: ElasticProblem, *segments: tuple[Any, ...], **more: Any) -> list[str]:
    return [v.constraint for v in made.check(plan(*segments, **more))]


# -- one segment ---------------------------------------------------------------------------


def test_numbers_that_are_none_are_told_with_the_last_that_is() -> None:
    two = problem(10, 10)
    for job, shown in ((-1, 0), (2, 2)):
        found = two.check(plan((0, 0, 1, RUN, 1, 0), (job, 0, 1, RUN, 1, 0)))
        assert found == [Violation("job number", "segments", shown, 1)]
    for gpus in (0, 3, 5, 8):
        found = two.check(plan((1, 2, 3, RUN, gpus, 0)))
        assert found == [Violation("GPU count", "job b at 2 s", gpus, "a count of its class")]
    for clock in (-1, 2):
        found = two.check(plan((0, 2, 3, RUN, 1, clock)))
        assert found == [Violation("clock", "job a at 2 s", clock, "a clock of the problem")]
    assert two.check(plan((0, 0, 1, RUN, 4, 1))) == []
    # only runs have a clock
    assert two.check(plan((0, 0, 1, PROFILE, 4, -1))) == []


def test_a_count_that_the_class_has_no_time_for_is_refused() -> None:
    narrow = ElasticProblem.of(
        [TWO_CLOCKS, table("B", [[1.0, 1.0]], [[10, 20]])], jobs_of([0, 1], [5, 5]),
        [600.0, 1200.0], gpus=4, gpus_per_node=2, cap="none", overhead=FREE,
    )  # fmt: skip
    assert names(narrow, (1, 0, 1, RUN, 1, 0), (0, 0, 1, RUN, 2, 0)) == []
    assert names(narrow, (1, 0, 1, RUN, 2, 0), (0, 0, 1, RUN, 2, 0)) == ["GPU count"]


@pytest.mark.parametrize(
    ("start", "end"),
    [
        (5.0, 4.9),
        (5.0, 5.0),
        (1e9, 1e9),
        (1e18, 1e18),
        (0, math.inf),
        (math.nan, 5),
        (1.1e12, 1.1e12 + 10),
    ],
)
def test_segments_end_after_they_start_or_finish_no_job(start: float, end: float) -> None:
    made, bad, fine = problem(10), (0, start, end, RUN, 1, 0), (0, 0.0, 1.0, RUN, 1, 0)
    assert "times" in names(made, bad)
    assert names(made, fine, bad) == ["times"]
    if end <= start:
        assert not finished(made, plan(bad)).any()


def test_rounding_of_late_times_forgives_no_more_than_half_a_segment() -> None:
    at = 1e11
    short = [(0, at + k, at + k + 2.0**-15, RUN, 1, 1) for k in range(10)]
    assert not finished(problem(2**-11), plan(*short)).any()
    assert finished(problem(10), plan((0, at, at + 10, RUN, 1, 1))).all()


def test_moved_segments_keep_a_length_or_are_dropped() -> None:
    made = plan((0, 0.0, 1e-9, RUN, 1, 0), (0, 1.0, 2.0, RUN, 1, 0))
    assert [len(made.moved(by)) for by in (0.0, 1e9)] == [2, 1]


def test_nothing_runs_before_it_is_submitted() -> None:
    """But for a microsecond, however long the whole time."""
    early = problem(1000, submit=[50.0])
    assert names(early, (0, 50 - 9e-7, 51, RUN, 1, 0)) == []
    found = early.check(plan((0, 50 - 1.2e-6, 51, RUN, 1, 0)))
    assert [(v.constraint, v.limit) for v in found] == [("submit_s", "not before it is submitted")]
    assert names(early, (0, 50 - 1.2e-6, 10_000, RUN, 1, 0)) == ["submit_s"]


FIT = {1: [(0,), (3,)], 2: [(2,)], 4: [(0, 2), (2, 0)]}
CLASH = {1: [(4,), (-1,), (0, 1)], 2: [(1,), (4,), (0, 2)], 4: [(0,), (0, 0), (0, 3)]}
"""By number of GPUs, the first GPU of each block in a place."""


@pytest.mark.parametrize("gpus", FIT)
def test_gpus_are_aligned_blocks_or_whole_nodes(gpus: int) -> None:
    expected = Violation("place", "job a at 0 s", 0, "aligned blocks of as many GPUs")
    for place in FIT[gpus] + CLASH[gpus]:
        for number in (0, 1, 7):
            found = problem(10).check(plan((0, 0, 1, RUN, gpus, 0, number), places=[place]))
            fits = number == 0 and place in FIT[gpus]
            assert found == ([] if fits else [replace(expected, found=number)]), place


# -- one job over time ---------------------------------------------------------------------


def test_a_job_does_one_thing_at_a_time() -> None:
    first = (0, 0, 10, RUN, 1, 0)
    assert names(problem(50), first, (0, 10 - 9e-7, 12, RUN, 1, 0)) == []
    found = problem(50).check(plan(first, (0, 10 - 1.2e-6, 12, RUN, 1, 0)))
    assert found == [Violation("one segment at a time", "job a at 10 s", "two", "one")]
    assert names(problem(50, 50), first, (1, 5, 12, RUN, 1, 0)) == []


def test_no_more_than_the_iterations_are_done() -> None:
    """On one GPU at the high clock one per second, at the low one half, on a sweep 0.75."""
    for made in ((0, 0, 10, RUN, 1, 1), (0, 0, 20, RUN, 1, 0), (0, 0, 40 / 3, PROFILE, 1, -1)):
        job, start, end, *rest = made
        assert names(problem(10), made) == []
        assert names(problem(10), (job, start, end * (1 + 0.9e-6), *rest)) == []
        found = problem(10).check(plan((job, start, end * (1 + 1.2e-6), *rest)))
        assert [(v.constraint, v.where, v.limit) for v in found] == [("iterations", "job a", 10.0)]
        assert found[0].found == pytest.approx(10 * (1 + 1.2e-6), rel=1e-9)
    idle = [(0, 0, 1000, RESTART, 1, -1), (0, 0, 1000, PRERUN, 1, -1)]
    assert all(names(problem(10), made) == [] for made in idle)


def test_a_job_is_done_with_all_but_a_millionth_of_its_work() -> None:
    for end, done in ((10.0, True), (10 * (1 - 0.9e-6), True), (10 * (1 - 1.1e-6), False)):
        assert finished(problem(10, 10), plan((0, 0, end, RUN, 1, 1))).tolist() == [done, False]


START = Overhead(2.0, 2.0, 27.0)
"""A start takes 4 s on one GPU, 6 on two and 8 on four; a forced move 27 s more."""


def paid(n: int, at: float, took: float, place: int = -1) -> tuple[Any, ...]:
    return (0, at, at + took, RESTART, n, -1, place)


@pytest.mark.parametrize(("n", "due"), [(1, 4.0), (2, 6.0), (4, 8.0)])
def test_starts_take_as_long_as_the_overhead_says(n: int, due: float) -> None:
    made = problem(100, overhead=START)
    assert names(made, paid(n, 0, due), (0, due, 20, RUN, n, 0)) == []
    in_two = [paid(n, 0, 1), paid(n, 1, due - 1), (0, due, 20, RUN, n, 0)]
    assert names(made, *in_two) == []
    short = due - 1e-3
    found = made.check(plan(paid(n, 0, short), (0, short, 20, RUN, n, 0)))
    assert found == [Violation("restart", f"job a at {short:g} s", short, f"{due:g} s")]
    assert names(made, paid(n, 0, due - 1e-6), (0, due, 20, RUN, n, 0)) == []


BEGIN = [paid(1, 0, 4), (0, 4, 10, RUN, 1, 0)]
PLACED = [paid(1, 0, 4, 0), (0, 4, 10, RUN, 1, 0, 0)]
WIDE = [paid(4, 0, 8, 3), (0, 8, 10, RUN, 4, 0, 3), (0, 10, 20, RUN, 4, 0, 4)]
BEFORE = (0, 0, 30, PRERUN, 1, -1)


@pytest.mark.parametrize(
    ("segments", "told"),
    [
        ([(0, 0, 5, RUN, 1, 0), (0, 5, 9, RUN, 1, 1)], 1),  # once for all of it
        ([(0, 0, 5, PROFILE, 1, -1)], 1),
        ([*BEGIN, (0, 10, 20, RUN, 1, 1)], 0),  # another clock
        ([*BEGIN, (0, 10 + 9e-7, 20, RUN, 1, 0)], 0),
        ([*BEGIN, (0, 10.01, 20, RUN, 1, 0)], 1),  # a pause
        ([*BEGIN, (0, 20, 30, RUN, 1, 0)], 1),
        ([*BEGIN, (0, 10, 20, RUN, 2, 0)], 1),  # another count
        ([paid(2, 0, 6), (0, 6, 10, RUN, 2, 0), (0, 10, 20, RUN, 1, 0)], 1),
        ([*BEGIN, paid(2, 10, 5.9), (0, 15.9, 20, RUN, 2, 0)], 1),
        ([*BEGIN, paid(2, 10, 6), (0, 16, 20, RUN, 2, 0)], 0),
        ([*BEGIN, (1, 10, 20, RUN, 1, 0)], 1),  # each job pays for itself
        ([*BEGIN, (1, 10, 14, RESTART, 1, -1), (1, 14, 20, RUN, 1, 0)], 0),
        ([*PLACED, (0, 10, 20, RUN, 1, 0, 2)], 0),  # the same place by another number
        ([*PLACED, (0, 10, 20, RUN, 1, 0, 1)], 1),
        ([*PLACED, paid(1, 10, 31, 1), (0, 41, 50, RUN, 1, 0, 1)], 0),  # a forced move
        ([*PLACED, paid(1, 10, 30.9, 1), (0, 40.9, 50, RUN, 1, 0, 1)], 1),
        ([*PLACED, (0, 10, 20, RUN, 1, 0, -1)], 1),  # to nowhere in particular
        (WIDE, 0),  # whole nodes in another order
        ([BEFORE], 0),  # outside the cluster nothing is paid, and nothing for inside
        ([BEFORE, (0, 30, 40, RUN, 1, 0)], 1),
        ([BEFORE, paid(1, 30, 4), (0, 34, 40, RUN, 1, 0)], 0),
        ([paid(1, 0, 4), (0, 4, 8, PRERUN, 1, -1), (0, 8, 9, RUN, 1, 0)], 1),
    ],
)
def test_going_on_costs_nothing_and_starting_again_does(segments: Any, told: int) -> None:
    places = [(0,), (1,), (0,), (0, 2), (2, 0)]
    made = problem(1000, 1000, overhead=START)
    assert names(made, *segments, places=places) == ["restart"] * told


@pytest.mark.parametrize(
    ("constraint", "segments"),
    [
        ("GPU count", lambda k: [(0, 2.0 * k, 2.0 * k + 1, RUN, 3, 0)]),
        ("restart", lambda k: [(0, 2.0 * k, 2.0 * k + 1, RUN, 1, 0)]),
        ("one segment at a time", lambda k: [(0, 1.0 * k, 1.0 * k + 2, RUN, 1, 0)]),
        ("one job per GPU", lambda k: [(j, 2.0 * k, 2.0 * k + 1, RUN, 1, 0, 0) for j in (0, 1)]),
    ],
)
def test_no_more_than_fifty_of_a_kind_are_listed(constraint: str, segments: Any) -> None:
    overhead = START if constraint == "restart" else FREE
    many = [one for k in range(MOST_SHOWN + 9) for one in segments(k)]
    found = names(problem(1e6, 1e6, overhead=overhead), *many, places=[(0,)])
    assert found == [constraint] * MOST_SHOWN
    assert MOST_SHOWN == 50


# -- all together --------------------------------------------------------------------------


def test_no_more_gpus_are_held_than_there_are() -> None:
    full = [(0, 0, 10, RUN, 2, 0), (1, 0, 10, RUN, 2, 0)]
    three = problem(100, 100, 100)
    assert names(three, *full, (2, 10, 12, RUN, 4, 0)) == []
    assert names(three, *full, (2, 10 - 9e-7, 12, RUN, 4, 0)) == []
    found = three.check(plan(*full, (2, 9, 12, RUN, 1, 0)))
    assert found == [Violation("GPUs", "at 9 s", 5, 4)]
    assert names(three, *full, (2, 0, 12, PRERUN, 1, -1)) == []  # these are none of the cluster's
    assert [v.found for v in three.check(plan(*full, (2, 9, 12, RESTART, 4, -1)))] == [8]


ALL, PAIR = (0, 0, 10, RUN, 4, 0, 2), (0, 0, 10, RUN, 2, 0, 3)
TWICE = ["one job per GPU"]


@pytest.mark.parametrize(
    ("segments", "broken"),
    [
        ([ALL, (1, 10, 20, RUN, 1, 0, 4)], []),
        ([ALL, (1, 10 - 9e-7, 20, RUN, 1, 0, 4)], []),
        ([ALL, (1, 9, 20, RUN, 1, 0, 4)], ["GPUs", *TWICE]),
        ([(0, 0, 10, RUN, 1, 0, 0), (1, 0, 10, RUN, 1, 0, 1)], []),
        ([(1, 0, 1, RUN, 1, 0, 0), (2, 2, 10, RUN, 2, 0, 3), (1, 9, 20, RUN, 1, 0, 4)], TWICE),
        ([(2, *ALL[1:]), (1, 9, 20, RUN, 1, 0, 4), (0, 30, 31, RUN, 1, 0, 0)], ["GPUs", *TWICE]),
        ([PAIR, (1, 9, 20, RUN, 1, 0, 4)], TWICE),
        ([PAIR, (1, 9, 20, RUN, 1, 0, 1)], []),
        ([PAIR, (0, 10, 20, RUN, 2, 0, 3), (1, 20, 30, RUN, 2, 0, 3)], []),  # its own next
        ([PAIR, (1, 0, 10, PRERUN, 1, -1, 4)], []),  # outside the cluster
        ([PAIR, (1, 0, 10, RUN, 2, 0, -1)], []),  # nowhere in particular
    ],
)
def test_a_gpu_is_one_jobs_at_a_time(segments: Any, broken: list[str]) -> None:
    places = [(0,), (1,), (0, 2), (2,), (3,)]
    found = problem(100, 100, 100).check(plan(*segments, places=places))
    assert [v.constraint for v in found] == broken
    if broken and segments[0] is ALL:
        assert found[1] == Violation(*TWICE, "job b at 9 s", "GPU 3 held by a", "a free GPU")


def test_power_is_held_against_the_limit_with_a_millionth_of_slack() -> None:
    """Two jobs on two GPUs at the low clock draw 150 W each."""
    both = [(0, 0, 10, RUN, 2, 0), (1, 5, 15, RUN, 2, 0)]

    def limited(watts: float) -> ElasticProblem:
        return problem(100, 100, cap="power", eta=1.0, p_max_w=watts / 4)

    for watts, broken in ((300.0, False), (300 - 2e-4, False), (299.99, True)):
        made = limited(watts)
        found = made.check(plan(*both))
        assert [v.where for v in found] == ["at 5 s"] * broken
        assert within_limit(made, plan(*both)) is not broken
    (found_one,) = limited(280.0).check(plan(*both))
    assert (found_one.constraint, found_one.found) == ("power limit", 300.0)
    assert found_one.limit == pytest.approx(280.0)
    for declared, broken in ((300.0, 0), (290.0, 1), (100.0, 1)):
        assert len(limited(280.0).check(plan(*both, power_limit_w=declared))) == broken
    # a declared limit below the problem's own takes nothing away
    assert names(limited(300.0), *both, power_limit_w=100.0) == []
    # what runs outside the cluster is not the cluster's power
    outside = (1, 5, 15, PRERUN, 1, -1)
    assert names(limited(210.0), both[0], outside) == []
    assert within_limit(problem(100, 100), plan(*both))


# -- numbers -------------------------------------------------------------------------------


def test_metrics_are_as_worked_out_by_hand() -> None:
    """Five kinds of segment of three jobs, the third of which does not finish."""
    made = problem(
        10, 7.5, 100, submit=[0.0, 1.0, 2.0], cap="power", eta=1.0, p_max_w=100.0, idle_w=10.0
    )
    segments = [
        (0, 0, 4, RESTART, 2, -1),  # 20 W
        (0, 4, 9, RUN, 2, 1),  # 300 W, 2 per second: all 10
        (1, 1, 4, PRERUN, 1, -1),  # 150 W, outside
        (1, 4, 14, PROFILE, 1, -1),  # 150 W, at most 200, 0.75 per second: all 7.5
        (2, 9, 29, RUN, 2, 0),  # 150 W, 1 per second: 20 of 100
    ]
    found = made.evaluate(plan(*segments))
    held = 2 * 9 + 10 + 2 * 20
    idle = 10.0 * (4 * 29 - held)
    energy = 80 + 1500 + 450 + 1500 + 3000 + idle
    assert found.objective == pytest.approx((9 + 13) / 2)
    assert dict(found.metrics) == pytest.approx(
        {
            "mean_jct_s": 11.0,
            "median_jct_s": 11.0,
            "p95_jct_s": 9 + 0.95 * 4,
            "makespan_s": 29.0,
            "energy_j": energy,
            "run_j": 4500.0,
            "profile_j": 1500.0,
            "prerun_j": 450.0,
            "restart_j": 80.0,
            "idle_j": idle,
            "peak_power_w": 500.0,
            "power_overshoot_w": 100.0,
            "steady_overshoot_w": 0.0,
            "mean_power_w": energy / 29,
            "gpu_utilisation": held / (4 * 29),
            "restarts": 1,
            "jobs_done": 2,
        }
    )
    steady = [(0, 0, 5, RUN, 2, 1), (1, 1, 6, RUN, 2, 1), (2, 6, 7, PROFILE, 4, -1)]
    found = made.evaluate(plan(*steady))
    assert found.metrics["steady_overshoot_w"] == pytest.approx(200.0)
    assert found.metrics["power_overshoot_w"] == pytest.approx(300.0)
    assert replace(made, cap="none").evaluate(plan(*steady)).metrics["power_overshoot_w"] == 0
    assert replace(made, cap="none").evaluate(plan(*steady)).metrics["steady_overshoot_w"] == 0
    assert made.evaluate(plan((0, 0, 5, RUN, 1, 0))).metrics["power_overshoot_w"] == 0


def test_nothing_run_costs_nothing() -> None:
    found = problem(10, idle_w=10.0).evaluate(plan())
    assert found.objective == 0
    assert set(found.metrics.values()) == {0}
    assert problem(10).check(plan()) == []


APART = [(0, 0, 10, RUN, 1, 0, 0), (0, 15, 25, RUN, 2, 0, 1), (1, 21, 25, RUN, 1, 0, 2)]
"""GPU 0 for 10 s, then after 5 s GPUs 2 and 3 for 10 s, and GPU 1 for the last 4 of them."""
OUTSIDE = (1, 0, 9, PRERUN, 1, -1, -1)
NOWHERE = [(*s[:6], -1) for s in APART]
BOTH = [(0, 0, 10, RUN, 1, 0, 0), (1, 0, 10, RUN, 1, 0, 1)]


@pytest.mark.parametrize(
    ("segments", "off", "on_s", "held_s"),
    [
        ([*APART, OUTSIDE], False, 4 * 25, 34),
        ([*APART, OUTSIDE], True, 2 * 24, 34),
        ([*NOWHERE, OUTSIDE], True, 2 * 24, 34),
        ([*APART[:2], NOWHERE[2]], True, 2 * 24, 34),  # one without a place: counts decide
        ([APART[0], (1, 5, 10, RUN, 1, 0, 2)], True, 2 * 10, 15),
        ([APART[0], (1, 5, 10, RUN, 1, 0, 1)], True, 2 * 15, 15),
        (BOTH, True, 4 * 10, 20),  # by place two nodes are on, by counts one would do
        ([(*s[:6], -1) for s in BOTH], True, 2 * 10, 20),
    ],
)
def test_idle_energy_counts_nodes_that_are_on(
    segments: Any, off: bool, on_s: float, held_s: float
) -> None:
    made = plan(*segments, places=[(0,), (2,), (1,)], switch_off=off)
    found = idle_energy(problem(1000, 1000, idle_w=10.0), made)
    assert found == pytest.approx(10 * (on_s - held_s), rel=1e-6, abs=1e-3 * (on_s == held_s))


def test_levels_are_sums_of_intervals_and_ends_come_first() -> None:
    starts, ends = np.array([0.0, 1.0, 2.0]), np.array([2.0, 3.0, 4.0])
    times, level = step_function(starts, ends, np.array([1.0, 10.0, 100.0]))
    assert level.tolist() == [1, 11, 10, 110, 100, 0]
    assert times.tolist() == pytest.approx([0, 1, 2 - 1e-6, 2, 3 - 1e-6, 4 - 1e-6], abs=1e-12)
    exact, level = step_function(starts, ends, np.array([1.0, 10.0, 100.0]), 0.0)
    assert exact.tolist() == [0, 1, 2, 2, 3, 4]
    assert level.tolist() == [1, 11, 10, 110, 100, 0]
    late = step_function(starts, ends + 9996.0, np.ones(3))[0]
    assert late[-1] == pytest.approx(10_000 - 1e-6, abs=1e-9)
    nothing = np.zeros(0)
    assert [x.tolist() for x in step_function(nothing, nothing, nothing)] == [[0], [0]]


def test_a_limit_counts_a_sweep_at_its_hungriest_clock_and_energy_the_mean() -> None:
    made = problem(100, 100)
    segments = [(0, 0, 4, PROFILE, 2, -1), (1, 0, 9, PRERUN, 1, -1), (1, 9, 10, RUN, 1, 1)]
    times, level = profile_of_power(made, plan(*segments))
    assert level.tolist() == [300, 0, 200, 0]
    assert times.tolist() == pytest.approx([0, 4, 9, 10], abs=1e-5)
    assert made.evaluate(plan(*segments)).metrics["profile_j"] == pytest.approx(4 * 225)


def test_gpus_of_a_job_count_for_the_time_that_it_holds_them() -> None:
    made = rigid([(0, 10, 1)], overhead=FREE)
    found = made.evaluate(plan((0, 2, 12, RUN, 4, 0))).metrics
    assert found["gpu_utilisation"] == pytest.approx(10 / 12)
    assert found["idle_j"] == pytest.approx(10 * 4 * 2)
