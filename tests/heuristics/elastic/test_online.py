"""PowerFlow with models that are fitted in the loop."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from optgap.heuristics.elastic.beliefs import Beliefs
from optgap.heuristics.elastic.powerflow import powerflow
from optgap.heuristics.elastic.predictions import Known, Online, Scaled
from optgap.models.elastic import ElasticProblem, presets
from optgap.models.elastic.simulation.engine import Simulation
from optgap.models.elastic.simulation.protocol import Decision, Settings, State
from optgap.models.limits import Limits


@pytest.fixture(scope="module")
def problem() -> ElasticProblem:
    return presets.small(seed=3, size=10, gpus=8, gpus_per_node=4)


def solved(problem: ElasticProblem, seed: int = 0, **params: Any) -> Any:
    return powerflow(problem, limits=Limits(), seed=seed, **params).solution


class Watching:
    """Doubles everyone's GPUs in turn, and notes what has been seen at each event."""

    def __init__(self, problem: ElasticProblem, settings: Settings) -> None:
        self.problem, self.settings = problem, settings
        self.noted: list[tuple[State, np.ndarray]] = []

    def decide(self, state: State) -> Decision:
        self.noted.append((state, state.seen.copy()))
        count = np.full(len(state.jobs), -1)
        count[0] = len(self.noted) % 2
        return Decision(count, np.zeros(len(count), dtype=int))


def test_a_job_has_been_seen_where_it_was_profiled_or_ran(problem: ElasticProblem) -> None:
    policy = Watching(problem, Settings(prerun_s=100.0, profile_s=0.0))
    Simulation(problem, policy, Limits()).run()
    first, seen = policy.noted[0]
    job = int(first.jobs[0])
    assert seen[job, 0].all()
    assert not seen[job, 1:].any()
    assert not seen[job + 1 :].any()
    _, later = policy.noted[-1]
    assert later[job, :2].all()
    watching = Watching(problem, Settings(prerun_s=100.0, profile_s=1e9, strict=True))
    watching.problem = problem
    Simulation(problem, watching, Limits()).run()
    ran = watching.noted[-1][1]
    assert ran[:, 0].all()


def test_measurements_hang_on_the_seed_the_job_and_the_configuration_alone(
    problem: ElasticProblem,
) -> None:
    shape = problem.time_s.shape[1:]
    half, whole = np.zeros(shape, bool), np.ones(shape, bool)
    half[0] = True
    one, other = Beliefs(problem, 5, 0.05, 0.05), Beliefs(problem, 5, 0.05, 0.05)
    one.learnt(2, half)
    other.learnt(4, whole)
    other.learnt(2, half)
    for a, b in zip(one.learnt(2, whole), other.learnt(2, whole), strict=True):
        np.testing.assert_array_equal(a, b)
    elsewhere = Beliefs(problem, 6, 0.05, 0.05).learnt(2, half)
    assert not np.array_equal(elsewhere[0], Beliefs(problem, 5, 0.05, 0.05).learnt(2, half)[0])


def _start_clocks(model: Known, state: State) -> np.ndarray:
    steps, row = model.steps(state, "per_n")
    return steps.start[row, :3]


def test_start_clocks_follow_what_is_measured_and_one_factor_moves_none() -> None:
    problem = presets.small(seed=3, size=10, gpus=8, gpus_per_node=4, pool="v100")
    policy = Watching(problem, Settings(prerun_s=100.0, profile_s=50.0))
    Simulation(problem, policy, Limits()).run()
    truth = Known(problem)
    scaled = Scaled(problem, 0, 0.2, 0.2)
    online = Online(problem, 0, 0.1, 0.1)
    moved = 0
    for state, seen in policy.noted:
        state.seen = seen
        np.testing.assert_array_equal(_start_clocks(scaled, state), _start_clocks(truth, state))
        moved += int((_start_clocks(online, state) != _start_clocks(truth, state)).sum())
    assert moved > 0


def test_every_job_has_its_own_row_while_others_come_and_go(problem: ElasticProblem) -> None:
    online, names = Online(problem, 0, 0.05, 0.05), np.arange(10)
    seen = np.zeros((10, *problem.time_s.shape[1:]), bool)
    seen[:, 0] = True
    for first in range(8):
        jobs = names[first : first + 2]
        state = State(
            problem, 0.0, jobs, problem.jobs.of_class[jobs], np.ones(2), -np.ones(2, int),
            np.zeros(2, int), -np.ones(2, int), np.zeros(2), np.zeros((10, 4), bool), seen,
            np.zeros(10),
        )  # fmt: skip
        steps, row = online.steps(state, "fixed")
        for job, r in zip(jobs.tolist(), row.tolist(), strict=True):
            time_s, _ = Beliefs(problem, 0, 0.05, 0.05).learnt(job, seen[job])
            np.testing.assert_allclose(online.time_s[r], time_s)
            assert np.isfinite(steps.watts[r][np.isfinite(time_s)]).all()
    assert online.beliefs.jobs.keys() <= {7, 8}


def test_the_same_seed_gives_the_same_day_and_another_another(problem: ElasticProblem) -> None:
    def jct(seed: int) -> float:
        return problem.evaluate(solved(problem, seed=seed)).objective

    assert jct(1) == jct(1)
    assert len({jct(seed) for seed in range(4)}) > 1
