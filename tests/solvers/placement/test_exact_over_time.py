"""The program over intervals: what it counts, what it refuses, and what it does at a limit."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from strategies import timed_placement_problems

import optgap
from optgap.models.errors import InputError
from optgap.models.limits import Limits
from optgap.models.placement import PlacementProblem
from optgap.models.placement.presets_over_time import small_time
from optgap.models.result import Status, Termination
from optgap.solvers.backends import solve
from optgap.solvers.placement import auto
from optgap.solvers.placement.over_time.assigning import Assigning
from optgap.solvers.placement.over_time.exact import exact_over_time, outcome


@settings(max_examples=10)
@given(problem=timed_placement_problems(goals=("energy",), queues=("reject",), max_tasks=6))
def test_what_the_program_counts_is_what_the_referee_counts(problem: PlacementProblem) -> None:
    program = Assigning(problem)
    ran = optgap.run(problem, "pwr")
    assert program.claim(ran.solution) == pytest.approx(ran.objective, rel=1e-9)


def test_times_counted_from_1970_change_nothing() -> None:
    problem = small_time(seed=3, size=6)
    here = optgap.solve(problem, "exact-over-time")
    later = optgap.solve(problem.moved(1.7e9), "exact-over-time")
    assert here.status is later.status is Status.OPTIMAL
    assert later.objective == pytest.approx(here.objective, rel=1e-9)


def test_tasks_of_which_each_fits_but_not_all_together_have_no_schedule() -> None:
    problem = small_time(seed=0, size=8)
    tasks = problem.tasks.take([k for k in range(8) for _ in range(9)])
    together = replace(tasks, submit_s=np.zeros(72), duration_s=np.full(72, 10.0))
    crowd = PlacementProblem.of(
        problem.cluster, together, problem.workload, over_time=problem.over_time
    )
    found = exact_over_time(crowd, limits=Limits(), seed=0)
    assert found.status is Status.INFEASIBLE
    assert "no schedule runs all of them" in found.message


def test_at_a_limit_it_hands_over_what_it_has_and_calls_it_no_optimum() -> None:
    problem = small_time(seed=0, size=6)
    at_once = exact_over_time(problem, limits=Limits(0.0), seed=0)
    assert at_once.status is Status.NO_SOLUTION
    assert at_once.termination is Termination.TIME_LIMIT
    program = Assigning(problem)
    solved = solve(program.model, backend="highs", limits=Limits())
    assert solved.bound is not None
    early = replace(
        solved, status=Status.FEASIBLE, termination=Termination.TIME_LIMIT, bound=0.9 * solved.bound
    )
    found = outcome(program, early)
    assert found.status is Status.FEASIBLE
    assert found.termination is Termination.TIME_LIMIT
    assert found.bound == pytest.approx(early.bound)


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"queue": "fifo"}, "over_time.queue: found 'fifo'"),
        ({"queue": "backfill"}, "over_time.queue: found 'backfill'"),
        ({"goal": "mean_weighted"}, "objective.goal: found 'mean_weighted'"),
        ({"size": 101}, "tasks: found 101, expected at most 100"),
    ],
)
def test_what_it_is_not_for_it_refuses_in_one_line(change: dict[str, object], named: str) -> None:
    problem = small_time(seed=0, **{"size": 8, **change})  # type: ignore[arg-type]
    with pytest.raises(InputError) as error:
        exact_over_time(problem, limits=Limits(), seed=0)
    assert named in str(error.value)
    assert "\n" not in str(error.value)
    energy = problem.objective.goal == "energy"
    assert auto(problem) == ("hindsight" if energy else "bound-over-time")


def test_nodes_that_boot_for_tasks_of_several_nodes_are_refused() -> None:
    problem = small_time(seed=0, size=8, sleep_after_s=10.0, wake_s=1.0)
    both = replace(problem, tasks=problem.tasks.on_nodes(np.full(8, 2)))
    with pytest.raises(InputError, match=r"over_time\.wake_s: found 1\.0, expected 0 beside"):
        exact_over_time(both, limits=Limits(), seed=0)


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({}, "5 nodes (at most 6), 30 tasks × 20 at once = 600 (at most 180), a proof"),
        ({"size": 12, "queue": "fifo"}, "over_time.queue is fifo, it takes reject"),
        ({"size": 12, "sleep_after_s": 9.0, "wake_s": 1.0}, "24 possible stays × 24 at once"),
        ({"size": 200}, "tasks is 200, it takes at most 100"),
    ],
)
def test_the_bound_says_why_there_is_no_proof(change: dict[str, object], why: str) -> None:
    problem = small_time(seed=0, **change)  # type: ignore[arg-type]
    assert auto(problem) == ("bound-over-time" if "wake_s" in change else "hindsight")
    shown = str(optgap.compare(problem, "firstfit", "bound-over-time", time_limit=0.5)).splitlines()
    told = [line for line in shown if line.startswith("bound-over-time: exact-over-time was not")]
    assert len(told) == 1
    assert why in told[0]


def test_auto_takes_it_where_a_proof_is_near() -> None:
    for more in ({}, {"goal": "mean_accepted_gpu"}):
        problem = small_time(seed=0, size=12, **more)
        assert auto(problem) == "exact-over-time"
        assert not optgap.bound(problem, "bound-over-time", time_limit=0.5).message
    assert auto(small_time(seed=0, size=30)) == "hindsight"
    assert auto(small_time(seed=0, size=30, goal="mean_fragmentation")) == "bound-over-time"
