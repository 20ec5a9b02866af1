from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from exhaustive_queueing import exhaustive
from hypothesis import given
from hypothesis import strategies as st
from strategies_queueing import GOALS, queueing_problems, stream
from trust.agreement import examples
from trust.agreement import outcome_of as solved
from trust.agreement import value_of as value

from optgap.heuristics.queueing import POLICIES
from optgap.models.errors import InputError
from optgap.models.limits import Limits
from optgap.models.queueing import Jobs, QueueingProblem
from optgap.models.queueing.presets import mixed, small
from optgap.models.result import Outcome, Status, Termination
from optgap.solvers.queueing import auto, auto_bound
from optgap.solvers.queueing.incumbents import list_schedule
from optgap.solvers.queueing.list_annealing import (
    Moves,
    schedule,
    search_of,
    try_moves,
    wait_for_nodes,
)
from optgap.solvers.queueing.list_schedule import machine_of, stream_of
from optgap.solvers.queueing.offline import offline
from optgap.solvers.queueing.periods import cells, periods
from optgap.solvers.queueing.prices import priced
from optgap.solvers.queueing.step_program import Fineness, StepProgram
from optgap.solvers.queueing.widths import widths


@pytest.mark.parametrize(("seed", "goal"), list(enumerate(GOALS)))
def test_a_dozen_jobs_are_proven_and_bounded_closely(seed: int, goal: Any) -> None:
    problem = small(seed=seed, goal=goal)
    best = solved(problem, "exact")
    assert best.status is Status.OPTIMAL
    truth = value(problem, best)
    near = solved(problem, "time-indexed").bound
    far = [solved(problem, method).bound for method in ("bound-prices", "bound-area")]
    assert near <= truth * (1 + 1e-9)
    assert goal == "makespan" or near >= 0.8 * truth  # the makespan keeps the bound of areas
    assert all(bound is not None and bound <= near * (1 + 1e-6) for bound in far)
    searched = found(problem, moves=10_000).claimed
    assert truth * (1 - 1e-9) <= searched <= truth * 1.02 + 1e-6


@pytest.mark.parametrize("goal", GOALS)
def test_a_thousand_jobs_have_a_bound_that_gives_a_gap(goal: Any) -> None:
    problem = mixed(seed=0, size=1000, goal=goal)
    bound = solved(problem, "bound-prices", steps=60).bound
    assert bound > 0
    for name in ("fifo", "shortest", "easy"):
        found = POLICIES[name].load()(problem, limits=Limits(), seed=0)
        assert value(problem, found) >= bound


def test_sizes_that_divide_a_node_need_no_other_weights() -> None:
    assert len(widths(mixed(seed=0, size=100))) == 1


def test_the_least_priced_start_is_that_of_a_fine_search() -> None:
    rng = np.random.default_rng(5)
    edges = np.linspace(0.0, 100.0, 21)
    price = rng.uniform(0, 3, 20)
    total = 0.0
    release, duration = rng.uniform(0, 60, 8), rng.uniform(1, 40, 8)
    demand = rng.uniform(0.1, 1.0, 8)
    paid = np.concatenate([[0], np.cumsum(price * np.diff(edges))])
    for r, d, n in zip(release, duration, demand, strict=True):
        starts = np.linspace(r, r + 200, 400_001)
        ends = np.interp(starts + d, edges, paid) - np.interp(starts, edges, paid)
        total += float((starts - r + n * ends).min())
    found, _ = priced(release, duration, demand, edges, price, np.zeros(20))
    assert found == pytest.approx(total, abs=0.02)
    assert found <= total + 1e-9


def test_sizes_decide_what_runs_and_too_many_jobs_are_refused() -> None:
    assert auto(small(seed=0)) == "exact"
    assert auto_bound(small(seed=0)) == "time-indexed"
    assert auto(mixed(seed=0)) == auto_bound(mixed(seed=0)) == "time-indexed"
    with pytest.raises(InputError, match="at most 2000 jobs"):
        solved(mixed(seed=0, size=2001), "exact")


# -- schedules with hindsight --------------------------------------------------------------


def found(problem: QueueingProblem, **params: Any) -> Outcome:
    outcome = offline(problem, limits=Limits(), seed=0, **params)
    if outcome.solution is not None:
        assert value(problem, outcome) == pytest.approx(outcome.claimed, rel=1e-9, abs=1e-9)
    return outcome


def test_tiny_streams_are_solved_to_the_optimum() -> None:
    for seed in range(30):
        rng = np.random.default_rng(seed)
        nodes, g, count = int(rng.integers(1, 4)), int(rng.integers(1, 5)), int(rng.integers(2, 6))
        jobs = Jobs.of(
            1.7e9 * (seed % 2) + rng.choice([0, 0, 1, 2, 4.5], count),
            rng.choice([1, 2, 3, 5, 7.3], count),
            rng.integers(1, nodes * g + 1, count),
        )
        goal, placement = GOALS[seed % 3], ("node", "count")[seed % 5 == 0]
        problem = QueueingProblem.of(
            jobs, nodes=nodes, gpus_per_node=g, placement=placement, goal=goal
        )
        problem = problem.moved(-problem.epoch_s)
        truth = exhaustive(problem, limits=Limits(), seed=0).claimed
        assert found(problem, moves=400).claimed == pytest.approx(truth, abs=1e-6)


