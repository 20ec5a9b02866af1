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
    [(5.0, 4.9), (5.0, 5.0), (0.0, math.inf), (math.nan, 5.0), (1.1e12, 1.1e12 + 10)],
)
def test_segments_end_after_they_start(start: float, end: float) -> None:
    found = problem(10).check(plan((0, start, end, RUN, 1, 0)))
    assert "times" in {v.constraint for v in found}
    fine = (0, 0.0, 1.0, RUN, 1, 0)
    found = problem(10).check(plan(fine, (0, start, end, RUN, 1, 0)))
    assert [v.constraint for v in found] == ["times"]


@pytest.mark.parametrize("at", [0.0, 1e9, 1e18])
def test_run_of_no_length_finishes_no_job(at: float) -> None:
    made, nothing = problem(10), plan((0, at, at, RUN, 1, 1))
    assert not finished(made, nothing).any()
    assert [v.constraint for v in made.check(nothing)] == ["times"]


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


@pytest.mark.parametrize(
    ("gpus", "place", "fits"),
    [
        (1, (0,), True),
        (1, (3,), True),
        (1, (4,), False),
        (1, (-1,), False),
        (1, (0, 1), False),
        (2, (2,), True),
        (2, (1,), False),
        (2, (4,), False),
        (2, (0, 2), False),
        (4, (0, 2), True),
        (4, (2, 0), True),
        (4, (0,), False),
        (4, (0, 0), False),
        (4, (0, 3), False),
    ],
)
def test_gpus_are_aligned_blocks_or_whole_nodes(
    gpus: int, place: tuple[int, ...], fits: bool
) -> None:
    found = problem(10).check(plan((0, 0, 1, RUN, gpus, 0, 0), places=[place]))
    expected = Violation("place", "job a at 0 s", 0, "aligned blocks of as many GPUs")
    assert found == ([] if fits else [expected])
    for number in (1, 7):
        outside = problem(10).check(plan((0, 0, 1, RUN, gpus, 0, number), places=[place]))
        assert outside == [replace(expected, found=number)]


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


def test_what_was_not_paid_is_told_once() -> None:
    made = problem(100, overhead=START)
    assert names(made, (0, 0, 5, RUN, 1, 0), (0, 5, 9, RUN, 1, 1)) == ["restart"]
    assert names(made, (0, 0, 5, PROFILE, 1, -1)) == ["restart"]


def test_going_on_costs_nothing_and_starting_again_does() -> None:
    made = problem(1000, overhead=START)
    begin = [paid(1, 0, 4), (0, 4, 10, RUN, 1, 0)]
    assert names(made, *begin, (0, 10, 20, RUN, 1, 1)) == []  # another clock
    assert names(made, *begin, (0, 10 + 9e-7, 20, RUN, 1, 0)) == []
    assert names(made, *begin, (0, 10.01, 20, RUN, 1, 0)) == ["restart"]  # a pause
    assert names(made, *begin, (0, 20, 30, RUN, 1, 0)) == ["restart"]
    assert names(made, *begin, (0, 10, 20, RUN, 2, 0)) == ["restart"]  # another count
    fewer = [paid(2, 0, 6), (0, 6, 10, RUN, 2, 0), (0, 10, 20, RUN, 1, 0)]
    assert names(made, *fewer) == ["restart"]
    assert names(made, *begin, paid(2, 10, 5.9), (0, 15.9, 20, RUN, 2, 0)) == ["restart"]
    assert names(made, *begin, paid(2, 10, 6), (0, 16, 20, RUN, 2, 0)) == []


def test_each_job_pays_for_itself() -> None:
    made = problem(1000, 1000, overhead=START)
    first = [paid(1, 0, 4), (0, 4, 10, RUN, 1, 0)]
    assert names(made, *first, (1, 10, 20, RUN, 1, 0)) == ["restart"]
    assert names(made, *first, (1, 10, 14, RESTART, 1, -1), (1, 14, 20, RUN, 1, 0)) == []


def test_a_move_of_unchanged_size_takes_longer_and_the_same_place_is_no_move() -> None:
    made = problem(1000, overhead=START)
    begin = [paid(1, 0, 4, 0), (0, 4, 10, RUN, 1, 0, 0)]
    places = [(0,), (1,), (0,)]
    assert names(made, *begin, (0, 10, 20, RUN, 1, 0, 2), places=places) == []
    assert names(made, *begin, (0, 10, 20, RUN, 1, 0, 1), places=places) == ["restart"]
    for took, broken in ((31.0, []), (30.9, ["restart"])):
        moved = [paid(1, 10, took, 1), (0, 10 + took, 50, RUN, 1, 0, 1)]
        assert names(made, *begin, *moved, places=places) == broken
    # from somewhere to nowhere in particular is a move; whole nodes in another order are none
    assert names(made, *begin, (0, 10, 20, RUN, 1, 0, -1), places=places) == ["restart"]
    wide = [paid(4, 0, 8, 0), (0, 8, 10, RUN, 4, 0, 0), (0, 10, 20, RUN, 4, 0, 1)]
    assert names(made, *wide, places=[(0, 2), (2, 0)]) == []
    later = [(*s[:6], s[6] + 1) for s in wide]
    assert names(made, *later, places=[(0,), (0, 2), (2, 0)]) == []


