from __future__ import annotations

import json
import math
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies_queueing import five_jobs, stream
from trust.agreement import examples

from optgap.heuristics.queueing import POLICIES
from optgap.models.errors import InputError
from optgap.models.jsonio import Fields
from optgap.models.limits import Limits
from optgap.models.queueing import Jobs, QueueingProblem, QueueingSolution
from optgap.models.queueing.presets import mixed, small
from optgap.models.queueing.referee import jain, queue_length
from optgap.models.queueing.workload import DURATIONS_S, GPUS, KINDS, draw


def fifo(problem: QueueingProblem) -> QueueingSolution:
    solution: QueueingSolution = POLICIES["fifo"].load()(problem, limits=Limits(), seed=0).solution
    return solution


def again(document: dict[str, Any]) -> Fields:
    return Fields(json.loads(json.dumps(document)), "file")


def test_patience_and_estimates_survive_json() -> None:
    for seed in range(8):
        problem = stream(seed)
        copy = QueueingProblem.from_json(again(problem.to_json()))
        assert np.array_equal(copy.jobs.patience_s, problem.jobs.patience_s)
        assert np.array_equal(copy.jobs.estimate_s, problem.jobs.estimate_s)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"arrival_s": [0, -1]}, "arrival_s: found -1"),
        ({"arrival_s": [0, math.nan]}, "arrival_s"),
        ({"duration_s": [1, 0]}, "duration_s: found 0"),
        ({"gpus": [1, 0]}, "gpus: found 0"),
        ({"gpus": [1, 1.5]}, "found 1.5, expected an integer"),
        ({"names": ["a", "a"]}, r"job: found job a again, as in field jobs\[0\]"),
        ({"patience_s": [1, 0]}, "patience_s"),
        ({"estimate_s": [1, -2]}, "estimate_s"),
        ({"iterations": [1]}, "iterations: found 1, expected 2"),
    ],
)
def test_bad_jobs_are_refused_by_place(change: dict[str, Any], said: str) -> None:
    columns = {"arrival_s": [0.0, 1.0], "duration_s": [1.0, 1.0], "gpus": [1, 1]}
    with pytest.raises(InputError, match=said):
        Jobs.of(**{**columns, **change})


@pytest.mark.parametrize(
    ("params", "said"),
    [
        ({"nodes": 0}, "nodes"),
        ({"gpus_per_node": True}, "gpus_per_node"),
        ({"nodes": 10**6, "gpus_per_node": 10**5}, "100000000000 GPUs, expected at most 10000000"),
        ({"nodes": 1, "gpus_per_node": 4}, r"job 1, gpus: found 8 GPUs, expected at most 4"),
        ({"placement": "x"}, "one of node, count"),
        ({"goal": "x"}, "one of mean_wait, mean_jct, makespan"),
    ],
)
def test_bad_problems_are_refused(params: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError, match=said):
        QueueingProblem.of(Jobs.of([0, 0], [1, 1], [1, 8]), **params)


def test_jobs_are_sorted_by_arrival_and_keep_their_names() -> None:
    jobs = Jobs.of([5, 0, 5], [1, 2, 3], [1, 1, 1], names=["a", "b", "c"])
    assert jobs.names == ("b", "a", "c")
    assert jobs.duration_s.tolist() == [2, 1, 3]


def broken(problem: QueueingProblem, **change: Any) -> list[str]:
    return [v.constraint for v in problem.check(replace(fifo(problem), **change))]


def test_starts_alone_are_enough_for_the_referee() -> None:
    problem = mixed(seed=2, size=40)
    document = fifo(problem).to_json(problem)
    for entry in document["schedule"]:
        del entry["nodes"]
    solution = QueueingSolution.from_json(again(document), problem)
    assert problem.check(solution) == []


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"job": "x"}, "a job of the problem"),
        ({"job": "2"}, "job 2 twice"),
        ({"nodes": [[0]]}, "node, GPUs. pairs"),
        ({"start_s": -1}, "start_s"),
    ],
)
def test_bad_schedules_are_refused(change: dict[str, Any], said: str) -> None:
    problem = five_jobs()
    document = fifo(problem).to_json(problem)
    document["schedule"][0] |= change
    with pytest.raises(InputError, match=said):
        QueueingSolution.from_json(again(document), problem)


