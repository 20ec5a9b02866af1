"""The policies where tasks leave: against a plain simulation, and a problem without times."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from slow_placement_time import SlowTimedRun
from strategies import tasks_of, timed_placement_problems
from trust.agreement import outcome_of as run

import optgap
from optgap.heuristics.placement import POLICIES, engine
from optgap.models.limits import Limits
from optgap.models.placement import Cluster, OverTime, PlacementProblem, PlacementSolution
from optgap.models.placement.presets import alibaba
from optgap.models.result import Termination

Runs = list[tuple[int, tuple[int, ...], float] | None]


def runs(solution: PlacementSolution) -> Runs:
    assert solution.start_s is not None
    return [
        (int(n), solution.gpus(k), float(solution.start_s[k])) if n >= 0 else None
        for k, n in enumerate(solution.node)
    ]


def timed(still: PlacementProblem, queue: str, seed: int = 0) -> PlacementProblem:
    """A problem's tasks at random halves of seconds, for a while each."""
    rng, count = np.random.default_rng(seed), len(still.tasks)
    times = {
        "submit_s": np.sort(rng.integers(0, count, size=count)) / 2,
        "duration_s": rng.integers(1, count, size=count) / 2,
    }
    return PlacementProblem.of(
        still.cluster,
        replace(still.tasks, **times),
        still.workload,
        still.ranks,
        still.power,
        over_time=OverTime(queue),  # type: ignore[arg-type]
    )


@pytest.mark.parametrize(
    ("name", "params"),
    [
        *((name, {}) for name in POLICIES if name != "node-value"),
        ("pwr", {"score": "exact"}),
        ("pwr+fgd", {"score": "exact"}),
    ],
    ids=str,
)
@given(
    problem=timed_placement_problems(max_nodes=4, max_tasks=14)
    | timed_placement_problems(max_nodes=4, max_tasks=8, gangs=True)
)
def test_every_start_is_that_of_the_plain_simulation(
    name: str, params: dict[str, Any], problem: PlacementProblem
) -> None:
    outcome = run(problem, name, **params)
    assert runs(outcome.solution) == SlowTimedRun(problem, name, **params).runs()
    assert problem.check(outcome.solution) == []
    assert outcome.termination is Termination.COMPLETED
    assert outcome.claimed == pytest.approx(
        problem.evaluate(outcome.solution).objective, rel=1e-9, abs=1e-6
    )


@pytest.mark.parametrize("queue", ["reject", "fifo", "backfill"])
@pytest.mark.parametrize("name", ["pwr+fgd", "gpuclustering", "random"])
def test_the_plain_simulation_holds_when_compiled_and_crowded(name: str, queue: str) -> None:
    problem = timed(alibaba(seed=3, size=8, load=3.0), queue)
    solution = run(problem, name).solution
    assert runs(solution) == SlowTimedRun(problem, name).runs()
    unserved = int((solution.node < 0).sum()) - len(problem.never_fits)
    assert (unserved > 0) == (queue == "reject")
    waited = float(problem.evaluate(solution).metrics["max_wait_s"])
    assert (waited > 0) == (queue != "reject")


def test_a_run_that_is_stopped_has_what_started_so_far(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = timed(alibaba(seed=3, size=12, load=1.0), "fifo")
    asked = 0

    class Soon(Limits):
        @property
        def stop(self) -> Termination | None:
            nonlocal asked
            asked += 1
            return Termination.TIME_LIMIT if asked > 3 else None

    monkeypatch.setattr(engine, "LOOK_CELLS", 0)
    outcome = POLICIES["fgd"].load()(problem, limits=Soon(), seed=0)
    assert outcome.termination is Termination.TIME_LIMIT
    assert outcome.message.startswith("stopped after")
    assert outcome.claimed is None
    assert 0 < int((outcome.solution.node >= 0).sum()) < len(problem.tasks)
    assert problem.check(outcome.solution) == []
    assert math.isfinite(problem.evaluate(outcome.solution).objective)


@given(
    problem=timed_placement_problems(max_nodes=3, max_tasks=8), by_s=st.sampled_from([1.7e9, 3.3])
)
def test_the_clock_that_a_problem_is_told_by_is_no_matter(
    problem: PlacementProblem, by_s: float
) -> None:
    one, other = optgap.run(problem, "fgd"), optgap.run(problem.moved(by_s), "fgd")
    assert np.array_equal(one.solution.node, other.solution.node)
    assert other.objective == pytest.approx(one.objective, rel=1e-6, abs=1e-3)
    start, later = one.solution.start_s, other.solution.start_s
    assert later == pytest.approx(start + by_s, rel=0, abs=3e-6, nan_ok=True)


def test_logs_by_unix_seconds_are_told_to_the_millisecond() -> None:
    nodes = Cluster.of(["a"], [8000], [1024], [1], ["T4"])
    rows = tasks_of([(0, 0, 1, 1000, "")] * 2)
    for early, placed in ((1e-3, [0, -1]), (1e-7, [0, 0])):
        times = {"submit_s": 1.7e9 + np.array([0.0, 5.0 - early]), "duration_s": np.full(2, 5.0)}
        problem = PlacementProblem.of(nodes, replace(rows, **times))
        assert optgap.run(problem, "fgd").solution.node.tolist() == placed
