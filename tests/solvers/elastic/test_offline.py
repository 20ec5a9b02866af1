from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from strategies_elastic import elastic_problems, rigid
from trust.agreement import examples

from optgap.models.elastic import ElasticProblem, Overhead
from optgap.models.elastic.presets import small
from optgap.models.limits import Limits
from optgap.models.result import Outcome, Status
from optgap.registry import FAMILIES
from optgap.solvers.elastic.exhaustive import exhaustive
from optgap.solvers.elastic.offline import offline

POLICIES = FAMILIES["elastic"].policies


def value(problem: ElasticProblem, outcome: Outcome) -> float:
    assert outcome.solution is not None
    assert problem.check(outcome.solution) == []
    assert problem.serves_all(outcome.solution)
    return problem.evaluate(outcome.solution).objective


@examples(7)
@given(problem=elastic_problems(max_jobs=4))
def test_hindsight_is_between_the_bound_and_what_it_claims(problem: ElasticProblem) -> None:
    found = offline(problem, limits=Limits(), seed=0, runs=6, rounds=20)
    made = value(problem, found)
    assert found.claimed == pytest.approx(made, rel=1e-9)
    assert found.bound <= made * (1 + 1e-6)
    assert "not proven" in found.message or found.status is Status.OPTIMAL
    relaxed = exhaustive(problem, limits=Limits(60), seed=0)
    assert relaxed.bound <= made * (1 + 1e-6)


def test_hindsight_beats_every_policy_and_places_every_job() -> None:
    problem = small(seed=1, size=16, gpus=16)
    found = offline(problem, limits=Limits(), seed=0, runs=60, rounds=60)
    made = value(problem, found)
    for name in ("elastic-srtf", "afs", "optimal-slowdown", "powerflow", "work-value"):
        outcome = POLICIES[name].load()(problem, limits=Limits(), seed=0)
        assert made < problem.evaluate(outcome.solution).objective, name
    assert (found.solution.place >= 0).all()
    again = offline(problem, limits=Limits(), seed=0, runs=60, rounds=60)
    assert value(problem, again) == made


def test_jobs_that_take_turns_on_one_gpu_go_by_length_with_a_restart_each() -> None:
    problem = rigid([(0, 30, 1), (0, 10, 1), (0, 20, 1)], 1, 1, Overhead(1.0, 1.0, 0.0))
    found = offline(problem, limits=Limits(), seed=0, runs=5)
    assert value(problem, found) == pytest.approx(np.mean([12, 34, 66]))
    assert found.status is Status.OPTIMAL
