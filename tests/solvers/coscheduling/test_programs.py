"""The models with and without a clock, on their own, and the lists of jobs that they begin with."""

from __future__ import annotations

import importlib
from itertools import product
from typing import Any

import numpy as np
import pytest
from exhaustive_coscheduling import exhaustive
from hypothesis import assume, given
from hypothesis import strategies as st
from strategies_coscheduling import coscheduling_problems
from trust.agreement import examples

from optgap.models.coscheduling import Application, CoschedulingProblem, Mode
from optgap.models.coscheduling.gpus import placed
from optgap.models.coscheduling.presets import stream, synthetic
from optgap.models.limits import Limits
from optgap.models.result import Status, Termination
from optgap.solvers.coscheduling.area import bound_area
from optgap.solvers.coscheduling.intervals import Intervals
from optgap.solvers.coscheduling.lanes import Lanes, two_at_most, two_lanes
from optgap.solvers.coscheduling.lists import annealed, in_order, listed, value_of
from optgap.solvers.coscheduling.oracle import (
    Bounded,
    Found,
    _bounded,
    _searched,
    best_schedule,
    oracle,
)

ALONE = Bounded(0.0, "nothing")


def searched(
    problem: CoschedulingProblem,
    first: tuple[int, ...] = (),
    known: float = 0.0,
    program: Any = Intervals,
) -> Found:
    """From one job after another, those of `first` at once."""
    late = sum(app.modes[0].runtime_s for app in map(problem.application, range(len(problem))))
    start = max(problem.releases, default=0.0)
    apart = []
    for j in range(len(problem)):
        count = problem.application(j).modes[0].gpu_count
        apart.append((j, count, 0.0 if j in first else start + late * (j + 1)))
    model = program(problem, known, *[first] * (program is Intervals))
    return _searched(model, apart, ALONE, Limits(60))


@pytest.mark.parametrize("program", [Intervals, Lanes])
@examples(18)
@given(data=st.data())
def test_without_any_other_help_it_finds_what_exhaustive_search_does(
    program: Any, data: st.DataObject
) -> None:
    jobs = 4 if program is Intervals else 5
    problem = data.draw(coscheduling_problems(max_jobs=jobs, goals=("energy", "makespan")))
    assume(program is Intervals or two_at_most(problem))
    truth = problem.evaluate(exhaustive(problem, limits=Limits(), seed=0).solution).objective
    answer = searched(problem, program=program)
    assert answer.value == pytest.approx(truth, rel=1e-6)
    assert answer.led.bound <= truth * (1 + 1e-9)
    off_j = 1e-3 * problem.idle_w * problem.gpus * len(problem)  # run times rounded to 1 ms
    off = off_j if problem.objective.goal == "energy" else 0.0
    near = {"rel": 1e-4, "abs": max(2e-3, off)} if program is Intervals else {"rel": 1e-5}
    assert answer.led.bound == pytest.approx(truth, **near)
    assert answer.termination is Termination.COMPLETED


def queue(*rows: tuple[int, float], **more: Any) -> CoschedulingProblem:
    """Jobs of (GPUs, seconds) at 100 W per GPU on two GPUs of 10 W idle."""
    pool = [Application(f"a{k}", (Mode(g, t, 100.0),)) for k, (g, t) in enumerate(rows)]
    return CoschedulingProblem.of(pool, **{"gpus": 2, "idle_w": 10.0, **more})


SECOND = [(1, 4.0), (2, 2.0), (1, 2.0)], 4
"""On two GPUs: 1 for 4 s, 2 for 2 s, and from 4 s on 1 for 2 s: 6 s if the second is first."""
WAITS = [(1, 4.0), (2, 1.0), (1, 4.0)], 1
"""Had the first a second's time, two GPUs for 1 s would come first: 5 s instead of 6."""


@pytest.mark.parametrize(("goal", "per_s"), [("makespan", 0.0), ("energy", 20.0)])
@pytest.mark.parametrize(
    ("rows", "first", "makespan"),
    [(SECOND, (), 6.0), (SECOND, (0,), 8.0), (SECOND, (1,), 6.0), (WAITS, (), 5.0),
     (WAITS, (0,), 6.0)],
)  # fmt: skip
def test_jobs_that_run_already_start_at_once_and_make_way_for_nobody(
    rows: Any, first: tuple[int, ...], makespan: float, goal: Any, per_s: float
) -> None:
    jobs, late = rows
    made = queue(*jobs, releases=[0, 0, late], goal=goal)
    work = sum(90 * gpus * seconds for gpus, seconds in jobs) if per_s else 0
    value = work + (per_s or 1.0) * makespan
    answer = searched(made, first)
    assert answer.value == pytest.approx(value)
    assert answer.led.bound == pytest.approx(value, rel=1e-5)
    assert answer.led.bound <= value
    assert answer.led.by.startswith("intervals, ")
    assert all(start == 0 for job, _, start in answer.starts if job in first)
    whole = best_schedule(made, Limits(), 0, first=first)
    assert whole.proven
    assert whole.value == pytest.approx(value)


