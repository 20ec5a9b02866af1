"""Elastic training told in another way: what must not change does not."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies_elastic import elastic_problems
from trust.agreement import CLOSE, agree, examples, no_worse, optimum, solved

import optgap
from optgap.models.elastic import ElasticProblem, JobClass, Jobs


def small(**options: object) -> st.SearchStrategy[ElasticProblem]:
    """Few jobs, whose restarts are free: what every order can be tried of."""
    given: dict[str, object] = {"max_jobs": 2, "max_clocks": 2, "free": True, **options}
    return elastic_problems(**given)  # type: ignore[arg-type]


def retold(problem: ElasticProblem, **changes: object) -> ElasticProblem:
    """The same problem with other classes, jobs, clocks or numbers."""
    given: dict[str, object] = {
        "classes": problem.classes,
        "jobs": problem.jobs,
        "frequencies_mhz": problem.frequencies_mhz,
        "gpus": problem.gpus,
        "gpus_per_node": problem.gpus_per_node,
        "eta": problem.eta,
        "p_max_w": problem.p_max_w,
        "idle_w": problem.idle_w,
        "overhead": problem.overhead,
        **changes,
    }
    return ElasticProblem.of(**given)  # type: ignore[arg-type]


def scaled(item: JobClass, time: float = 1.0, power: float = 1.0) -> JobClass:
    return replace(item, time_s=time * item.time_s, power_w=power * item.power_w)


@examples(6)
@given(problem=small(), data=st.data())
def test_the_order_of_classes_and_jobs_does_not_matter(
    problem: ElasticProblem, data: st.DataObject
) -> None:
    order = list(data.draw(st.permutations(range(len(problem.classes)))))
    number = np.argsort(order)
    jobs = problem.jobs.only(np.array(data.draw(st.permutations(range(len(problem))))))
    other = retold(
        problem,
        classes=[problem.classes[k] for k in order],
        jobs=replace(jobs, of_class=number[jobs.of_class]),
    )
    agree(solved(problem, "exhaustive"), solved(other, "exhaustive"))


@examples(6)
@given(problem=small())
def test_seconds_in_another_unit(problem: ElasticProblem) -> None:
    other = retold(
        problem,
        classes=[scaled(item, time=16.0) for item in problem.classes],
        jobs=replace(problem.jobs, submit_s=16.0 * problem.jobs.submit_s),
    )
    agree(solved(problem, "exhaustive"), solved(other, "exhaustive"), 16.0)


@examples(6)
@given(problem=small())
def test_watts_in_another_unit(problem: ElasticProblem) -> None:
    other = retold(
        problem,
        classes=[scaled(item, power=1000.0) for item in problem.classes],
        p_max_w=1000.0 * problem.p_max_w,
        idle_w=1000.0 * problem.idle_w,
    )
    agree(solved(problem, "exhaustive"), solved(other, "exhaustive"))


@examples(6)
@given(problem=small())
def test_iterations_of_half_the_length(problem: ElasticProblem) -> None:
    other = retold(
        problem,
        classes=[scaled(item, time=0.5) for item in problem.classes],
        jobs=replace(problem.jobs, iterations=2.0 * problem.jobs.iterations),
    )
    agree(solved(problem, "exhaustive"), solved(other, "exhaustive"))


@examples(6)
@given(problem=small())
def test_more_power_or_another_node_never_delays(problem: ElasticProblem) -> None:
    before = optimum(problem, "exhaustive")
    no_worse(optimum(retold(problem, p_max_w=1.5 * problem.p_max_w), "exhaustive"), before)
    wider = retold(  # the limit stays: η·G·P_max
        problem,
        gpus=2 * problem.gpus,
        p_max_w=problem.p_max_w / 2,
        classes=problem.classes,
    )
    no_worse(optimum(wider, "exhaustive"), before)


@examples(6)
@given(problem=small())
def test_a_clock_that_is_slower_and_hungrier_changes_nothing(problem: ElasticProblem) -> None:
    worse = [
        replace(
            item,
            time_s=np.hstack([2 * item.time_s.max(axis=1, keepdims=True), item.time_s]),
            power_w=np.hstack([1.1 * item.power_w.max(axis=1, keepdims=True), item.power_w]),
        )
        for item in problem.classes
    ]
    clocks = [problem.frequencies_mhz[0] / 2, *problem.frequencies_mhz]
    other = retold(problem, classes=worse, frequencies_mhz=clocks)
    agree(solved(problem, "exhaustive"), solved(other, "exhaustive"))


def twice(problem: ElasticProblem, later: float) -> ElasticProblem:
    """The same jobs, and the same again some time later."""
    jobs = problem.jobs
    return retold(
        problem,
        jobs=Jobs(
            (*jobs.names, *(f"{name}'" for name in jobs.names)),
            np.concatenate([jobs.submit_s, later + jobs.submit_s]),
            np.tile(jobs.of_class, 2),
            np.tile(jobs.iterations, 2),
            np.tile(jobs.requested, 2),
        ),
    )


@examples(5)
@given(problem=small())
def test_a_trace_that_repeats_after_all_are_done_has_the_same_mean(
    problem: ElasticProblem,
) -> None:
    once, again = (solved(p, "exhaustive") for p in (problem, twice(problem, 2.0**14)))
    assert again.objective == pytest.approx(once.objective, rel=CLOSE)


@examples(6)
@given(problem=elastic_problems(max_jobs=3, max_clocks=2))
def test_policies_run_it_again_as_before(problem: ElasticProblem) -> None:
    for policy in ("fifo", "powerflow"):
        once, again = (optgap.run(p, policy) for p in (problem, twice(problem, 2.0**16)))
        if once.objective is not None and problem.serves_all(once.solution):
            assert again.objective == pytest.approx(once.objective, rel=CLOSE)