@pytest.mark.parametrize("placement", ["node", "count"])
def test_hindsight_beats_every_policy_and_can_be_repeated(placement: Any) -> None:
    problem = mixed(seed=0, placement=placement)
    first, again = (found(problem, moves=20_000) for _ in range(2))
    assert first.claimed == again.claimed
    assert first.claimed < first.info["start"]
    for entry in POLICIES.values():
        assert first.claimed < entry.load()(problem, limits=Limits(), seed=0).claimed


def test_a_long_stream_is_served_no_worse_than_by_any_short_policy() -> None:
    problem = mixed(seed=0, size=2500)
    outcome = offline(problem, limits=Limits(10.0), seed=0, moves=1)
    assert problem.check(outcome.solution) == []
    for name in ("shortest", "shortest-reserve"):
        assert outcome.claimed < POLICIES[name].load()(problem, limits=Limits(), seed=0).claimed


@examples(10)
@given(seed=st.integers(0, 10_000))
def test_streams_with_gangs_and_patience_have_a_schedule_or_none(seed: int) -> None:
    problem = stream(seed)
    outcome = found(problem, moves=500)
    if problem.jobs.patient:
        assert outcome.status is Status.FEASIBLE
    elif outcome.solution is None:
        assert "before it leaves" in outcome.message


@pytest.mark.parametrize("doubt", [0.0, np.inf])
def test_the_cost_is_that_of_the_list_after_moves_given_up_early(doubt: float) -> None:
    problem = mixed(seed=2, size=120, nodes=1, gpus_per_node=32)
    search = search_of(stream_of(problem), np.arange(120), 1, 0)
    idle = machine_of(1, 32, 120)
    begun = schedule(search, idle)
    wait_for_nodes(search)
    moves = Moves(0.35, 0.3, 0.1, 40, doubt=doubt)
    assert try_moves(search, idle, moves, 30, 70, (2000.0, 50.0), 2000) > 20
    cost = float(search.costs[0])
    assert cost < begun
    assert schedule(search, idle) == pytest.approx(cost, rel=1e-9)


def test_an_interrupt_and_a_time_limit_leave_a_schedule() -> None:
    interrupted = Limits()
    interrupted.interrupted.set()
    for limits, why in (
        (interrupted, Termination.INTERRUPTED),
        (Limits(0.2), Termination.TIME_LIMIT),
        (Limits(work=0.01), Termination.WORK_LIMIT),
    ):
        outcome = offline(mixed(seed=0), limits=limits, seed=0)
        assert (outcome.status, outcome.termination) == (Status.FEASIBLE, why)


@pytest.mark.parametrize(
    ("duration", "patience", "starts"),
    [((10, 7), (5.0, 100.0), [0, 10]), ((10, 10), (10.0, 10.0), [0, 10]),
     ((10, 10), (5.0, 5.0), None)],
)  # fmt: skip
def test_patience_is_kept_where_it_can_be(
    duration: tuple[int, int], patience: tuple[float, float], starts: list[float] | None
) -> None:
    problem = QueueingProblem.of(Jobs.of([0, 0], duration, [8, 8], patience_s=patience), nodes=1)
    outcome = found(problem, moves=50)
    if starts is None:
        assert outcome.status is Status.NO_SOLUTION
        assert "before it leaves" in outcome.message
    else:
        assert outcome.status is Status.FEASIBLE
        assert sorted(outcome.solution.start_s.tolist()) == starts
    proven = Status.INFEASIBLE if starts is None else Status.OPTIMAL
    assert {solved(problem, method).status for method in ("exact", "exhaustive")} == {proven}


# -- the time-indexed integer program: a relaxation on any cells ---------------------------


@examples(10)
@given(
    problem=queueing_problems(max_jobs=5),
    patience=st.sampled_from((np.inf, np.inf, 8.0, 3.0)),
    size=st.integers(2, 6),
)
def test_it_agrees_with_the_search_of_all_orders(
    problem: QueueingProblem, patience: float, size: int
) -> None:
    jobs = replace(problem.jobs, patience_s=np.full(len(problem), patience))
    problem = replace(problem, jobs=jobs)
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
        for period in periods(problem, start, 1, size, width_s=width):
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
    found = periods(problem, start, 2, 5, width_s=600.0)
    assert [(p.begin, p.jobs.tolist()) for p in found] == [(0, [0, 1, 2, 3]), (3600, [4, 5, 6, 7])]
    outcome = solved(problem, "time-indexed", jobs=5)
    assert outcome.status is Status.OPTIMAL
    assert outcome.info["periods"] == 2


def test_a_crowd_is_not_split_where_its_work_is_left_over() -> None:
    """Of ten jobs on one node the last eight come second by second, and run for 10 s each."""
    jobs = Jobs.of([0, 100, *range(200, 208)], [10] * 10, [8] * 10)
    problem = QueueingProblem.of(jobs, nodes=1)
    start = list_schedule(problem, jobs.arrival_s).start_s
    found = periods(problem, start, 1, 9, width_s=600.0)
    assert [(p.begin, len(p.jobs)) for p in found] == [(0, 1), (100, 9)]
    assert len(periods(problem, start, 1, 4, width_s=600.0)) > 3
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