def test_a_profile_outside_the_cluster_pays_for_no_start_inside() -> None:
    made = problem(1000, overhead=START)
    before = (0, 0, 30, PRERUN, 1, -1)
    assert names(made, before) == []
    assert names(made, before, (0, 30, 40, RUN, 1, 0)) == ["restart"]
    assert names(made, before, paid(1, 30, 4), (0, 34, 40, RUN, 1, 0)) == []
    assert names(made, paid(1, 0, 4), (0, 4, 8, PRERUN, 1, -1), (0, 8, 9, RUN, 1, 0)) == ["restart"]


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


def test_a_gpu_is_one_jobs_at_a_time() -> None:
    two = problem(100, 100, 100)
    places = [(0,), (1,), (0, 2), (2,), (3,)]
    wide = (0, 0, 10, RUN, 4, 0, 2)
    found = two.check(plan(wide, (1, 9, 20, RUN, 1, 0, 4), places=places))
    held = Violation("one job per GPU", "job b at 9 s", "GPU 3 held by a", "a free GPU")
    assert [v for v in found if v.constraint == "one job per GPU"] == [held]
    assert names(two, wide, (1, 10, 20, RUN, 1, 0, 4), places=places) == []
    assert names(two, wide, (1, 10 - 9e-7, 20, RUN, 1, 0, 4), places=places) == []
    assert names(two, (0, 0, 10, RUN, 1, 0, 0), (1, 0, 10, RUN, 1, 0, 1), places=places) == []
    back = ((1, 0, 1, RUN, 1, 0, 0), (2, 2, 10, RUN, 2, 0, 3), (1, 9, 20, RUN, 1, 0, 4))
    assert names(two, *back, places=places) == ["one job per GPU"]
    shifted = [(0,), (0, 2), (3,)]
    clash = ((2, 0, 10, RUN, 4, 0, 1), (1, 9, 20, RUN, 1, 0, 2), (0, 30, 31, RUN, 1, 0, 0))
    assert names(two, *clash, places=shifted) == ["GPUs", "one job per GPU"]
    pair = (0, 0, 10, RUN, 2, 0, 3)
    assert names(two, pair, (1, 9, 20, RUN, 1, 0, 4), places=places) == ["one job per GPU"]
    assert names(two, pair, (1, 9, 20, RUN, 1, 0, 1), places=places) == []
    # the second segment of a job may follow its first at once
    mine = (0, 10, 20, RUN, 2, 0, 3)
    assert names(two, pair, mine, (1, 20, 30, RUN, 2, 0, 3), places=places) == []
    outside = (1, 0, 10, PRERUN, 1, -1, 4)
    assert names(two, pair, outside, places=places) == []
    unplaced = (1, 0, 10, RUN, 2, 0, -1)
    assert names(two, pair, unplaced, places=places) == []


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


def test_of_restarts_only_the_idle_power_is_drawn() -> None:
    made = problem(100, idle_w=7.0)
    found = made.evaluate(plan((0, 0, 5, RESTART, 2, -1))).metrics
    assert (found["restart_j"], found["idle_j"]) == pytest.approx((70.0, 70.0))


def test_idle_energy_counts_nodes_that_are_on() -> None:
    """GPU 0 for 10 s, then after 5 s GPUs 2 and 3 for 10 s, and GPU 1 for the last 4 of them."""
    made = problem(1000, 1000, idle_w=10.0)
    places = [(0,), (2,), (1,)]
    segments = [
        (0, 0, 10, RUN, 1, 0, 0),
        (0, 15, 25, RUN, 2, 0, 1),
        (1, 21, 25, RUN, 1, 0, 2),
        (1, 0, 9, PRERUN, 1, -1, -1),
    ]
    held = 10 + 20 + 4
    assert idle_energy(made, plan(*segments, places=places)) == pytest.approx(10 * (4 * 25 - held))
    off = plan(*segments, places=places, switch_off=True)
    assert idle_energy(made, off) == pytest.approx(10 * (2 * (10 + 10 + 4) - held))
    nowhere = [(*s[:6], -1) for s in segments]
    by_count = plan(*nowhere, switch_off=True)
    assert idle_energy(made, by_count) == pytest.approx(10 * (2 * (10 + 10 + 4) - held), rel=1e-6)
    # one job without a place is enough to count; alone on node 0, GPUs 0 and 1 are one node
    half = plan(*segments[:2], nowhere[2], places=places, switch_off=True)
    assert idle_energy(made, half) == pytest.approx(10 * (2 * (10 + 10 + 4) - held), rel=1e-6)
    shared = [(0, 0, 10, RUN, 1, 0, 0), (1, 5, 10, RUN, 1, 0, 2)]
    both = plan(*shared, places=places, switch_off=True)
    assert idle_energy(made, both) == pytest.approx(10 * (2 * 10 - 15))
    four = problem(1000, 1000, idle_w=10.0, gpus=8)
    far = [(0, 0, 10, RUN, 1, 0, 0), (1, 5, 10, RUN, 1, 0, 1)]
    spread = plan(*far, places=[(0,), (4,)], switch_off=True)
    assert idle_energy(four, spread) == pytest.approx(10 * (2 * 15 - 15))


def test_idle_energy_of_jobs_on_nodes_of_their_own() -> None:
    """By place each of two jobs keeps a node on; by counts one node would do."""
    made = problem(1000, 1000, idle_w=10.0)
    apart = [(0, 0, 10, RUN, 1, 0, 0), (1, 0, 10, RUN, 1, 0, 1)]
    placed = plan(*apart, places=[(0,), (2,)], switch_off=True)
    assert idle_energy(made, placed) == pytest.approx(10 * (40 - 20))
    counted = plan(*[(*s[:6], -1) for s in apart], switch_off=True)
    assert idle_energy(made, counted) == pytest.approx(0, abs=1e-3)


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