def brute(problem: QueueingProblem, solution: QueueingSolution) -> dict[str, float]:
    """Queue and fragmentation by looking at the middle of every span between two events."""
    jobs, started = problem.jobs, np.isfinite(solution.start_s)
    leave = np.where(started, solution.start_s, jobs.arrival_s + jobs.patience_s)
    points = {*jobs.arrival_s, *leave[np.isfinite(leave)], *solution.end_s[started]}
    times = sorted(points)
    queued = waiting = blocked = partial = 0.0
    nodes, g = problem.shape
    for low, high in pairwise(times):
        t = (low + high) / 2
        line = np.flatnonzero((jobs.arrival_s <= t) & (leave > t))
        queued += len(line) * (high - low)
        if not line.size:
            continue
        free = np.full(nodes, g)
        for k in np.flatnonzero(started & (solution.start_s <= t) & (solution.end_s > t)):
            for node, gpus in solution.nodes_of(int(k)):
                free[node] -= gpus
        n = int(jobs.gpus[line[0]])
        whole, partly = int((free == g).sum()), free[free < g]
        room = whole >= n // g + (n % g > 0) or (
            whole >= n // g and (n % g == 0 or (partly >= n % g).any())
        )
        waiting += high - low
        blocked += (high - low) * (n <= free.sum() and not room)
        partial += (high - low) * (partly.sum() / free.sum() if free.sum() else 0)
    span = float(solution.end_s[started].max() - jobs.arrival_s[0])
    return {
        "queue_mean": queued / span,
        "fragmentation_blocked": blocked / waiting if waiting else 0,
        "fragmentation_partial": partial / waiting if waiting else 0,
    }


@examples(13)
@given(seed=st.integers(0, 5000))
def test_metrics_over_time_are_those_of_a_look_at_every_span(seed: int) -> None:
    problem = stream(seed)
    solution = POLICIES["sjf"].load()(problem, limits=Limits(), seed=0).solution
    if solution is None:
        return
    found = problem.evaluate(solution).metrics
    for name, value in brute(problem, solution).items():
        assert found[name] == pytest.approx(value, abs=1e-4), name


def test_fairness_and_queue_length_are_what_they_say() -> None:
    assert jain(np.array([1.0, 1.0, 1.0])) == pytest.approx(1)
    assert jain(np.array([5.0, 0.0])) == pytest.approx(0.5)
    assert jain(np.zeros(3)) == 1
    time, length = queue_length(five_jobs(), fifo(five_jobs()))
    assert time.tolist() == [0, 10, 20, 30, 40, 3600, 4200]
    assert length.tolist() == [0, 1, 2, 3, 4, 3, 0]


def chi_square(found: Any, shares: tuple[float, ...]) -> float:
    expected = np.array(shares) * sum(found)
    return float(((np.array(found) - expected) ** 2 / expected).sum())


def test_the_workload_has_the_papers_marginals() -> None:
    jobs = draw(np.random.default_rng(1), 20_000, 64)
    # 99.9 % points of χ² with two, four and three degrees of freedom
    assert chi_square([jobs.kinds.count(k) for k, _ in KINDS], (0.5, 0.3, 0.2)) < 13.8
    counts = [int((jobs.gpus == n).sum()) for n, _ in GPUS]
    assert chi_square(counts, tuple(share for _, share in GPUS)) < 18.5
    spans = [
        int(((jobs.duration_s >= low) & (jobs.duration_s < high)).sum())
        for (low, high), _ in DURATIONS_S
    ]
    assert sum(spans) == len(jobs)
    assert chi_square(spans, tuple(share for _, share in DURATIONS_S)) < 16.3
    assert np.corrcoef(jobs.gpus, jobs.duration_s)[0, 1] == pytest.approx(0, abs=0.03)


def test_the_workload_has_the_load_and_the_couplings_asked_for() -> None:
    assert mixed(seed=0, size=1000, load=0.7).load == pytest.approx(0.7, rel=0.1)
    assert small(seed=0).nodes == 2
    assert len(mixed(seed=0)) == 200
    work = {c: draw(np.random.default_rng(0), 5000, 64, corr=c) for c in ("positive", "negative")}  # type: ignore[arg-type]
    positive, negative = (work[c].gpu_seconds.mean() for c in ("positive", "negative"))
    assert positive > 2 * negative
    wide = draw(np.random.default_rng(0), 5000, 64, large="16-32")
    assert set(wide.gpus.tolist()) == {1, 2, 4, 8, 16, 24, 32}
    assert draw(np.random.default_rng(0), 10, 64, arrivals="all_at_zero").arrival_s.max() == 0


def test_patience_and_estimates_leave_the_jobs_as_they_are() -> None:
    plain = draw(np.random.default_rng(0), 300, 64)
    for patience in ("const", "exp", "duration"):
        other = draw(np.random.default_rng(0), 300, 64, patience=patience)  # type: ignore[arg-type]
        assert np.array_equal(other.duration_s, plain.duration_s)
        assert np.isfinite(other.patience_s).all()
    guessed = draw(np.random.default_rng(0), 300, 64, estimate="limits")
    assert (guessed.estimate_s >= guessed.duration_s).all()
    noisy = draw(np.random.default_rng(0), 300, 64, estimate="lognormal")
    assert not noisy.exact_estimates


@pytest.mark.parametrize(
    "params",
    [{"load": 0}, {"corr": "x"}, {"patience": "x"}, {"patience_s": 0}, {"sigma": -1}, {"size": 0}],
)
def test_workloads_out_of_range_are_refused(params: dict[str, Any]) -> None:
    with pytest.raises(InputError, match=next(iter(params))):
        mixed(seed=0, **params)
