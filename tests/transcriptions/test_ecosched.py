"""EcoSched and its comparators, job by job, against the slow transcription."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest
from transcriptions import ecosched as slow
from trust.agreement import many

from optgap.heuristics.coscheduling import POLICIES
from optgap.models.coscheduling import Application, CoschedulingProblem, Mode
from optgap.models.limits import Limits

RULES: list[tuple[str, dict[str, Any], Callable[[slow.State], slow.Action]]] = [
    *(
        (
            "ecosched",
            {"signal": "perfect", "tau": tau, "idle_weight": weight, "normalise": over},
            slow.ecosched(tau, weight, kept_only=over == "kept"),
        )
        for tau, weight, over in (
            (0.14, 0.2, "kept"),
            (0.14, 0.2, "all"),
            (0.5, 0.5, "all"),
            (0.6, 0.2, "kept"),
            (4.0, 0.0, "all"),
            (1.0, 2.0, "all"),
        )
    ),
    ("marble", {}, slow.marble),
    ("sequential_max_gpu", {}, slow.sequential_max_gpu),
    ("sequential_optimal_gpu", {}, slow.sequential_optimal_gpu),
]


CASES = many(50)


def node(seed: int) -> CoschedulingProblem:
    """Three to seven jobs, every third time with arrivals; GPU counts missing, and ties."""
    draw = random.Random(seed)
    gpus, numa = draw.choice(((4, 2), (4, 2), (6, 3), (5, 4)))
    pool = []
    for k in range(draw.randint(2, 5)):
        work, share = draw.choice((5.0, 8.0, 10 / 3)), draw.choice((0.0, 0.5, 0.8, 1.0))
        modes = [
            Mode(g, work * (share / g + 1 - share), draw.choice((50.0, 60.0, 100.0, 130.0)))
            for g in sorted(draw.sample(range(1, gpus + 1), draw.randint(1, gpus)))
        ]
        pool.append(Application(f"app-{k}", tuple(modes)))
    jobs = [draw.randrange(len(pool)) for _ in range(draw.randint(3, 7))]
    releases = [draw.choice((0.0, 1.0, 10 / 3, 6.5)) for _ in jobs] if seed % 3 == 0 else None
    return CoschedulingProblem.of(pool, jobs, gpus=gpus, numa=numa, releases=releases)


@pytest.mark.parametrize(
    ("policy", "params", "rule"), RULES, ids=lambda x: "rule" if callable(x) else str(x)[:90]
)
def test_every_job_starts_when_and_on_as_many_gpus_as_in_the_transcription(
    policy: str, params: dict[str, Any], rule: Callable[[slow.State], slow.Action]
) -> None:
    for seed in range(CASES):
        problem = node(seed)
        outcome = POLICIES[policy].load()(problem, limits=Limits(), seed=0, **params)
        found = [(run.job, run.gpu_count, run.start_s) for run in outcome.solution.runs]
        expected = sorted(slow.schedule(problem, rule), key=lambda run: (run[2], run[0]))
        assert [run[:2] for run in found] == [run[:2] for run in expected], seed
        starts = [run[2] for run in expected]
        assert [run[2] for run in found] == pytest.approx(starts), seed
