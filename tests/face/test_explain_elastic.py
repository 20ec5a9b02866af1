"""What an elastic policy pays for not knowing its jobs' models, and for measuring them."""

from __future__ import annotations

from typing import Any

import pytest

import optgap
from optgap.explaining import Explanation, explain
from optgap.models.elastic import ElasticProblem, presets


@pytest.fixture(scope="module")
def problem() -> ElasticProblem:
    return presets.small(seed=1, size=6, gpus=8, gpus_per_node=4)


def of(problem: ElasticProblem, policy: str, **params: Any) -> Explanation:
    return explain(problem, policy, "bound-prices(rounds=5)", beside=(), seed=2, **params)


def test_learning_costs_what_deciding_on_it_does_and_what_measuring_does(
    problem: ElasticProblem,
) -> None:
    answer = of(problem, "powerflow")
    free = {"prerun_s": 0.0, "profile_s": 0.0}
    ran = {
        name: optgap.run(problem, "powerflow", seed=2, **params).objective
        for name, params in {"perfect": {"profiles": "perfect"}, "free": free, "paid": {}}.items()
    }
    begin = answer.part("heuristic").start
    exact = min(ran["paid"], max(begin, ran["perfect"]))
    free = min(ran["paid"], max(exact, ran["free"]))
    model, measuring = answer.part("model"), answer.part("measuring")
    assert (model.start, model.end) == (exact, free)
    assert (measuring.start, measuring.end) == (free, ran["paid"])
    assert answer.parts[-1].end == answer.objective
    for before, after in zip(answer.parts, answer.parts[1:], strict=False):
        assert before.end == after.start
    assert "price of measuring" in str(answer)


def test_who_does_not_measure_pays_for_the_model_alone(problem: ElasticProblem) -> None:
    names = [p.name for p in of(problem, "powerflow", prerun_s=0.0, profile_s=0.0).parts]
    assert "model" in names
    assert "measuring" not in names
    for policy, params in (("powerflow", {"profiles": "perfect"}), ("fifo", {})):
        names = [p.name for p in of(problem, policy, **params).parts]
        assert not {"model", "measuring"} & set(names)
