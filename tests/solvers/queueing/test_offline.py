from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from strategies_queueing import GOALS, five_jobs, queueing_problems

from optgap.heuristics.queueing import POLICIES
from optgap.models.errors import InputError
from optgap.models.limits import Limits
from optgap.models.queueing import Jobs, QueueingProblem
from optgap.models.queueing.presets import mixed, small
from optgap.models.result import Status, Termination
from optgap.solvers.queueing import METHODS
from optgap.solvers.queueing.offline import greedy, offline


@settings(max_examples=25)
@given(problem=queueing_problems())
def test_schedules_are_feasible_and_no_better_than_the_optimum(problem: QueueingProblem) -> None:
    found: Any = offline(problem, limits=Limits(), seed=0, moves=300)
    assert problem.check(found.solution) == []
    assert found.status is Status.FEASIBLE
    value = problem.evaluate(found.solution).objective
    assert value == pytest.approx(found.claimed)
    truth = METHODS["exhaustive"].load()(problem, limits=Limits(), seed=0).claimed
    assert value >= truth - 1e-6 * max(1.0, truth)


@pytest.mark.parametrize("goal", GOALS)
@pytest.mark.parametrize("seed", range(3))
def test_a_dozen_jobs_come_close_to_the_optimum(goal: Any, seed: int) -> None:
    problem = small(seed=seed, goal=goal)
    truth = METHODS["exact"].load()(problem, limits=Limits(60), seed=0).claimed
    found = offline(problem, limits=Limits(), seed=0, moves=20_000).claimed
    assert found is not None
    assert truth * (1 - 1e-9) <= found <= truth * 1.15 + 1e-6


def test_hindsight_beats_every_greedy_list_and_can_be_repeated() -> None:
    problem = mixed(seed=0)
    first: Any = offline(problem, limits=Limits(), seed=3, moves=20_000)
    again = offline(problem, limits=Limits(), seed=3, moves=20_000)
    assert first.claimed == again.claimed
    assert first.claimed < first.info["start"]
    for name in ("fifo", "shortest", "shortest-gpu", "easy"):
        assert first.claimed < POLICIES[name].load()(problem, limits=Limits(), seed=0).claimed


def test_greedy_lists_are_those_of_the_policies() -> None:
    problem = mixed(seed=1)
    for name, key in (
        ("shortest", problem.jobs.duration_s),
        ("shortest-gpu", problem.jobs.gpu_seconds),
    ):
        policy = POLICIES[name].load()(problem, limits=Limits(), seed=0)
        assert (np.diff(policy.solution.start_s[greedy(problem, key)]) >= 0).all()


def test_an_interrupt_leaves_the_best_greedy_list() -> None:
    limits = Limits()
    limits.interrupted.set()
    outcome = offline(five_jobs(), limits=limits, seed=0)
    assert outcome.termination is Termination.INTERRUPTED
    assert outcome.status is Status.FEASIBLE


def test_jobs_that_would_leave_are_no_solution() -> None:
    jobs = Jobs.of([0, 0], [10, 10], [8, 8], patience_s=5.0)
    outcome = offline(QueueingProblem.of(jobs, nodes=1), limits=Limits(), seed=0, moves=50)
    assert outcome.status is Status.NO_SOLUTION
    assert "before it leaves" in outcome.message


def test_too_many_jobs_or_no_moves_are_refused() -> None:
    with pytest.raises(InputError, match="at most 20000 jobs"):
        offline(mixed(seed=0, size=20_001), limits=Limits(), seed=0)
    with pytest.raises(InputError, match="at least 1"):
        offline(five_jobs(), limits=Limits(), seed=0, moves=0)
