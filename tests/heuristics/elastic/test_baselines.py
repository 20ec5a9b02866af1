from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from strategies_elastic import elastic_problems, jobs_of, rigid, table, two_jobs
from trust.agreement import examples

from optgap.heuristics.elastic import CUSTOM
from optgap.heuristics.elastic.afs import tournament
from optgap.heuristics.elastic.gandiva import Gandiva
from optgap.heuristics.elastic.regret import regrets
from optgap.heuristics.elastic.shared_clock import zeus_clocks
from optgap.heuristics.elastic.tiresias import gittins_index
from optgap.models.elastic import ElasticProblem, Overhead, presets
from optgap.models.errors import InputError
from optgap.models.limits import Limits
from optgap.models.result import Outcome
from optgap.registry import FAMILIES

POLICIES = FAMILIES["elastic"].policies


def run(problem: ElasticProblem, name: str, **params: Any) -> Outcome:
    outcome: Outcome = POLICIES[name].load()(problem, limits=Limits(), seed=0, **params)
    return outcome


def jct(problem: ElasticProblem, outcome: Outcome) -> list[float]:
    assert problem.check(outcome.solution) == []
    s = outcome.solution
    ends = [float(s.end_s[s.job == j].max()) for j in range(len(problem))]
    return [end - t for end, t in zip(ends, problem.jobs.submit_s.tolist(), strict=True)]


@examples(5)
@given(problem=elastic_problems(max_jobs=5, gpus=(2, 4, 8)))
def test_policies_without_a_cap_keep_every_other_rule(problem: ElasticProblem) -> None:
    for name in ("afs", "tiresias", "gandiva", "fifo"):
        assert problem.check(run(problem, name, capped=False).solution) == [], name


# -- AFS -----------------------------------------------------------------------------------


def shares(speeds: list[list[float]], work: list[float], gpus: int) -> list[int]:
    """AFS-L, one GPU at a time."""
    size, most = len(speeds), len(speeds[0])
    following = np.array([[*range(1, most), -1]] * size)
    chosen = tournament(
        np.arange(size),
        np.array(work, dtype=float),
        np.arange(1, most + 1),
        following,
        np.zeros(size, dtype=np.int64),
        np.array(speeds),
        gpus,
    )
    return [int(k) + 1 for k in chosen]


A, B, C = [1, 1.8, 2.4, 2.8], [1, 1.9, 2.7, 3.4], [1, 1.2, 1.3, 1.35]


@pytest.mark.parametrize(
    ("speeds", "work", "gpus", "expected"),
    [
        ([A, B], [1000, 3000], 2, [1, 1]),
        ([A, B], [1000, 3000], 4, [2, 2]),
        ([A, B], [1000, 3000], 5, [3, 2]),
        ([A, B, C], [1000, 3000, 400], 6, [3, 2, 1]),
    ],
)
def test_the_tournament_gives_the_shares_worked_out_by_hand(
    speeds: Any, work: Any, gpus: int, expected: list[int]
) -> None:
    assert shares(speeds, work, gpus) == expected


# -- Tiresias ------------------------------------------------------------------------------


def test_a_job_is_demoted_at_its_threshold_and_comes_back() -> None:
    problem = rigid([(0, 2000, 4), (100, 300, 2)])
    assert jct(problem, run(problem, "tiresias")) == pytest.approx([2300, 1012.5])


@pytest.mark.parametrize(
    ("attained", "index"), [(0, 3.2e-4), (1500, 1 / 3750), (2500, 0.0), (5000, 1 / 3000)]
)
def test_the_gittins_index_is_that_of_the_remaining_services(attained: float, index: float) -> None:
    past = np.array([1000.0, 2000.0, 8000.0])
    assert gittins_index(past, attained) == pytest.approx(index)


