from __future__ import annotations

import itertools
import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from strategies_elastic import elastic_problems, jobs_of, rigid, table, two_jobs
from trust.agreement import examples
from trust.agreement import outcome_of as run

from optgap.heuristics.elastic import CUSTOM
from optgap.heuristics.elastic.powerflow import powerflow
from optgap.heuristics.elastic.regret import regrets
from optgap.models.elastic import ElasticProblem, Kind, Overhead, presets
from optgap.models.elastic.simulation.protocol import ElasticState
from optgap.models.limits import Limits
from optgap.models.result import Outcome
from optgap.registry import FAMILIES


def jct(problem: ElasticProblem, outcome: Outcome) -> list[float]:
    assert problem.check(outcome.solution) == []
    s = outcome.solution
    ends = [float(s.end_s[s.job == j].max()) for j in range(len(problem))]
    return [end - t for end, t in zip(ends, problem.jobs.submit_s.tolist(), strict=True)]


@examples(5)
@given(problem=elastic_problems(max_jobs=5, gpus=(2, 4, 8)))
def test_policies_without_a_cap_keep_every_other_rule(problem: ElasticProblem) -> None:
    unlimited = replace(problem, cap="none")
    for name in ("afs", "tiresias", "gandiva", "fifo"):
        assert unlimited.check(run(unlimited, name).solution) == [], name


# -- a user's own --------------------------------------------------------------------------


def test_a_function_of_ones_own_is_asked_at_every_event() -> None:
    problem = two_jobs()

    def one(view: Any) -> dict[int, tuple[int, float]]:
        assert view.power(0, 1, 1000.0) == 100
        return {view.jobs[0]: (2, 1000.0)}

    outcome = CUSTOM.load()(problem, limits=Limits(), seed=0, policy=one)
    assert jct(problem, outcome) == pytest.approx([600, 1150])


# -- regrets ------------------------------------------------------------------------------


def test_the_optimal_policy_regrets_nothing_and_greedy_something() -> None:
    problem = two_jobs(360.0)
    assert max(r.cost for r in regrets(problem, run(problem, "optimal").solution)) < 1e-6
    greedy = run(problem, "powerflow", profiles="perfect")
    found = regrets(problem, greedy.solution)
    assert found[0].cost == pytest.approx((1550 - 1460) / 2)


def test_weighing_by_slowdown_does_not_favour_the_longest() -> None:
    problem = presets.small(seed=0)
    by_time, by_slowdown = run(problem, "optimal"), run(problem, "optimal-slowdown")
    value = [problem.evaluate(o.solution).objective for o in (by_time, by_slowdown)]
    assert value[1] < value[0]


# -- PowerFlow -----------------------------------------------------------------------------


def flow(problem: ElasticProblem, **params: Any) -> Outcome:
    params = {"profiles": "perfect", **params}
    return powerflow(problem, limits=Limits(), seed=0, **params)


def test_the_paper_mode_stops_only_once_the_limit_is_passed() -> None:
    problem = two_jobs()
    outcome = flow(problem, mode="paper")
    assert problem.evaluate(outcome.solution).metrics["power_overshoot_w"] >= 50 - 1e-6
    assert not problem.serves_all(outcome.solution)
    wider = problem.restrict(outcome.solution)
    assert wider.power_limit_w >= 530


def test_profiling_costs_what_it_is_said_to() -> None:
    problem = two_jobs()
    outcome = flow(
        problem, profiles="online", prerun_s=100.0, profile_s=30.0, sigma_time=0, sigma_energy=0
    )
    solution = outcome.solution
    before = solution.kind == Kind.PRERUN
    assert solution.start_s[before].tolist() == [0.0, 0.0]
    assert solution.end_s[before].tolist() == [100.0, 100.0]
    windows = (solution.end_s - solution.start_s)[solution.kind == Kind.PROFILE]
    assert windows.max() == pytest.approx(30.0)
    prerun = problem.evaluate(solution).metrics["prerun_j"]
    assert prerun == pytest.approx(100 * (np.mean([100, 135, 172]) + np.mean([120, 166, 210])))


# -- work value ----------------------------------------------------------------------------


ENTRY = FAMILIES["elastic"].policies["work-value"]


def valued(problem: ElasticProblem, **given: object) -> Outcome:
    outcome = ENTRY.load()(problem, limits=Limits(), seed=0, **given)
    assert outcome.solution is not None
    assert problem.check(outcome.solution) == []
    assert problem.serves_all(outcome.solution)
    return outcome