@pytest.mark.parametrize(("goal", "truth"), [("makespan", 4.0), ("energy", 620.0)])
def test_what_is_known_is_where_the_model_begins(goal: Any, truth: float) -> None:
    """Three of 2 s, two at a time: all that is known of it is no more than the optimum."""
    made = queue((1, 2.0), (1, 2.0), (1, 2.0), goal=goal)
    for known in (0.0, truth - 0.5, truth):
        answer = searched(made, known=known)
        assert answer.value == pytest.approx(truth)
        assert answer.led.bound == pytest.approx(truth)
        assert answer.led.bound <= truth
    # it is believed: nothing less is looked for
    assert searched(made, known=truth + 3.5).led.bound >= truth + 0.99


def test_the_larger_of_areas_and_patterns_is_where_the_oracle_begins() -> None:
    """Three of three GPUs of four and 2 s: 4.5 s by areas, and 6 s as no two run together."""
    made = queue((2, 2.0), (2, 2.0), goal="makespan")
    led = _bounded(made, Limits(), 0)
    assert led.bound == pytest.approx(4)
    assert led.bound <= 4
    assert led.counts == [2, 2]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(importlib.import_module(oracle.__module__), "patterns", lambda _: None)
        area = _bounded(made, Limits(), 0)
    assert (area.by, area.counts) == ("areas in closed form", None)
    assert area.bound == pytest.approx(4)
    wide = queue((3, 2.0), (3, 2.0), (3, 2.0), gpus=4, goal="makespan")
    assert bound_area(wide, limits=Limits(), seed=0).bound == pytest.approx(4.5)
    led = _bounded(wide, Limits(), 0)
    assert led.bound == pytest.approx(6)
    assert led.by.startswith("patterns of GPU counts, ")


def test_a_bound_above_the_schedule_is_not_hidden_but_for_rounding(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Whoever checks the outcome is to see that one of both is wrong."""
    module = importlib.import_module("optgap.solvers.coscheduling.oracle")
    made = queue((1, 2.0), goal="makespan")
    for bound, told in ((1.5, 1.5), (2.0, 2.0), (2 * (1 + 1e-7), 2.0), (2.00001, 2.00001), (3, 3)):
        found = Found([(0, 1, 0.0)], 2.0, Bounded(bound, "x"), Termination.COMPLETED, True)
        monkeypatch.setattr(module, "best_schedule", lambda *_, found=found: found)
        assert oracle(made, limits=Limits(), seed=0).bound == told


def test_a_schedule_that_is_not_the_best_is_not_called_so() -> None:
    """Run one after another they take 6 s; nothing is searched as time is up."""
    made = queue((1, 2.0), (1, 2.0), (1, 2.0), goal="makespan")
    program = Intervals(made, 0.0)
    apart = [(j, 1, 2.0 * j) for j in range(3)]
    assert value_of(made, apart) == 6
    stopped = Limits()
    stopped.interrupted.set()
    answer = _searched(program, apart, Bounded(4.0, "by hand"), stopped)
    assert not answer.proven
    assert answer.termination is Termination.INTERRUPTED
    assert (answer.value, answer.led.bound) == (6, 4)
    better = _searched(Intervals(made, 0.0), apart, Bounded(4.0, "by hand"), Limits())
    assert better.proven
    assert (better.value, better.led) == (4, Bounded(4.0, "by hand"))


# -- two lanes: no clock ---------------------------------------------------------------------


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


# -- lists -----------------------------------------------------------------------------------


@examples(15)
@given(problem=coscheduling_problems(max_jobs=6))
def test_lists_keep_every_constraint(problem: CoschedulingProblem) -> None:
    counts = [problem.application(job).fastest.gpu_count for job in range(len(problem))]
    best = listed(problem, counts)
    order = [job for job, _, _ in sorted(best, key=lambda item: item[2])]
    for starts in (best, in_order(problem, counts, order)):
        solution = placed(problem, starts)
        assert problem.check(solution) == []
        assert problem.serves_all(solution)
        assert value_of(problem, starts) <= value_of(problem, best) * (1 + 1e-9)


def test_annealing_makes_no_schedule_worse_and_keeps_the_gpu_counts() -> None:
    for problem in (synthetic(seed=1, size=30, gpus=8, numa=4), stream(seed=1, size=14)):
        rng = np.random.default_rng(0)
        counts = [problem.application(job).modes[0].gpu_count for job in range(len(problem))]
        first = listed(problem, counts)
        found = annealed(problem, first, rng, Limits(0.3), enough=0.0)
        assert value_of(problem, found) <= value_of(problem, first)
        assert {(job, g) for job, g, _ in found} == {(job, g) for job, g, _ in first}
        assert problem.check(placed(problem, found)) == []
