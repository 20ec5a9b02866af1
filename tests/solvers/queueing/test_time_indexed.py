"""The time-indexed integer program: a relaxation on any cells."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from exhaustive_queueing import exhaustive
from hypothesis import given
from hypothesis import strategies as st
from strategies_queueing import queueing_problems
from trust.agreement import examples

from optgap.heuristics.queueing import POLICIES
from optgap.models.errors import InputError
from optgap.models.limits import Limits
from optgap.models.queueing import Jobs, QueueingProblem
from optgap.models.queueing.presets import mixed, small
from optgap.models.result import Outcome, Status, Termination
from optgap.solvers.queueing import METHODS
from optgap.solvers.queueing.incumbents import list_schedule
from optgap.solvers.queueing.periods import cells, periods
from optgap.solvers.queueing.step_program import Fineness, StepProgram
from optgap.solvers.queueing.widths import widths


def solved(problem: QueueingProblem, method: str, **params: Any) -> Outcome:
    outcome: Outcome = METHODS[method].load()(problem, limits=Limits(60), seed=0, **params)
    return outcome


@st.composite
def small_streams(draw: st.DrawFn) -> QueueingProblem:
    """Ties, gangs, times that are no decimals, jobs that leave, and a clock from 1970."""
    problem = draw(queueing_problems(max_jobs=5))
    jobs = problem.jobs
    patience = draw(st.sampled_from((np.inf, np.inf, 8.0, 3.0)))
    jobs = replace(jobs, patience_s=np.full(len(jobs), patience))
    problem = replace(problem, jobs=jobs)
    return problem.moved(draw(st.sampled_from((0.0, 1.7e9))))


@examples(10)
@given(problem=small_streams(), size=st.integers(2, 6))
def test_it_agrees_with_the_search_of_all_orders(problem: QueueingProblem, size: int) -> None:
    problem = problem.moved(-problem.epoch_s)  # as methods get it
    truth = exhaustive(problem, limits=Limits(), seed=0)
    found = solved(problem, "time-indexed", jobs=size)
    if truth.status is Status.INFEASIBLE:
        assert found.solution is None
        return
    assert truth.claimed is not None
    assert found.bound is not None
    slack = 1e-6 * max(1.0, truth.claimed)
    assert found.bound <= truth.claimed + slack
    prices = solved(problem, "bound-prices").bound
    assert found.bound >= prices - slack
    assert "program" not in found.bound_by or found.bound > prices
    if found.solution is not None:
        assert problem.check(found.solution) == []
        assert problem.evaluate(found.solution).objective >= truth.claimed - slack
    if found.status is Status.OPTIMAL:
        assert found.claimed == pytest.approx(truth.claimed, rel=1e-6, abs=2e-6)


@given(
    problem=queueing_problems(goals=("mean_wait",), max_jobs=6),
    width=st.sampled_from((0.5, 2.0, 7.0, 100.0)),
    growth=st.sampled_from((0.0, 0.5, 3.0)),
    size=st.integers(1, 6),
)
def test_every_schedule_is_a_point_of_the_program_that_costs_no_more(
    problem: QueueingProblem, width: float, growth: float, size: int
) -> None:
    """On any cells and ranges: what makes its optimum a bound."""
    jobs = problem.jobs
    for key in (jobs.arrival_s, -jobs.duration_s, -jobs.gpus.astype(np.float64)):
        start = list_schedule(problem, key).start_s
        total = 0.0
        for period in periods(problem, start, 1, size, width):
            # cells that have nothing to do with the schedule
            period.times = cells(jobs.arrival_s + 0.3, period.begin, period.end, width)
            program = StepProgram(problem, period, widths(problem), Fineness(width, growth))
            point, waited = program.point(start), period.waited(jobs.arrival_s, start)
            assert program.model.violation(point) <= 1e-9
            assert program.model.objective(point) <= waited + 1e-9
            total += waited
        assert total == pytest.approx(problem.value(start) * len(problem), abs=1e-9)


def test_periods_part_where_nobody_waits() -> None:
    """Two crowds of four, an hour apart, on a node that takes one job at a time."""
    jobs = Jobs.of([0, 1, 2, 3, 3600, 3601, 3602, 3603], [10] * 8, [8] * 8)
    problem = QueueingProblem.of(jobs, nodes=1)
    start = list_schedule(problem, jobs.arrival_s).start_s
    found = periods(problem, start, 2, 5, 600.0)
    assert [(p.begin, p.jobs.tolist()) for p in found] == [(0, [0, 1, 2, 3]), (3600, [4, 5, 6, 7])]
    outcome = solved(problem, "time-indexed", jobs=5)
    assert outcome.status is Status.OPTIMAL
    assert outcome.info["periods"] == 2


def test_a_crowd_is_not_split_where_its_work_is_left_over() -> None:
    """Of ten jobs on one node the last eight come second by second, and run for 10 s each."""
    jobs = Jobs.of([0, 100, *range(200, 208)], [10] * 10, [8] * 10)
    problem = QueueingProblem.of(jobs, nodes=1)
    start = list_schedule(problem, jobs.arrival_s).start_s
    found = periods(problem, start, 1, 9, 600.0)
    assert [(p.begin, len(p.jobs)) for p in found] == [(0, 1), (100, 9)]
    assert len(periods(problem, start, 1, 4, 600.0)) > 3
    outcome = solved(problem, "time-indexed", jobs=4)
    assert outcome.info["periods"] > 1
    assert outcome.status is Status.OPTIMAL


def test_two_hundred_jobs_get_a_bound_far_above_prices_and_a_schedule() -> None:
    problem = mixed(seed=0, placement="count")
    prices = solved(problem, "bound-prices").bound
    found = solved(problem, "time-indexed", jobs=70, rounds=1, moves=50_000)
    assert 1.3 * prices < found.bound <= found.claimed
    assert problem.check(found.solution) == []


def test_where_periods_are_too_many_prices_have_the_last_word() -> None:
    problem = mixed(seed=0, size=400)
    prices = solved(problem, "bound-prices").bound
    outcome = solved(problem, "time-indexed", jobs=4, moves=1000)
    assert outcome.bound_by == "prices on GPU time"
    assert outcome.bound == pytest.approx(prices, rel=0.01)  # of other numbers of steps
    assert problem.check(outcome.solution) == []
    policy = POLICIES["shortest-reserve"].load()(problem, limits=Limits(), seed=0)
    assert outcome.bound < outcome.claimed <= policy.claimed


def test_time_that_is_up_leaves_a_bound_and_nothing_optimal() -> None:
    limits = Limits()
    limits.interrupted.set()
    outcome = METHODS["time-indexed"].load()(mixed(seed=0, size=40), limits=limits, seed=0)
    assert outcome.termination is Termination.INTERRUPTED
    assert outcome.bound is not None
    assert outcome.status is not Status.OPTIMAL


def test_settings_that_make_no_sense_are_refused() -> None:
    with pytest.raises(InputError, match="at least 2"):
        solved(small(seed=0), "time-indexed", jobs=1)
    for name in ("rounds", "moves"):
        with pytest.raises(InputError, match="at least 1"):
            solved(small(seed=0), "time-indexed", **{name: 0})
