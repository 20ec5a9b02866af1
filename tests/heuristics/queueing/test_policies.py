from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies_queueing import five_jobs, stream
from trust.agreement import examples
from trust.agreement import outcome_of as run

from optgap.heuristics.queueing.regret import regrets
from optgap.models.queueing import Jobs, QueueingProblem
from optgap.models.queueing.presets import mixed


def starts(problem: QueueingProblem, name: str, **params: Any) -> list[float]:
    solution = run(problem, name, **params).solution
    assert problem.check(solution) == []
    times: list[float] = solution.start_s.tolist()
    return times


def test_patience_ends_the_wait() -> None:
    jobs = Jobs.of([0, 1, 2], [100, 10, 10], [8, 8, 8], patience_s=[math.inf, 50, math.inf])
    problem = QueueingProblem.of(jobs, nodes=1)
    outcome = run(problem, "fifo")
    assert np.isnan(outcome.solution.start_s[1])
    assert outcome.solution.start_s[2] == 100
    assert "1 jobs left" in outcome.message
    assert not problem.serves_all(outcome.solution)


@examples(13)
@given(seed=st.integers(0, 10_000))
def test_re_planned_streams_with_gangs_patience_and_wrong_estimates_are_served(seed: int) -> None:
    problem = stream(seed)
    outcome = run(problem, "replan", moves=50)
    if outcome.solution is None:
        assert not problem.jobs.patient
        return
    assert problem.check(outcome.solution) == []
    assert problem.serves_all(outcome.solution) or not problem.jobs.patient


@examples(12)
@given(seed=st.integers(0, 10_000), share=st.floats(0.2, 0.9))
@pytest.mark.parametrize("name", ["replan", "shortest-reserve"])
def test_no_decision_depends_on_jobs_that_are_still_to_come(
    name: str, seed: int, share: float
) -> None:
    problem = stream(seed)
    count = max(1, int(share * len(problem)))
    if count == len(problem) or not problem.jobs.patient:
        return
    until = problem.jobs.arrival_s[count]
    fewer = problem.subset(range(count))
    whole, part = (np.array(starts(p, name)) for p in (problem, fewer))
    early = whole[:count] < until
    assert np.array_equal(whole[:count][early], part[early])
    assert (part[~early] >= until).all()


def test_plans_go_by_estimates_until_a_job_ends() -> None:
    problem = stream(7)
    assert not problem.jobs.exact_estimates
    longer = replace(problem.jobs, duration_s=problem.jobs.duration_s + 1e6)
    other = np.array(starts(replace(problem, jobs=longer), "replan"))
    mine = np.array(starts(problem, "replan"))
    ended = float((mine + problem.jobs.duration_s).min())
    assert np.array_equal(mine[mine < ended], other[mine < ended])
    assert (mine < ended).any()


def test_plans_and_bookings_are_worth_it() -> None:
    waits = dict.fromkeys(("shortest", "shortest-reserve", "replan"), 0.0)
    for seed in range(100, 106):
        problem = mixed(seed=seed)
        for name in waits:
            found = run(problem, name).claimed
            assert found is not None
            waits[name] += found
    assert waits["replan"] < 0.9 * waits["shortest"]
    assert waits["shortest-reserve"] < 0.9 * waits["shortest"]


def test_a_regret_is_what_an_earlier_start_would_have_saved() -> None:
    problem = five_jobs()
    found = {regret.subject: regret for regret in regrets(problem, run(problem, "fifo").solution)}
    assert found["1"].cost == found["2"].cost == 0
    assert found["3"].cost == pytest.approx((4200 - 20) / 5)
    assert "at 20 s" in found["3"].better
    best = {r.subject: r.cost for r in regrets(problem, run(problem, "sjf").solution)}
    assert max(best.values()) == 0
