"""EcoSched and its comparators, job by job, against the slow transcription."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from strategies_coscheduling import coscheduling_problems
from transcriptions import ecosched as slow

from optgap.heuristics.coscheduling import POLICIES
from optgap.models.coscheduling import CoschedulingProblem
from optgap.models.limits import Limits

RULES: list[tuple[str, dict[str, Any], Callable[[slow.State], slow.Action]]] = [
    *(
        ("ecosched", {"signal": "perfect", "tau": tau, "idle_weight": w}, slow.ecosched(tau, w))
        for tau, w in ((0.14, 0.2), (0.5, 0.5), (4.0, 0.0), (1.0, 2.0))
    ),
    (
        "ecosched",
        {"signal": "perfect", "tau": 0.6, "idle_weight": 0.2, "normalise": "kept"},
        slow.ecosched(0.6, 0.2, kept_only=True),
    ),
    ("marble", {}, slow.marble),
    ("sequential_max_gpu", {}, slow.sequential_max_gpu),
    ("sequential_optimal_gpu", {}, slow.sequential_optimal_gpu),
]


@pytest.mark.parametrize(("policy", "params", "rule"), RULES, ids=lambda x: str(x)[:60])
def test_every_job_starts_when_and_on_as_many_gpus_as_in_the_transcription(
    policy: str, params: dict[str, Any], rule: Callable[[slow.State], slow.Action]
) -> None:
    @settings(max_examples=30)
    @given(problem=coscheduling_problems(max_jobs=7))
    def check(problem: CoschedulingProblem) -> None:
        outcome = POLICIES[policy].load()(problem, limits=Limits(), seed=0, **params)
        found = [(run.job, run.gpu_count, run.start_s) for run in outcome.solution.runs]
        expected = sorted(slow.schedule(problem, rule), key=lambda run: (run[2], run[0]))
        assert [run[:2] for run in found] == [run[:2] for run in expected]
        assert [run[2] for run in found] == pytest.approx([run[2] for run in expected])

    check()