def test_tiresias_by_gittins_index_finishes_all() -> None:
    rng = np.random.default_rng(3)
    rows = [(float(t), float(d), int(n)) for t, d, n in zip(
        np.sort(rng.uniform(0, 4000, 25)), rng.uniform(50, 6000, 25), rng.choice([1, 2, 4, 8], 25),
        strict=True)]  # fmt: skip
    problem = rigid(rows, gpus=16, per_node=4, overhead=Overhead())
    outcome = run(problem, "tiresias", discipline="gittins")
    assert problem.check(outcome.solution) == []
    assert problem.serves_all(outcome.solution)


# -- Gandiva -------------------------------------------------------------------------------


def test_two_jobs_for_the_whole_node_take_turns() -> None:
    problem = rigid([(0, 180, 4), (0, 180, 4)])
    assert jct(problem, run(problem, "gandiva")) == pytest.approx([300, 360])
    assert jct(problem, run(problem, "fifo")) == pytest.approx([180, 360])


def gandiva_after(problem: ElasticProblem, jobs: list[int]) -> Gandiva:
    from optgap.heuristics.elastic.parameters import GandivaParams
    from optgap.heuristics.elastic.shared_clock import Clock

    policy = Gandiva(problem, Clock(problem, "gandiva", GandivaParams()), 60.0)
    for job in jobs:
        policy._arrive(job)
        policy.pending = []
    return policy


def test_four_single_jobs_share_one_node() -> None:
    problem = rigid([(0, 100, 1)] * 4, gpus=8, per_node=4)
    policy = gandiva_after(problem, [0, 1, 2, 3])
    assert [len(item.jobs) for item in policy.sets[1]] == [4]


def test_classes_get_nodes_in_proportion_to_what_they_ask_for() -> None:
    problem = rigid([(0, 100, 1)] * 8 + [(0, 100, 4)] * 4, gpus=16, per_node=4)
    policy = gandiva_after(problem, list(range(12)))
    policy._rebalance()
    assert {size: len(group) for size, group in policy.sets.items()} == {1: 1, 4: 3}
    policy._rebalance()
    assert {size: len(group) for size, group in policy.sets.items()} == {1: 1, 4: 3}


# -- Zeus ----------------------------------------------------------------------------------


@pytest.mark.parametrize(("eta", "clock"), [(0.0, 1400), (0.5, 1200), (1.0, 1000)])
def test_zeus_picks_the_clock_of_least_cost(eta: float, clock: int) -> None:
    problem = ElasticProblem.of(
        [table("m", [[1.0, 0.88, 0.82]], [[150, 190, 240]])],
        jobs_of([0], [10]),
        [1000, 1200, 1400],
        gpus=1,
        gpus_per_node=1,
        cap="none",
    )
    # its cost takes the power at the highest clock for MAXPOWER, here 240 W
    assert problem.frequencies_mhz[zeus_clocks(problem, eta)[0]] == clock


# -- a user's own --------------------------------------------------------------------------


def own(problem: ElasticProblem, policy: Any) -> Outcome:
    outcome: Outcome = CUSTOM.load()(problem, limits=Limits(), seed=0, policy=policy)
    return outcome


def test_a_function_of_ones_own_is_asked_at_every_event() -> None:
    problem = two_jobs()

    def one(view: Any) -> dict[int, tuple[int, float]]:
        assert view.power(0, 1, 1000.0) == 100
        return {view.jobs[0]: (2, 1000.0)}

    assert jct(problem, own(problem, one)) == pytest.approx([600, 1150])


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ({0: (3, 1000.0)}, "GPUs"),
        ({0: (1, 999.0)}, "a clock"),
        ({7: (1, 1000.0)}, "a job that may run"),
        ({0: (4, 1000.0), 1: (4, 1000.0)}, "at most 4"),
        ({0: (4, 1400.0)}, "W"),
        ({0: 1}, "gpus, frequency_mhz"),
        ({}, "a job to run"),
    ],
)
def test_answers_that_do_not_fit_are_refused(answer: Any, said: str) -> None:
    with pytest.raises(InputError, match=said):
        own(two_jobs(), lambda view: answer)


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
