from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from exhaustive_queueing import exhaustive
from hypothesis import given
from hypothesis import strategies as st
from strategies_queueing import GOALS, five_jobs, queueing_problems, stream
from trust.agreement import examples

from optgap.heuristics.queueing import POLICIES
from optgap.models.compiled import interpreted
from optgap.models.errors import InputError
from optgap.models.limits import Limits
from optgap.models.queueing import (
    Jobs,
    QueueingProblem,
)
from optgap.models.queueing.presets import mixed, small
from optgap.models.result import Outcome, Status, Termination
from optgap.solvers.queueing import METHODS
from optgap.solvers.queueing.list_annealing import (
    Moves,
    anneal,
    schedule,
    search_of,
    wait_for_nodes,
)
from optgap.solvers.queueing.list_schedule import machine_of, stream_of
from optgap.solvers.queueing.offline import offline


def found(problem: QueueingProblem, **params: Any) -> Outcome:
    outcome = offline(problem, limits=Limits(), seed=0, **params)
    if outcome.solution is not None:
        assert problem.check(outcome.solution) == []
        assert problem.serves_all(outcome.solution)
        value = problem.evaluate(outcome.solution).objective
        assert value == pytest.approx(outcome.claimed, rel=1e-9, abs=1e-9)
    return outcome


def optimum(problem: QueueingProblem) -> Any:
    return exhaustive(problem, limits=Limits(), seed=0).claimed


@examples(20)
@given(problem=queueing_problems(max_jobs=5, max_nodes=3))
def test_schedules_are_feasible_and_no_better_than_the_optimum(problem: QueueingProblem) -> None:
    truth, value = optimum(problem), found(problem, moves=300).claimed
    assert value >= truth - 1e-6 * max(1.0, truth)


def test_tiny_streams_are_solved_to_the_optimum_with_few_exceptions() -> None:
    missed = 0
    for seed in range(50):
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
        truth, value = optimum(problem), found(problem, moves=400).claimed
        assert value >= truth - 1e-6
        missed += value > truth + 1e-6
    assert missed <= 1


@pytest.mark.parametrize("goal", GOALS)
@pytest.mark.parametrize("seed", range(3))
def test_a_dozen_jobs_come_close_to_the_optimum(goal: Any, seed: int) -> None:
    problem = small(seed=seed, goal=goal)
    truth = METHODS["exact"].load()(problem, limits=Limits(60), seed=0).claimed
    value = found(problem, moves=10_000).claimed
    assert truth * (1 - 1e-9) <= value <= truth * 1.02 + 1e-6


@pytest.mark.parametrize("placement", ["node", "count"])
def test_hindsight_beats_every_policy_and_can_be_repeated(placement: Any) -> None:
    problem = mixed(seed=0, placement=placement)
    first, again = (found(problem, moves=20_000) for _ in range(2))
    assert first.claimed is not None
    assert first.claimed == again.claimed
    assert first.claimed < first.info["start"]
    for entry in POLICIES.values():
        assert first.claimed < entry.load()(problem, limits=Limits(), seed=0).claimed


def test_a_long_stream_is_served_no_worse_than_by_any_short_policy() -> None:
    problem = mixed(seed=0, size=2500)
    outcome = offline(problem, limits=Limits(10.0), seed=0, moves=1, starts=1)
    assert problem.check(outcome.solution) == []
    for name in ("shortest", "shortest-reserve"):
        assert outcome.claimed < POLICIES[name].load()(problem, limits=Limits(), seed=0).claimed


@examples(10)
@given(seed=st.integers(0, 10_000))
def test_streams_with_gangs_and_patience_have_a_schedule_or_none(seed: int) -> None:
    problem = stream(seed)
    outcome = found(problem, moves=500, starts=1)
    if problem.jobs.patient:
        assert outcome.status is Status.FEASIBLE
    elif outcome.solution is None:
        assert "before it leaves" in outcome.message


def test_python_and_machine_code_find_the_same_schedule(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("optgap.models.compiled.loaded", lambda *_: False)
    problem = mixed(seed=1, size=25, nodes=2)
    answers = []
    for small_enough in (True, False):
        with interpreted(small_enough):
            answers.append(found(problem, moves=60, starts=1))
    one, other = answers
    assert one.claimed == other.claimed
    assert np.array_equal(one.solution.held_node, other.solution.held_node)


@pytest.mark.parametrize("doubt", [0.0, np.inf])
def test_the_cost_is_that_of_the_list_after_moves_given_up_early(doubt: float) -> None:
    problem = mixed(seed=2, size=120, nodes=1, gpus_per_node=32)
    search = search_of(stream_of(problem), np.arange(120), 1, 0)
    idle = machine_of(1, 32, 120)
    begun = schedule(search, idle)
    wait_for_nodes(search)
    moves = Moves(0.35, 0.3, 0.1, 40, doubt=doubt)
    assert anneal(search, idle, moves, 30, 70, (2000.0, 50.0), 2000) > 20
    cost = float(search.costs[0])
    assert cost < begun
    assert schedule(search, idle) == pytest.approx(cost, rel=1e-9)


def test_an_interrupt_leaves_a_schedule_and_a_time_limit_is_kept() -> None:
    limits = Limits()
    limits.interrupted.set()
    outcome = offline(five_jobs(), limits=limits, seed=0)
    assert outcome.termination is Termination.INTERRUPTED
    assert outcome.status is Status.FEASIBLE
    outcome = offline(mixed(seed=0), limits=Limits(0.2), seed=0)
    assert outcome.status is Status.FEASIBLE
    assert outcome.termination is Termination.TIME_LIMIT
    for work in (0.01, 0.05):
        one, other = (offline(mixed(seed=0), limits=Limits(work=work), seed=0) for _ in range(2))
        assert one.termination is Termination.WORK_LIMIT
        assert (one.claimed, one.info) == (other.claimed, other.info)


def test_patience_is_kept_where_it_can_be() -> None:
    def outcome(patience: float) -> Outcome:
        jobs = Jobs.of([0, 0], [10, 7], [8, 8], patience_s=[patience, 100.0])
        return found(QueueingProblem.of(jobs, nodes=1), moves=50)

    none = outcome(5.0)
    assert outcome(5.0).solution.start_s.tolist() == [0, 10]
    assert none.status is Status.FEASIBLE
    jobs = Jobs.of([0, 0], [10, 10], [8, 8], patience_s=5.0)
    none = found(QueueingProblem.of(jobs, nodes=1), moves=50)
    assert none.status is Status.NO_SOLUTION
    assert "before it leaves" in none.message


def test_numbers_that_mean_nothing_are_refused() -> None:
    with pytest.raises(InputError, match="0 for the default"):
        offline(five_jobs(), limits=Limits(), seed=0, moves=-1)
    with pytest.raises(InputError, match="at least 1"):
        offline(five_jobs(), limits=Limits(), seed=0, starts=0)
