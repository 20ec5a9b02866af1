from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies_elastic import FREE, elastic_problems, jobs_of, table
from trust.agreement import examples

from optgap.models.elastic import ElasticProblem
from optgap.models.elastic.presets import small
from optgap.models.limits import Limits
from optgap.models.result import Status, Termination
from optgap.registry import FAMILIES
from optgap.solvers.backends.growing import Growing
from optgap.solvers.elastic.exhaustive import apart, dominated, exhaustive
from optgap.solvers.elastic.joint import Tables, by_worth, ends, order_of
from optgap.solvers.elastic.orders import Orders


def two_and_one_later(submit_s: float) -> ElasticProblem:
    """Jobs of 10 s on one GPU or two, of which two GPUs hold two at a time."""
    return ElasticProblem.of(
        [table("unit", [[1.0], [1.0]], [[100.0], [200.0]])],
        jobs_of([0, 0, 0], [10, 10, 10], [0, 0, submit_s]),
        [1000.0],
        gpus=2,
        gpus_per_node=2,
        cap="none",
        idle_w=0.0,
        overhead=FREE,
    )


@pytest.mark.parametrize("submit_s", [10, 12, 19, 20])
def test_a_job_submitted_after_two_that_run_side_by_side_delays_none(submit_s: float) -> None:
    problem = two_and_one_later(submit_s)
    best = exhaustive(problem, limits=Limits(60), seed=0)
    assert best.status is Status.OPTIMAL
    assert problem.check(best.solution) == []
    assert problem.evaluate(best.solution).objective == pytest.approx(10, rel=1e-6)
    assert np.isclose(best.bound, 10, rtol=1e-6)


def test_without_time_there_is_a_schedule_and_a_bound() -> None:
    problem = two_and_one_later(0.0)
    best = exhaustive(problem, limits=Limits(1e-9), seed=0)
    assert (best.status, best.termination) == (Status.FEASIBLE, Termination.TIME_LIMIT)
    assert problem.check(best.solution) == []
    assert problem.serves_all(best.solution)
    assert 0 < best.bound <= 40 / 3 * (1 + 1e-9)  # two at 10 s, one at 20 s
    assert "LP" not in best.bound_by


@pytest.mark.parametrize("later", [0.0, 1.7e9])
def test_jobs_of_milliseconds_and_of_years_are_proven_beside_one_another(later: float) -> None:
    """By twelve orders of magnitude apart, and the clock of a real log: within 5e-7 of the mean."""
    rng = np.random.default_rng(1)
    for _ in range(4):
        work = 10.0 ** (rng.uniform(2, 6, 4) if later else rng.uniform(-6, 6, 4))
        submit = later + np.sort(np.where(rng.random(4) < 0.5, 0, 10.0 ** rng.uniform(-6, 6, 4)))
        problem = replace(
            two_and_one_later(0.0), jobs=jobs_of([0] * 4, work.tolist(), submit.tolist())
        )
        best = exhaustive(problem, limits=Limits(60), seed=0)
        assert best.status is Status.OPTIMAL
        assert problem.check(best.solution) == []
        value = problem.evaluate(best.solution).objective
        assert value * (1 - 6e-7) <= best.bound <= value * (1 + 1e-9)


def test_jobs_that_come_when_all_are_done_are_searched_by_themselves() -> None:
    problem = two_and_one_later(21.0)  # later than one after another
    best = exhaustive(problem, limits=Limits(60), seed=0)
    assert apart(problem) == [[0, 1], [2]]
    assert apart(two_and_one_later(19.0)) == [[0, 1, 2]]
    assert best.info["groups"] == 2


def test_a_bound_holds_at_whatever_prices_the_solver_names(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = two_and_one_later(12.0)
    rng, right = np.random.default_rng(0), Growing.duals.fget

    def wrong(self: Any) -> np.ndarray:
        duals: np.ndarray = right(self)
        return duals * rng.uniform(0.5, 1.5, len(duals))

    monkeypatch.setattr(Growing, "duals", property(wrong))
    best = exhaustive(problem, limits=Limits(10), seed=0)
    assert best.bound <= 10
    assert problem.evaluate(best.solution).objective >= 10 * (1 - 1e-9)


@examples(15)
@given(problem=elastic_problems(max_jobs=4, free=True), data=st.data())
def test_no_prefix_is_bounded_above_the_optimum_of_an_order_that_begins_with_it(
    problem: ElasticProblem, data: st.DataObject
) -> None:
    tables = Tables(problem)
    events = order_of(tables, ends(tables, by_worth(tables, tables.fastest_s)))
    programs = Orders(tables, Limits())
    whole = programs.solve(events, np.inf)
    begun = programs.solve(events[: data.draw(st.integers(0, len(events)))], np.inf)
    assert 0 < begun.value <= whole.value * (1 + 1e-6)


def test_jobs_with_all_clocks_on_sixteen_gpus_are_proven() -> None:
    problem = small(seed=1, size=4, gpus=16, hours=0.2, restarts=False)
    best = exhaustive(problem, limits=Limits(60), seed=0)
    assert best.status is Status.OPTIMAL
    assert problem.check(best.solution) == []
    least = problem.evaluate(best.solution).objective
    for name in ("afs", "elastic-srtf", "optimal"):
        found = FAMILIES["elastic"].policies[name].load()(problem, limits=Limits(), seed=0)
        assert problem.evaluate(found.solution).objective >= least * (1 - 1e-6), name


def test_of_two_alike_the_one_that_is_shorter_and_there_before_completes_first() -> None:
    problem = two_and_one_later(5.0)
    assert dominated(problem) == [set(), {0}, {0, 1}]
    later = replace(problem, jobs=jobs_of([0, 0, 0], [10, 9, 8], [0, 0, 5]))
    assert dominated(later) == [{1}, set(), set()]
