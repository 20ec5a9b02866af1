from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies_elastic import elastic_problems, two_jobs
from transcriptions.powerflow import Algorithm1
from trust.agreement import examples

from optgap.heuristics.elastic.parameters import PowerFlowParams
from optgap.heuristics.elastic.powerflow import PowerFlow, powerflow
from optgap.heuristics.elastic.powerflow_kernels import Jobs, allocate
from optgap.heuristics.elastic.predictions import Known
from optgap.models.elastic import ElasticProblem, Kind
from optgap.models.elastic.simulation.engine import Simulation
from optgap.models.elastic.simulation.protocol import Settings
from optgap.models.errors import InputError
from optgap.models.limits import Limits
from optgap.models.result import Outcome


def run(problem: ElasticProblem, **params: Any) -> Outcome:
    params = {"profiles": "perfect", **params}
    return powerflow(problem, limits=Limits(), seed=0, **params)


def first_decision(problem: ElasticProblem, mode: Any, clocks: Any = "fixed") -> Any:
    """(GPUs, MHz) of every job at time 0."""
    policy = PowerFlow(
        problem,
        Settings(),
        Known(problem),
        problem.power_limit_w,
        PowerFlowParams(mode=mode, frequency=clocks),
    )
    simulation = Simulation(problem, policy, Limits())
    simulation._submit()
    decision = policy.decide(simulation._state())
    return [
        (
            int(problem.counts[k]) if k >= 0 else 0,
            float(problem.frequencies_mhz[f]) if k >= 0 else 0,
        )
        for k, f in zip(decision.count, decision.clock, strict=True)
    ]


def test_the_strict_mode_takes_the_steps_written_out_by_hand() -> None:
    assert first_decision(two_jobs(), "strict") == [(2, 1200.0), (2, 1000.0)]


def test_the_paper_mode_stops_only_once_the_limit_is_passed() -> None:
    problem = two_jobs()
    assert first_decision(problem, "paper") == [(2, 1200.0), (2, 1200.0)]
    outcome = run(problem, mode="paper")
    assert problem.evaluate(outcome.solution).metrics["power_overshoot_w"] >= 50 - 1e-6
    assert not problem.serves_all(outcome.solution)
    wider = problem.restrict(outcome.solution)
    assert wider.power_limit_w >= 530


def test_a_tight_limit_gives_the_greedy_choice_that_is_not_optimal() -> None:
    assert first_decision(two_jobs(360.0), "strict") == [(1, 1000.0), (2, 1000.0)]
    wide = first_decision(two_jobs(660.0, gpus=8, per_node=8), "strict")
    assert [n for n, _ in wide] == [2, 4]


def test_the_limit_is_first_looked_at_when_a_node_is_full() -> None:
    assert first_decision(two_jobs(360.0, gpus=8, per_node=4), "paper") == [
        (2, 1000.0),
        (2, 1000.0),
    ]


def test_the_two_jobs_end_when_worked_out_by_hand() -> None:
    problem = two_jobs()
    outcome = run(problem)
    ends = [float(outcome.solution.end_s[outcome.solution.job == j].max()) for j in (0, 1)]
    assert ends[0] == pytest.approx(520)
    assert ends[1] == pytest.approx(537.73, abs=0.05)


# -- against Algorithm 1 in plain Python ---------------------------------------------------


@examples(50)
@given(
    problem=elastic_problems(max_jobs=6, free=True, gpus=(2, 4, 8)),
    seed=st.integers(0, 10**6),
    strict=st.booleans(),
    per_n=st.booleans(),
)
def test_all_steps_are_those_of_algorithm_1(
    problem: ElasticProblem, seed: int, strict: bool, per_n: bool
) -> None:
    problem = untied(problem, seed)
    clocks = "per_n" if per_n else "fixed"
    policy = PowerFlow(
        problem,
        Settings(),
        Known(problem),
        problem.power_limit_w,
        PowerFlowParams(frequency=clocks),
    )
    policy.strict = strict
    simulation = Simulation(problem, policy, Limits())
    simulation.now = 1e6
    simulation._submit()
    state = simulation._state()
    steps, row = policy.model.steps(state, clocks)
    order = policy._first(state, steps, row)
    jobs = Jobs(row, order, state.remaining, state.locked, state.locked_w)
    count, clock, watts = allocate(jobs, steps, policy.limit)
    left = dict(enumerate(state.remaining.tolist()))
    expected = Algorithm1(problem, left, strict, per_n).run()
    found = {a: (int(count[a]), int(clock[a])) for a in range(len(count)) if count[a] >= 0}
    assert found == expected
    total = math.fsum(
        float(problem.power_w[problem.jobs.of_class[j], x[0], x[1]]) for j, x in expected.items()
    )
    assert watts == pytest.approx(total)


def untied(problem: ElasticProblem, seed: int) -> ElasticProblem:
    """The same with tables a little off: only jobs of one class still have equal ratios."""
    rng = np.random.default_rng(seed)

    def off(table: Any) -> Any:
        return table * (1 + 1e-3 * rng.random(table.shape))

    classes = tuple(
        replace(c, time_s=off(c.time_s), power_w=off(c.power_w)) for c in problem.classes
    )
    return replace(problem, classes=classes)


# -- the whole policy ----------------------------------------------------------------------

VARIANTS: list[dict[str, Any]] = [
    {},
    {"profiles": "online", "prerun_s": 5.0, "profile_s": 8.0},
    {"profiles": "online", "prerun_s": 0.0, "profile_s": 0.0},
    {"frequency": "per_n"},
    {"profiles": "scaled"},
]


@examples(7)
@given(problem=elastic_problems(max_jobs=5, gpus=(2, 4, 8)))
def test_every_variant_keeps_the_limit_and_finishes_all(problem: ElasticProblem) -> None:
    for params in VARIANTS:
        outcome = run(problem, **params)
        assert problem.check(outcome.solution) == [], params
        assert problem.serves_all(outcome.solution), params
        assert outcome.solution.power_limit_w is None
        loose = run(problem, **params, mode="paper")
        assert problem.check(loose.solution) == [], params


def test_profiling_costs_what_it_is_said_to() -> None:
    problem = two_jobs()
    outcome = run(
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


@pytest.mark.parametrize(
    "params", [{"mode": "loose"}, {"sigma_time": -1.0}, {"eta": 2.0}, {"frequency": "x"}]
)
def test_parameters_out_of_range_are_refused(params: dict[str, Any]) -> None:
    with pytest.raises(InputError):
        run(two_jobs(), **params)