def options(problem: ElasticProblem, job: int) -> list[tuple[int, int, float, float]]:
    """(GPUs, clock, s per iteration, W) of a job's class."""
    c = problem.jobs.of_class[job]
    return [
        (int(n), f, float(problem.time_s[c, k, f]), float(problem.power_w[c, k, f]))
        for k, n in enumerate(problem.counts)
        for f in range(len(problem.frequencies_mhz))
        if math.isfinite(problem.time_s[c, k, f])
    ]


def most_at_first(problem: ElasticProblem, power: float) -> tuple[float, dict[int, float]]:
    """The most worth of work per second at the first event, by trying all, and of which s."""
    here = [j for j in range(len(problem)) if problem.jobs.submit_s[j] == 0]
    gpus, limit = problem.gpus, problem.power_allowed_w
    values = []
    for job in here:
        left = float(problem.jobs.iterations[job])
        cost = min(
            t * (1 + len(here) * (n / gpus + w / limit) / 2) for n, _, t, w in options(problem, job)
        )
        worth = (left * cost) ** power / left
        values.append([(0, 0, math.inf, 0.0), *options(problem, job)])
        values[-1] = [(n, w, worth / t) for n, _, t, w in values[-1]]
    best = 0.0
    for choice in itertools.product(*values):
        if sum(n for n, _, _ in choice) <= gpus and sum(w for _, w, _ in choice) <= limit:
            best = max(best, sum(v for _, _, v in choice))
    chosen = {job: {(n, w): v for n, w, v in rows} for job, rows in zip(here, values, strict=True)}
    return best, chosen


@examples(7)
@given(problem=elastic_problems(max_jobs=4))
def test_the_first_decision_is_worth_most_of_all_that_fit(problem: ElasticProblem) -> None:
    solution = valued(problem, gap=0.0, spread_s=1e9).solution
    if not problem.overhead.free:
        return  # restarts are taken off: the hand-made case below
    best, worth = most_at_first(problem, 0.75)
    made = 0.0
    for row in np.flatnonzero(solution.start_s == 0):
        job = int(solution.job[row])
        n, f = int(solution.gpus[row]), int(solution.frequency[row])
        c, k = problem.jobs.of_class[job], list(problem.counts).index(n)
        made += worth[job][n, float(problem.power_w[c, k, f])]
    assert made == pytest.approx(best, rel=1e-9)


def test_a_restart_is_spread_over_what_is_left_or_less() -> None:
    # on both GPUs the longer job is 1.9 times as fast once the other has gone
    costly = Overhead(10.0, 10.0, 0.0)
    times, watts = [[1.0], [1 / 1.9]], [[100.0], [200.0]]
    shrinking = ElasticProblem.of(
        [table("unit", times, watts)], jobs_of([0, 0], [100, 30]), [1000.0], gpus=2,
        gpus_per_node=2, p_max_w=100.0, eta=1.0, idle_w=0.0, overhead=costly,
    )  # fmt: skip
    stays = valued(shrinking, spread_s=0.001).solution
    grows = valued(shrinking, spread_s=1e9).solution
    assert int(stays.gpus[stays.job == 0].max()) == 1
    assert int(grows.gpus[grows.job == 0].max()) == 2


def test_with_less_power_the_short_job_goes_first() -> None:
    problem = rigid([(0, 90, 1), (0, 10, 1)], 1, 1)
    short_first = valued(problem, power=0.5)
    assert problem.evaluate(short_first.solution).objective == pytest.approx((10 + 100) / 2)


def test_what_an_iteration_is_worth_follows_from_the_formula() -> None:
    from optgap.solvers.elastic.most_worth import EstimatedWorth
    from optgap.solvers.elastic.snapshot import Choices

    problem = two_jobs(480.0)
    none = np.zeros(0)
    jobs, left = np.array([0, 1]), np.array([1000.0, 500.0])
    state = ElasticState(problem, 0.0, jobs, jobs, left, jobs, jobs, jobs, none, none, none)
    made = EstimatedWorth(problem, Choices.of(problem), 0.5)(state)
    costs = [
        min(t * (1 + 2 * (n / 4 + w / 480.0) / 2) for n, _, t, w in options(problem, job))
        for job in (0, 1)
    ]
    assert made == pytest.approx([(1000 * costs[0]) ** 0.5 / 1000, (500 * costs[1]) ** 0.5 / 500])
