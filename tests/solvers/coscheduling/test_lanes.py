"""At most two jobs at a time: the model without a clock."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest
from exhaustive_coscheduling import exhaustive
from hypothesis import assume, given
from hypothesis import strategies as st
from strategies_coscheduling import coscheduling_problems
from trust.agreement import examples

from optgap.models.coscheduling import Application, CoschedulingProblem, Mode
from optgap.models.coscheduling.presets import synthetic
from optgap.models.limits import Limits
from optgap.models.result import Status
from optgap.solvers.coscheduling.lanes import Lanes, two_at_most, two_lanes
from optgap.solvers.coscheduling.lists import value_of
from optgap.solvers.coscheduling.oracle import Bounded, _searched, oracle

ALONE = Bounded(0.0, "nothing")


@examples(20)
@given(problem=coscheduling_problems(max_jobs=5, goals=("energy", "makespan")))
def test_without_any_other_help_it_finds_what_exhaustive_search_does(
    problem: CoschedulingProblem,
) -> None:
    assume(two_at_most(problem))
    truth = problem.evaluate(exhaustive(problem, limits=Limits(), seed=0).solution).objective
    apart = [(j, problem.application(j).modes[0].gpu_count, 1e3 * j) for j in range(len(problem))]
    found = _searched(Lanes(problem, 0.0), apart, ALONE, Limits(60), 0, 1)
    assert found.value == pytest.approx(truth, rel=1e-6)
    assert found.led.bound <= truth * (1 + 1e-9)
    assert found.led.bound == pytest.approx(truth, rel=1e-5)


@given(
    gpus=st.integers(1, 6),
    jobs=st.lists(
        st.tuples(st.integers(1, 6), st.integers(1, 9), st.booleans()), min_size=1, max_size=7
    ),
)
def test_sorted_lanes_take_no_longer_than_the_inequalities_say(
    gpus: int, jobs: list[tuple[int, int, bool]]
) -> None:
    jobs = [(min(g, gpus), t, lane) for g, t, lane in jobs]
    pool = [Application(f"a{k}", (Mode(g, float(t), 1.0),)) for k, (g, t, _) in enumerate(jobs)]
    problem = CoschedulingProblem.of(pool, gpus=gpus, numa=2, goal="makespan")
    lanes = [
        [(g, k) for k, (g, _, lane) in enumerate(jobs) if lane == bool(side)] for side in (0, 1)
    ]
    starts = two_lanes(problem, lanes[0], lanes[1])
    least = max(
        sum(t for g, t, lane in jobs if g >= (gpus + 1 - u if lane else u))
        for u in range(1, gpus + 1)
    )
    assert value_of(problem, starts) <= least + 1e-9
    assert sorted(job for job, _, _ in starts) == list(range(len(jobs)))


def test_two_lanes_end_together_and_jobs_that_do_not_fit_side_by_side_do_not_meet() -> None:
    """Of five GPUs: 5 for 1 s, 3 for 1 s and 1 for 2 s, against 3 for 3 s: 2 s and 3 s, no less.

    The one on one GPU then starts a second earlier, as it may.
    """
    modes = [Mode(1, 2.0, 1.0), Mode(3, 3.0, 1.0), Mode(3, 1.0, 1.0), Mode(5, 1.0, 1.0)]
    pool = [Application(f"a{k}", (mode,)) for k, mode in enumerate(modes)]
    problem = CoschedulingProblem.of(pool, gpus=5, numa=2, goal="makespan")
    starts = two_lanes(problem, [(1, 0), (3, 2), (5, 3)], [(3, 1)])
    assert sorted(starts) == [(0, 1, 1.0), (1, 3, 2.0), (2, 3, 1.0), (3, 5, 0.0)]
    assert value_of(problem, starts) == 5


@pytest.mark.parametrize(
    ("size", "gpus", "goal"),
    [*product((17, 25, 60), (4, 8), ("energy",)), (17, 4, "makespan"), (8, 4, "edp")],
)
def test_whole_queues_are_proven_optimal(size: int, gpus: int, goal: Any) -> None:
    problem = synthetic(seed=size, size=size, gpus=gpus, goal=goal)
    outcome = oracle(problem, limits=Limits(60), seed=0)
    assert outcome.status is Status.OPTIMAL
    assert problem.check(outcome.solution) == []
    assert outcome.bound == pytest.approx(outcome.claimed, rel=1e-6)


def test_run_times_that_are_no_decimals_are_proven_all_the_same() -> None:
    base = synthetic(seed=4)
    pool = [
        Application(
            app.name,
            tuple(Mode(m.gpu_count, m.runtime_s / 7, m.power_per_gpu_w / 3) for m in app.modes),
        )
        for app in base.applications
    ]
    problem = CoschedulingProblem.of(pool, idle_w=70 / 3)
    assert oracle(problem, limits=Limits(60), seed=0).status is Status.OPTIMAL
