"""Schedules with hindsight: between the optimum and every policy, whatever stops the search."""

from __future__ import annotations

from dataclasses import replace
from unittest import mock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from slow_placement import optimum
from small_time import small_time
from strategies import timed_placement_problems
from trust.agreement import examples

import optgap
from optgap.models.errors import InputError
from optgap.models.limits import Limits
from optgap.models.placement import Cluster, OverTime, PlacementProblem, Tasks
from optgap.models.placement.presets_over_time import alibaba_time
from optgap.models.result import Status, Termination
from optgap.solvers.placement import auto
from optgap.solvers.placement.over_time import hindsight as method
from optgap.solvers.placement.over_time.hindsight import (
    HindsightSearch,
    beyond_empty_j,
    hindsight,
    long_rows,
)
from optgap.solvers.placement.over_time.parameters import TUNING
from optgap.solvers.placement.over_time.search_kernels import anneal


@examples(7)
@given(
    problem=timed_placement_problems(goals=("energy",), max_tasks=5, max_gpus=3)
    | timed_placement_problems(goals=("energy",), max_tasks=3, max_gpus=3, gangs=True)
)
def test_it_lies_between_the_optimum_and_the_bound(problem: PlacementProblem) -> None:
    # the referee checks the schedule, and its bound
    found = optgap.solve(problem, "hindsight", moves=20)
    if found.solution is None:
        assert found.status is Status.INFEASIBLE or "no room found" in found.message
        return
    assert problem.serves_all(found.solution)
    assert problem.over_time is not None
    if not problem.over_time.waits:
        want = optimum(problem)
        assert found.objective >= want - 1e-6 * max(1.0, abs(want))


def test_it_comes_close_to_the_optimum_of_small_problems() -> None:
    for seed, least in ((0, 78_025.0), (1, 82_405.0)):  # J, proven by an integer program
        found = optgap.solve(small_time(seed=seed, size=7), "hindsight", moves=300).objective
        assert least * (1 - 1e-9) <= found <= 1.002 * least


def test_it_beats_every_policy_and_a_seed_gives_one_schedule(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    problem = alibaba_time(seed=2, size=80, days=1)
    monkeypatch.setattr(method, "TUNING", replace(TUNING, long_from=50))
    assert 0 < len(long_rows(problem)) < 50
    found = optgap.solve(problem, "hindsight", moves=100)
    best = min(optgap.run(problem, name).objective for name in ("pwr", "pwr+fgd"))
    assert found.bound <= found.objective < 0.995 * best
    again = optgap.solve(problem, "hindsight", moves=100)
    assert np.array_equal(again.solution.node, found.solution.node)
    assert auto(problem) == "hindsight"


@examples(6)
@given(
    problem=timed_placement_problems(
        goals=("energy",), queues=("reject",), gangs=True, max_tasks=8, max_nodes=4
    ),
    data=st.data(),
)
def test_what_moves_change_is_what_the_referee_sees(
    problem: PlacementProblem, data: st.DataObject
) -> None:
    with mock.patch.object(method, "TUNING", replace(TUNING, tasks=2)):
        agree(problem, data)


def agree(problem: PlacementProblem, data: st.DataObject) -> None:
    search = HindsightSearch(problem, Limits(), seed=0)
    search.construct(np.array(data.draw(st.permutations(range(len(problem.tasks))))))
    assert not problem.check(search.solution_of(search.book))
    search.anneal(10, 1e6, 1e3)
    before = search.solution_of(search.book)
    changed, found = anneal(search.case, search.book, search.choice, 10, 1e6, 1e3, search.rng)
    after = search.solution_of(search.book)
    assert not problem.check(after)
    assert found == (before.node < 0).sum() - (after.node < 0).sum()
    loss = problem.evaluate(after).objective - problem.evaluate(before).objective
    assert changed == pytest.approx(loss, rel=1e-6, abs=1e-2)
    assert search.best_j <= beyond_empty_j(problem, before) or search.missing


def test_at_a_limit_no_task_is_put_just_anywhere() -> None:
    problem = small_time(seed=0, size=30)
    found = hindsight(problem, limits=Limits(0.0), seed=0)
    assert found.termination is Termination.TIME_LIMIT
    assert found.solution is None
    limits = Limits()
    limits.interrupted.set()
    assert hindsight(problem, limits=limits, seed=0).termination is Termination.INTERRUPTED


def test_one_task_without_room_is_left_out_and_named() -> None:
    """Two nodes of one GPU. Halves a and c have to share one, beside w0; so b is on the other.

    Once c has left, a and b have a GPU each, and w1 finds none, though at no moment there is too
    much: no bound can tell.
    """
    tasks = Tasks.of(
        ["a", "c", "w0", "b", "w1"], [0] * 5, [0] * 5, [1] * 5, [500, 500, 1000, 500, 1000],
        [""] * 5, submit_s=[0.0, 0.0, 0.0, 2.0, 4.0], duration_s=[6.0, 3.0, 1.0, 4.0, 1.0],
    )  # fmt: skip
    nodes = Cluster.of(["m", "n"], [8000] * 2, [1024] * 2, [1, 1], ["T4", "T4"])
    problem = PlacementProblem.of(nodes, tasks, over_time=OverTime("reject"))
    found = optgap.solve(problem, "hindsight")
    assert found.status is Status.FEASIBLE
    assert found.metrics["failed_tasks"] == 1
    lost = int(np.flatnonzero(found.solution.node < 0)[0])
    assert f"no room found for 1 of 5 tasks: {tasks.names[lost]}" in found.message
    table = optgap.compare(problem, ["pwr", "fgd"], "hindsight")
    row = table.row("hindsight")
    assert (row.bound_scope, row.gap_to_bound is None) == ("accepted", False)
    known = next(line for line in table.head() if line.startswith("best known of a part"))
    assert f"by hindsight: no room found for 1 of 5 tasks: {tasks.names[lost]}" in known
    for policy in ("pwr", "fgd"):
        ran = table.row(policy).result
        assert ran.metrics["failed_tasks"] >= 1
        if np.array_equal(ran.solution.node < 0, found.solution.node < 0):
            assert found.objective <= ran.objective


def test_what_cannot_run_together_waits_or_is_proven_not_to_fit() -> None:
    still = small_time(seed=0, size=8)
    tasks = still.tasks.take([k for k in range(8) for _ in range(9)])
    tasks = replace(tasks, submit_s=np.zeros(72), duration_s=np.full(72, 10.0))
    for queue, status in (("reject", Status.INFEASIBLE), ("backfill", Status.FEASIBLE)):
        crowd = PlacementProblem.of(
            still.cluster,
            tasks,
            still.workload,
            over_time=OverTime(queue, horizon_s=20.0),  # type: ignore[arg-type]
        )
        found = optgap.solve(crowd, "hindsight", moves=100)
        assert found.status is status
    assert found.solution is not None
    assert max(found.solution.start_s) >= 10.0  # type: ignore[arg-type]


def test_what_it_is_not_for_it_refuses_in_one_line() -> None:
    problem = small_time(seed=0, size=30, goal="mean_fragmentation")
    named = "objective.goal: found 'mean_fragmentation'"
    with pytest.raises(InputError) as error:
        hindsight(problem, limits=Limits(), seed=0)
    assert named in str(error.value)
    assert "\n" not in str(error.value)
    assert auto(problem) == "bound-over-time"
